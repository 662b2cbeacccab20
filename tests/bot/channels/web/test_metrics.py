from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import ClientSession
from sqlalchemy import text

from agent_core.errors import ModelTimeout
from agent_core.ports import Event
from bot.app.counters import BOUNDS, MOST_LABELS, OTHER, Counts
from bot.app.limits import StoredMeter
from bot.app.settings.loading import load
from bot.channels.web.app import make_app, serving
from bot.channels.web.metrics import Metrics, add_metrics, is_loopback
from storage.api_keys import ApiKeys
from storage.engine import Database
from storage.runs import NewRun, Runs
from tests.support.database import empty_sqlite
from tests.support.prometheus import key, samples


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(await empty_sqlite(tmp_path / "desk.db"))
    yield made
    await made.close()


def step(ok: bool = True, **timings: float) -> Event:
    return Event("step", {"ok": ok, "timings": timings})


async def test_what_this_process_did_has_its_name(db: Database) -> None:
    counts = Counts()
    counts.event(step(model=0.2, act=0.03))
    counts.event(step(ok=False, model=70.0))
    counts.event(Event("thinking", {"text": "…"}))
    counts.event(Event("outcome", {"status": "failed", "error_kind": "device.offline"}))
    counts.event(Event("outcome", {"status": "succeeded", "error_kind": ""}))
    meter = StoredMeter(db, load(), counts)  # which every model is given
    meter.failed("m", ModelTimeout("slow"))
    meter.stood_in("n", "m")
    found = samples(await Metrics(db, counts, host="desk-1", release="1.2").text())
    assert found[key("phonedesk_build_info", host="desk-1", release="1.2")] == 1
    assert found[key("phonedesk_steps_total", host="desk-1", result="ok")] == 1
    assert found[key("phonedesk_steps_total", host="desk-1", result="failed")] == 1
    model = {"host": "desk-1", "phase": "model"}
    assert found[key("phonedesk_step_seconds_count", **model)] == 2
    assert found[key("phonedesk_step_seconds_sum", **model)] == 70.2
    buckets = [found[key("phonedesk_step_seconds_bucket", **model, le=str(bound))] for bound in BOUNDS]
    assert buckets == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert found[key("phonedesk_step_seconds_bucket", **model, le="+Inf")] == 2
    assert found[key("phonedesk_run_failures_total", host="desk-1", kind="device.offline")] == 1
    assert found[key("phonedesk_model_errors_total", host="desk-1", model="m", kind="model.timeout")] == 1
    assert found[key("phonedesk_model_fallbacks_total", host="desk-1", model="n", instead_of="m")] == 1
    assert found[key("process_cpu_seconds_total")] > 0
    assert found[key("process_resident_memory_bytes")] > 2**20


def test_no_stranger_makes_ever_more_labels() -> None:
    counts = Counts()
    for number in range(2 * MOST_LABELS):
        counts.event(Event("step", {"timings": {f"phase{number}": 1.0}}))
    assert len(counts.seconds) == MOST_LABELS + 1
    assert sum(counts.seconds[OTHER].buckets) == MOST_LABELS


async def test_the_database_is_read_now_and_then_and_not_waited_for(db: Database) -> None:
    metrics = Metrics(db, Counts(), host="desk-1")
    runs = Runs(db)
    await runs.create(NewRun("a task of nobody's business"))
    first, second = await asyncio.gather(metrics.text(), metrics.text())
    assert b"business" not in first
    assert samples(first)[key("phonedesk_runs", status="queued")] == 1
    assert samples(second)[key("phonedesk_runs_in_line")] == 1
    await runs.create(NewRun("another"))
    assert samples(await metrics.text())[key("phonedesk_runs", status="queued")] == 1
    always = Metrics(db, Counts(), host="desk-1", fresh=False)
    assert samples(await always.text())[key("phonedesk_runs", status="queued")] == 2
    db.away_since = db.now() - timedelta(seconds=9)
    found = samples(await always.text())  # without asking: that would take more than a minute
    assert found[key("phonedesk_database_up", host="desk-1")] == 0
    assert found[key("phonedesk_database_away_seconds", host="desk-1")] >= 9
    assert found[key("phonedesk_runs", status="queued")] == 2
    never = Metrics(db, Counts(), host="desk-1")
    assert key("phonedesk_runs_in_line") not in samples(await never.text())  # not known is not none
    db.away_since = None
    await never.close()


async def test_a_database_that_answers_with_errors_is_not_up(db: Database) -> None:
    metrics = Metrics(db, Counts(), host="desk-1", fresh=False)
    up = key("phonedesk_database_up", host="desk-1")
    assert samples(await metrics.text())[up] == 1
    for old, new, known in (("runs", "runs_elsewhere", 0), ("runs_elsewhere", "runs", 1)):
        async with db.write() as connection:
            await connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))
        assert samples(await metrics.text())[up] == known


async def status(url: str, **headers: str) -> int:
    async with ClientSession() as client, client.get(f"{url}/metrics", headers=headers) as answer:
        assert answer.status in {200, 401}
        if answer.status == 401:
            assert "phonedesk_" not in await answer.text()
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        return answer.status


async def test_elsewhere_than_on_loopback_a_key_is_needed(db: Database) -> None:
    async def ready() -> dict[str, bool]:
        return {}

    secret = (await ApiKeys(db).add("prometheus", role="viewer"))[0]
    metrics = Metrics(db, Counts(), host="desk-1")
    for host, known in (("127.0.0.1", 200), ("0.0.0.0", 401)):
        app = make_app(ready)
        add_metrics(app, metrics, db, host)
        async with serving(app, "127.0.0.1", 0) as url:
            assert await status(url) == known
            assert await status(url, **{"X-Forwarded-For": "203.0.113.9"}) == 401
            assert await status(url, Authorization="Bearer pdk_nobody's") == known
            assert await status(url, Authorization=f"Bearer {secret}") == 200
    assert [is_loopback(host) for host in ("localhost", "::1", "127.9.9.9", "::", "desk.lan")] == [True] * 3 + [
        False
    ] * 2
