"""Planner tools written by the owner: functions in the files of ``tools`` in their own folder.

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
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent_core.errors import ActionFailed
from agent_core.owner import folder as own
from agent_core.planner.base import Executor
from agent_core.planner.tools import ALWAYS, EXTRA, Kind, Parameter, PlannerTool

SECONDS = 60.0  # for one call
LONGEST_RESULT = 20_000  # characters, as JSON
MOST_SAID = 1_000  # characters of a docstring
_KINDS: Mapping[str, Kind] = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


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
