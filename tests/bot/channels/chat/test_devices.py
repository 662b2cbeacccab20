"""``/devices`` in the chat: connect, pair, name and set up phones, for owners."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from agent_core.devices.adb import pairing
from agent_core.devices.adb.pairing import PairingOffer
from agent_core.devices.adb.parse import CONNECT
from bot.app.core import Core, open_core
from bot.app.phones import OwnPhones
from bot.app.settings.loading import load
from bot.channels.chat.cards import Card
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Incoming, Outgoing, Person
from bot.desk.actors import AccessDenied, Actor, ChatRef, Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.people import new_code
from scheduler.runs.service import RunService
from simulator.phone.scenario import KeyboardPart, PhonePart, Scenario
from simulator.phone.server import serve
from storage.leases import Leases
from tests.support.adb import adb_server
from tests.support.adb_stand_in import GUID, HEARD, StandIn, standing_in
from tests.support.apk import keyboard_apk
from tests.support.environment import without_settings

CHAT = ChatRef("telegram", "11")


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("PHONEDESK_LANG", "en")


@dataclass
class Talk:
    core: Core
    conversation: Conversation
    shown: list[Outgoing] = field(default_factory=list)
    number: int = 0

    async def card(self, text: str = "", action: str = "") -> Card:
        self.number += 1
        incoming = Incoming(
            "button" if action else "text", Person("11", "A"), CHAT, f"k{self.number}", text, action=action
        )
        said = await self.conversation.handle(incoming)
        return said.messages[0].card if said.messages else Card(said.toast)


@asynccontextmanager
async def talk(port: int, role: Role = Role.OWNER) -> AsyncIterator[Talk]:
    """A conversation with somebody at a desk whose adb server is at this port."""
    settings = load(device={"adb_port": port})
    async with open_core(settings) as core:
        phones = core.attached
        desk = Desk(
            DeskContext(
                core.db,
                RunService(core.db),
                phones.phones,
                phones.device,
                "Asia/Shanghai",
                own_phones=OwnPhones(core),
            )
        )
        chief = await new_code(core.db, Role.OWNER, created_by="test")
        await desk.people.pair("telegram", "1", "Chief", "en", chief)
        code = await new_code(core.db, role, created_by="test")
        await desk.people.pair("telegram", "11", "A", "en", code)
        shown: list[Outgoing] = []

        async def show(message: Outgoing) -> None:
            shown.append(message)

        yield Talk(core, Conversation(desk, show=show), shown)


def written() -> dict[str, object]:
    device: dict[str, object] = tomllib.loads(Path("phonedesk.toml").read_text(encoding="utf-8"))["device"]
    return device


async def test_an_owner_connects_names_tags_and_disconnects() -> None:
    async with serve() as running, adb_server() as adb, talk(adb.port) as chat:
        address = running.address
        assert (await chat.card(f"/devices connect {address}")).title == f"Connected to {address}."
        assert await adb.state(address) == "device"
        assert (await chat.card(f"/devices 命名 {address} Front desk")).title == f"{address} is called Front desk."
        await chat.card(f"/devices tag {address} shop #spare")
        assert written() == {
            "connect": [address],
            "names": {address: "Front desk"},
            "tags": {address: "shop, spare"},
        }
        assert load().device.tags == {address: ("shop", "spare")}
        leases = Leases(chat.core.db)
        lease = await leases.acquire(address, "a run")
        assert lease is not None
        assert "in use" in (await chat.card(f"/devices disconnect {address}")).title
        assert (written()["connect"], await adb.state(address)) == ([address], "device")
        await leases.release(lease)
        assert (await chat.card(f"/devices disconnect {address}")).title == f"Disconnected from {address}."
        assert "connect" not in written()
        assert "There is no phone 10.9.9.9:1" in (await chat.card("/devices disconnect 10.9.9.9:1")).title
        assert await adb.state(address) == "absent"


async def test_of_two_who_change_the_settings_at_once_neither_is_lost() -> None:
    async with adb_server() as adb, talk(adb.port) as chat:
        phones = OwnPhones(chat.core)
        changes = (phones.tag("10.9.9.9:1", [name]) for name in ("one", "two", "three"))
        await asyncio.gather(*changes, phones.name("10.9.9.9:2", "Counter"))
        assert set(load().device.tags["10.9.9.9:1"]) == {"one", "two", "three"}
        assert load().device.names == {"10.9.9.9:2": "Counter"}


async def test_a_button_sets_up_what_was_shown_and_undo_puts_it_back(tmp_path: Path) -> None:
    keyboard_apk(tmp_path / "ADBKeyboard.apk")
    scenario = Scenario(phone=PhonePart(brand="samsung"), keyboard=KeyboardPart(adb_installed=False))
    async with serve(scenario) as running, adb_server() as adb, talk(adb.port) as chat:
        await adb.connect(running.adb_port)
        before = dict(running.phone.settings)
        shown = await chat.card("/devices setup")
        assert shown.title == "To be set up on VP 1:"
        for spelling in ("vp_1", "VP-1", "VP1", running.address):
            assert (await chat.card(f"/devices setup {spelling}")).title == shown.title
        assert any("Auto Blocker" in line.text for line in shown.lines)
        assert running.phone.settings == before
        done = await chat.card(action=shown.buttons[0][0].action)
        assert done.title == "Set up on VP 1:"
        assert running.phone.settings["global", "animator_duration_scale"] == "0"
        assert "com.android.adbkeyboard/.AdbIME" in running.phone.input_methods
        assert (await chat.card("/devices setup undo")).title == "Put back on VP 1:"
        assert running.phone.settings == before


async def test_a_phone_at_work_and_a_phone_of_another_system_are_left() -> None:
    async with serve() as running, adb_server() as adb, talk(adb.port) as chat:
        await adb.connect(running.adb_port)
        before = dict(running.phone.settings)
        assert await Leases(chat.core.db).acquire(running.address, "a run")
        assert "in use" in (await chat.card(action=f"setup:{running.address}")).title
        assert running.phone.settings == before
        assert "no Android phone" in (await chat.card("/devices connect hdc:1:2")).title


async def test_an_owner_limited_to_one_phone_arranges_no_other(tmp_path: Path) -> None:
    async with serve() as own, serve() as other, adb_server() as adb, talk(adb.port) as chat:
        for phone in (own, other):
            await adb.connect(phone.adb_port)
        before = dict(own.phone.settings), dict(other.phone.settings)
        phones = chat.conversation.desk.phones
        actor = Actor("k", "mcp", "k", "Key", "en", Role.OWNER, phones=(own.address,))
        await OwnPhones(chat.core).name(other.address, "Spare")
        for written in (other.address, "Spare"):
            for act in (phones.plan_setup, phones.set_up, phones.undo_setup, phones.disconnect):
                with pytest.raises(AccessDenied):
                    await act(actor, written)
        assert (own.phone.settings, other.phone.settings) == before
        for named in ("", own.address):
            assert (await phones.set_up(actor, named)).serial == own.address
            assert own.phone.settings != before[0]
            assert (await phones.undo_setup(actor, named)).serial == own.address
            assert own.phone.settings == before[0]
        assert other.phone.settings == before[1]


@pytest.mark.parametrize(
    "words", ["connect 10.9.9.9:1", "pair 10.9.9.9:1 123456", "pair", "name X Y", "setup", "tag X y"]
)
async def test_only_owners_arrange_phones(words: str) -> None:
    async with adb_server() as adb, talk(adb.port, Role.OPERATOR) as chat:
        refused = await chat.card(f"/devices {words}")
        assert "Your role is operator; it needs owner." in refused.lines[0].text
        assert chat.shown == []
        assert not Path("phonedesk.toml").exists()


async def test_a_code_is_shown_as_a_picture_and_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "new_offer", lambda: PairingOffer("phonedesk-abc", "secretsecret"))
    stand_in = StandIn("secretsecret", HEARD, f"{GUID}.{CONNECT}")
    async with standing_in(stand_in) as server, talk(server.port) as chat:
        done = await chat.card("/devices pair")
        assert done.title == f"Paired; the phone is attached as {GUID}.{CONNECT}."
        [shown] = chat.shown
        assert shown.card.picture is not None
        with Image.open(BytesIO(shown.card.picture)) as picture:
            assert picture.width == picture.height > 300
        assert "QR code" in shown.card.lines[0].text


async def test_pairing_by_code_and_what_adb_says() -> None:
    async with adb_server() as adb, talk(adb.port) as chat:
        assert "could not be paired" in (await chat.card("/devices pair 127.0.0.1:1 123456")).title
        assert "six digits" in (await chat.card("/devices pair 127.0.0.1:1 12")).title
        assert "does not look for phones" in (await chat.card("/devices pair")).title
        assert chat.shown == []
