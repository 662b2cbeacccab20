"""A phone in a person's hands, with a real server and a virtual phone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_core.actions.types import Back, Home, Tap, Type
from agent_core.errors import LeaseLost
from bot.app.server import Server, server
from bot.app.take_over import TakeOvers
from bot.channels.chat.texts import texts
from bot.channels.web.problems import status_of
from bot.desk.actors import Actor, BadRequest, NotFound, Role
from bot.tools.demo.world import demo_world
from scheduler.runs.lease import PhoneTakenOver, refuse_if_in_use
from simulator.phone.phone import VirtualPhone
from storage.events import Events
from storage.leases import Leases
from storage.people import TERMINAL, Audit
from storage.runs import NewRun, Runs
from tests.support.busy import busy_shop

ONE = Actor("1", "console", "1", "Anna", "en", Role.OPERATOR)
OTHER = replace(ONE, id="2", name="Bob")
PATIENCE = 60.0  # seconds

pytestmark = pytest.mark.device


@dataclass
class Hands:
    """A server that runs, with its phone."""

    running: Server
    phone: VirtualPhone

    @property
    def serial(self) -> str:
        return self.running.settings.device.serial

    @property
    def takes(self) -> TakeOvers:
        takes = self.running.desk.context.take_overs
        assert takes is not None
        return takes

    async def held(self) -> bool:
        return self.serial in {lease.serial for lease in await Leases(self.running.desk.context.db).held()}


@pytest.fixture
async def hands() -> AsyncIterator[Hands]:
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(demo_world(lang="en", web={"host": "127.0.0.1", "port": 0}))
        running = await stack.enter_async_context(server(world.settings))
        yield Hands(running, world.phone)


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.02)


async def test_whoever_has_the_phone_acts_on_it_and_nobody_else(hands: Hands) -> None:
    over, serial = hands.running.desk.take_over, hands.serial
    with pytest.raises(LeaseLost):
        await over.act(ONE, serial, Home())
    await over.take(ONE, serial)
    await over.take(ONE, serial)  # again changes nothing
    assert (over.holder(serial), await hands.held()) == ("1", True)
    for refused in (over.act(OTHER, serial, Back()), over.give_back(OTHER, serial), over.take(OTHER, serial)):
        with pytest.raises(LeaseLost):
            await refused
    before = len(hands.phone.report()["taps"])
    await over.act(ONE, serial, Tap(element=(500, 500)))
    assert len(hands.phone.report()["taps"]) == before + 1
    await over.give_back(ONE, serial)
    assert (over.holder(serial), await hands.held()) == ("", False)
    with pytest.raises(LeaseLost):
        await over.act(ONE, serial, Home())
    await over.take(OTHER, serial)
    await over.give_back(OTHER, serial)
    told = [row.data for row in await Events(hands.running.desk.context.db).after(0) if row.kind == "take_over"]
    assert [(data["by"], data["taken"]) for data in told] == [
        ("Anna", True), ("Anna", False), ("Bob", True), ("Bob", False)
    ]  # fmt: skip


async def test_who_has_taken_the_phone_over_is_said_to_others_with_what_to_do(hands: Hands) -> None:
    desk, serial = hands.running.desk, hands.serial
    await desk.take_over.take(ONE, serial)
    with pytest.raises(PhoneTakenOver) as taken:
        await desk.take_over.take(OTHER, serial)
    with pytest.raises(PhoneTakenOver) as refused:
        await refuse_if_in_use(desk.context.db, serial)
    phones = (await desk.status(OTHER)).phones
    name = next(phone.name for phone in phones if phone.serial == serial)
    assert name != serial
    for error, phone in ((taken.value, name), (refused.value, serial)):
        assert status_of(error) == 409
        assert f"Anna has taken over the phone {phone} in the console, 1 minute ago.\n" in texts("en").error(error)
        assert f"Anna 1 分钟前在控制台里接管了手机 {phone}。\n等对方还回" in texts("zh").error(error)
    await desk.take_over.give_back(ONE, serial)
    await refuse_if_in_use(desk.context.db, serial)
    owner = replace(ONE, id=TERMINAL, name=TERMINAL)  # who came by a link of the terminal
    await desk.take_over.take(owner, serial)
    with pytest.raises(PhoneTakenOver) as refused:
        await refuse_if_in_use(desk.context.db, serial)
    assert "the owner at this machine has taken over" in texts("en").error(refused.value)


async def test_what_is_typed_is_in_no_log(hands: Hands) -> None:
    over, db = hands.running.desk.take_over, hands.running.desk.context.db
    await over.take(ONE, hands.serial)
    await over.act(ONE, hands.serial, Type(text="the shop's password"))
    await over.give_back(ONE, hands.serial)
    rows = await Audit(db).last()
    assert "act" in {row.command for row in rows}
    assert "password" not in str([row.detail for row in rows])


async def test_a_phone_that_is_left_alone_is_given_back_and_its_run_goes_on(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = hands.running.desk
    monkeypatch.setattr("bot.app.take_over.IDLE_SECONDS", 1.0)
    await desk.take_over.take(ONE, hands.serial)
    runs = Runs(desk.context.db)
    run_id = await runs.create(NewRun("打开设置", hands.serial))
    assert run_id is not None
    await until(lambda: not desk.take_over.holder(hands.serial))
    async with asyncio.timeout(PATIENCE):
        while (row := await runs.get(run_id)) is None or not row.final:
            await asyncio.sleep(0.05)
    assert row.status == "succeeded", "it waited for the phone"


async def test_the_server_ends_with_a_phone_in_somebodys_hands() -> None:
    async with demo_world(lang="en", web={"host": "127.0.0.1", "port": 0}) as world:
        async with server(world.settings) as running:
            serial = running.settings.device.serial
            await running.desk.take_over.take(ONE, serial)
        async with server(world.settings) as running:
            assert await Leases(running.desk.context.db).held() == []
            await running.desk.take_over.take(OTHER, serial)


async def test_only_phones_of_this_process_can_be_taken(hands: Hands, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await hands.running.desk.take_over.take(ONE, "127.0.0.1:1")
    async with busy_shop(tmp_path) as busy:
        with pytest.raises(BadRequest, match="No phone is worked by this process"):
            await busy.desk.take_over.take(ONE, hands.serial)
