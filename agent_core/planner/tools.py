"""The tools of a planner: those that come with the package, and the owner's.

The owner's are functions in the files of ``tools`` in their own folder:

    async def stock_of(article: str, shop: int = 1) -> dict[str, int]:
        '''How many pieces of an article a shop has. article: its number.'''

Each function at the top level of a file is a tool with its name, its parameters (``str``, ``int``, ``float`` or
``bool``; those with a default are optional), and its docstring, which the planner is told. A name that begins with an
underscore is not a tool. Files are read without being run; a file is run only if one of its tools is to be used, with
the rights of this process and without limits other than a time limit.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import linecache
import math
import sys
import types
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from agent_core.errors import ActionFailed
from agent_core.owner import folder as own
from agent_core.planner.base import CallResult, Executor
from agent_core.planner.words import texts
from agent_core.ports import KnowledgeBase
from agent_core.texts import Lang

EXTRA = ("search_knowledge", "get_battery")  # further tools that a planner may have, by name
ALWAYS = ("list_devices", "chat")  # tools of every planner
MOST_FOUND = 5  # records of the knowledge base that are shown

Call = Callable[[Executor, Mapping[str, Any]], Awaitable[Any]]
"""The function that does a tool's work; it returns plain JSON data, a text, or a ``CallResult``."""

Kind = Literal["string", "integer", "number", "boolean"]  # as JSON Schema names them
SECONDS = 60.0  # for one call
LONGEST_RESULT = 20_000  # characters, as JSON
MOST_SAID = 1_000  # characters of a docstring
_KINDS: Mapping[str, Kind] = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool. A text that is needed must not be empty."""

    name: str
    kind: Kind = "string"
    needed: bool = True

    @property
    def said(self) -> str:
        """The name for a model that gave wrong arguments, with the kind unless it is a string."""
        return self.name if self.kind == "string" else f"{self.name} ({self.kind})"

    def value(self, given: object) -> str | float | bool | None:
        """Return the given value as this kind; None if it does not fit. A model may write 7 for "7", or "7" for 7."""
        if self.kind == "string":
            return str(given).strip() or None if isinstance(given, str | int | float) else None
        if self.kind == "boolean":
            return {"true": True, "false": False}.get(str(given).strip().lower())
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            return None
        try:
            number = float(given)
        except ValueError:
            return None
        if not math.isfinite(number):
            return None
        return number if self.kind == "number" else int(number) if number == int(number) else None


@dataclass(frozen=True, slots=True)
class PlannerTool:
    """A tool of the planner.

    says: its description for the planner; "" if that, and what its parameters mean, is in ``tools.<name>`` of
    ``prompts/<lang>.toml``.
    """

    name: str
    call: Call
    parameters: tuple[Parameter, ...] = ()
    says: str = ""

    def description(self, lang: Lang) -> str:
        return self.says or texts(lang).tools[self.name]["what"]

    def schema(self, lang: Lang) -> dict[str, Any]:
        """Return the parameters as JSON Schema."""
        said = texts(lang).tools.get(self.name, {})
        return {
            "type": "object",
            "properties": {
                one.name: {"type": one.kind, **({"description": said[one.name]} if one.name in said else {})}
                for one in self.parameters
            },
            "required": [one.name for one in self.parameters if one.needed],
            "additionalProperties": False,
        }

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the given arguments, converted to their kinds; None if one is missing or does not fit."""
        found: dict[str, Any] = {}
        for one in self.parameters:
            value = one.value(given.get(one.name))
            if value is not None:
                found[one.name] = value
            elif one.needed or given.get(one.name) not in (None, ""):
                return None
        return found


def phone_tools() -> tuple[PlannerTool, ...]:
    """Return the tools that every planner has."""
    return PlannerTool("list_devices", _list_devices), PlannerTool(
        "chat", _chat, (Parameter("device_id"), Parameter("message"))
    )


def battery_tool() -> PlannerTool:
    return PlannerTool("get_battery", _battery, (Parameter("device_id"),))


