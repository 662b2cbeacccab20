"""A process that is killed at a chosen call: what it called before has happened, nothing after, no clean-up either."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from tests.support.lab import ASK, FINISH

ACTS = frozenset({"tap", "key", "clear", "type", "keyboard"})
WRITES = frozenset({"open", "plan", "advance"})
TELLING = frozenset({"save"})
# What a reply does to the world, in order, from a chat that is in front; ``test_crashes`` keeps this list true.
REPLY = [
    *("kept_awake", "open", "plan", "save"),
    *("keyboard", "advance", "tap", "clear", "type"),
    *("advance", "tap", "advance"),
    *("save", "save", "save"),
]


class Killed(BaseException):
    """kill -9: no handler may do anything that reaches the outside."""


@dataclass
class Reaper:
    """Kills before the ``at``-th call (from 1); 0 counts only. ``calls`` names them all."""

    at: int = 0
    calls: list[str] = field(default_factory=list)
    dead: bool = False

    async def call(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        if not self.dead:
            self.calls.append(name)
            self.dead = len(self.calls) == self.at
        if self.dead:
            raise Killed
        return await work()


T = TypeVar("T")


def mortal(inner: T, reaper: Reaper, names: frozenset[str]) -> T:
    """``inner`` (a device, a ledger, a store) whose calls of ``names`` the reaper sees. Once dead, nothing works."""
    return cast("T", _Mortal(inner, reaper, names))


class _Mortal:
    def __init__(self, inner: Any, reaper: Reaper, names: frozenset[str]) -> None:
        self._inner, self._reaper, self._names = inner, reaper, names

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name in {"keyboard", "kept_awake"}:
            return lambda: self._held(name, value)
        if not callable(value) or name == "touch_watch":  # it only looks
            return value

        async def called(*args: object, **kwargs: object) -> object:
            if name not in self._names:
                if self._reaper.dead:
                    raise Killed
                return await value(*args, **kwargs)
            return await self._reaper.call(name, lambda: value(*args, **kwargs))

        return called

    @asynccontextmanager
    async def _held(self, name: str, manager: Callable[[], Any]) -> AsyncIterator[object]:
        inner = manager()
        held = await self._reaper.call(name, inner.__aenter__)
        try:
            yield _Mortal(held, self._reaper, self._names)
        finally:
            if not self._reaper.dead:
                await inner.__aexit__(None, None, None)


def sensible(body: dict[str, Any]) -> str:
    """Finishes once it is told that the answer is sent."""
    told = str(body["messages"][-1])
    return FINISH if any(words in told for words in ("已经发送给", "已在聊天里看到")) else ASK
