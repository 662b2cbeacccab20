"""The real desk over a database of its own, and what a worker and a phone would do, at the word of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from PIL import Image

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.base import Device, DeviceEntry
from agent_core.perception.observer import SeenPage
from agent_core.perception.page_report import ReadPage
from agent_core.ports import Event
from agent_core.session import Choice, Question, QuestionKind, ReplyRecord, Session, Status, StepRecord
from bot.desk.actors import Actor, Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.live_screens import LiveScreens
from bot.desk.views import QuestionView, RunView
from scheduler.jobs.deadlines import QuestionTimes
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from scheduler.runs.service import RunService
from storage.engine import Database
from storage.hosts import Phones
from storage.people import People
from storage.runs import ACTIVE, RUNNING, Runs
from tests.support.clock import Clock
from tests.support.database import filled_sqlite

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
CODES = {"4711": Role.OWNER, "0815": Role.OPERATOR, "1234": Role.VIEWER}
PHONE = "S1"


class _Nowhere:
    """Where no adb server listens: the phone's screen is the stage's."""

    host, port = "127.0.0.1", 1


@dataclass
class Stage:
    """One phone is attached, S1, a Pixel; it shows ``image``, of which ``page`` is read.

    ``broken`` is raised by whoever lists the phones or looks at one.
    """

    db: Database
    attached: list[DeviceEntry] = field(default_factory=lambda: [DeviceEntry(PHONE, "device", "Pixel")])
    image: Image.Image = field(default_factory=lambda: Image.new("RGB", (60, 120), "green"))
    page: SeenPage = field(default_factory=lambda: SeenPage(Image.new("RGB", (360, 800), "white"), ReadPage()))
    broken: Exception | None = None

    def __post_init__(self) -> None:
        self.service = RunService(self.db)
        self.rows = Runs(self.db)
        self.desk = Desk(
            DeskContext(
                self.db,
                self.service,
                self._entries,
                self._device,
                "UTC",
                serial=PHONE,
                screens=LiveScreens(lambda device: self, kept=0.0),
                page=self._read,
            )
        )
        self._store = StoredRuns(self.db)
        self._human = StoredHuman(self.db, hold_seconds=0, times=QuestionTimes(deadline=10))
        self._numbers = count(1)
        self._sessions: dict[str, Session] = {}

    # The phone --------------------------------------------------------------------------------------------------------

    async def _entries(self) -> list[DeviceEntry]:
        if self.broken is not None:
            raise self.broken
        return self.attached

    async def _device(self, serial: str) -> AdbDevice:
        if self.broken is not None:
            raise self.broken
        return AdbDevice(_Nowhere(), serial)

    async def picture(self) -> Image.Image:
        """What shows the phone's screen."""
        return self.image

    async def _read(self, _: Device) -> SeenPage:
        return self.page

    # People -----------------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """See ``known``."""
        await known(self.db)

    async def join(self, user_id: int, name: str, role: Role = Role.OPERATOR, lang: str = "zh") -> Actor:
        """Pair somebody."""
        code = f"{role}-{user_id}"
        await People(self.db).add_code(code, role=role.value, lifetime=timedelta(days=1), created_by="test")
        return await self.desk.people.pair("telegram", str(user_id), name, lang, code)

    async def actor(self, user_id: int) -> Actor:
        found = await self.desk.people.actor("telegram", str(user_id))
        assert found is not None
        return found

    # Runs and questions -----------------------------------------------------------------------------------------------

    async def runs(self) -> list[RunView]:
        """Return all runs, the oldest first."""
        return [await self.run(row.id) for row in reversed(await self.rows.find())]

    async def run(self, run_id: str) -> RunView:
        view = await self.desk.runs.get(run_id)
        assert view is not None
        return view

    async def newest(self) -> str:
        """Return the id of the run that was started last; "" if there is none."""
        return next((row.id for row in await self.rows.find(limit=1)), "")

    async def question(self, question_id: str) -> QuestionView:
        view = await self.desk.questions.get(question_id)
        assert view is not None
        return view

    async def begin(self, run_id: str) -> None:
        """Have a worker take the run up on its phone."""
        row = await self.rows.get(run_id)
        assert row is not None
        await self.rows.begin_attempt(run_id, row.attempt, serial=row.serial or row.wanted or PHONE)
        await self._store.event(run_id, Event("started", {}))

    async def ask(
        self,
        run_id: str,
        kind: QuestionKind = QuestionKind.NO_SURE_ANSWER,
        *choices: tuple[str, str],
        text: str = "怎么退货",
        free_text: bool = True,
        picture: bytes | None = None,
        **data: Any,
    ) -> str:
        """Have the run ask somebody, and park; a queued one begins for it. Returns the question's id."""
        question = Question(
            id=f"question{next(self._numbers)}",
            kind=kind,
            text=text,
            choices=[Choice(value=value, label=label) for value, label in choices],
            free_text=free_text,
            data={"contact": "11", **data},
        )
        row = await self.rows.get(run_id)
        assert row is not None
        if row.status != RUNNING and row.attempt_due_at is not None:
            await self.begin(run_id)
        await self._human.ask(self._session(run_id), question, picture=picture)
        await self.park(run_id)
        return question.id

    async def park(self, run_id: str) -> None:
        """Have the worker give the phone back, as the run waits for somebody."""
        row = await self.rows.get(run_id)
        assert row is not None
        await self.rows.park_attempt(run_id, row.attempt)

    async def step(self, run_id: str, step: StepRecord, *, picture: bytes | None = None) -> None:
        """Have the run do a step."""
        session = self._session(run_id)
        session.steps.append(step)
        await self._store.save(session)
        await self._store.event(run_id, Event("step", step.model_dump(exclude={"reply"})), picture=picture)

    async def tell(self, run_id: str, kind: str, data: Mapping[str, Any] | None = None) -> None:
        """Append an event to the log."""
        await self._store.event(run_id, Event(kind, dict(data or {})))

    async def end(self, run_id: str, status: str, message: str = "", *, replies: tuple[ReplyRecord, ...] = ()) -> None:
        """Have the run end."""
        row = await self.rows.get(run_id)
        assert row is not None
        session = self._session(run_id)
        session.replies.extend(replies)
        session.end(Status(status), message)
        await self._store.save(session)
        assert row.status in ACTIVE
        await self._store.event(run_id, Event("outcome", {"status": status, "message": message}))
        await self.rows.end_attempt(run_id, row.attempt, status=status, message=message)

    def _session(self, run_id: str) -> Session:
        return self._sessions.setdefault(run_id, Session(run_id=run_id, task="", serial=PHONE))


async def known(db: Database) -> None:
    """Have the phone be known, and another one that may come, and make the pairing codes of ``CODES``."""
    await Phones(db).saw({PHONE: "Pixel", "S2": "Mate"})
    for code, role in CODES.items():
        await People(db).add_code(code, role=role.value, lifetime=timedelta(days=1), created_by="test")


@asynccontextmanager
async def open_stage(path: Path) -> AsyncIterator[Stage]:
    """``path``: of the SQLite file. Its clock stands at ``NOW``."""
    clock = Clock()
    clock.time = NOW
    db = Database(await filled_sqlite(path, known, clock), clock=clock)
    yield Stage(db)
    await db.close()
