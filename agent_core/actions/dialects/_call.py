"""What every dialect offers: where a call may begin, and the call that stands there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agent_core.actions.types import Action


@dataclass(frozen=True, slots=True)
class Call:
    """One complete call in a text, from ``start`` to just before ``end``. ``build`` raises ActionParseError.

    ``closed``: nothing that may still arrive can belong to it. ``aside`` is what was read and is not carried out.
    """

    start: int
    end: int
    build: Callable[[], Action]
    closed: bool = True
    thinking: str = ""
    summary: str = ""
    aside: str = ""
    finishes: bool = False


class Dialect(Protocol):
    """One way in which models write calls."""

    @property
    def hint(self) -> str:
        """What a reply must hold, for a model that wrote none."""

    def next_start(self, text: str, pos: int, end: int) -> int | None:
        """Where the next call may begin, between ``pos`` and ``end``."""

    def read_at(self, text: str, start: int, end: int) -> Call | None:
        """The call that begins at ``start``; None where it is only prose.

        ``end`` is where the next tag stands; a text in quotes may reach beyond it. Incomplete where the call is cut
        off, ActionParseError where it is malformed.
        """
