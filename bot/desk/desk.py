"""The desk: every request that a channel can make, and the event log that channels follow."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from typing import Any

from agent_core.lru import keep_newest
from bot.desk.actors import Actor, NotFound, Role
from bot.desk.answers import DeskAnswers
from bot.desk.console import DeskConsole
from bot.desk.contacts import DeskContacts
from bot.desk.context import DeskContext, DeskService, sees
from bot.desk.digest import DeskDigest
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
from bot.desk.views import EventBatches, EventView, StatusView
from bot.desk.webhooks import DeskWebhooks
from storage.chats import Chats
from storage.engine import Database
from storage.events import EventLogReader, EventRow, Events
from storage.runs import ACTIVE, Runs

GATHER_SECONDS = 0.1  # what comes within it goes out together: each time wakes every follower
KEPT = 300  # of the newest events; who is further behind reads the database
REMEMBERED = 500  # phones, by run


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

    async def chat_moved(self, channel: str, old_id: str, new_id: str) -> list[tuple[str, str]]:
        """Replace a chat's id by its new one everywhere.

        Returns the cards to show again: ``run`` or ``question``, and the id on the card. Checks no rights.
        """
        return await Chats(self._db).move(channel, old_id, new_id)

    async def topic_gone(self, channel: str, chat_id: str, thread_id: str) -> list[tuple[str, str]]:
        """Forget the cards of a topic that was deleted.

        Returns the cards to show again, as ``chat_moved`` does. Checks no rights.
        """
        return await Chats(self._db).forget_topic(channel, chat_id, thread_id)


class DeskEvents(DeskService):
    """The service for the event log. An actor sees the events of the phones that they may use."""

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        self._tail = _Tail(context.db)
        self._serials: OrderedDict[str, str] = OrderedDict()

    async def follow(self, actor: Actor, *, after: int | None = None, run_id: str = "") -> EventBatches:
        """Return the events after ``after``, then new ones as they come, those within ``GATHER_SECONDS`` together; it
        never ends. All followers get the same object for the same new event.

        after: the id of an event; None for new events only, and for all of a run if ``run_id`` names one. An id above
            the newest one, as from before a restore, means from now on: waiting until the ids are as high would miss
            events.
        run_id: only those of this run. Raises NotFound if there is none.
        """
        row = await Runs(self._db).get(run_id) if run_id else None
        await self._allow(actor, Role.VIEWER, "events", phone=(row.serial or row.wanted) if row else None, run=run_id)
        if run_id and row is None:
            raise NotFound(f"There is no run {run_id}.", key="no_run", name=run_id)
        newest = await Events(self._db).newest()
        if after is None:
            after = 0 if run_id else newest
        return self._following(actor, min(after, newest), run_id)

    async def picture(self, actor: Actor, event_id: int) -> bytes:
        """Return the screen of an event, as JPEG. Raises NotFound if it has none, or no longer."""
        rows = await Events(self._db).after(event_id - 1, limit=1)
        row = rows[0] if rows and rows[0].id == event_id else None
        phone = await self._serial_of(row.run_id) if row is not None else None
        # By the run: who looks at it sees many pictures, which are one look in the audit log.
        about: dict[str, Any] = {"event": event_id} if row is None else {"run": row.run_id}
        await self._allow(actor, Role.VIEWER, "event picture", phone=phone, paced=False, **about)
        picture_id = row.picture_id if row is not None else None
        jpeg = await Events(self._db).picture(picture_id) if picture_id is not None else None
        if jpeg is None:
            raise NotFound(f"The event {event_id} has no picture.", key="no_event_picture", name=event_id)
        return jpeg

    async def newest_picture(self, actor: Actor, run_id: str) -> int | None:
        """Return the newest event of a run that has a picture; None if there is none."""
        phone = await self._serial_of(run_id)
        await self._allow(actor, Role.VIEWER, "event picture", phone=phone, paced=False, run=run_id)
        return await Events(self._db).newest_picture(run_id)

    async def _following(self, actor: Actor, position: int, run_id: str) -> EventBatches:
        with self._tail as tail:
            await tail.begun()
            while True:
                if position < (begin := tail.begin):
                    events = list(map(event_view, await Events(self._db).after(position, run_id=run_id)))
                    position = events[-1].id if events else begin
                else:
                    events = tail.after(position)
                    position = events[-1].id if events else position
                    if not events:
                        await tail.more()
                if run_id:
                    events = [event for event in events if event.run_id == run_id]
                if actor.phones:
                    events = [event for event in events if sees(actor, await self._serial_of(event.run_id))]
                if events:
                    yield events

    async def _serial_of(self, run_id: str) -> str:
        """Return the phone that a run is on, or is for; "" for none."""
        known = self._serials.get(run_id)
        if known is None:
            row = await Runs(self._db).get(run_id) if run_id else None
            known = (row.serial or row.wanted) if row is not None else ""
            if known:
                keep_newest(self._serials, run_id, known, REMEMBERED)
        return known


def event_view(row: EventRow) -> EventView:
    return EventView(row.id, row.run_id, row.kind, row.data, row.picture_id, row.created_at)


class _Tail:
    """The newest events, read once for all followers. It reads while there are any.

    begin: all events after this one are kept here; earlier ones are only in the database.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._kept: deque[EventView] = deque()
        self._news = asyncio.Event()
        self._followers = 0
        self._reading: asyncio.Task[None] | None = None
        self.begin = -1

    def __enter__(self) -> _Tail:
        self._followers += 1
        if self._reading is None or self._reading.done():
            self.begin = -1
            self._kept.clear()
            self._reading = asyncio.create_task(self._read(), name="event-tail")
        return self

    def __exit__(self, *_: object) -> None:
        self._followers -= 1
        if not self._followers and self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def begun(self) -> None:
        """Wait until ``begin`` is known."""
        while self.begin < 0:
            await self.more()

    def after(self, position: int) -> list[EventView]:
        """Return the kept events after ``position``, the oldest first."""
        events = []
        for event in reversed(self._kept):
            if event.id <= position:
                break
            events.append(event)
        return events[::-1]

    async def more(self) -> None:
        """Wait for more events. Raises the error that stopped the tail from reading."""
        await self._news.wait()
        if self._reading is not None and self._reading.done():
            self._reading.result()

    async def _read(self) -> None:
        try:
            self.begin = await Events(self._db).newest()
            reader = EventLogReader(self._db, self.begin)
            self._tell()
            while True:
                for row in await reader.more():
                    self._kept.append(event_view(row))
                    reader.position = row.id
                    if len(self._kept) > KEPT:
                        self.begin = self._kept.popleft().id
                self._tell()
                await asyncio.sleep(GATHER_SECONDS)
        finally:
            asyncio.get_running_loop().call_soon(self._tell)  # when the task is done, its error can be read

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
