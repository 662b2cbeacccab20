"""How gently the model, the knowledge base and the phones are asked whether they work, over real HTTP and real adb."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.devices.base import Battery, DeviceEntry
from bot.app.core import open_core
from bot.app.health import QUERY, Health
from bot.app.settings.layers import Settings
from bot.tools.demo.world import demo_world
from scheduler.runs.lease import lease_of
from tests.support.knowledge_servers import FakeDify, Plain
from tests.support.model_server import ScriptedModel, Status

NOWHERE = "http://127.0.0.1:9/v1"  # the discard port: nobody listens


@asynccontextmanager
async def health(tmp_path: Path, **settings: Any) -> AsyncIterator[Health]:
    chosen = {"model": {"base_url": NOWHERE}, "data_dir": tmp_path, **settings}
    async with open_core(Settings(_env_file=None, **chosen)) as core:
        made = Health(core)
        yield made
        await made.close()


async def test_a_model_that_answers_is_asked_for_its_list_alone(tmp_path: Path) -> None:
    async with ScriptedModel([]) as server, health(tmp_path, model={"base_url": server.url}) as at:
        assert await at.model(False) == ""
        assert server.requests == []


async def test_where_it_is_doubted_a_reply_must_come(tmp_path: Path) -> None:
    replies: list[Status | str] = [Status(401, "the balance is spent"), "OK"]
    async with ScriptedModel(replies) as server, health(tmp_path, model={"base_url": server.url}) as at:
        assert "the balance is spent" in await at.model(True)
        assert await at.model(True) == ""
        assert [request["messages"][0]["content"] for request in server.requests] == ["Answer with OK."] * 2


async def test_a_model_that_is_not_there_or_wants_another_key(tmp_path: Path) -> None:
    async with health(tmp_path) as at:
        for doubted in (False, True):
            assert "没有程序在监听" in await at.model(doubted)
    async with ScriptedModel([], api_key="another") as server, health(tmp_path, model={"base_url": server.url}) as at:
        assert await at.model(False)
        assert server.requests == []


async def test_the_model_is_down_where_its_fallbacks_are_too(tmp_path: Path) -> None:
    async with ScriptedModel(["OK", Status(402, "spent")]) as server:
        stands_in = {"base_url": server.url, "name": "other"}
        async with health(tmp_path, model={"base_url": NOWHERE, "fallbacks": [stands_in]}) as at:
            assert await at.model(True) == ""
            assert (await at._core.meter._totals.of_day(at._core.meter.today)).calls == 1
            assert "没有程序在监听" in await at.model(True)


async def test_the_knowledge_base_is_asked_one_question(tmp_path: Path) -> None:
    async with FakeDify() as service:
        knowledge = {
            "provider": "embedded,dify",
            "base_url": service.base_url,
            "dataset_id": service.dataset_id,
            "token": service.token,
        }
        async with health(tmp_path, knowledge=knowledge) as at:
            assert await at.knowledge(False) == ""
            assert service.queries == [QUERY]
            service.then(Plain(401))
            assert (await at.knowledge(False)).startswith("dify: ")


async def test_the_embedded_one_is_a_file(tmp_path: Path) -> None:
    async with health(tmp_path) as at:
        assert await at.knowledge(False) == ""


@pytest.mark.device
async def test_phones_by_the_list_of_adb() -> None:
    async with demo_world() as world, open_core(world.settings) as core:
        at = Health(core)
        seen = await at.phones()
        serial = world.settings.device.serial
        assert (seen.usable, seen.named) == (frozenset({serial}), frozenset({serial}))
        await at.close()


@pytest.mark.device
async def test_batteries_are_read_though_a_run_has_the_phone_and_wake_nothing() -> None:
    async with demo_world() as world, open_core(world.settings) as core:
        serial = world.settings.device.serial
        world.phone.battery.update(level=9, status=3, temperature=463)
        await world.phone.key("SLEEP")
        at = Health(core)
        await at.phones()
        device = await core.attached.device()
        async with lease_of(core.db, device, owner="somebody", why="run"):
            assert await at.batteries() == {serial: Battery(9, False, 46.3)}
            assert not world.phone.screen().awake
        await device.close()
        await at.close()


async def test_what_is_listed_and_cannot_be_used_says_why(tmp_path: Path) -> None:
    async with health(tmp_path) as at:

        async def phones(*, wanted: Sequence[str] = ()) -> list[DeviceEntry]:
            return [DeviceEntry("A", "device", ""), DeviceEntry("B", "unauthorized", "")]

        at._core.attached.phones = phones  # type: ignore[method-assign]  # no adb of this machine is asked
        seen = await at.phones()
        assert seen.usable == frozenset({"A"})
        assert (seen.why or {})["B"] == "unauthorized"


async def test_a_disk_with_too_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with health(tmp_path) as at:
        monkeypatch.setattr("bot.app.health.DISK_MB", 0)
        assert await at.disk(False) == ""
        monkeypatch.setattr("bot.app.health.DISK_MB", 10**12)
        assert (await at.disk(False)).endswith(" MB")
