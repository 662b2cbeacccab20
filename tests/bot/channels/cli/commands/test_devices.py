"""``phonedesk devices``: the phones, and how they are connected, paired, named and set up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agent_core.devices.adb import pairing
from agent_core.devices.adb.pairing import PairingOffer
from agent_core.devices.adb.parse import CONNECT
from bot.channels.chat.devices import qr_lines
from bot.channels.cli.commands.common import Exit
from simulator.phone.hdc.host import HdcTarget, serve_hdc, write_program
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import KeyboardPart, PhonePart, Scenario
from simulator.phone.server import serve
from tests.support.adb import adb_server
from tests.support.adb_stand_in import GUID, HEARD, StandIn, standing_in
from tests.support.apk import keyboard_apk
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]


async def run(*args: str) -> tuple[int, str, str]:
    return await asyncio.to_thread(call, "devices", *args)


async def data(*args: str) -> Any:
    code, out, err = await run(*args, "--json")
    assert code in {Exit.OK, Exit.WAITING}, err
    return json.loads(out)


@pytest.mark.device
async def test_a_phone_from_connecting_to_disconnecting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with serve() as running, adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        address = running.address
        assert (await data("connect", address))["serial"] == address
        await run("name", address, "Counter")
        await run("tag", "Counter", "shop", "#spare")
        [row] = await data()
        assert (row["name"], row["tags"], row["status"]) == ("Counter", ["shop", "spare"], "device")
        assert [row["serial"] for row in await data("--tag", "shop")] == [address]
        assert await data("--tag", "other") == []
        await run("untag", "counter", "spare")
        assert "Counter │ shop │" in (await run())[1]
        assert (await data("screenshot", "Counter", "-o", "screen.jpg"))["size"] == [1080, 2400]
        with Image.open(tmp_path / "screen.jpg") as picture:
            assert (picture.format, picture.size) == ("JPEG", (1080, 2400))
        assert (await run("screenshot", "-o", "screen.jpg"))[0] == Exit.USAGE  # it is there
        monkeypatch.setenv("COLUMNS", "80")
        await run("tag", "Counter", "a-rather-long-tag")
        table = (await run())[1]
        assert f"│ {address} │" in table, "what one types is never cut"
        assert "…" not in table
        code, said, _ = await run("disconnect", "Counter")
        assert (code, "connects to it again" in said) == (Exit.OK, False)
        assert await data() == []
        for setting in ("SERIAL", "CONNECT"):
            with monkeypatch.context() as settings:
                settings.setenv(f"PHONEDESK_DEVICE__{setting}", address)
                await data()
                said = (await run("disconnect", address))[1]
                assert f"PHONEDESK_DEVICE__{setting} names {address}, so phonedesk connects to it again." in said
        with monkeypatch.context() as settings:
            settings.setenv("PHONEDESK_DEVICE__SERIAL", address)
            assert [row["serial"] for row in await data()] == [address], "as serve does, which is told it only so"
        with monkeypatch.context() as settings:
            settings.setenv("PHONEDESK_DEVICE__SERIAL", "127.0.0.1:1")
            assert (await run())[2].count("127.0.0.1:1") == 1, "the failure names the phone once"
        code, _, err = await run("disconnect", "10.9.9.9:1")
        assert (code, "There is no phone 10.9.9.9:1." in err) == (Exit.USAGE, True)
        code, _, err = await run("connect", "127.0.0.1:1")
        assert (code, "cannot be reached" in err) == (Exit.FAILED, True)


@pytest.mark.device
async def test_a_phone_that_tells_who_it_is_is_named_and_disconnected_whatever_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serve() as running, adb_server() as adb:
        running.phone.settings["secure", "android_id"] = "9f3c2a1b00d4e5f6"
        running.phone.battery.update(level=9, status=3, temperature=463)
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        # Wide enough for all columns.
        monkeypatch.setenv("COLUMNS", "200")
        address, serial = running.address, running.phone.serial
        await data("connect", address)
        assert (await data("name", address, "Counter"))["serial"] == serial
        await run("tag", serial, "shop")
        [row] = await data("--tag", "shop")
        assert (row["serial"], row["name"], row["transports"]) == (serial, "Counter", [address])
        assert row["battery"] == {"percent": 9, "charging": False, "celsius": 46.3}
        table = (await run())[1]
        assert address in table
        assert "46 °C" in table
        assert "9 %" in table or "9%" in table
        assert (await run("disconnect", "Counter"))[0] == Exit.OK
        assert await data() == []


@pytest.mark.device
async def test_phones_of_other_systems_are_listed_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with serve() as running, adb_server() as adb, serve_hdc([HdcTarget(VirtualPhone(), "K1")]) as host:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        monkeypatch.setenv("PHONEDESK_DEVICE__HDC_PATH", str(write_program(tmp_path, host.port)))
        monkeypatch.setenv("PHONEDESK_DEVICE__WDA", "127.0.0.1:1")
        await adb.connect(running.adb_port)
        assert {(row["serial"], row["system"], row["status"]) for row in await data()} == {
            (running.address, "android", "device"),
            ("hdc:K1", "harmonyos", "device"),
            ("wda:127.0.0.1:1", "ios", "offline"),
        }
        monkeypatch.setenv("COLUMNS", "200")
        row = next(line for line in (await run())[1].splitlines() if "wda:" in line)
        assert [cell.strip() for cell in row.split("│")][3:7] == ["offline", "network", "", ""], "its SDK is not known"


@pytest.mark.device
async def test_setup_says_what_is_left_to_the_owner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scenario = Scenario(phone=PhonePart(brand="Xiaomi"), keyboard=KeyboardPart(adb_installed=False))
    async with serve(scenario) as running, adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        await adb.connect(running.adb_port)
        before = dict(running.phone.settings)
        code, out, _ = await run("setup", "--dry-run")
        assert code == Exit.WAITING  # there is no keyboard, and no file with one
        assert "--keyboard-apk" in out
        assert "Xiaomi account" in out
        assert running.phone.settings == before
        code, _, err = await run("setup", "--keyboard-apk", "none.apk")
        assert (code, "no file none.apk" in err) == (Exit.USAGE, True)
        keyboard_apk(tmp_path / "own.apk")
        code, out, _ = await run("setup", running.address, "--keyboard-apk", "own.apk")
        assert code == Exit.OK
        assert "• window animations: not set → 0" in out
        undone = await data("setup", "--undo")
        assert len(undone["changes"]) == 6
        assert running.phone.settings == before
        running.phone.set_fault("settings_denied")
        code, _, err = await run("setup")
        assert (code, "USB debugging (Security settings)" in err) == (Exit.FAILED, True)
        assert (await run("setup", "--undo", "--dry-run"))[0] == Exit.USAGE
        code, _, err = await run("setup", "nobody")
        assert (code, "There is no phone nobody." in err) == (Exit.USAGE, True)
        code, _, err = await run("setup", "hdc:1")
        assert (code, "no Android phone" in err) == (Exit.USAGE, True)


@pytest.mark.device
async def test_pairing_by_a_code_that_is_scanned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offer = PairingOffer("phonedesk-abc", "secretsecret")
    monkeypatch.setattr(pairing, "new_offer", lambda: offer)
    async with standing_in(StandIn(offer.password, HEARD, f"{GUID}.{CONNECT}")) as server:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(server.port))
        code, out, _ = await run("pair", "--picture", "code.png")
    assert code == Exit.OK
    for line in qr_lines(offer.payload):
        assert line in out
    assert f"attached as {GUID}.{CONNECT}" in out
    with Image.open(tmp_path / "code.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.device
async def test_pairing_by_address_needs_both(monkeypatch: pytest.MonkeyPatch) -> None:
    async with adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        assert (await run("pair", "127.0.0.1:1"))[0] == Exit.USAGE
        code, _, err = await run("pair", "127.0.0.1:1", "--code", "123456")
        assert (code, "could not be paired" in err) == (Exit.FAILED, True)
        assert (await run("--tag", "x", "connect", "127.0.0.1:1"))[0] == Exit.USAGE


def test_the_lines_of_a_code_are_the_codes_modules() -> None:
    import segno

    text = "WIFI:T:ADB;S:phonedesk-abc;P:secretsecret;;"
    rows = [[bool(dark) for dark in row] for row in segno.make_qr(text).matrix_iter(border=3)]
    read = []
    for line in qr_lines(text):
        read.append([char in "▀█" for char in line])
        read.append([char in "▄█" for char in line])
    assert read[: len(rows)] == rows
    assert not any(map(any, read[len(rows) :]))
