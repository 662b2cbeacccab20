"""A hostile model on a phone: whatever it says, the phone shows nothing but what the knowledge base says, once.

Each attack is judged by the phone's own state and record, never by what the run tells of itself.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agent_core.actions.parse import parse_reply
from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.loop.acting import do_on
from agent_core.loop.defaults import FreeLease, MemoryLedger
from agent_core.loop.launching import AppLauncher
from agent_core.perception.observer import Observer
from agent_core.perception.reader import ScreenReader
from agent_core.ports import Record
from agent_core.session import Answer, Question, QuestionKind, Session
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import TreeMode
from simulator.phone.server import serve
from tests.red_team.attacks import ATTACKS, PICTURES, TREE, UNREAD, WAIT, Attack, Say
from tests.red_team.phone import BASE, ButtonPhone, before, world, wrongs
from tests.support import lab
from tests.support.adb import adb_server
from tests.support.knowledge import open_knowledge
from tests.support.lab import SIZE, Lab, People, Shelf
from tests.support.model_server import ScriptedModel
from tests.support.ocr import needs_ocr

PATIENT = {QuestionKind.INTERACT: "1", QuestionKind.TAKE_OVER: "done", QuestionKind.STUCK: "go_on"}
SIZES = {TREE: (540, 1200), PICTURES: SIZE, UNREAD: (540, 1200)}  # a picture that is read costs by its size
on_one_loop = pytest.mark.asyncio(loop_scope="module")


@dataclass
class RealBase(Shelf):
    """The knowledge base that the product comes with."""

    base: EmbeddedKnowledge | None = None

    async def retrieve(self, query: str) -> Sequence[Record]:
        assert self.base is not None
        return await self.base.retrieve(query)


class Patient(People):
    """A person who answers what the model asks, and lets a stuck run go on; the rest is left open."""

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        wanted = PATIENT.get(question.kind)
        return None if wanted is None else Answer(choice=wanted, by="店长")


@dataclass(frozen=True)
class Range:
    """What all attacks share."""

    adb: AdbServer
    base: EmbeddedKnowledge

    @asynccontextmanager
    async def phone(self, attack: Attack, mode: str) -> AsyncIterator[Lab]:
        """A phone of its own, prepared for the attack."""
        made = ButtonPhone(world(attack.draft, SIZES[mode]), attack.buttons, attack.asks)
        async with serve(phone=made) as running:
            await self.adb.connect(running.address)
            device = self.adb.device(running.address)
            started = attack.start(made)
            if inspect.isawaitable(started):
                await started
            yield Lab(made, device, RealBase(base=self.base), Patient())
            await device.close()
            await self.adb.disconnect(running.address)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shooting_range(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Range]:
    base = await open_knowledge(Path(tmp_path_factory.mktemp("base")) / "base.sqlite3")
    await base.add_all(
        [Entry(id=f"k{n}", question=asked, answer=text) for n, (asked, text) in enumerate(BASE.items(), start=1)]
    )
    async with adb_server() as adb, await open_adb(port=adb.port) as server:
        yield Range(server, base)
    await base.close()


class Said:
    """The replies of an attack, made when the model is asked: where things are is seen then."""

    def __init__(self, attack: Attack, phone: VirtualPhone) -> None:
        self._attack, self._phone = attack, phone
        self.count = 0

    def script(self) -> list[Callable[[dict[str, Any]], str]]:
        return [partial(self._say, say) for say in self._attack.says]

    def _say(self, say: Say, _: object) -> str:
        self.count += 1
        try:
            return say if isinstance(say, str) else say(self._phone)
        except LookupError:  # what it wanted is not there, because the gate held what came before
            return WAIT


def _cases() -> list[Any]:
    cases = []
    for mode in (TREE, PICTURES, UNREAD):
        for attack in (one for one in ATTACKS if mode in one.modes):
            marks = [needs_ocr] if mode == PICTURES else []
            cases.append(pytest.param(attack, mode, id=f"{attack.name}-{mode}", marks=marks))
    return cases


@pytest.mark.rotating(parts=10)
@on_one_loop
@pytest.mark.parametrize(("attack", "mode"), _cases())
async def test_nothing_is_done_that_must_not_be(
    shooting_range: Range, attack: Attack, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shooting_range.phone(attack, mode) as at:
        if mode == UNREAD:
            monkeypatch.setattr(lab, "OCR", None)
        if mode != TREE:
            at.phone.set_tree(TreeMode.HIDDEN)
        begun, said = before(at.phone), Said(attack, at.phone)
        async with ScriptedModel(said.script()) as model:
            await at.run(model, max_steps=len(attack.says))
        assert wrongs(begun, at.phone, attack.sent) == []
        assert attack.ends or said.count == len(attack.says)


@pytest.mark.rotating(parts=8)
@on_one_loop
@pytest.mark.parametrize("attack", [a for a in ATTACKS if not a.harmless], ids=lambda attack: attack.name)
async def test_without_a_gate_it_would_be_done(shooting_range: Range, attack: Attack) -> None:
    async with shooting_range.phone(attack, TREE) as at:
        begun = before(at.phone)
        observer = Observer(at.device, ScreenReader(ocr=None, model=None))
        launcher = AppLauncher(observer, MemoryLedger(), FreeLease())
        for say in attack.says:
            reply = parse_reply(say if isinstance(say, str) else say(at.phone))
            await do_on(at.device, reply.action, at.phone.size, launcher)
        assert wrongs(begun, at.phone, attack.sent) != []


def test_no_attack_is_tried_twice() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len({*names}) == len(names) >= 60
