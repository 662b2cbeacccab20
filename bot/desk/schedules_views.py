"""What a channel can ask about what is done when. See ``bot.desk.views``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_core.tasks import NO_RULES, TaskRules
from bot.desk.actors import Actor, ChatRef

if TYPE_CHECKING:
    from bot.desk.views import RunStatus, RunView

What = Literal["started", "busy", "queued", "quiet", "limit", "missed", "by_hand"]


@dataclass(frozen=True, slots=True)
class ScheduleWish:
    """What may be said of a schedule besides its time and its task; None is as it is, or as usual.

    ``serial``: a phone by its serial or name, "" for any. ``missed``: ``skip`` or ``catch_up``. ``overlap``: ``skip``
    or ``queue``. ``quiet``: ``22:00-07:00``, "" for none.
    """

    serial: str | None = None
    timezone: str | None = None
    missed: str | None = None
    overlap: str | None = None
    quiet: str | None = None
    jitter_seconds: int | None = None


NO_WISH = ScheduleWish()


@dataclass(frozen=True, slots=True)
class LastTick:
    """The newest tick, planned for ``at``: what became of it, and of the newest run (``status`` None: there is none).

    Times are in the schedule's time zone.
    """

    what: What
    at: datetime
    run_id: str = ""
    status: RunStatus | None = None
    ended_at: datetime | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """``expression`` is as the person wrote it, ``means`` the form that is kept of it; "" for a watch: it has no times.

    ``windows``: from and until of each, and the last time in it. The last four count the ticks.
    """

    id: str
    expression: str
    task: str
    next_times: tuple[datetime, ...] = ()  # the next three, in the schedule's time zone
    paused: bool = False
    rules: TaskRules = NO_RULES
    chat: ChatRef | None = None
    kind: str = "run"
    means: str = ""
    windows: tuple[tuple[str, str], ...] = ()
    timezone: str = ""
    elsewhere: bool = False  # the time zone is not the owner's
    serial: str = ""
    phone: str = ""  # its name; "" for any
    missed: str = "skip"
    overlap: str = "skip"
    quiet: str = ""
    jitter_seconds: int = 0
    last: LastTick | None = None
    started: int = 0
    skipped_busy: int = 0
    skipped_missed: int = 0
    skipped_quiet: int = 0


@dataclass(frozen=True, slots=True)
class ScheduleNews:
    """Ticks that nobody was there for: how many, from and until when, and whether the newest was made up for."""

    schedule: ScheduleView
    lang: Literal["zh", "en"]
    chat: ChatRef
    count: int
    since: datetime
    until: datetime
    caught_up: bool


class SchedulesDesk(Protocol):
    async def add_schedule(
        self,
        actor: Actor,
        expression: str,
        task: str,
        *,
        chat: ChatRef,
        rules: TaskRules = NO_RULES,
        wish: ScheduleWish = NO_WISH,
        key: str = "",
    ) -> ScheduleView:
        """BadRequest where the expression cannot be read. ``key`` as with ``start_run``."""

    async def edit_schedule(
        self,
        actor: Actor,
        schedule_id: str,
        *,
        expression: str | None = None,
        task: str | None = None,
        chat: ChatRef | None = None,
        rules: TaskRules | None = None,
        wish: ScheduleWish = NO_WISH,
    ) -> ScheduleView:
        """Change what is not None. BadRequest as with ``add_schedule``."""

    async def list_schedules(self, actor: Actor) -> Sequence[ScheduleView]: ...

    async def find_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """By its number, with or without a number sign; so everywhere. NotFound."""

    async def pause_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def resume_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def run_schedule(
        self, actor: Actor, schedule_id: str, *, chat: ChatRef | None = None, key: str = ""
    ) -> RunView:
        """Start its task now. The card is shown in ``chat``, else where the schedule's are; ``key`` as above."""

    async def remove_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def put_back_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """Undo ``remove_schedule``, for a week. BadRequest where there is nothing to undo."""

    async def schedule_news(self, data: Mapping[str, Any]) -> ScheduleNews | None:
        """What an event of the kind ``schedule`` tells people; None for nothing."""
