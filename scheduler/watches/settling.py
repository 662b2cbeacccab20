"""Decides when somebody who writes has stopped typing. Pure: the time is passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Typing:
    state: str
    since: float
    newest: float


@dataclass(slots=True)
class Settling:
    """The contacts who have written and were not handled yet. Times are seconds of one clock.

    A contact is ready ``settle`` seconds after their newest message, and no later than ``longest`` after the first.
    """

    settle: float
    longest: float
    _typing: dict[str, _Typing] = field(default_factory=dict)
    _done: dict[str, str] = field(default_factory=dict)

    def see(self, standing: Mapping[str, str], now: float) -> None:
        """Take in the current contacts: a state by name, which changes when they write again.

        A missing name was read by somebody.
        """
        self._typing = {name: one for name, one in self._typing.items() if name in standing}
        self._done = {name: state for name, state in self._done.items() if name in standing}
        for name, state in standing.items():
            typing = self._typing.get(name)
            if self._done.get(name) == state:
                continue
            if typing is None:
                self._typing[name] = _Typing(state, now, now)
            elif typing.state != state:
                typing.state, typing.newest = state, now

    def ready(self, now: float) -> dict[str, str]:
        """Return the contacts who have stopped typing, with their states, until ``done`` is called for them."""
        return {name: one.state for name, one in self._typing.items() if now >= self._due(one)}

    def done(self, name: str) -> None:
        """Mark a contact as handled until they write again."""
        if (typing := self._typing.pop(name, None)) is not None:
            self._done[name] = typing.state

    def due_in(self, now: float) -> float | None:
        """Return the seconds until the next contact is ready, or None if nobody types."""
        coming = [due - now for one in self._typing.values() if (due := self._due(one)) > now]
        return min(coming, default=None)

    def _due(self, typing: _Typing) -> float:
        return min(typing.newest + self.settle, typing.since + self.longest)
