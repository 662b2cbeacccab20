"""The shared parts of all cases of a process, and the stage of one case: phone, product, people and model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.perception.ocr import OcrEngine
from bot.app.core import Core, build_reader, open_core
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.tools.eval.scenario import EntryPart, EvalScenario, Mode
from bot.tools.eval.scripted import EvalModel, FaultyKnowledge, ScriptedPeople, WatchedModel
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from scheduler.runs.service import RunService
from simulator.model.server import MODEL_NAME
from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS
from simulator.phone.assembly import CHECKED
from simulator.phone.phone import VirtualPhone
from simulator.phone.server import RunningPhone, serve
from storage.contacts import Contacts, NewContact
from storage.engine import Database
from storage.ledger import StoredLedger

CHOOSER_NAME = "scripted"
DATABASE = "phonedesk.sqlite3"  # its file in a data folder
WITH_SAMPLE = "sample.sqlite3"  # the same, with the sample shop's entries


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model that is measured, in place of the scripted replies and the demo's rules."""

    url: str
    name: str
    key: SecretStr


@dataclass(frozen=True, slots=True)
class EvalStage:
    """One case, ready to run."""

    core: Core
    phone: VirtualPhone
    model: WatchedModel
    people: ScriptedPeople
    measured: bool = False  # a real model, which may ask other things than the file's replies


class Bench:
    """Shared by all cases of a process: one adb server, one endpoint, one reader of pictures, a database to copy."""

    def __init__(
        self, folder: Path, adb: AdbServer, endpoint: EvalModel, ocr: OcrEngine, real: RealModel | None
    ) -> None:
        self._folder = folder
        self._adb = adb
        self._endpoint = endpoint
        self._ocr = ocr
        self.real = real

    async def prepare(self) -> None:
        """Make the files that a case begins with: tables of this release, and the sample shop's entries."""
        template = self._folder / "template"
        template.mkdir()
        db = Database(f"sqlite:///{template / DATABASE}")
        try:
            await db.migrate()
            await db.close()
            shutil.copyfile(template / DATABASE, template / WITH_SAMPLE)
            db = Database(f"sqlite:///{template / WITH_SAMPLE}")
            await EmbeddedKnowledge(db).seed_sample_if_empty()
        finally:
            await db.close()

    @asynccontextmanager
    async def stage(self, scenario: EvalScenario, mode: Mode) -> AsyncIterator[EvalStage]:
        """Give a phone and a product for one case; both are temporary."""
        async with AsyncExitStack() as stack:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="case-", dir=self._folder)))
            of_shop = WITH_SAMPLE if scenario.knowledge is None else DATABASE
            shutil.copyfile(self._folder / "template" / of_shop, data / DATABASE)
            running = await stack.enter_async_context(serve(scenario))
            # Another phone may get the port soon: the adb server must not look for this one there.
            stack.push_async_callback(self._adb.disconnect, running.address)
            core = await stack.enter_async_context(open_core(self._settings(scenario, mode, running, data)))
            model = WatchedModel(core.model, running.phone)
            core.model = model
            core.reader = build_reader(core.settings, model, self._ocr)
            if scenario.knowledge is not None:
                await _fill(core, scenario.knowledge)
            core.knowledge = FaultyKnowledge(core.knowledge, scenario.knowledge_faults)
            for contact in scenario.contacts:
                if number := scenario.known_numbers.get(contact.key):
                    await Contacts(core.db).add(NewContact(contact.app, contact.name, number=number))
            desk = Desk(
                DeskContext(
                    core.db, RunService(core.db), core.attached.phones, core.attached.device, core.settings.timezone
                )
            )
            for look in map(LOOKS.__getitem__, scenario.looks.values()):
                if look.key not in DEFAULT_LOOKS.values():  # its owner has shown it to the desk
                    await StoredLedger(core.db).learn(running.address, look.learnt())
            people = ScriptedPeople(core.db, desk, scenario.people)
            await stack.enter_async_context(people.at_work())
            yield EvalStage(core, running.phone, model, people, self.real is not None)

    def _settings(self, scenario: EvalScenario, mode: Mode, running: RunningPhone, data: Path) -> Settings:
        real = self.real
        if real is None:
            model = {"base_url": self._endpoint.add(scenario.replies), "name": MODEL_NAME, "api_key": "eval"}
        else:
            model = {"base_url": real.url, "name": real.name, "api_key": real.key.get_secret_value()}
        return load(
            data_dir=data,
            database_url=f"sqlite:///{data / DATABASE}",
            lang=scenario.lang,
            model=model,
            knowledge={"provider": "embedded", "sample": False},
            device={"serial": running.address, "adb_host": self._adb.host, "adb_port": self._adb.port, "connect": ()},
            observe={
                "tree": "off" if mode is Mode.PICTURES else "auto",
                "ocr": "auto",
                "model": True,
                "elements": True,
            },
            chooser=self._chooser(scenario),
            queue={"executor_id": "eval", "database_url": ""},
            run={"checked_versions": CHECKED},
        )

    def _chooser(self, scenario: EvalScenario) -> dict[str, object]:
        part = scenario.chooser
        if part is None:
            return {"base_url": "", "name": ""}
        url = self._endpoint.add_chooser(part)
        return {"base_url": url, "name": CHOOSER_NAME, "api_key": "eval", "compose": bool(part.reply)}


async def _fill(core: Core, entries: Sequence[EntryPart]) -> None:
    if isinstance(core.knowledge, EmbeddedKnowledge):
        rows = [
            Entry(id=f"k{number}", question=part.question, answer=part.answer, aliases=tuple(part.aliases))
            for number, part in enumerate(entries, start=1)
        ]
        await core.knowledge.add_all(rows)


@asynccontextmanager
async def open_bench(*, real: RealModel | None = None, adb_port: int = 0) -> AsyncIterator[Bench]:
    """Open the shared parts of the cases.

    ``adb_port``: of a running server; 0 starts one, and the machine's phones are left alone.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phonedesk-eval-")))
        adb = await stack.enter_async_context(await open_adb(port=adb_port, usb=False, home=folder))
        ocr = OcrEngine()
        endpoint = EvalModel(ocr if OcrEngine.available() else None)
        await stack.enter_async_context(endpoint.serving())
        bench = Bench(folder, adb, endpoint, ocr, real)
        await bench.prepare()
        yield bench
