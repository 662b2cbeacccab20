"""Whether phones, model and knowledge base work, and the disk has room, for alerts: asked at little cost."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from dataclasses import replace

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

MODEL_SECONDS = 10.0
KNOWLEDGE_SECONDS = 5.0
DISK_MB = 500  # with less room than this on the disk of the data folder people are told
QUERY = "几天能发货"  # harmless: what any customer might ask
ASKING = [{"role": "user", "content": "Answer with OK."}]


class Health:
    """``close`` when it is no longer asked. The clients are its own: impatient, and none waits for a run's."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._settings = core.settings
        self._models = _models(core)
        self._remote = _remote(core.settings)

    @property
    def probes(self) -> dict[str, Probe]:
        return {
            "model": Probe(self.model, "model.", proves=True),
            "knowledge": Probe(self.knowledge, "knowledge."),
            "disk": Probe(self.disk, "disk."),
        }

    async def phones(self) -> PhonesSeen:
        device = self._core.settings.device
        named = frozenset({*device.connect, *([device.serial] if device.serial else [])})
        own = self._core.settings.queue.executor_id if device.here else ""
        why = {}
        try:
            entries = await self._core.phones() if device.here else []
        except PhonedeskError as error:
            entries, why[""] = [], self._told(error)
        states = {entry.serial: entry.state for entry in entries}
        for phone in (await fleet_of(self._core).phones()).values():
            if phone.host not in {"", own} and states.get(phone.serial) != USABLE:  # of ours adb has just told
                away = f"The host {phone.host} is not heard."
                states[phone.serial] = phone.state if phone.alive else away
        usable = frozenset(serial for serial, state in states.items() if state == USABLE)
        return PhonesSeen(usable, named, {**states, **why})

    async def model(self, doubted: bool) -> str:
        """Down is where none of them answers, the fallbacks among them; then why the first does not."""
        await self._follow()
        first = ""
        for model in self._models:
            if (why := await _why_not(model, doubted)) is None:
                return ""
            first = first or self._told(why)
        return first

    async def knowledge(self, doubted: bool) -> str:
        """One question to each service: one that answers must not hide another that fails."""
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
        """Before it is full: then it could not even be told. Nothing else finds out, so ``doubted`` changes nothing."""
        try:
            free = (await asyncio.to_thread(shutil.disk_usage, self._core.settings.data_dir)).free // 1_000_000
        except OSError as error:
            return str(error)
        return "" if free >= DISK_MB else f"{free} MB"

    def _told(self, error: PhonedeskError) -> str:
        return fault(error, self._core.settings.lang)

    async def _follow(self) -> None:
        """Ask what runs ask now: the settings may have been changed."""
        settings = self._core.settings
        if settings is not self._settings:
            await self.close()
            self._settings, self._models, self._remote = settings, _models(self._core), _remote(settings)

    async def close(self) -> None:
        for model in self._models:
            await model.close()
        for base in self._remote:
            await base.close()


def _models(core: Core) -> list[ChatModel]:
    settings, meter = core.settings, Counted(core.meter)
    return [chat_model(endpoint, settings, meter, timeout=MODEL_SECONDS) for endpoint in endpoints(settings)]


async def _why_not(model: ChatModel, doubted: bool) -> ModelError | None:
    """The list of models, which is free. Only where that is not enough a reply of a few tokens is asked for."""
    why = await model.unreachable()
    if why or not doubted:
        return why
    try:
        await model.complete(ASKING)
    except ModelError as error:
        return error
    return None


def _remote(settings: Settings) -> tuple[KnowledgeBase, ...]:
    """Each service that is asked over the net, by itself."""
    config = knowledge_config(settings)
    bases: list[KnowledgeBase] = []
    for name in settings.knowledge.providers:
        if name != "embedded":
            own = config.own[name]
            patient = replace(own, timeout=min(own.timeout or config.timeout, KNOWLEDGE_SECONDS))
            bases.append(build(replace(config, provider=name, own={**config.own, name: patient})))
    return tuple(bases)
