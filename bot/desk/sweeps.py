"""Sweeps: start one now, have one started regularly, which makes it a schedule, and change that."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.loop.tasks import check_task
from bot.desk.actors import Actor, BadRequest, ChatRef, NotFound, Role
from bot.desk.contacts import app_key
from bot.desk.context import DeskContext, DeskService
from bot.desk.runs import DeskRuns, check_tags
from bot.desk.schedules import DeskSchedules
from bot.desk.schedules_views import NO_WISH, ScheduleView, ScheduleWish, SweepChange, SweepWhom
from bot.desk.views import RunView
from scheduler.sweeps.order import SWEEP_KIND, WORDS, SweepOrder, read_order, task_of

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
        return [view for view in await self._schedules.all(actor) if view.kind == SWEEP_KIND]

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

    async def edit(
        self, actor: Actor, schedule_id: str, change: SweepChange, *, wish: ScheduleWish = NO_WISH
    ) -> ScheduleView:
        """Change a schedule that starts a sweep, and return it. What neither ``change`` nor ``wish`` names stays.

        Raises as ``schedule`` does, and NotFound if there is no such schedule or it starts no sweep.
        """
        view = await self._schedules.get(actor, schedule_id)
        if not actor.role.covers(Role.OWNER):
            return await self._schedules.edit(actor, schedule_id)  # which refuses them
        if view.sweep is None:
            said = f"The schedule {view.id} is no sweep."
            raise NotFound(said, advice="Change it as a schedule.", key="no_sweep", number=view.id)
        order, expression = _changed(view.sweep, change), change.expression
        if change.regular is not None:
            expression = change.regular.of(view.means)
        return await self._schedules.edit(
            actor,
            schedule_id,
            expression=expression,
            task=task_of(order, actor.lang) if order != view.sweep else None,
            wish=wish,
        )


def _changed(order: SweepOrder, change: SweepChange) -> SweepOrder:
    """Return an order after a change. Raises BadRequest as ``_order``."""
    app = order.app if change.app is None else app_key(change.app)
    names, tags = (order.names, order.tags) if app == order.app else ((), ())
    names = names if change.names is None else change.names
    tags = tags if change.tags is None else change.tags
    everybody = change.everybody
    if everybody is None:  # whoever names some means only those
        everybody = order.everybody and not names and not tags
    return _order(SweepWhom(app, everybody, names, tags))


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
