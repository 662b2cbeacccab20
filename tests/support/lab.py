"""A phone on the bench: a virtual phone behind a real adb server, and the whole agent on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from agent_core.agent import PhoneAgent
from agent_core.devices.adb.server import open_adb
from agent_core.devices.base import Device
from agent_core.geometry import Point
from agent_core.loop.trajectory import Trajectory
from agent_core.model.client import ChatModel
from agent_core.model.usage import Meter
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.ports import Event, Lease, Ledger, Record, RunStore, StopGuard
from agent_core.retry import Sleep
from agent_core.session import Answer, Question, Session
from agent_core.settings import AgentSettings, new_session
from simulator.phone.assembly import CHECKED
from simulator.phone.core import local_now
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from tests.support.adb import adb_server
from tests.support.ledger import DrawnLedger
from tests.support.model_server import ScriptedModel

INVOICE = "可以，下单时备注抬头即可开电子发票。"
ANSWER = "您好，下单后48小时内发货，一般1-3天送达。"
QQ = "com.tencent.mobileqq"
OCR = OcrEngine()  # one for all: it is large
TASK = "QQ回复联系人11"
SIZE = (720, 1600)  # pixels


def do(call: str, thinking: str = "想一想") -> str:
    return f"<think>{thinking}</think><answer>{call}</answer>"


LAUNCH = do('do(action="Launch", app="QQ")')
ASK = do('do(action="GET_KNOWLEDGE_DATA", query="几天能发货")')
ASK_INVOICE = do('do(action="GET_KNOWLEDGE_DATA", query="能开发票吗")')
BACK = do('do(action="Back")')
FINISH = do('finish(message="已回复")')


@dataclass
class Shelf:
    """A knowledge base that answers every question; ``before`` happens while it is asked.

    ``answers``: for queries that hold these words, the answer, a record of the very question; all others get
    ``records``, whose own questions decide whether they are sent.
    """

    records: Sequence[Record] = (
        Record(id="k1", text=ANSWER, question="几天能发货", score=1.0, sure=True, source="shelf"),
    )
    answers: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None
    before: Callable[[], Awaitable[None] | None] | None = None
    queries: list[str] = field(default_factory=list)
    name: str = "shelf"

    async def retrieve(self, query: str) -> Sequence[Record]:
        self.queries.append(query)
        if self.before is not None:
            happening = self.before()
            if happening is not None:
                await happening
        if self.error is not None:
            raise self.error
        for words, text in self.answers.items():
            if words in query:
                return (Record(id=words, text=text, question=query, score=1.0, sure=True, source="shelf"),)
        return self.records

    async def close(self) -> None:
        return None


@dataclass
class People:
    """Answers questions in order; with nothing left nobody is there."""

    answers: list[Answer] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)
    pictures: list[bytes | None] = field(default_factory=list)  # those that were shown with them

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        self.asked.append(question)
        self.pictures.append(picture)
        return self.answers.pop(0) if self.answers else None


@dataclass
class Story:
    """Keeps events, and the session as another process would read it."""

    events: list[Event] = field(default_factory=list)
    saved: str = ""
    ledger: DrawnLedger | None = None

    async def save(self, session: Session) -> None:
        self.saved = session.model_dump_json()
        if self.ledger is not None and session.gate.enabled:
            self.ledger.note_stage(session)

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        self.events.append(event)
        if session is not None:
            await self.save(session)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


def _unset() -> Device:
    raise AssertionError("this lab has no server")


@dataclass
class Lab:
    phone: VirtualPhone
    device: Device
    knowledge: Shelf = field(default_factory=Shelf)
    people: People = field(default_factory=People)
    ledger: Ledger = field(default_factory=DrawnLedger)
    story: Story = field(default_factory=Story)
    tree: str = "auto"
    elements: bool = True  # without, nothing is read of a screen for the model, nor covered for people
    another: Callable[[], Device] = field(default=_unset, repr=False)  # as a new process would hold it

    @property
    def sent(self) -> dict[str, list[str]]:
        return self.phone.report()["sent"]

    @property
    def drafts(self) -> dict[str, str]:
        return self.phone.report()["drafts"]

    async def open_chat(self, name: str = "11") -> None:
        """As a person would: QQ, then the row with exactly this name."""
        await self.phone.launch(QQ)
        rows = [node for node in await self.phone.tree() if node.text == name]
        await self.device.tap(Point(*_center(rows[0].box.as_tuple())))

    async def open_chat_by_url(self, number: str = "20110011") -> None:
        """Where there is no tree to find a row in."""
        await self.phone.open_url(f"mqqwpa://im/chat?chat_type=wpa&uin={number}")

    async def run(
        self,
        model: ScriptedModel,
        task: str = TASK,
        *,
        session: Session | None = None,
        lease: Lease | None = None,
        guard: StopGuard | None = None,
        max_steps: int = 20,
        number: str = "",
        device: Device | None = None,
        ledger: Ledger | None = None,
        store: RunStore | None = None,
        trajectory: Trajectory | None = None,
        meter: Meter | None = None,
    ) -> Session:
        """An attempt: a new run of ``task``, or the next attempt of ``session``."""
        ledger = ledger or self.ledger
        self.story.ledger = ledger if isinstance(ledger, DrawnLedger) else None
        client = ChatModel(model.url, "scripted", "key", timeout=5, meter=meter, sleep=_no_sleep)
        settings = AgentSettings(
            max_steps=max_steps,
            tree="off" if self.tree == "off" else "auto",
            elements=self.elements,
            blur=self.elements,
            checked_versions=CHECKED,
        )
        agent = PhoneAgent(
            model=client,
            device=device or self.device,
            knowledge=self.knowledge,
            human=self.people,
            ledger=ledger,
            store=store or self.story,
            lease=lease,
            guard=guard,
            reader=ScreenReader(ocr=OCR, model=None),
            settings=settings,
            trajectory=trajectory,
        )
        try:
            return await agent.go_on(session or new_session(task, self.device.serial, settings, number=number))
        finally:
            await client.close()


async def _no_sleep(seconds: float) -> None:
    return None


def _center(box: tuple[int, int, int, int]) -> tuple[int, int]:
    return ((box[0] + box[2]) // 2, (box[1] + box[3]) // 2)


def on_a_small_phone(scenario: Scenario) -> Scenario:
    """The same on a screen of the same shape that costs a third less to draw, to fetch and to read.

    A scenario that names a size keeps it. The acceptance tests and the shipped scenarios have the large screen.
    """
    if "size" in scenario.phone.model_fields_set:
        return scenario
    return scenario.model_copy(update={"phone": scenario.phone.model_copy(update={"size": SIZE})})


@asynccontextmanager
async def lab(
    scenario: Scenario | None = None, *, sleep: Sleep = asyncio.sleep, clock: Callable[[], datetime] = local_now
) -> AsyncIterator[Lab]:
    """A lab of its own: phone, adb server, device. ``sleep`` is what the device waits with, ``clock`` the phone's."""
    phone = VirtualPhone(on_a_small_phone(scenario or default_scenario()), clock=clock)
    async with adb_server() as adb, serve(phone=phone) as running, await open_adb(port=adb.port) as server:
        await server.connect(running.address)
        address = running.address
        device = server.device(address, sleep=sleep)
        yield Lab(running.phone, device, another=lambda: server.device(address, sleep=sleep))
        await device.close()
