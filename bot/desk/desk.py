"""The desk: all its parts, and the event log for its channels."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bot.desk.actors import Actor, Role
from bot.desk.answers import AnswersDesk
from bot.desk.chats import ChatsDesk
from bot.desk.contacts import ContactsDesk
from bot.desk.digest import DigestPart
from bot.desk.history import HistoryPart
from bot.desk.house import sees
from bot.desk.knowledge import KnowledgePart
from bot.desk.learning import LearningPart
from bot.desk.people import PeopleDesk
from bot.desk.phones import PhonesDesk
from bot.desk.plans import PlansPart
from bot.desk.questions import QuestionsDesk
from bot.desk.schedules import SchedulesDesk
from bot.desk.sweeps import SweepsDesk
from bot.desk.team import TeamPart
from bot.desk.views import EventView, StatusView
from storage.events import Events
from storage.runs import ACTIVE, Runs

WAIT_SECONDS = 1.0  # how soon events of other processes are seen


class HouseDesk(PeopleDesk, SchedulesDesk, SweepsDesk, QuestionsDesk, PhonesDesk, AnswersDesk, ContactsDesk, ChatsDesk):
    """``bot.desk.views.Desk`` over the database and the phones."""

    @property
    def kb(self) -> KnowledgePart:
        return KnowledgePart(self.house)

    @property
    def digest(self) -> DigestPart:
        return DigestPart(self.house)

    @property
    def history(self) -> HistoryPart:
        return HistoryPart(self.house)

    @property
    def team(self) -> TeamPart:
        return TeamPart(self.house)

    @property
    def learning(self) -> LearningPart:
        return LearningPart(self.house)

    @property
    def plans(self) -> PlansPart:
        return PlansPart(self.house)

    async def status(self, actor: Actor) -> StatusView:
        await self._allow(actor, Role.VIEWER, "status")
        going = await Runs(self._db).find(statuses=ACTIVE, limit=500 if actor.phones else 50)
        views = [await self.run(row.id) for row in reversed(going) if not row.parent_id and sees(actor, row.serial)]
        runs = tuple(view for view in views if view is not None)
        attached = await self.phones()
        there = {"", *(phone.serial for phone in attached)}
        expected = (*self.house.names, self.house.serial, *(run.serial for run in runs))
        missing = await self.away(serial for serial in expected if serial not in there)
        return StatusView(
            phones=tuple(phone for phone in (*attached, *missing) if sees(actor, phone.serial)),
            runs=runs,
            questions=tuple(await self.open_questions(actor)),
        )

    async def events(self, consumer: str) -> AsyncIterator[EventView]:
        log = Events(self._db)
        position = await log.position(consumer)
        while True:
            for row in await log.wait_after(position, timeout=WAIT_SECONDS):
                position = row.id
                picture = await log.picture(row.picture_id) if row.picture_id is not None else None
                yield EventView(row.id, row.run_id, row.kind, row.data, picture, row.created_at)

    async def confirm(self, consumer: str, event_id: int) -> None:
        await Events(self._db).advance(consumer, event_id)
