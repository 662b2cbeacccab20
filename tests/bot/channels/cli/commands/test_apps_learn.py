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
from bot.app.core import open_core
from bot.app.settings.loading import load
from bot.channels.cli.main import app
from scheduler.runs.lease import lease_of
from simulator.phone.apps.looks import LOOKS
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.server import serve
from simulator.phone.world import Side
from storage.ledger import StoredLedger
from tests.support.adb import adb_server
from tests.support.ocr import needs_ocr
from tests.support.phones import far_phone

pytestmark = [needs_ocr, pytest.mark.rotating(parts=3)]

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
    [
        ("qq-plain", "button", "y\nn\n"),
        ("wechat-light", "button", "y\nn\n"),
        ("wechat-enter", "keyboard_key", "y\nn\n2\n"),
    ],
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
        width, height = where.phone.size
        assert Image.open(tmp_path / "seen.png").size == (2 * width, height), "the list and the chat"
        assert [row["name"] for row in told["list"]["rows"]] == [FRIEND, OTHER]
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


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(("look", "sends_by"), [("wechat-light", "button"), ("wechat-enter", "keyboard_key")])
async def test_text_is_sent_once_and_to_the_named_chat_alone_if_that_is_allowed(
    look: str, sends_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place(look, tmp_path, monkeypatch) as where:
        code, out, err = await where.learn("--app", "wechat", "--chat", FRIEND, "--allow-send", "--json", said="y\n")
        assert code == 0, err
        told = json.loads(out)
        assert (told["sends_by"], told["sent"]) == (sends_by, True)  # no further question: it was seen to arrive
        state = where.state()
        assert state["sent"] == {where.key + FRIEND: ["test"]}
        assert state["drafts"] == {}


async def test_other_chat_in_front_is_left_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place("qq-plain", tmp_path, monkeypatch) as where:
        where.phone.show_chat(OTHER)
        code, _, err = await where.learn("--app", "qq", "--chat", FRIEND, said="y\nn\n")
        assert code == 0, err
        state = where.state()
        assert state["sent"] == {}
        assert {typed["field"] for typed in state["typed"]} == {FRIEND}


async def test_chat_that_its_owner_opened_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place("qq-plain", tmp_path, monkeypatch) as where:
        where.phone.show_chat(OTHER)
        assert (await where.learn("--app", "qq", "--here", "--chat", FRIEND))[0] == 1  # another one is in front
        assert where.state()["typed"] == []
        code, out, err = await where.learn("--app", "qq", "--here", "--json", said="y\nn\n")
        assert code == 0, err
        assert json.loads(out)["contact"] == OTHER
        assert where.state()["chats_opened"] == [OTHER]


async def test_nothing_is_kept_if_it_was_read_wrongly_or_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place("wechat-light", tmp_path, monkeypatch) as where:
        args = ("--app", "wechat", "--chat", FRIEND)
        code, out, _ = await where.learn(*args, "--json", said="n\n2 5\n")
        told = json.loads(out)
        assert (code, told["status"], told["wrong"]) == (1, "wrong", ["sides", "list"])
        code, out, _ = await where.learn(*args, said="n\n1\n")
        assert code == 1
        assert "phonedesk apps export" in out
        code, out, _ = await where.learn(*args, "--json")
        assert (code, json.loads(out)["status"]) == (3, "waiting")
        assert where.state()["typed"] == []
        learnt = await where.known("wechat", told["version"])
        assert learnt is not None
        assert (learnt.looks, learnt.wrong) == ((), ("sides", "list", "title")), "nothing is known but what is wrong"
        code, _, err = await where.learn(*args, said="y\nn\n")
        assert code == 0, err
        learnt = await where.known("wechat", told["version"])
        assert learnt is not None
        assert (len(learnt.looks), learnt.wrong) == (1, ()), "a way to begin again"


async def test_draft_of_the_owner_stays_and_nothing_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place("qq-plain", tmp_path, monkeypatch) as where:
        where.phone.show_chat(FRIEND)
        where.phone.focus_on(where.phone.chat_field())
        where.phone.insert("mine")
        code, _, err = await where.learn("--app", "qq", "--here", said="y\nn\n")
        assert code == 1
        assert "A text stands in the input already" in err
        assert where.state()["drafts"] == {FRIEND: "mine"}


async def test_phone_that_a_run_has_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place("qq-plain", tmp_path, monkeypatch) as where, open_core(load()) as core:
        async with lease_of(core.db, far_phone(where.serial), owner="other", why="run"):
            code, _, err = await where.learn("--app", "qq", "--chat", FRIEND)
        assert code == 1
        assert f"The phone {where.serial} is in use" in err
        state = where.state()
        assert (state["taps"], state["opened"]) == ([], [])


async def test_keyboard_and_input_are_put_back_if_the_text_does_not_get_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place("qq-plain", tmp_path, monkeypatch, faults={"stuck_keyboard": True}) as where:
        before = where.state()["input_method"]
        code, _, _ = await where.learn("--app", "qq", "--chat", FRIEND, said="y\nn\n")
        assert code == 1
        state = where.state()
        assert (state["drafts"], state["sent"], state["input_method"]) == ({}, {}, before)


async def test_what_is_not_said_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place("qq-plain", tmp_path, monkeypatch) as where:
        code, _, err = await where.learn("--app", "qq")
        assert code == 2
        assert "--here" in err
        assert (await where.learn("--chat", FRIEND))[0] == 2
        code, _, err = await where.learn("--app", "qq", "--chat", "没有这个人")
        assert code == 1
        assert "is not on the first 6 pages" in err
