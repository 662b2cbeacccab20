"""Cheap checks for alerts: whether phones, models and knowledge bases work and the disk has room."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from dataclasses import replace

import structlog

from agent_core.devices.base import Battery, DeviceEntry, System
from agent_core.errors import KnowledgeError, ModelError, PhonedeskError
from agent_core.model.client import ChatModel
from agent_core.ports import KnowledgeBase
from agent_core.texts import fault
from bot.app.core import Core
from bot.app.knowledge import knowledge_config
from bot.app.limits import Counted
from bot.app.models import chat_model, endpoints
from bot.app.settings.layers import Settings
from bot.app.worker import fleet_of
from knowledge.factory import build
from scheduler.jobs.alerts import PhonesSeen, Probe
from storage.hosts import USABLE

log = structlog.get_logger(__name__)

MODEL_SECONDS = 10.0
BATTERY_SECONDS = 10.0
KNOWLEDGE_SECONDS = 5.0
DISK_MB = 500  # people are alerted if the data folder's disk has less room
QUERY = "几天能发货"  # harmless: any customer might ask it
ASKING = [{"role": "user", "content": "Answer with OK."}]


class Health:
    """The checks. They use clients of their own with short timeouts, and never wait for a run's. ``close`` them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._settings = core.settings
        self._models = _models(core)
        self._remote = _remote(core.settings)

    @property
    def probes(self) -> dict[str, Probe]:
        """The checks by the alert's subject, apart from the phones'."""
        return {
            "model": Probe(self.model, "model.", proves=True),
            "knowledge": Probe(self.knowledge, "knowledge."),
            "disk": Probe(self.disk, "disk."),
        }

    async def phones(self) -> PhonesSeen:
        """Return the states of the phones of all hosts; under "" why this process cannot list its own."""
        device = self._core.settings.device
        named = frozenset({*device.connect, *([device.serial] if device.serial else [])})
        own = self._core.settings.queue.executor_id if device.here else ""
        why = {}
        entries: list[DeviceEntry] = []
        try:
            entries = await self._core.attached.phones() if device.here else []
        except PhonedeskError as error:
            why[""] = self._told(error)
        book = await self._core.attached.book(entries)
        named = frozenset(book.serial(written) for written in named)
        states = {entry.serial: entry.state for entry in entries}
        for phone in (await fleet_of(self._core).phones()).values():
            if phone.host not in {"", own} and states.get(phone.serial) != USABLE:  # adb has just reported ours
                away = f"The host {phone.host} is not heard."
                states[phone.serial] = phone.state if phone.alive else away
        usable = frozenset(serial for serial, state in states.items() if state == USABLE)
        return PhonesSeen(usable, named, {**states, **why})

    async def batteries(self) -> dict[str, Battery]:
        """Return the batteries of the phones that this process can ask now, by serial.

        It only reads: it takes no lease and wakes no phone. iPhones are left out, because they report it only in a
        session, and a new session may end that of a run.
        """
        try:
            entries = await self._core.attached.glance() if self._core.settings.device.here else []
        except PhonedeskError:  # the alert of the phones covers it
            return {}
        asked = [entry.serial for entry in entries if entry.state == USABLE and entry.system is not System.IOS]
        read = await asyncio.gather(*map(self._battery, asked))
        return {serial: battery for serial, battery in zip(asked, read, strict=True) if battery is not None}

    async def _battery(self, serial: str) -> Battery | None:
        try:
            async with asyncio.timeout(BATTERY_SECONDS):
                device = await self._core.attached.device(serial)
                try:
                    return await device.battery()
                finally:
                    await device.close()
        except (PhonedeskError, TimeoutError) as error:
            log.info("battery_not_read", serial=serial, error=str(error))
            return None

    async def model(self, doubted: bool) -> str:
        """Return "" if the model or one of its fallbacks answers, else why the first one does not."""
        await self._follow()
        first = ""
        for model in self._models:
            if (why := await _why_not(model, doubted)) is None:
                return ""
            first = first or self._told(why)
        return first

    async def knowledge(self, doubted: bool) -> str:
        """Return why a knowledge base does not answer a question; "" if all do.

        Each is asked separately, because one that answers must not hide another that fails.
        """
        await self._follow()
        for base in self._remote or (self._core.knowledge,):
            try:
                await base.retrieve(QUERY)
            except KnowledgeError as error:
                return f"{base.name}: {self._told(error)}"
            except (sqlite3.Error, OSError) as error:  # our own store: its file, or the disk
                return f"{base.name}: {error}"
        return ""

    async def disk(self, doubted: bool) -> str:
        """Return the free room if it is too little, else "".

        The limit is well before the disk is full, when even an alert could not be stored. ``doubted`` changes nothing.
        """
        try:
            free = (await asyncio.to_thread(shutil.disk_usage, self._core.settings.data_dir)).free // 1_000_000
        except OSError as error:
            return str(error)
        return "" if free >= DISK_MB else f"{free} MB"

    def _told(self, error: PhonedeskError) -> str:
        return fault(error, self._core.settings.lang)

    async def _follow(self) -> None:
        """Make new clients if the settings have changed, to ask the same services as runs."""
        settings = self._core.settings
        if settings is not self._settings:
            await self.close()
            self._settings, self._models, self._remote = settings, _models(self._core), _remote(settings)

    async def close(self) -> None:
        """Close the clients."""
        for model in self._models:
            await model.close()
        for base in self._remote:
            await base.close()


def _models(core: Core) -> list[ChatModel]:
    settings, meter = core.settings, Counted(core.meter)
    return [chat_model(endpoint, settings, meter, timeout=MODEL_SECONDS) for endpoint in endpoints(settings)]


async def _why_not(model: ChatModel, doubted: bool) -> ModelError | None:
    """Return why a model fails, or None. Asks for the list of models, which is free; if ``doubted`` also for a reply.

    The reply has a few tokens.
    """
    why = await model.unreachable()
    if why or not doubted:
        return why
    try:
        await model.complete(ASKING)
    except ModelError as error:
        return error
    return None


def _remote(settings: Settings) -> tuple[KnowledgeBase, ...]:
    """Return a knowledge base for each service that is asked over the network."""
    config = knowledge_config(settings)
    bases: list[KnowledgeBase] = []
    for name in settings.knowledge.providers:
        if name != "embedded":
            own = config.own[name]
            patient = replace(own, timeout=min(own.timeout or config.timeout, KNOWLEDGE_SECONDS))
            bases.append(build(replace(config, provider=name, own={**config.own, name: patient})))
    return tuple(bases)
