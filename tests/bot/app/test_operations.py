"""The whole server: what it tells of a run, in ``/metrics`` and in its log, and settings that change meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import ClientSession

from bot.app import logs
from bot.app.server import Server, server
from bot.app.settings.files import CONFIG_FILE
from bot.app.settings.layers import Settings
from bot.tools.demo.world import demo_world
from storage.runs import RunRow
from tests.support.lab import do
from tests.support.model_server import ScriptedModel
from tests.support.prometheus import Samples, key, samples

TASK = "QQ回复联系人11"
KEY = "key-of-the-other-model"


async def done(running: Server, task: str) -> RunRow:
    house = running.desk.context
    run_id = await house.runs.submit(task, serial=house.serial)
    async with asyncio.timeout(60):
        while True:
            waiter = house.db.signal("runs").waiter()
            row = await house.runs.get(run_id)
            if row is not None and row.final:
                return row
            await waiter.wait(0.2)


async def resting(running: Server) -> Samples:
    """Return the metrics once the phone is given back, which comes after the run's last row."""
    async with asyncio.timeout(30):
        while (found := await scraped(running))[key("phonedesk_leases")] != 0:
            await asyncio.sleep(0.02)
    return found


async def scraped(running: Server) -> Samples:
    async with ClientSession() as client, client.get(f"{running.url}/metrics") as answer:
        assert answer.status == 200
        return samples(await answer.read())


@pytest.mark.device
async def test_a_run_in_figures_and_lines_and_the_next_one_with_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "desk.log"
    async with (
        demo_world(observe={"ocr": "off"}) as world,
        ScriptedModel([do('finish(message="我是另一个")')]) as other,
    ):
        web = world.settings.web.model_copy(update={"hosts": ("desk.example",)})
        telegram = world.settings.telegram.model_copy(
            update={"mode": "webhook", "webhook_url": "https://public.example"}
        )
        settings = world.settings.model_copy(update={"web": web, "telegram": telegram})
        logs.configure("info", file=logs.LogFile(file))

        def read() -> Settings:
            """As the file says which the test writes."""
            if not Path(CONFIG_FILE).exists():
                return settings
            model = {"base_url": other.url, "name": "other", "api_key": KEY}
            return settings.model_copy(update={"model": type(settings.model)(**model)})

        async with server(settings, read) as running:
            row = await done(running, TASK)
            found = await resting(running)
            assert row.status == "succeeded"
            assert found[key("phonedesk_runs", status="succeeded")] == 1
            assert found[key("phonedesk_answers", provenance="knowledge", state="sent")] == 1
            assert found[key("phonedesk_phones", state="device")] == 1
            assert found[key("phonedesk_hosts", state="up")] == 1
            steps = found[key("phonedesk_steps_total", host="demo", result="ok")]
            for phase in ("observe", "model", "gate", "act", "step"):
                assert found[key("phonedesk_step_seconds_count", host="demo", phase=phase)] >= steps - 1
            calls = found[key("phonedesk_model_calls_total", model=settings.model.name)]
            assert calls >= 3
            assert found[key("phonedesk_model_tokens_total", model=settings.model.name, direction="in")] > 0

            Path(CONFIG_FILE).write_text("changed\n")
            async with asyncio.timeout(30):
                while "settings_taken_over" not in file.read_text(encoding="utf-8"):
                    await asyncio.sleep(0.02)
            second = await done(running, "打开设置")
            assert (second.status, second.message) == ("succeeded", "我是另一个")
            assert other.requests[0]["model"] == "other"
            for host, status in (("desk.example", 200), ("public.example", 200), ("evil.example", 421)):
                async with ClientSession() as client:
                    for path in ("healthz", "metrics"):
                        async with client.get(f"{running.url}/{path}", headers={"Host": host}) as answer:
                            assert answer.status == status
    text = file.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    (rests,) = [line for line in lines if line["event"] == "run_rests" and line["run_id"] == row.id]
    assert rests["level"] == "info"
    of_attempts = [line for line in lines if line.get("run_id") == row.id]
    assert {line["serial"] for line in of_attempts if "attempt" in line} == {settings.device.serial}
    assert KEY not in text
