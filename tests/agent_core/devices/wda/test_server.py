"""The iPhones of the settings."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.adb import discovery
from agent_core.devices.base import DeviceEntry, DeviceServer, System
from agent_core.devices.wda import server as module
from agent_core.devices.wda.server import WdaServer, split
from agent_core.errors import InputRejected
from simulator.phone.wda.server import serve_iphone
from tests.agent_core.devices.wda.conftest import KNOWN, QQ


def _entry(address: str, state: str) -> DeviceEntry:
    return DeviceEntry(f"wda:{address}", state, "", "tcp", System.IOS)


async def test_phones_of_the_settings_are_listed_with_their_states() -> None:
    async with serve_iphone() as running:
        gone = "127.0.0.1:1"
        server: DeviceServer = WdaServer(lambda: [running.address, f"wda:{running.address}", gone])
        assert await server.devices() == [_entry(running.address, "device"), _entry(gone, "offline")]
        running.phone.set_fault("dropped")
        assert await server.devices() == [_entry(running.address, "offline"), _entry(gone, "offline")]
        await server.close()


async def test_something_else_at_the_address_is_no_phone() -> None:
    async with serve_iphone() as running:
        address = running.state_url.removeprefix("http://")
        server = WdaServer(lambda: [address])
        assert await server.devices() == [_entry(address, "offline")]
        await server.close()


async def test_a_phone_that_is_busy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATUS_SECONDS", 0.1)

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    listening = await asyncio.start_server(mute, "127.0.0.1", 0)
    address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    server = WdaServer(lambda: [address])
    assert await server.devices() == [_entry(address, "device")]
    monkeypatch.setattr(discovery, "DESCRIBE_SECONDS", 0.1)
    async with asyncio.timeout(10):  # a call waits 20 s for an answer
        [info] = await discovery.list_devices(server)
    assert (info.serial, info.status) == (f"wda:{address}", "offline")
    await server.close()
    listening.close()


async def test_the_apps_of_a_phone_are_kept_from_run_to_run() -> None:
    async with serve_iphone() as running:
        server = WdaServer(lambda: [running.address], known_apps=lambda: KNOWN)
        first, second = (server.device(f"wda:{running.address}") for _ in range(2))
        assert QQ in await first.packages()
        assert await second.packages() == await first.packages()
        assert second.round_trips == 0
        for closing in (first, second, server):
            await closing.close()


@pytest.mark.parametrize("address", ["", "host", "host:x", "host:99999", "host:1/path", "a@host:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputRejected):
        split(address)


def test_addresses() -> None:
    assert split("iphone.local:8100") == ("iphone.local", 8100)
    assert split("[fe80::1]:8100") == ("fe80::1", 8100)
