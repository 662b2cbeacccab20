"""What a channel can ask about plans: tasks that a planner has done in several parts. See ``bot.desk.views``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_core.planner import PlanEvent
from bot.desk.actors import Actor, ChatRef

if TYPE_CHECKING:
    from bot.desk.views import RunView


@dataclass(frozen=True, slots=True)
class PlanCallView:
    """A tool that the planner has called. ``args`` by name; ``result``: what came of it in words, "" where none did."""

    tool: str
    args: Mapping[str, str] = field(default_factory=dict)
    state: Literal["going", "done", "failed"] = "going"
    result: str = ""
    phone: str = ""  # the name of the one that it is about


@dataclass(frozen=True, slots=True)
class PlanView:
    """What a plan came to so far. ``said``: what the planner said last; "" once that is the plan's outcome."""

    calls: tuple[PlanCallView, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A plan that is asked for. ``session`` names the conversation that it belongs to, as whoever keeps it knows it.

    ``serials``: the phones that it may use, () for all; ``only``: the one that it is about, "" for any of these.
    """

    task: str
    session: str
    lang: Literal["zh", "en"] = "zh"
    requested_by: str = ""
    chat: Mapping[str, Any] | None = None
    serials: tuple[str, ...] = ()
    only: str = ""
    key: str = ""


class Planning(Protocol):
    """Who makes plans in this process, given to the desk. ``session``: as in ``NewPlan``."""

    @property
    def ready(self) -> bool:
        """Whether a planner is set; it may be set and taken away while the process runs."""

    def beginning(self, session: str) -> AbstractContextManager[None]:
        """Inside, a plan of this conversation is about to begin: ``stop`` and ``forget`` find it, and wait for the end.

        SessionBusy while another one is under way in this process.
        """

    async def start(self, new: NewPlan) -> str:
        """Begin a plan, inside ``beginning``; its run's id. Asked again with the same ``key``, the one that it began.
        One that was stopped since has ended when this returns.

        ConfigMissing where no planner is set; SessionBusy while another plan of the conversation is under way, in
        whichever process.
        """

    def follow(self, run_id: str) -> AsyncIterator[PlanEvent]:
        """The events of a plan of this process from its beginning, until its last one. KeyError for any other."""

    async def stop(self, session: str, *, by: str = "") -> bool:
        """Stop the plan of a conversation, whichever process makes it; its phones are free when this returns.

        False where none is under way.
        """

    async def leave(self, run_id: str) -> None:
        """Stop this very plan, if it is under way: whoever followed it has gone."""

    async def known(self, session: str) -> bool:
        """Whether there is such a conversation."""

    async def session_of(self, run_id: str) -> str | None:
        """The conversation that a plan belongs to; None for what is no plan."""

    async def close(self) -> None:
        """End every plan as one that was cut off: this process ends."""

    async def forget(self, session: str) -> bool:
        """Stop its plan, and delete the conversation. False where there is none."""


class PlansDesk(Protocol):
    """An operator may plan, on the phones that are theirs to use."""

    @property
    def ready(self) -> bool:
        """Whether plans can be made here: there is a planner, and this process has phones."""

    async def start(
        self,
        actor: Actor,
        task: str,
        *,
        chat: ChatRef | None = None,
        serial: str = "",
        session: str = "",
        after: str = "",
        key: str = "",
    ) -> RunView:
        """Have a task planned and done; its run. ``key`` as with ``start_run``.

        ``session``: the conversation that it goes on with, by the person's own name for it; "" for a new one.
        ``after``: a plan whose conversation it goes on with, where that is their own.
        """

    def follow(self, run_id: str) -> AsyncIterator[PlanEvent]:
        """As ``Planning.follow``. Rights were asked by ``start``."""

    async def leave(self, run_id: str) -> None:
        """As ``Planning.leave``. Rights were asked by ``start``."""

    async def stop(self, actor: Actor, session: str) -> bool:
        """Stop the plan of one's own conversation. False where none is under way; NotFound for no conversation."""

    async def forget(self, actor: Actor, session: str) -> None:
        """Forget one's own conversation; a plan of it is stopped. NotFound for none."""
