"""The marks of what a test needs, told from what its code can reach.

A test reaches what its function, its fixtures and their helpers in ``tests`` and ``simulator`` name, and what those
name in turn. A mark is written by hand only if the product itself starts what is needed, or for ``slow``. If a test
that counts as a unit starts a process or a server, ``Guard`` fails it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import pytest

UNIT, SLOW, SERVER, DEVICE, DATABASE, ACCEPTANCE = "unit", "slow", "server", "device", "database", "acceptance"
MARKS = {
    UNIT: "none of the others: it starts no process and no server, and draws and reads no screen",
    SLOW: "takes seconds by itself: very many cases, or time that passes",
    SERVER: "starts a server in its own process",
    DEVICE: "needs adb, a phone, virtual or not, or pictures of its screen",
    DATABASE: "needs PostgreSQL",
    ACCEPTANCE: "runs whole processes or commands",
}
_OURS = ("tests.", "simulator.")
_PLAIN = frozenset({str, bytes, int, float, NoneType})  # needs nothing, and names nothing
POSTGRES = "postgresql"  # the parameter of a test that is run over this database
# What is reached by these names needs what they open; what is outside ``tests`` is not searched any further.
_OPENERS = {
    "tests.support.adb.AdbServerProcess": DEVICE,
    "agent_core.devices.adb.server.open_adb": DEVICE,
    "agent_core.devices.hdc.server.HdcServer": DEVICE,
    "agent_core.devices.hdc.transport.HdcProgram": DEVICE,
    "agent_core.perception.ocr.OcrEngine": DEVICE,
    "bot.tools.eval.bench.open_bench": DEVICE,
    "simulator.phone.phone.VirtualPhone": DEVICE,
    "PIL.ImageDraw.Draw": DEVICE,
    "tests.storage.postgres.Server": DATABASE,
    "subprocess.Popen": ACCEPTANCE,
    "subprocess.run": ACCEPTANCE,
    "subprocess.check_output": ACCEPTANCE,
    "asyncio.subprocess.create_subprocess_exec": ACCEPTANCE,
    "concurrent.futures.process.ProcessPoolExecutor": ACCEPTANCE,
    "multiprocessing.process.BaseProcess": ACCEPTANCE,
    "typer.testing.CliRunner": ACCEPTANCE,
    "scheduler.runs.queue.DbosQueue": SLOW,
    "aiohttp.web_runner.AppRunner": SERVER,
    "aiohttp.test_utils.TestServer": SERVER,
    "asyncio.streams.start_server": SERVER,
    "asyncio.base_events.Server": SERVER,
    "bot.channels.web.app.serving": SERVER,
    "bot.channels.mcp.http.serving": SERVER,
    "bot.channels.mcp.door.listening": SERVER,
    "socket.socket": SERVER,
}


def tiers_of(item: pytest.Item) -> frozenset[str]:
    """Return the marks that a test gets: what it needs, or ``unit`` if it needs nothing and is not marked ``slow``."""
    if Path(__file__).parents[1] / ACCEPTANCE in item.path.parents:
        return frozenset({ACCEPTANCE})
    found = {mark.name for mark in item.iter_markers() if mark.name in MARKS}
    callspec = getattr(item, "callspec", None)
    if callspec is not None and POSTGRES in callspec.params.values():
        found.add(DATABASE)
    for thing in _roots(item):
        found |= _needs(thing)
    return frozenset(found or {UNIT})


def _roots(item: pytest.Item) -> Iterator[Any]:
    if isinstance(item, pytest.Function):
        yield item.function
        if item.cls is not None:
            yield item.cls
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            yield from (definition.func for definition in definitions[-1:])


@cache
def _needs(thing: Any) -> frozenset[str]:
    """Return what is needed by a function or a class of the tests."""
    found: set[str] = set()
    thing = _bare(thing)
    waiting = {id(thing): thing}
    seen = set(waiting)
    while waiting:
        _, one = waiting.popitem()
        need, nexts = _looked_at(one)
        if need:
            found.add(need)
        for number, another in nexts.items():
            if number not in seen:
                seen.add(number)
                waiting[number] = another
    return frozenset(found)


# What was looked at, by identity, with what it needs by itself and what it names; the thing is kept, so that no number
# is given twice. Thousands of tests name the same helpers.
_seen: dict[int, tuple[Any, str, dict[int, Any]]] = {}


def _looked_at(one: Any) -> tuple[str, dict[int, Any]]:
    """Return what opening ``one`` needs, "" for nothing, and what it names in turn, by identity."""
    if id(one) not in _seen:
        name = f"{getattr(one, '__module__', '')}.{getattr(one, '__qualname__', '')}"
        need = _OPENERS.get(name, "")
        nexts = () if need else (_bare(another) for another in _nexts(one))
        _seen[id(one)] = (one, need, {id(another): another for another in nexts if type(another) not in _PLAIN})
    _, need, named = _seen[id(one)]
    return need, named


def _nexts(one: Any) -> Iterator[Any]:
    if isinstance(one, FunctionType | type):
        yield from _named(one) if str(one.__module__).startswith(_OURS) else ()
    elif isinstance(one, dict):
        yield from tuple(one.values())  # sys.modules may be among them, and a lazy module grows it
    elif isinstance(one, list | tuple | set | frozenset):
        yield from one
    else:
        yield type(one)
        if str(type(one).__module__).startswith(_OURS):
            yield from getattr(one, "__dict__", {}).values()


def _bare(thing: Any) -> Any:
    """Return the function under a decorator."""
    hypothesis = getattr(thing, "hypothesis", None)
    return getattr(thing, "__wrapped__", getattr(hypothesis, "inner_test", thing))


def _named(thing: Any) -> Iterator[Any]:
    """Yield what a function or the methods and bases of a class name."""
    if isinstance(thing, type):
        yield from thing.__bases__
        for value in vars(thing).values():
            inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if isinstance(inner, FunctionType):
                yield inner
        return
    names = set(_names(thing.__code__))
    for name in names:
        # A module of ours that is imported where it is used, or a name of the whole file.
        value = import_module(name) if name.startswith(_OURS) else thing.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from (vars(value)[other] for other in names if other in vars(value))
        elif value is not None:
            yield value
    for cell in thing.__closure__ or ():
        yield cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


class Guard:
    """Keeps a unit test from starting a process or a server, and fails it if it tried."""

    # Looked into at every event of the interpreter, many thousands a second: one set, made once.
    _WATCHED = frozenset(
        {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system", "socket.bind"}
    )

    def __init__(self) -> None:
        self.test = ""  # the unit test that runs now
        self.tried: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.test and event in self._WATCHED:
            self.tried.append(f"{event} {arguments[0] if arguments else ''}")
            raise PermissionError(f"{self.test} counts as a unit and starts a process or a server: {self.tried[-1]}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid if UNIT in tiers_of(item) else ""
        self.tried.clear()
        try:
            return (yield)
        finally:
            self.test = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        done = yield
        assert not self.tried, f"it counts as a unit, but starts a process or a server: {self.tried}"
        return done
