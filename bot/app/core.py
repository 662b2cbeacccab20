"""The composition root: the one place that builds and connects the parts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from PIL import Image

from agent_core.agent import PhoneAgent
from agent_core.devices.base import Device, TouchWatch
from agent_core.errors import MODEL_NAMES, ModelLimit, ModelNames, PhonedeskError
from agent_core.loop.tasks import TaskRules
from agent_core.loop.thinking import in_words
from agent_core.loop.trajectory import Trajectory
from agent_core.model.base import Model
from agent_core.perception.observer import Observer, SeenPage
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Source
from agent_core.policies import PolicyName, reply_task
from agent_core.ports import Human, KnowledgeBase, RunStore
from agent_core.reply.leftovers import clear_in_front
from agent_core.session import Session
from agent_core.settings import AgentSettings, new_session
from agent_core.texts import kept_language
from bot.app.attached import AttachedPhones
from bot.app.counters import CountedRuns, Counts
from bot.app.database import open_database
from bot.app.knowledge import build_knowledge, own_entries
from bot.app.limits import StoredMeter
from bot.app.models import ClientRotation, any_sees, build_chooser, build_model, model_profile_of
from bot.app.settings.layers import Settings
from knowledge.choosing import ModelChooser
from knowledge.embedded import EmbeddedKnowledge
from knowledge.learning import Learning
from scheduler.jobs.deadlines import QuestionTimes
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import ParkingModel
from scheduler.runs.lease import HeldLease, lease_of
from scheduler.sweeps.attempt import SweepEyes
from storage.contacts import Contacts
from storage.engine import Database
from storage.ledger import StoredLedger
from storage.model_calls import Trajectories

log = structlog.get_logger(__name__)


@dataclass
class Core:
    """The parts that every command needs that touches a phone. Opened and closed by ``open_core``."""

    settings: Settings
    db: Database
    meter: StoredMeter  # counts every call of a model
    model: Model
    knowledge: KnowledgeBase
    chooser: ModelChooser | None
    store: EmbeddedKnowledge  # the shop's own entries, live and waiting, whichever knowledge base answers
    reader: ScreenReader
    client_rotation: ClientRotation = field(default_factory=ClientRotation, repr=False)  # closes replaced clients
    followers: list[Callable[[Settings], None]] = field(default_factory=list, repr=False)  # called with new settings
    counts: Counts = field(default_factory=Counts, repr=False)  # this process's counters
    attached: AttachedPhones = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.attached = AttachedPhones(self.db, lambda: self.settings.device)

    def agent_settings(self, *, lang: str | None = None, max_steps: int | None = None) -> AgentSettings:
        """Return the agent's settings. ``lang``, ``max_steps``: instead of those in the settings."""
        settings = self.settings
        return AgentSettings(
            lang=kept_language(lang or settings.lang),
            max_steps=max_steps or settings.run.max_steps,
            max_tokens=settings.run.max_tokens,
            max_cost=settings.run.max_cost,
            elements=settings.observe.elements,
            tree=settings.observe.tree,
            model=model_profile_of(settings),
            timezone=settings.timezone,
            part_chars=settings.run.part_chars,
            checked_versions=settings.run.checked_versions,
            blur=settings.pictures.blur,
        )

    async def may_ask(self, lang: str | None) -> None:
        """Raise ModelLimit, in this language, if today's limit for models is reached. Called before a run begins."""
        try:
            await self.meter.check()
        except ModelLimit as error:
            raise in_words(error, self.agent_settings(lang=lang).lang) from None

    async def limited(self) -> bool:
        """Tell whether today's limit for models is reached; then nothing begins by itself.

        The owner is informed once.
        """
        try:
            await self.meter.check()
        except ModelLimit:
            return True
        return False

    def sweep_eyes(self) -> SweepEyes:
        """Return the parts that a sweep needs to look at a phone."""
        settings = self.settings
        return SweepEyes(self.reader, settings.observe.tree, settings.sweep.cool_down_seconds)

    async def picture(self, device: Device) -> Image.Image:
        """Return the phone's screen for people, with secrets covered as the settings say."""
        return await self.screen(device).picture()

    def screen(self, device: Device) -> CoveredScreen:
        """Return the phone's screen for people, who look at it again and again."""
        return CoveredScreen(self, device)

    async def clear_leftover(self, device: Device) -> None:
        """Clear the text that a dead run left in the visible input, unless somebody has the phone."""
        ledger = StoredLedger(self.db)
        if not await ledger.unfinished(device.serial):
            return
        owner, seconds = f"screen-{os.getpid()}", self.settings.queue.lost_after_seconds
        try:
            async with lease_of(self.db, device, owner=owner, why="screen", seconds=seconds) as lease:
                await clear_in_front(self.observer(device), ledger, lease=lease, guard=lease.stop, touches=TouchWatch())
        except PhonedeskError as error:  # somebody has the phone and takes care of it, or it cannot be reached
            log.info("leftover_not_cleared", serial=device.serial, error=str(error))

    async def page(self, device: Device) -> SeenPage:
        """Return the reading of the phone's screen for people, with secrets covered as the settings say."""
        async with self.client_rotation.used():
            return await self.observer(device).page()

    def observer(self, device: Device) -> Observer:
        """Return an observer of a phone, as the settings say."""
        settings = self.settings
        return Observer(
            device,
            self.reader,
            ledger=StoredLedger(self.db),
            tree=settings.observe.tree,
            blur=settings.pictures.blur,
        )

    async def session(
        self,
        task: str,
        serial: str,
        settings: AgentSettings,
        *,
        run_id: str,
        rules: TaskRules,
        dry_run: bool = False,
    ) -> Session:
        """Return a new run's session, with the saved contact that its task names."""
        policy = PolicyName(rules.policy) if rules.policy else None
        session = new_session(task, serial, settings, run_id=run_id, dry_run=dry_run, policy=policy, apps=rules.apps)
        if session.gate.contact:
            contacts = Contacts(self.db)
            known = [row.name for row in await contacts.all(app=session.gate.app)]
            named = reply_task(task, known, certain=True)
            session.gate.contact = named.contact if named is not None else session.gate.contact
            contact = await contacts.find(session.gate.app, session.gate.contact, serial)
            session.gate.number = contact.number if contact else ""
        return session

    def agent(
        self,
        device: Device,
        settings: AgentSettings,
        *,
        human: Human,
        lease: HeldLease,
        store: RunStore,
        attempt: int,
        run_id: str,
    ) -> PhoneAgent:
        """Return an agent for attempt ``attempt`` of a run, on one phone, over the stored ledger and event log."""
        return PhoneAgent(
            model=ParkingModel(self.model, lease.stop),
            device=device,
            knowledge=self.knowledge,
            chooser=self.chooser,
            human=human,
            ledger=StoredLedger(self.db, run_id=run_id, attempt=attempt),
            store=CountedRuns(store, self.counts),
            lease=lease,
            guard=lease.stop,
            reader=self.reader,
            settings=settings,
            trajectory=self._trajectory(attempt),
        )

    def _trajectory(self, attempt: int | None) -> Trajectory | None:
        wanted = self.settings.trajectory
        return Trajectory(Trajectories(self.db, attempt=attempt), wanted.pictures) if wanted.record else None

    def runs(self, attempt: int | None = None) -> StoredRuns:
        """Return the store for an attempt of a run. It turns people's answers into entries that wait for approval."""
        return StoredRuns(self.db, learn=Learning(self.store).from_answer, attempt=attempt)

    async def close(self) -> None:
        """Close all parts."""
        await self.attached.close()
        await self.client_rotation.close()
        await self.model.close()
        await self.knowledge.close()
        await self.store.close()
        if self.chooser is not None:
            await self.chooser.close()
        await self.db.close()


