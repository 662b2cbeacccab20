"""The composition root: the one place that builds and wires everything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from PIL import Image
from sqlalchemy.exc import DBAPIError

from agent_core.agent import PhoneAgent
from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.discovery import connect, find_device
from agent_core.devices.adb.server import AdbServer, DeviceEntry, open_adb
from agent_core.devices.base import Device
from agent_core.errors import ConfigInvalid, PhonedeskError
from agent_core.gate import PolicyName, contact_of
from agent_core.model.base import Model
from agent_core.model.client import ChatModel
from agent_core.model.profile import ModelProfile, profile_of_model
from agent_core.model.prompt import tools_of
from agent_core.observer import Observer
from agent_core.ports import AnswerEvent, Human, KnowledgeBase, Lease, RunStore, StopGuard
from agent_core.screen.ocr import OcrEngine
from agent_core.screen.reader import ScreenReader
from agent_core.screen.readings import Source
from agent_core.session import Session
from agent_core.settings import AgentSettings, new_session
from agent_core.tasks import TaskRules
from bot.settings import RemoteSettings, Settings
from knowledge.chain import embedded_in
from knowledge.choosing import ModelChooser
from knowledge.embedded import EmbeddedKnowledge
from knowledge.factory import KnowledgeConfig, OwnConfig, build
from knowledge.learning import Learning
from scheduler.ports import StoredLedger, StoredRuns
from scheduler.sweeps.leg import SweepEyes
from storage.contacts import Contacts
from storage.engine import Database
from storage.phones import Phones

log = structlog.get_logger(__name__)

CONNECT_EVERY_SECONDS = 10.0  # how often a phone that is reached by network is looked for again
DATABASE_PATIENCE = 75.0  # seconds for which a database that was there and goes away is waited for
CONNECT_WAIT_SECONDS = 1.0  # how long a list waits for one that is missing, where others are there


@dataclass
class Core:
    """What every command that touches a phone needs. Made by ``open_core``, closed with it."""

    settings: Settings
    db: Database
    model: Model
    knowledge: KnowledgeBase
    chooser: ModelChooser | None
    store: EmbeddedKnowledge  # the shop's own entries, and those that wait for approval, whoever answers
    reader: ScreenReader
    _adb: AdbServer | None = field(default=None, repr=False)
    _connect_again_at: float = 0.0
    _noted: dict[str, str] = field(default_factory=dict, repr=False)  # the phones that are written down, with models
    _connecting: asyncio.Task[None] | None = field(default=None, repr=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def adb(self) -> AdbServer:
        """The adb server: a running one, or ours. One that was ended meanwhile is started again."""
        async with self._opening:
            if self._adb is not None and not await self._adb.answers():
                log.warning("adb_server_gone", port=self._adb.port)
                await self._adb.close()
                self._adb = None
            if self._adb is None:
                device = self.settings.device
                self._adb = await open_adb(device.adb_path or None, device.adb_host, device.adb_port)
            return self._adb

    async def phones(self) -> list[DeviceEntry]:
        """The phones that adb knows. Those of the settings that are missing are connected to."""
        adb = await self.adb()
        entries = await adb.devices()
        usable = {entry.serial for entry in entries if entry.state == "device"}
        missing = [address for address in self._addresses() if address not in usable]
        if missing and self._connecting is None and time.monotonic() >= self._connect_again_at:
            self._connect_again_at = time.monotonic() + CONNECT_EVERY_SECONDS
            self._connecting = asyncio.create_task(self._connect(adb, missing), name="connect-phones")
        if self._connecting is not None:
            # One that does not answer takes its time; those that are there do not wait for it.
            await asyncio.wait([self._connecting], timeout=CONNECT_WAIT_SECONDS if usable else None)
            entries = await adb.devices()
        await self._note(entries)
        return entries

    async def glance(self) -> list[DeviceEntry]:
        """The phones that adb knows, at once: nothing is connected to."""
        return await (await self.adb()).devices()

    async def _note(self, entries: Sequence[DeviceEntry]) -> None:
        """Write down what phones there are, so that one that is away is known by its name."""
        seen = {entry.serial: entry.model or self._noted.get(entry.serial, "") for entry in entries}
        new = {serial: model for serial, model in seen.items() if self._noted.get(serial) != model}
        if new:
            await Phones(self.db).saw(new)
            self._noted.update(new)

    async def _connect(self, adb: AdbServer, addresses: Sequence[str]) -> None:
        async def one(address: str) -> None:
            try:
                await connect(adb, address)
            except PhonedeskError as error:
                log.warning("phone_not_connected", address=address, error=str(error))

        try:
            await asyncio.gather(*map(one, addresses))
        finally:
            self._connecting = None

    def _addresses(self) -> list[str]:
        device = self.settings.device
        return [*device.connect, *([device.serial] if ":" in device.serial else [])]

    async def device(self, serial: str = "") -> AdbDevice:
        """The phone with this serial, else the one of the settings, else the only one that is attached."""
        wanted = serial or self.settings.device.serial
        # One that is there does not wait until others are connected to.
        if not any(entry.serial == wanted and entry.state == "device" for entry in await self.glance()):
            await self.phones()
        return await find_device(await self.adb(), wanted or None)

    def agent_settings(self, *, lang: str | None = None, max_steps: int | None = None) -> AgentSettings:
        settings = self.settings
        return AgentSettings(
            lang="en" if (lang or settings.lang) == "en" else "zh",
            max_steps=max_steps or settings.run.max_steps,
            elements=settings.observe.elements,
            tree=settings.observe.tree,
            model=model_profile_of(settings),
            timezone=settings.timezone,
            part_chars=settings.run.part_chars,
            blur=settings.pictures.blur,
        )

    def sweep_eyes(self) -> SweepEyes:
        """What a sweep looks with."""
        settings = self.settings
        return SweepEyes(self.reader, settings.observe.tree, settings.sweep.cool_down_seconds)

    async def picture(self, device: Device) -> Image.Image:
        """What the phone shows now, for people: secrets are covered, as the settings say."""
        settings = self.settings
        return await Observer(device, self.reader, tree=settings.observe.tree, blur=settings.pictures.blur).picture()

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
        """A new run's session, with what is known of the contact that its task names."""
        policy = PolicyName(rules.policy) if rules.policy else None
        session = new_session(task, serial, settings, run_id=run_id, dry_run=dry_run, policy=policy, apps=rules.apps)
        if session.gate.contact:
            contacts = Contacts(self.db)
            known = [row.name for row in await contacts.all(app=session.gate.app)]
            session.gate.contact = contact_of(task, known)
            contact = await contacts.find(session.gate.app, session.gate.contact, serial)
            session.gate.number = contact.number if contact else ""
        return session

    def agent(
        self,
        device: AdbDevice,
        settings: AgentSettings,
        *,
        human: Human,
        lease: Lease,
        guard: StopGuard,
        store: RunStore | None = None,
        model: Model | None = None,
    ) -> PhoneAgent:
        """An agent for one run on one phone, over the stored ledger and event log. ``model``: instead of ours."""
        return PhoneAgent(
            model=model or self.model,
            device=device,
            knowledge=self.knowledge,
            chooser=self.chooser,
            human=human,
            ledger=StoredLedger(self.db),
            store=store or self.runs(),
            lease=lease,
            guard=guard,
            reader=self.reader,
            settings=settings,
        )

    def runs(self, leg: int | None = None) -> StoredRuns:
        """Where runs leave what they do, ``leg`` by leg; what people answered becomes waiting entries."""
        return StoredRuns(self.db, learn=self._learn, leg=leg)

    async def _learn(self, answer: AnswerEvent) -> None:
        if not answer.query:
            return  # what was asked could not be read
        await Learning(self.store).from_reply(
            words=answer.question,
            query=answer.query,
            answer=answer.sent,
            record_id=answer.record_id,
            record_source=answer.record_source,
            person=answer.person,
            contact=answer.contact,
        )

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._adb is not None:
            await self._adb.close()
        await self.model.close()
        await self.knowledge.close()
        await self.store.close()
        if self.chooser is not None:
            await self.chooser.close()
        await self.db.close()


