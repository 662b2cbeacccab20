"""A virtual iPhone behind its WebDriverAgent, and our form of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from agent_core.devices.wda.device import WdaDevice
from agent_core.geometry import Point
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario_file import default_scenario
from simulator.phone.wda.server import BUNDLE_IDS, RunningIPhone, WdaServer, serve_iphone
from tests.support.lab import on_a_small_phone

QQ = "com.tencent.mqq"
NOT_THERE = "com.example.notthere"
KNOWN = [*BUNDLE_IDS.values(), NOT_THERE]


@dataclass
class FastTime:
    """Time that passes in ``sleep`` alone, on top of the real one."""

    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return time.monotonic() + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class Bench:
    running: RunningIPhone
    device: WdaDevice
    time: FastTime
    others: list[WdaDevice] = field(default_factory=list)

    @property
    def phone(self) -> VirtualPhone:
        return self.running.phone

    @property
    def wda(self) -> WdaServer:
        return self.running.wda

    def another(self) -> WdaDevice:
        """The same phone, as a process that knows nothing of the first would hold it."""
        device = _device(self.wda, self.time)
        self.others.append(device)
        return device

    async def open_chat(self) -> None:
        """The chat with contact 11, its input focused."""
        await self.device.open_url("mqqwpa://im/chat?chat_type=wpa&uin=20110011", QQ)
        await self.device.tap(await self.input_point())

    async def input_point(self) -> Point:
        fields = [node for node in await self.device.tree() if node.class_name.endswith("EditText")]
        return fields[0].box.center

    def draft(self) -> str:
        return self.phone.report()["drafts"].get("11", "")

    def taps(self) -> list[tuple[int, int]]:
        """Where the phone was tapped, in pixels of the phone upright."""
        return [(round(tap["x"]), round(tap["y"])) for tap in self.phone.report()["taps"]]

    def paths(self) -> list[str]:
        """What WebDriverAgent was asked, without the session."""
        return [call.path.replace(f"/session/{self.wda.session}", "") for call in self.wda.calls]


def _device(wda: WdaServer, clock: FastTime) -> WdaDevice:
    return WdaDevice("127.0.0.1", wda.port, clock=clock.clock, sleep=clock.sleep, known_apps=lambda: KNOWN)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with serve_iphone(on_a_small_phone(default_scenario())) as running:
        clock = FastTime()
        found = Bench(running, _device(running.wda, clock), clock)
        yield found
        for device in (found.device, *found.others):
            await device.close()
