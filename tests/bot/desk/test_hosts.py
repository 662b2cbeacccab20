"""Phones of other machines, as people see them."""

from __future__ import annotations

import asyncio
import io

import pytest
from PIL import Image

from agent_core.devices.base import DeviceEntry
from agent_core.errors import DeviceOffline
from bot.channels.chat.devices import devices_card
from bot.channels.chat.run_cards import away_lines
from bot.channels.chat.runs import status_card
from bot.channels.chat.texts import texts
from bot.desk.actors import BadRequest, Role
from storage.hosts import Hosts
from storage.leases import LEASE_SECONDS
from tests.support.shop import CHAT, PHONE, Shop


async def a_host(shop: Shop, **states: str) -> Hosts:
    hosts = Hosts(shop.db)
    await hosts.register("counter-2", "token")
    await hosts.sees("counter-2", "token", states)
    return hosts


async def test_phones_of_another_machine_are_listed_with_it_and_away_when_it_dies(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    await a_host(shop, S1="device", S2="unauthorized", S3="device")
    await Hosts(shop.db).sees("counter-2", "token", {"S1": "device", "S2": "unauthorized"})
    seen = {phone.serial: (phone.state, phone.host) for phone in (await shop.desk.status(owner)).phones}
    assert seen == {PHONE: ("free", ""), "S1": ("free", "counter-2"), "S2": ("unauthorized", "counter-2")}
    shop.clock.move(seconds=LEASE_SECONDS)
    status = await shop.desk.status(owner)
    assert {phone.serial: phone.state for phone in status.phones} == {PHONE: "free", "S1": "away", "S2": "away"}
    for card in (status_card(status, texts("en")), devices_card(status, texts("en"))):
        assert "Away: the host counter-2 has not been heard since 03-01 17:00" in [line.text for line in card.lines]


async def test_a_run_says_which_machine_its_phone_is_away_with(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    hosts = await a_host(shop, S1="device")
    run = await shop.desk.runs.start(owner, "task", chat=CHAT, serial="S1")
    assert (run.away, run.position) == ("", 1)
    assert away_lines(run, texts("en")) == []
    shop.clock.move(seconds=LEASE_SECONDS)
    run = await shop.desk.runs.get(run.id) or run
    assert (run.away, run.away_host) == ("nobody", "")  # no other host lives that could take the phone
    for lang in ("zh", "en"):
        said = [line.text for line in away_lines(run, texts(lang))]
        assert "phonedesk" in said[0]
        assert "phonedesk worker" in said[-1]
    await hosts.register("counter-3", "token")
    run = await shop.desk.runs.get(run.id) or run
    assert (run.away, run.away_host, run.away_until) == ("host", "counter-2", None)
    said = [line.text for line in away_lines(run, texts("en"))]
    assert said[0] == "It waits for the phone S1; its host counter-2 has not been heard since 03-01 17:00."
    assert "another host" in said[-1]
    await hosts.sees("counter-3", "token", {"S1": "device"})
    assert (await shop.desk.runs.get(run.id) or run).away == ""


async def test_the_screen_of_a_phone_at_another_machine(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    hosts = await a_host(shop, S1="device", S2="offline")
    shown = io.BytesIO()
    Image.new("RGB", (40, 80), "red").save(shown, "JPEG")

    async def answer() -> None:
        while not (asked := await hosts.wanted("counter-2")):
            await shop.db.signal("phone_requests").waiter().wait(0.01)
        await hosts.give(asked[0].id, jpeg=shown.getvalue())

    async with asyncio.TaskGroup() as group:
        group.create_task(answer())
        picture = await shop.desk.phones.screenshot(owner, "S1", full=True)
    assert Image.open(io.BytesIO(picture)).size == (40, 80)
    with pytest.raises(DeviceOffline, match="counter-2, which does not reach it"):
        await shop.desk.phones.screenshot(owner, "S2")
    with pytest.raises(BadRequest, match="counter-2"):
        await shop.desk.phones.page(owner, "S1")
    assert await hosts.wanted("counter-2") == []


async def test_a_phone_that_only_another_machine_reaches_is_that_ones(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    hosts = await a_host(shop, **{PHONE: "device"})
    shop.attached[:] = [DeviceEntry(PHONE, "offline")]
    assert [(phone.state, phone.host) for phone in await shop.desk.phones.all()] == [("free", "counter-2")]

    async def answer() -> None:
        while not (asked := await hosts.wanted("counter-2")):
            await shop.db.signal("phone_requests").waiter().wait(0.01)
        await hosts.give(asked[0].id, error="asked")

    async with asyncio.TaskGroup() as group:
        group.create_task(answer())
        with pytest.raises(DeviceOffline, match="counter-2 says: asked"):
            await shop.desk.phones.screenshot(owner, PHONE)
    await hosts.sees("counter-2", "token", {})
    assert [(phone.state, phone.host) for phone in await shop.desk.phones.all()] == [("offline", "")]


async def test_a_machine_that_does_not_answer_in_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.desk.phones.ANSWER_SECONDS", 0.01)
    owner = await shop.person(Role.OWNER)
    hosts = await a_host(shop, S1="device")
    with pytest.raises(DeviceOffline, match="gave no picture of the phone S1 within"):
        await shop.desk.phones.screenshot(owner, "S1")
    assert await hosts.wanted("counter-2") == [], "nobody waits for it any more"