def build_model(settings: Settings) -> ChatModel:
    model, profile = settings.model, model_profile_of(settings)
    return ChatModel(
        model.base_url,
        model.name,
        model.api_key.get_secret_value(),
        max_tokens=model.max_tokens,
        temperature=model.temperature,
        top_p=model.top_p,
        frequency_penalty=model.frequency_penalty,
        extra_body=model.extra_body,
        timeout=model.timeout_seconds,
        dialect=profile.dialect,
        vision=profile.vision,
        tools=tools_of(profile, settings.lang),
    )


def model_profile_of(settings: Settings) -> ModelProfile:
    """How the model is asked: by its name, or as the settings say."""
    model = settings.model
    profile = profile_of_model(model.name, model.profile)
    own = {"dialect": model.dialect or profile.dialect, "vision": model.vision and profile.vision}
    return profile.model_copy(update=own)


def build_reader(settings: Settings, model: Model, ocr: OcrEngine | None = None) -> ScreenReader:
    """The readings that are allowed: the tree, OCR where its extra is installed, and a model that sees.

    ``ocr`` keeps what it has read: several readers may share one.
    """
    observe = settings.observe
    allowed = {
        Source.TREE: observe.tree != "off",
        Source.OCR: observe.ocr != "off",
        Source.MODEL: observe.model and model_profile_of(settings).vision,
    }
    return ScreenReader(ocr=ocr or OcrEngine(), model=model, sources=[source for source, on in allowed.items() if on])