def knowledge_tool(knowledge: Callable[[], KnowledgeBase]) -> PlannerTool:
    """Return the tool that searches the knowledge base.

    ``knowledge`` is called each time, because it may be replaced.
    """

    async def search(_: Executor, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = await knowledge().retrieve(given["query"])
        return [{"question": one.question, "text": one.text, "score": one.score} for one in found[:MOST_FOUND]]

    return PlannerTool("search_knowledge", search, (Parameter("query"),))


async def _list_devices(executor: Executor, _: Mapping[str, Any]) -> list[dict[str, str]]:
    return [phone.data() for phone in await executor.list_devices()]


async def _chat(executor: Executor, given: Mapping[str, Any]) -> CallResult:
    return await executor.chat(given["device_id"], given["message"])


async def _battery(executor: Executor, given: Mapping[str, Any]) -> dict[str, int | bool | None]:
    return asdict(await executor.battery(given["device_id"]))


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as its file declares it."""

    name: str
    says: str
    parameters: tuple[Parameter, ...]
    line: int
    read: own.OwnerSource


def declared() -> tuple[Declared, ...]:
    """Return every tool in the owner's folder, without running anything. Raises OwnWrong if a file is wrong."""
    return _declared(own.key())


@cache
def _declared(_: Path | None) -> tuple[Declared, ...]:
    found: dict[str, Declared] = {}
    for read in own.sources(own.Part.TOOLS).values():
        for tool in tools_in(read):
            if (other := found.get(tool.name)) is not None:
                raise _twice(tool, other)
            found[tool.name] = tool
    return tuple(found.values())


def _twice(tool: Declared, other: Declared) -> own.OwnWrong:
    message = f"{tool.name} stands in {other.read.file}, too"
    return tool.read.wrong("own_tool_twice", message, line=tool.line, name=tool.name, file=str(other.read.file))


def tools_in(read: own.OwnerSource) -> list[Declared]:
    """Return the tools that a file declares. Raises OwnWrong with everything that is wrong with them."""
    try:
        tree = ast.parse(read.text, str(read.file))
    except (SyntaxError, ValueError, RecursionError) as error:
        line, why = getattr(error, "lineno", None), getattr(error, "msg", "") or str(error)
        raise read.wrong("own_python", f"it is no Python: {why}", line=line, why=why) from None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found: list[Declared] = []
    faults: list[own.Fault] = []
    for node in functions:
        if not node.name.startswith("_"):
            try:
                found.append(_declaration(read, node))
            except own.OwnWrong as wrong:
                faults += wrong.faults
    if faults:
        raise own.OwnWrong(*faults)
    return found


def _declaration(read: own.OwnerSource, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Declared:
    says = " ".join((ast.get_docstring(node) or "").split())
    if node.name in (*ALWAYS, *EXTRA):
        message = f"{node.name} is a tool of ours; give it another name"
        raise read.wrong("own_tool_ours", message, line=node.lineno, name=node.name)
    if not says or len(says) > MOST_SAID:
        message = f"{node.name} needs a docstring of at most {MOST_SAID} characters: it is what the planner is told"
        raise read.wrong("own_tool_says", message, line=node.lineno, name=node.name, most=str(MOST_SAID))
    return Declared(node.name, says, _parameters(read, node), node.lineno, read)


def _parameters(read: own.OwnerSource, node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[Parameter, ...]:
    given = node.args
    plain = [*given.args, *given.kwonlyargs]
    with_default = {one.arg for one in given.args[len(given.args) - len(given.defaults) :]}
    with_default |= {one.arg for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    kinds = {one.arg: _kind(one.annotation) for one in plain}
    others = [one.arg for one in (*given.posonlyargs, given.vararg, given.kwarg) if one is not None]
    if wrong := [*others, *(name for name, kind in kinds.items() if kind is None)]:
        message = f"{node.name}: the parameter {wrong[0]} needs a type, one of {', '.join(_KINDS)}"
        raise read.wrong("own_tool_type", message, line=node.lineno, name=node.name, parameter=wrong[0])
    return tuple(
        Parameter(name, kind, needed=name not in with_default) for name, kind in kinds.items() if kind is not None
    )


def _kind(annotation: ast.expr | None) -> Kind | None:
    """Return the kind that an annotation names, as ``str`` or in quotes; None if it is not a kind."""
    if isinstance(annotation, ast.Constant):
        return _KINDS.get(str(annotation.value))
    return _KINDS.get(annotation.id) if isinstance(annotation, ast.Name) else None


# Using them -----------------------------------------------------------------------------------------------------------


def own_tools(names: Collection[str]) -> Sequence[PlannerTool]:
    """Return the named tools of the owner, ready to be called: their files are run.

    Raises OwnWrong if a file is wrong, or fails while it is run.
    """
    return [_tool(one) for one in declared() if one.name in names]


def _tool(one: Declared) -> PlannerTool:
    function = getattr(_module(one.read), one.name, None)
    if not callable(function):
        message = f"{one.name} is no function once the file has been run"
        raise one.read.wrong("own_tool_gone", message, line=one.line, name=one.name)

    async def call(_: Executor, given: Mapping[str, Any]) -> Any:
        return _as_data(one.name, await _called(one.name, function, given))

    return PlannerTool(one.name, call, one.parameters, one.says)


async def _called(name: str, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a tool, in a thread if it may block.

    After the time limit the thread goes on, because it cannot be stopped.
    """
    try:
        async with asyncio.timeout(SECONDS):
            if inspect.iscoroutinefunction(function):
                return await function(**given)
            return await asyncio.to_thread(function, **given)
    except TimeoutError:
        raise ActionFailed(f"{name} took longer than {SECONDS:g} seconds.") from None


def _as_data(name: str, result: object) -> Any:
    """Return the result as plain JSON data. Raises ActionFailed if it is none, or is too long."""
    try:
        written = json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ActionFailed(f"{name} returned {type(result).__name__}, which is no JSON data.") from None
    if len(written) > LONGEST_RESULT:
        raise ActionFailed(f"{name} returned more than {LONGEST_RESULT} characters.")
    return json.loads(written)


@cache
def _module(read: own.OwnerSource) -> types.ModuleType:
    """Run a file once, from the text that was checked: nothing is read again, and no cache is written beside it."""
    module = types.ModuleType(f"phonedesk_own_{read.name.replace('.', '_').replace('-', '_')}")
    module.__file__ = str(read.file)
    sys.modules[module.__name__] = module  # dataclasses and others look there
    linecache.cache[str(read.file)] = (len(read.text), None, read.text.splitlines(keepends=True), str(read.file))
    try:
        exec(compile(read.text, str(read.file), "exec"), module.__dict__)  # noqa: S102 - the owner's own code
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the owner's code does
        line = next((line for frame, line in _frames(error) if frame == str(read.file)), None)
        why = f"{type(error).__name__}: {error}"[:300]
        raise read.wrong("own_tool_run", f"it fails while it is run: {why}", line=line, why=why) from None
    return module


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """Return file and line of each call that led to an error, the innermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found[::-1]
