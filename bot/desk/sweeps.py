"""Sweeps: start one now, and have one started regularly, which makes it a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.loop.tasks import check_task
from bot.desk.actors import Actor, BadRequest, ChatRef
from bot.desk.contacts import app_key
from bot.desk.context import DeskContext, DeskService
from bot.desk.runs import DeskRuns, check_tags
from bot.desk.schedules import DeskSchedules
from bot.desk.schedules_views import NO_WISH, ScheduleView, ScheduleWish, SweepWhom
from bot.desk.views import RunView
from scheduler.sweeps.order import KIND, WORDS, SweepOrder, read_order, task_of

_WORD = {"zh": WORDS[0], "en": WORDS[-1]}


class DeskSweeps(DeskService):
    """The service for sweeps."""

    def __init__(self, context: DeskContext, runs: DeskRuns, schedules: DeskSchedules) -> None:
        super().__init__(context)
        self._runs = runs
        self._schedules = schedules

    async def start(
        self, actor: Actor, words: str, *, chat: ChatRef, serial: str | None = None, key: str = ""
    ) -> RunView:
        """Queue a sweep of the contacts, ``#tags`` or ``未读`` in ``words``, and return it.

        Raises InputRejected if the words cannot be read, BadRequest if no contact has a tag.
        """
        order = read_order(words)
        await check_tags(self._db, order)
        task = check_task(f"{_WORD[actor.lang]} {words}")
        return await self._runs.submit(actor, "sweep", task, chat=chat, serial=serial, options=order.data(), key=key)

    async def scheduled(self, actor: Actor) -> Sequence[ScheduleView]:
        """Return the schedules that start sweeps, of the phones that the person may see."""
        return [view for view in await self._schedules.all(actor) if view.kind == KIND]

    async def schedule(
        self, actor: Actor, whom: SweepWhom, expression: str, *, wish: ScheduleWish = NO_WISH, key: str = ""
    ) -> ScheduleView:
        """Add a schedule that starts a sweep, and return it with its next three times.

        expression: its times, as ``DeskSchedules.add`` takes them.
        Raises as ``DeskSchedules.add`` does, and if nobody is chosen or a name cannot be written.
        """
        return await self._schedules.add(
            actor, expression, task_of(_order(whom), actor.lang), chat=None, wish=wish, key=key
        )


def _order(whom: SweepWhom) -> SweepOrder:
    """Return the order. Raises BadRequest if there is no such app, or nobody is chosen."""
    app = app_key(whom.app)
    if whom.everybody:
        return SweepOrder(app=app)
    names, tags = (tuple(dict.fromkeys(filter(None, map(str.strip, some)))) for some in (whom.names, whom.tags))
    if not names and not tags:
        said = "Nobody is chosen."
        raise BadRequest(
            said, advice="Choose a contact or a tag, or everybody with unread messages.", key="sweep_nobody"
        )
    return SweepOrder(names, tags, app)
