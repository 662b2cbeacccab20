"""What a channel can ask about sweeps. See ``bot.desk.views``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bot.desk.actors import Actor, ChatRef

if TYPE_CHECKING:
    from bot.desk.views import RunView

SweptState = Literal["waiting", "answering", "answered", "nothing", "asked", "elsewhere", "failed", "stopped", "quiet"]


@dataclass(frozen=True, slots=True)
class SweptView:
    """A contact of a sweep. ``texts``: what reached them. ``quiet``: left, since the quiet hours have begun.

    ``elsewhere``: an older run has their question and goes on by itself.
    """

    contact: str
    state: SweptState
    texts: tuple[str, ...] = ()
    message: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class SweepView:
    """What a sweep came to so far. ``looked`` None: it has not looked yet. ``details``: who was left out, and why.

    ``silent``: nobody is told of it, for it began by itself and nothing happened.
    """

    looked: int | None = None
    contacts: tuple[SweptView, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    silent: bool = False


class SweepsDesk(Protocol):
    async def start_sweep(
        self, actor: Actor, words: str, *, chat: ChatRef, serial: str | None = None, key: str = ""
    ) -> RunView:
        """Queue a sweep of the contacts, ``#tags`` or ``未读`` in ``words``. InputRejected where they cannot be read.

        ``key`` as with ``start_run``.
        """