async def build_knowledge(settings: Settings) -> KnowledgeBase:
    """The knowledge base of the settings; an empty embedded one may get the sample entries."""
    base = build(knowledge_config(settings))
    embedded = embedded_in(base)
    if embedded is not None and settings.knowledge.sample:
        await embedded.seed_sample_if_empty()
    return base


def knowledge_file(settings: Settings) -> Path:
    """Where the shop's own entries are."""
    return settings.data_dir / "knowledge.sqlite3"


def knowledge_config(settings: Settings) -> KnowledgeConfig:
    knowledge = settings.knowledge
    return KnowledgeConfig(
        provider=knowledge.provider,
        path=knowledge_file(settings),
        base_url=knowledge.base_url,
        dataset_id=knowledge.dataset_id,
        token=knowledge.token.get_secret_value(),
        timeout=knowledge.timeout_seconds,
        min_score=knowledge.min_score,
        own={
            "dify": _own_config(knowledge.dify),
            "ragflow": _own_config(knowledge.ragflow),
            "http": _own_config(knowledge.http),
        },
        template=knowledge.http,
    )


def _own_config(remote: RemoteSettings) -> OwnConfig:
    return OwnConfig(
        base_url=remote.base_url,
        dataset_id=remote.dataset_id,
        token=remote.token.get_secret_value(),
        timeout=remote.timeout_seconds,
        min_score=remote.min_score,
    )


def build_chooser(settings: Settings) -> ModelChooser | None:
    """The text model that chooses among records; None where there is none, and only a sure record is sent."""
    chooser = settings.chooser
    if not chooser.base_url.strip():
        return None
    return ModelChooser(
        chooser.base_url,
        chooser.name,
        chooser.api_key.get_secret_value(),
        timeout=chooser.timeout_seconds,
        compose=chooser.compose,
        max_records=chooser.max_records,
        min_score=chooser.min_score,
    )


async def open_database(settings: Settings) -> Database:
    """The database, its tables brought up to this release. ConfigInvalid where it cannot be opened."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        db = Database(settings.url)
    except OSError as error:
        raise ConfigInvalid(f"The data folder cannot be used: {error}.", advice="Set PHONEDESK_DATA_DIR.") from None
    try:
        await db.migrate()
    except (OSError, DBAPIError) as error:
        await db.close()
        raise ConfigInvalid(
            f"The database cannot be opened: {getattr(error, 'orig', error)}.",
            advice="Check PHONEDESK_DATABASE_URL and that the server runs.",
        ) from None
    except BaseException:
        await db.close()
        raise
    db.patience = DATABASE_PATIENCE
    return db


@asynccontextmanager
async def open_core(settings: Settings) -> AsyncIterator[Core]:
    db = await open_database(settings)
    model = build_model(settings)
    knowledge = await build_knowledge(settings)
    store = embedded_in(knowledge) or EmbeddedKnowledge(knowledge_file(settings))
    core = Core(settings, db, model, knowledge, build_chooser(settings), store, build_reader(settings, model))
    try:
        yield core
    finally:
        await core.close()
