"""The dialects in which models write calls, and what each of them does: find the next call, and read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agent_core.actions.types import Action


@dataclass(frozen=True, slots=True)
class Call:
    """One complete call in a text, from ``start`` to just before ``end``.

    build: makes the action; raises ActionParseError.
    closed: nothing that may still arrive can belong to it.
    aside: text that was read and is not carried out.
    """

    start: int
    end: int
    build: Callable[[], Action]
    closed: bool = True
    thinking: str = ""
    summary: str = ""
    aside: str = ""
    finishes: bool = False


class DialectReader(Protocol):
    """Reads one way in which models write calls."""

    @property
    def hint(self) -> str:
        """The required content of a reply, for a model that wrote no call."""

    def next_start(self, text: str, pos: int, end: int) -> int | None:
        """Return where the next call may begin, between ``pos`` and ``end``; None if there is no such place."""

    def read_at(self, text: str, start: int, end: int) -> Call | None:
        """Read the call that begins at ``start``; None if it is only prose.

        Raises Incomplete if the call is cut off, ActionParseError if it is malformed.

        end: the position of the next tag; a text in quotes may reach beyond it.
        """
