"""The desk: every request that a channel can make, and the event log that channels follow."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bot.desk.actors import Actor, Role
from bot.desk.answers import DeskAnswers
from bot.desk.chats import DeskChats
from bot.desk.console import DeskConsole
from bot.desk.contacts import DeskContacts
from bot.desk.context import DeskContext, DeskService, sees
from bot.desk.digest import DeskDigest
from bot.desk.following import DeskEvents, event_view
from bot.desk.history import DeskHistory
from bot.desk.incoming_webhooks import DeskIncomingWebhooks
from bot.desk.keys import DeskKeys
from bot.desk.knowledge import DeskKnowledge
from bot.desk.learning import DeskLearning
from bot.desk.people import DeskPeople
from bot.desk.phones import DeskPhones
from bot.desk.plans import DeskPlans
from bot.desk.questions import DeskQuestions
from bot.desk.runs import DeskRuns
from bot.desk.schedules import DeskSchedules
from bot.desk.sweeps import DeskSweeps
from bot.desk.take_over import DeskTakeOver
from bot.desk.team import DeskTeam
from bot.desk.views import EventView, StatusView
from bot.desk.webhooks import DeskWebhooks
from storage.events import EventLogReader, Events
from storage.runs import ACTIVE, Runs


class Desk(DeskService):
    """The services of the desk over one database, each a plain object.

    Calls on behalf of a person take the actor. The desk checks the actor's rights, and raises AccessDenied, RateLimited
    or StillLimited. ``key`` names a request: if a channel cannot know whether its request took effect, it repeats the
    request with the same key and gets the result of the first one.
    """

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        self.people = DeskPeople(context)
        self.team = DeskTeam(context)
        self.keys = DeskKeys(context)
        self.console = DeskConsole(context, self.people)
        self.take_over = DeskTakeOver(context)
        self.phones = DeskPhones(context)
        self.contacts = DeskContacts(context)
        self.chats = DeskChats(context)
        self.answers = DeskAnswers(context)
        self.questions = DeskQuestions(context)
        self.runs = DeskRuns(context, self.answers)
        self.plans = DeskPlans(context, self.runs)
        self.schedules = DeskSchedules(context, self.runs)
        self.sweeps = DeskSweeps(context, self.runs, self.schedules)
        self.history = DeskHistory(context, self.runs)
        self.digest = DeskDigest(context)
        self.kb = DeskKnowledge(context)
        self.learning = DeskLearning(context)
        self.log = DeskEvents(context)
        self.webhooks = DeskWebhooks(context)
        self.incoming = DeskIncomingWebhooks(context)

    async def status(self, actor: Actor) -> StatusView:
        """Return the phones, active runs and open questions that the person may see.

        A phone that the settings or a run expect, but that is not attached, counts as offline.
        """
        await self._allow(actor, Role.VIEWER, "status")
        going = await Runs(self._db).find(statuses=ACTIVE, limit=500 if actor.phones else 50)
        views = [
            await self.runs.get(row.id) for row in reversed(going) if not row.parent_id and sees(actor, row.serial)
        ]
        runs = tuple(view for view in views if view is not None)
        entries = await self.context.entries()
        async with self._db.one_view():
            expected = (*self.context.names, self.context.serial, *(run.serial for run in runs))
            phones = await self.phones.beside(entries, expected)
            return StatusView(
                phones=tuple(phone for phone in phones if sees(actor, phone.serial)),
                runs=runs,
                questions=tuple(await self.questions.seen_by(actor)),
            )

    async def position(self, consumer: str) -> int:
        """Return the id of the newest event that the consumer has confirmed; 0 if there is none."""
        return await Events(self._db).position(consumer)

    async def events(self, after: int) -> AsyncIterator[EventView]:
        """Yield the events after this one, then new ones as they come. Never ends."""
        reader = EventLogReader(self._db, after)
        while True:
            for row in await reader.more():
                reader.position = row.id
                yield event_view(row)

    async def newest_event(self) -> int:
        """Return the id of the newest event; 0 if there is none."""
        return await Events(self._db).newest()

    async def event_picture(self, event: EventView) -> bytes | None:
        """Return the screen of an event, as JPEG; None if it has none, or no longer. Checks no rights."""
        return await Events(self._db).picture(event.picture_id) if event.picture_id is not None else None

    async def confirm(self, consumer: str, event_id: int) -> None:
        """Store that the consumer has dealt with all events up to ``event_id``."""
        await Events(self._db).advance(consumer, event_id)
