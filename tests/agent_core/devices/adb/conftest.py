"""A virtual phone behind a real adb server, and our form of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.devices.base import Device
from agent_core.geometry import Point
from simulator.phone.adbd import AdbdServer
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import KeyboardPart
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import RunningPhone, serve
from tests.support.adb import adb_server

QQ = "com.tencent.mobileqq"
SOGOU = "com.sohu.inputmethod.sogou/.SogouIME"
ADB_KEYBOARD = "com.android.adbkeyboard/.AdbIME"


@dataclass
class FastTime:
    """Time that passes in ``sleep`` alone, on top of the real one."""

    slept: list[float] = field(default_factory=list)
    then: Callable[[], Awaitable[None]] | None = None  # what happens while somebody sleeps

    def clock(self) -> float:
        return time.monotonic() + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.then is not None:
            await self.then()


@dataclass
class Bench:
    running: RunningPhone
    server: AdbServer
    device: AdbDevice
    time: FastTime

    @property
    def phone(self) -> VirtualPhone:
        return self.running.phone

    @property
    def calls(self) -> list[str]:
        """Every service that was opened on the phone, as adbd saw it."""
        assert isinstance(self.phone.link, AdbdServer)
        return [call.service for call in self.phone.link.calls]

    def another(self) -> AdbDevice:
        """The same phone, as a process that knows nothing of the first would hold it."""
        return self.server.device(self.running.address, clock=self.time.clock, sleep=self.time.sleep)

    async def open_chat(self) -> None:
        """The chat with contact 11, its input focused."""
        await self.device.open_url("mqqwpa://im/chat?chat_type=wpa&uin=20110011", QQ)
        await self.device.tap(await self.input_point())

    async def input_point(self) -> Point:
        fields = [node for node in await self.device.tree() if node.class_name.endswith("EditText")]
        return fields[0].box.center

    def draft(self) -> str:
        return self.phone.report()["drafts"].get("11", "")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    # Broadcasts must name their receiver, as on newer Androids.
    scenario = default_scenario().model_copy(update={"keyboard": KeyboardPart(needs_package=True)})
    async with adb_server() as adb, serve(scenario) as running, await open_adb(port=adb.port) as server:
        await server.connect(running.address)
        clock = FastTime()
        device: Device = server.device(running.address, clock=clock.clock, sleep=clock.sleep)
        assert isinstance(device, AdbDevice)
        yield Bench(running, server, device, clock)
