"""``phonedesk apps learn`` on virtual phones of several looks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from agent_core.apps.learnt import LearntApp
from agent_core.devices.virtual.apps.looks import LOOKS
from agent_core.devices.virtual.phone import VirtualPhone
from agent_core.devices.virtual.scenario import ContactPart, MessagePart, Scenario
from agent_core.devices.virtual.server import serve
from agent_core.devices.virtual.world import Side
from agent_core.screen.ocr import OcrEngine
from bot.app import open_core
from bot.cli import app
from bot.settings import load
from scheduler.ports import StoredLedger
from scheduler.worker import lease_of
from tests.support.adb import adb_server

needs_ocr = pytest.mark.skipif(not OcrEngine.available(), reason="the extra [ocr] is not installed")
pytestmark = needs_ocr

FRIEND, OTHER = "小号", "真客户"


@dataclass
class Place:
    phone: VirtualPhone
    serial: str
    folder: Path

    @property
    def key(self) -> str:
        return "wechat:" if self.phone.scenario.contacts[0].app == "wechat" else ""

    async def learn(self, *args: str, said: str = "") -> tuple[int, str, str]:
        return await asyncio.to_thread(self._call, args, said)

    def _call(self, args: tuple[str, ...], said: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["apps", "learn", "--device", self.serial, *args], input=said)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    async def known(self, name: str, version: str) -> LearntApp | None:
        async with open_core(load()) as core:
            return await StoredLedger(core.db).learnt(self.serial, name, version)

    def state(self) -> Mapping[str, Any]:
        return dict(self.phone.report())


@asynccontextmanager
async def place(look: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> AsyncIterator[Place]:
    name = LOOKS[look].app
    history = [
        MessagePart(side=Side.THEM, text="在吗", ago=600),
        MessagePart(side=Side.ME, text="在的", ago=500),
        MessagePart(side=Side.THEM, text="明天见", ago=60),
    ]
    contacts = [ContactPart(name=who, app=name, history=history) for who in (FRIEND, OTHER)]
    scenario = Scenario(look=look, contacts=contacts, **more)
    async with serve(scenario) as running, adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        monkeypatch.setenv("PHONEDESK_DATA_DIR", str(folder / "data"))
        monkeypatch.setenv("PHONEDESK_LANG", "en")
        monkeypatch.chdir(folder)
        await adb.connect(running.adb_port)
        yield Place(running.phone, running.address, folder)


@pytest.mark.parametrize(
    ("look", "sends_by", "answers"),
    [("qq-plain", "button", "y\nn\n"), ("wechat-light", "button", "y\nn\n"), ("wechat-enter", "keyboard_key", "y\nn\n2\n")],
)
async def test_chat_is_read_confirmed_and_learnt_without_sending(
    look: str, sends_by: str, answers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = LOOKS[look].app
    async with place(look, tmp_path, monkeypatch) as where:
        before = where.state()["input_method"]
        code, out, err = await where.learn(
            "--app", name, "--chat", FRIEND, "--json", "--marks", "seen.png", said=answers
        )
        assert code == 0, err
        told = json.loads(out)
        assert told["status"] == "learnt"
        assert told["contact"] == FRIEND
        assert told["page"]["title"]["text"] == FRIEND
        assert [(m["side"], m["text"]) for m in told["page"]["messages"]] == [
            ("them", "在吗"),
            ("me", "在的"),
            ("them", "明天见"),
        ]
        assert (told["sends_by"], told["sent"]) == (sends_by, None)
        assert f"title {FRIEND}, 3 messages, the newest from the customer: 明天见" in err
        assert Image.open(tmp_path / "seen.png").size == where.phone.size
        state = where.state()
        assert state["sent"] == {}
        assert state["drafts"] == {}
        assert [typed["text"] for typed in state["typed"]] == ["test"]
        assert state["chats_opened"] == [where.key + FRIEND] * len(state["chats_opened"])
        assert state["input_method"] == before
        assert not state["keyboard_shown"]
        learnt = await where.known(name, told["version"])
        assert learnt is not None
        assert (learnt.sends_by, learnt.confirmed_by) == (sends_by, "terminal")
        assert learnt.confirmed_at
        colors = LOOKS[look].colors
        (seen,) = learnt.looks
        assert (seen.ground, seen.mine, seen.theirs) == (colors.page, colors.mine, colors.theirs)
        assert seen.header == pytest.approx(LOOKS[look].geometry.header / 1080, abs=0.02)
        assert seen.avatar_size == pytest.approx(LOOKS[look].geometry.avatar / 1080, abs=0.015)