def build_reader(settings: Settings, model: Model, ocr: OcrEngine | None = None) -> ScreenReader:
    """Return a reader with the readings that the settings allow: the tree, OCR if its extra is installed, and a model.

    ocr: caches its readings; several readers may share one.
    """
    observe = settings.observe
    allowed = {
        Source.TREE: observe.tree != "off",
        Source.OCR: observe.ocr != "off",
        Source.MODEL: observe.model and any_sees(settings),
    }
    return ScreenReader(ocr=ocr or OcrEngine(), model=model, sources=[source for source, on in allowed.items() if on])


def question_times(settings: Settings) -> QuestionTimes:
    """Return when people are reminded of a question, when it is escalated and when its deadline is."""
    wanted = settings.questions
    return QuestionTimes(wanted.deadline_minutes, wanted.remind_minutes, wanted.escalate_minutes)


@asynccontextmanager
async def open_core(settings: Settings, names: ModelNames = MODEL_NAMES) -> AsyncIterator[Core]:
    """Open the parts, and close them at the end.

    names: the model's settings for error messages, if they are not in the environment.
    """
    db = await open_database(settings)
    counts = Counts()
    meter = StoredMeter(db, settings, counts)
    model = build_model(settings, meter, names)
    store = own_entries(settings, db)
    knowledge = await build_knowledge(settings, store)
    chooser, reader = build_chooser(settings, meter), build_reader(settings, model)
    core = Core(settings, db, meter, model, knowledge, chooser, store, reader, followers=[meter.follow], counts=counts)
    try:
        yield core
    finally:
        await core.close()


class CoveredScreen:
    """A phone's screen for people. Remembers what it has read, so that a screen that rests is read once."""

    def __init__(self, core: Core, device: Device) -> None:
        self._core, self._device, self._settings = core, device, core.settings
        self._observer = core.observer(device)

    async def picture(self) -> Image.Image:
        """Return the current screen, with secrets covered as the settings say."""
        async with self._core.client_rotation.used():
            if self._settings is not self._core.settings:  # what is covered may be set otherwise now
                self._settings, self._observer = self._core.settings, self._core.observer(self._device)
            await self._core.clear_leftover(self._device)
            return await self._observer.picture()
