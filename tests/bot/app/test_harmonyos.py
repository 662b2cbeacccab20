"""The main job on a HarmonyOS phone, from the settings to the answer that left: the product as it is, over hdc."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent_core.devices.hdc import server as hdc_server
from agent_core.devices.wda import server as wda_server
from agent_core.errors import HdcNotFound
from agent_core.session import Status
from bot.app.core import open_core
from bot.app.doctor.examine import CHECKS, examine
from bot.app.run_here import run_here
from bot.app.settings.layers import Settings
from bot.app.settings.sections import DeviceSettings
from bot.tools.demo.world import demo_world
from scheduler.runs.human import StoredHuman
from simulator.phone.hdc.host import HdcHost, HdcTarget, serve_hdc, write_program
from simulator.phone.phone import VirtualPhone

pytestmark = pytest.mark.device

KEY = "FMR0223C13000649"


@asynccontextmanager
async def harmonyos(phone: VirtualPhone) -> AsyncIterator[tuple[HdcHost, Settings]]:
    """The demo's stand-ins with a HarmonyOS phone in the place of theirs."""
    with tempfile.TemporaryDirectory() as folder:
        async with serve_hdc([HdcTarget(phone, KEY)]) as host:
            device = {"serial": f"hdc:{KEY}", "hdc_path": str(write_program(Path(folder), host.port)), "connect": ()}
            async with demo_world() as world:
                both = world.settings.device.model_dump() | device
                yield host, world.settings.model_copy(update={"device": type(world.settings.device)(**both)})


async def test_a_customer_is_answered_once() -> None:
    phone = VirtualPhone()
    async with harmonyos(phone) as (host, settings), open_core(settings) as core:
        human = StoredHuman(core.db, hold_seconds=0, attempt=1)
        session = await run_here(core, "QQ回复联系人11", human=human, store=core.runs(attempt=1))
        listed = await core.attached.phones()
    assert session.status is Status.SUCCEEDED, session.message
    [answer] = phone.report()["sent"]["11"]
    assert "48小时" in answer
    assert phone.report()["drafts"] == {}
    assert {entry.serial for entry in listed if entry.state == "device"} >= {f"hdc:{KEY}"}
    # All of it went through hdc: nothing but the stand-in could have told the phone to do it.
    assert any("uitest uiInput text" in call[-1] for call in host.calls)
    assert not [call for call in host.calls if call[:1] not in (["-t"], ["list"])]


async def test_a_broken_hdc_takes_no_other_phones_away(tmp_path: Path) -> None:
    async with demo_world() as world:
        broken = world.settings.device.model_copy(update={"hdc_path": str(tmp_path / "hdc")})
        async with open_core(world.settings.model_copy(update={"device": broken})) as core:
            assert [entry.serial for entry in await core.attached.phones()] == [world.settings.device.serial]
        async with open_core(world.settings) as core:
            with pytest.raises(HdcNotFound):
                await core.attached.device(f"hdc:{KEY}")


@asynccontextmanager
async def silent_iphone() -> AsyncIterator[tuple[str, list[str]]]:
    """An address where somebody listens and never answers, and who has connected to it."""
    asked: list[str] = []

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append("connected")
        await reader.read()

    listening = await asyncio.start_server(mute, "127.0.0.1", 0)
    async with listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", asked


def hanging_hdc(folder: Path) -> Path:
    """A program that writes down that it was called, and never ends."""
    program = folder / "hdc"
    program.write_text(f"#!/bin/sh\necho called >> {folder / 'calls'}\nexec sleep 600\n")
    program.chmod(0o755)
    return program


async def test_tools_that_hang_hold_no_other_phone_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdc_server, "LIST_SECONDS", 1.0)
    monkeypatch.setattr(wda_server, "STATUS_SECONDS", 0.5)
    async with demo_world() as world, silent_iphone() as (address, asked):
        changes = {"hdc_path": str(hanging_hdc(tmp_path)), "wda": (address,)}
        device = world.settings.device.model_copy(update=changes)
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            await (await core.attached.device(device.serial)).close()
            assert not (tmp_path / "calls").exists()
            assert not asked
            with capture_logs() as logs:
                states = {entry.serial: entry.state for entry in await core.attached.phones()}
            # Somebody listens there: one that is busy answers late, too.
            assert states == {device.serial: "device", f"wda:{address}": "device"}
            assert asked
            [late] = [entry for entry in logs if entry["event"] == "phones_not_listed"]
            assert (late["system"], "hdc list targets" in late["error"]) == ("harmonyos", True)


async def test_a_harmonyos_phone_is_found_without_asking_adb_or_iphones() -> None:
    phone = VirtualPhone()
    async with harmonyos(phone) as (_, settings), silent_iphone() as (address, asked):
        nowhere = {"wda": (address,), "adb_path": "/nowhere/adb", "adb_port": 1}
        device = settings.device.model_copy(update=nowhere)
        async with open_core(settings.model_copy(update={"device": device})) as core:
            found = await core.attached.device()
            assert (found.serial, (await found.screen()).awake) == (f"hdc:{KEY}", True)
            await found.close()
            assert not asked


async def hdc_check(settings: Settings, serial: str = "") -> tuple[str, str]:
    """The status of the check of hdc, and what it says."""
    checks = [check for check in CHECKS if check.key in ("settings", "hdc", "adb", "phone")]
    results = {found.check: found async for found in examine(settings, serial=serial, lang="en", checks=checks)}
    if serial:
        assert results["adb"].status == results["phone"].status == "skipped"
    return results["hdc"].status.value, results["hdc"].seen


async def test_the_doctor_looks_at_the_phone_that_runs_would_take(tmp_path: Path) -> None:
    phone = VirtualPhone()
    serial = f"hdc:{KEY}"
    async with harmonyos(phone) as (host, settings):
        taken = settings.model_copy(update={"device": settings.device.model_copy(update={"serial": serial})})
        status, seen = await hdc_check(taken, serial)
        assert (status, "VP-1, 1080×2400, with QQ, WeChat" in seen) == ("ok", True), seen
        phone.set_fault("asleep")
        assert (await hdc_check(taken, serial))[0] == "warning"
        phone.set_fault("asleep", False)
        assert (await hdc_check(taken, "hdc:OTHER"))[0] == "failed"
        for state in ("Unauthorized", "Offline"):
            host.targets[0].status = state
            assert (await hdc_check(taken, serial))[0] == "failed"
        host.targets.clear()
        assert (await hdc_check(taken, serial))[0] == "failed"
        assert await hdc_check(settings.model_copy(update={"device": DeviceSettings()}), serial) == (
            "failed",
            f"{serial} is a HarmonyOS phone, and PHONEDESK_DEVICE__HDC_PATH is empty.",
        )
        assert not phone.report()["taps"]
        assert not phone.report()["opened"]
