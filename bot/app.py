"""The composition root: the one place that builds and wires everything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from sqlalchemy.exc import DBAPIError

from agent_core.agent import PhoneAgent
from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.discovery import connect, find_device
from agent_core.devices.adb.server import AdbServer, DeviceEntry, open_adb
from agent_core.errors import ConfigInvalid, PhonedeskError
from agent_core.model.client import ChatModel
from agent_core.ports import Human, KnowledgeBase, Lease, RunStore, StopGuard
from agent_core.screen.ocr import OcrEngine
from agent_core.screen.reader import ScreenReader
from agent_core.screen.readings import Source
from agent_core.settings import AgentSettings
from bot.settings import Settings
from knowledge.embedded import EmbeddedKnowledge
from knowledge.factory import KnowledgeConfig, build
from scheduler.ports import StoredLedger, StoredRuns
from storage.engine import Database

log = structlog.get_logger(__name__)

CONNECT_EVERY_SECONDS = 10.0  # how often a phone that is reached by network is looked for again
CONNECT_WAIT_SECONDS = 1.0  # how long a list waits for one that is missing, where others are there


@dataclass
class Core:
    """What every command that touches a phone needs. Made by ``open_core``, closed with it."""

    settings: Settings
    db: Database
    model: ChatModel
    knowledge: KnowledgeBase
    reader: ScreenReader
    _adb: AdbServer | None = field(default=None, repr=False)
    _connect_again_at: float = 0.0
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
        return entries

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
        await self.phones()
        return await find_device(await self.adb(), serial or self.settings.device.serial or None)

    def agent_settings(self, *, lang: str | None = None, max_steps: int | None = None) -> AgentSettings:
        settings = self.settings
        return AgentSettings(
            lang="en" if (lang or settings.lang) == "en" else "zh",
            max_steps=max_steps or settings.run.max_steps,
            elements=settings.observe.elements,
            tree=settings.observe.tree,
            dialect=settings.model.dialect,
            timezone=settings.timezone,
        )

    def agent(
        self,
        device: AdbDevice,
        settings: AgentSettings,
        *,
        human: Human,
        lease: Lease,
        guard: StopGuard,
        store: RunStore | None = None,
    ) -> PhoneAgent:
        """An agent for one run on one phone, over the stored ledger and event log."""
        return PhoneAgent(
            model=self.model,
            device=device,
            knowledge=self.knowledge,
            human=human,
            ledger=StoredLedger(self.db),
            store=store or StoredRuns(self.db),
            lease=lease,
            guard=guard,
            reader=self.reader,
            settings=settings,
        )

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._adb is not None:
            await self._adb.close()
        await self.model.close()
        await self.knowledge.close()
        await self.db.close()


def build_model(settings: Settings) -> ChatModel:
    model = settings.model
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
        dialect=model.dialect,
        vision=model.vision,
    )


def build_reader(settings: Settings, model: ChatModel) -> ScreenReader:
    """The readings that are allowed: the tree, OCR where its extra is installed, and a model that sees."""
    observe = settings.observe
    allowed = {
        Source.TREE: observe.tree != "off",
        Source.OCR: observe.ocr != "off",
        Source.MODEL: observe.model and settings.model.vision,
    }
    return ScreenReader(ocr=OcrEngine(), model=model, sources=[source for source, on in allowed.items() if on])


async def build_knowledge(settings: Settings) -> KnowledgeBase:
    """The knowledge base of the settings; an empty embedded one may get the sample entries."""
    knowledge = settings.knowledge
    base = build(
        KnowledgeConfig(
            provider=knowledge.provider,
            path=settings.data_dir / "knowledge.sqlite3",
            base_url=knowledge.base_url,
            dataset_id=knowledge.dataset_id,
            token=knowledge.token.get_secret_value(),
            timeout=knowledge.timeout_seconds,
            min_score=knowledge.min_score,
        )
    )
    if isinstance(base, EmbeddedKnowledge) and knowledge.sample:
        await base.seed_sample_if_empty()
    return base


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
    return db


@asynccontextmanager
async def open_core(settings: Settings) -> AsyncIterator[Core]:
    db = await open_database(settings)
    model = build_model(settings)
    core = Core(settings, db, model, await build_knowledge(settings), build_reader(settings, model))
    try:
        yield core
    finally:
        await core.close()
