"""The same virtual phone behind the tool of each system, for what must hold of every ``Device``.

A system is one async context manager in ``SYSTEMS`` that yields a ``Phone``; a new one is an entry there.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_core.devices.adb.server import open_adb
from agent_core.devices.base import Device, DeviceServer, System
from agent_core.devices.hdc.server import HdcServer
from agent_core.devices.pictures import STATUS_BAR
from agent_core.devices.wda import display
from agent_core.devices.wda.server import WdaServer
from simulator.phone.hdc.host import HdcTarget, serve_hdc, write_program
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from simulator.phone.wda.server import BUNDLE_IDS, serve_iphone
from tests.support.adb import adb_server


async def shortly(seconds: float) -> None:
    """Wait between two tries, though not for as long as a real phone would need."""
    await asyncio.sleep(seconds / 50)


@dataclass(frozen=True)
class Phone:
    """A device and the virtual phone behind it.

    qq: the name of QQ on this system. tells_notifications: whether the system tells a tool of them.
    leftovers: names what was put on the phone (files, settings) and not taken away.
    lacks: what the tool cannot do; the tests name it. status_bar: its share of the height, which is in no digest.
    look_calls: how many calls a look takes.
    """

    device: Device
    virtual: VirtualPhone
    server: DeviceServer
    qq: str
    leftovers: Callable[[], list[str]]
    tells_notifications: bool = True
    lacks: frozenset[str] = frozenset()
    status_bar: float = STATUS_BAR
    look_calls: int = 1

    def need(self, what: str) -> None:
        """Skip the test if the system's tool has no such thing."""
        if what in self.lacks:
            pytest.skip(f"{self.device.system} has no {what}")


def _changed_settings(phone: VirtualPhone) -> Callable[[], list[str]]:
    before = dict(phone.settings)
    return lambda: [name for (space, name), value in phone.settings.items() if before.get((space, name)) != value]


@asynccontextmanager
async def android(scenario: Scenario | None = None) -> AsyncIterator[Phone]:
    async with (
        adb_server() as adb,
        serve(scenario or default_scenario()) as running,
        await open_adb(port=adb.port) as server,
    ):
        await server.connect(running.address)
        phone = running.phone
        leftovers = _changed_settings(phone)
        device: Device = server.device(running.address, sleep=shortly)
        try:
            yield Phone(device, phone, server, "com.tencent.mobileqq", leftovers)
        finally:
            await device.close()


@asynccontextmanager
async def harmonyos(scenario: Scenario | None = None) -> AsyncIterator[Phone]:
    phone = VirtualPhone(scenario or default_scenario())
    settings = _changed_settings(phone)
    target = HdcTarget(phone, "FMR0223C13000649")
    with tempfile.TemporaryDirectory() as folder:
        async with serve_hdc([target]) as host:
            server = HdcServer(str(write_program(Path(folder), host.port)))

            def leftovers() -> list[str]:
                files = [name for name, stat in target.files.names("/data/local/tmp") if not stat.is_folder]
                return [*settings(), *files]

            device: Device = server.device(f"hdc:{target.key}", sleep=shortly)
            try:
                yield Phone(device, phone, server, "com.tencent.mqq", leftovers, tells_notifications=False)
            finally:
                await device.close()


@asynccontextmanager
async def ios(scenario: Scenario | None = None) -> AsyncIterator[Phone]:
    async with serve_iphone(scenario or default_scenario()) as running:
        server = WdaServer(lambda: [running.address], known_apps=lambda: [*BUNDLE_IDS.values(), "com.example.none"])
        leftovers = _changed_settings(running.phone)
        device: Device = server.device(f"wda:{running.address}", sleep=shortly)
        try:
            yield Phone(
                device,
                running.phone,
                server,
                "com.tencent.mqq",
                leftovers,
                tells_notifications=False,
                lacks=frozenset({"app versions", "keyboard focus", "key of Back", "shade", "staying awake"}),
                status_bar=display.STATUS_BAR,
                look_calls=2,
            )
        finally:
            await device.close()
            await server.close()


@asynccontextmanager
async def android_without_keyboard(scenario: Scenario | None = None) -> AsyncIterator[Phone]:
    """An Android phone without ADB Keyboard: texts are pasted."""
    scenario = scenario or default_scenario()
    keyboard = scenario.keyboard.model_copy(update={"adb_installed": False})
    async with android(scenario.model_copy(update={"keyboard": keyboard})) as phone:
        yield phone


@asynccontextmanager
async def android_without_clipboard(scenario: Scenario | None = None) -> AsyncIterator[Phone]:
    """An Android phone that has neither ADB Keyboard nor lets its clipboard be used: ``input text`` is left."""
    async with android_without_keyboard(scenario) as phone:
        phone.virtual.set_fault("clipboard")
        yield replace(phone, lacks=frozenset({"Unicode", "keyboard that types nothing"}))


SYSTEMS: Mapping[str, Callable[..., AbstractAsyncContextManager[Phone]]] = {
    System.ANDROID: android,
    "android without ADB Keyboard": android_without_keyboard,
    "android without a clipboard": android_without_clipboard,
    System.HARMONYOS: harmonyos,
    System.IOS: ios,
}
