"""What models may be asked: a minute, a day, a run; over all processes, and told in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_core.errors import LeaseLost, ModelLimit
from agent_core.loop.thinking import in_words
from agent_core.model.base import Usage
from agent_core.model.usage import Account, charge_to
from agent_core.ports import Record
from agent_core.session import Answer, QuestionKind, Spent, Status
from bot.app.core import Core, open_core
from bot.app.limits import Counted, StoredMeter
from bot.app.models import unpriced
from bot.app.run_here import run_here
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.app.worker import AttemptExecutor
from bot.tools.demo.world import demo_world
from knowledge.choosing import ModelChooser
from scheduler.runs.executor import StoredRuns
from scheduler.runs.host import Host
from scheduler.runs.lease import HeldLease
from simulator.phone.assembly import CHECKED
from storage.engine import Database
from storage.events import Events
from storage.leases import Leases
from storage.model_calls import UsageTotals, Used
from storage.runs import PLAN_PART, NewRun, Runs
from tests.support.clock import Clock
from tests.support.database import empty_sqlite
from tests.support.lab import People
from tests.support.model_server import ScriptedModel
from tests.support.model_server import Status as HttpStatus

USED = Usage(tokens_in=900, tokens_out=100, tokens_cached=500)
TASK = "QQ回复联系人11"


def settings(**limits: float) -> Settings:
    return load(timezone="Asia/Shanghai", limits=limits, price={"tokens_in": 1000, "tokens_out": 1000})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return await empty_sqlite(tmp_path / "desk.db")


@pytest.fixture
async def dbs(url: str, clock: Clock) -> AsyncIterator[tuple[Database, Database]]:
    """As two processes see it."""
    made = Database(url, clock=clock), Database(url, clock=clock)
    yield made
    for db in made:
        await db.close()


@pytest.mark.parametrize(
    ("limits", "key", "said"),
    [
        ({"day_calls": 2}, "day_calls", "2/2 次"),
        ({"day_tokens": 2000}, "day_tokens", "2,000/2,000"),
        ({"day_cost": 2.0}, "day_cost", "2.00/2.00 CNY"),
    ],
)
async def test_a_days_limit_holds_over_all_processes_until_the_owners_midnight(
    dbs: tuple[Database, Database], clock: Clock, limits: dict[str, float], key: str, said: str
) -> None:
    clock.time = datetime(2026, 3, 1, 15, 50, tzinfo=UTC)  # ten to midnight in Shanghai
    one, other = (StoredMeter(db, settings(**limits)) for db in dbs)
    for meter in (one, other):
        await meter.admit("m")
        await meter.count("m", USED)
    for meter in (one, other, one):
        with pytest.raises(ModelLimit, match=f"PHONEDESK_LIMITS__{key.upper()}") as caught:
            await meter.admit("m")
    assert said in in_words(caught.value, "zh").message
    told = [event for event in await Events(dbs[0]).after(0) if event.kind == "alert"]
    assert [(event.data["subject"], event.data["why"]) for event in told] == [("limit:2026-03-01", key)]
    charge_to(Account(Spent(), owes=lambda: True))  # a customer has half an answer
    await one.admit("m")
    charge_to(Account(Spent()))
    await Counted(one).admit("m")
    one.follow(settings(**{key: 100_000}))  # raised
    await one.admit("m")
    clock.move(minutes=11)
    await other.admit("m")
    assert await UsageTotals(dbs[0]).by_model(one.today - timedelta(days=1)) == {"m": Used(2, 1800, 200, 1000, 2.0)}
    await other.count("m", USED)
    await other.count("m", USED)
    with pytest.raises(ModelLimit):
        await other.admit("m")
    assert len([event for event in await Events(dbs[0]).after(0) if event.kind == "alert"]) == 2


@pytest.mark.parametrize("limits", [{"minute_calls": 2}, {"minute_cost": 2.0}])
async def test_at_a_minutes_limit_a_call_waits_for_the_next(
    dbs: tuple[Database, Database], clock: Clock, limits: dict[str, float]
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        clock.move(seconds=seconds)

    clock.time = datetime(2026, 3, 1, 9, 0, 20, tzinfo=UTC)
    assert unpriced(settings(day_cost=1)) == ()
    named = load(
        limits={"day_cost": 1}, price={"models": {"a": {"tokens_in": 1, "tokens_out": 1}}}, model={"name": "b"}
    )
    assert unpriced(named) == ("b",)
    one, other = (StoredMeter(db, settings(**limits), sleep=sleep) for db in dbs)
    for meter in (one, other, one, other):
        await meter.admit("m")
        await meter.count("m", USED)
    assert waited == [40.0]
    taken = "CREATE TRIGGER taken AFTER INSERT ON model_minutes BEGIN UPDATE model_minutes SET calls = 9, cost = 9; END"
    async with dbs[0].write() as connection:  # somebody else is always faster
        await connection.exec_driver_sql(taken)
    clock.move(minutes=1)
    with pytest.raises(ModelLimit, match="No call of m was free for 10 minutes"):
        await one.admit("m")


async def test_a_chooser_that_may_not_be_asked_leaves_it_to_a_person(dbs: tuple[Database, Database]) -> None:
    meter = StoredMeter(dbs[0], settings(day_calls=2))
    records = [Record("k1", "48小时内", "几天能发货", 0.5), Record("k2", "三天", "几天到", 0.5)]
    async with ScriptedModel(['{"pick": 1}', '{"missing": ""}']) as server:
        chooser = ModelChooser(server.url, "chooser", meter=meter)
        chosen = await chooser.choose("多久发", "多久发货", records)
        assert chosen is not None
        assert await UsageTotals(dbs[0]).by_model(meter.today) == {"chooser": Used(2, 200, 40, 0, 0.24)}
        assert await chooser.choose("多久发", "多久发货", records) is None
        assert len(server.requests) == 2
        await chooser.close()


@pytest.mark.device
async def test_a_run_with_a_budget_on_a_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first model refuses the key, so the demo's answers; at its limit the run asks; the day's ends the next."""
    monkeypatch.chdir(tmp_path)
    async with demo_world() as world, ScriptedModel([HttpStatus(401)], repeat_last=True) as broken:
        model = world.settings.model
        stands_in = {"base_url": model.base_url, "name": model.name, "api_key": "demo"}
        made = load(
            **world.settings.model_dump(include={"data_dir", "database_url", "device", "queue"}),
            knowledge={"sample": True},
            model={"base_url": broken.url, "name": "broken", "fallbacks": [stands_in]},
            price={"models": {model.name: {"tokens_in": 2, "tokens_out": 8}}},
            run={"max_tokens": 7000, "checked_versions": CHECKED},
        )
        people = People([Answer(choice="go_on", by="Anna")] * 9)
        async with open_core(made) as core:
            session = await run_here(core, TASK, human=people, store=StoredRuns(core.db))
            assert session.status is Status.SUCCEEDED
            assert [reply.delivered for reply in session.replies] == [True]
            steps = [step for step in session.steps if step.tokens_in]
            assert {(step.model, step.instead_of) for step in steps} == {(model.name, "model.auth")}
            assert len(broken.requests) == 1
            assert {question.kind for question in people.asked} == {QuestionKind.BUDGET}
            assert session.allowance == 1 + len(people.asked)
            assert (session.allowance - 1) * 7000 <= session.spent.tokens < session.allowance * 7000 + 7000
            assert session.spent.cost == pytest.approx(sum(step.cost or 0.0 for step in session.steps))
            used = await core.meter._totals.of_day(core.meter.today)
            assert (used.calls, used.tokens) == (session.spent.calls, session.spent.tokens)
            assert used.cost == pytest.approx(session.spent.cost)

            people.answers = [Answer(choice="stop", by="Anna")]
            core.settings = made.model_copy(update={"run": made.run.model_copy(update={"max_tokens": 1})})
            stopped = await run_here(core, "打开设置", human=people, store=StoredRuns(core.db))
            assert (stopped.status, stopped.message) == (Status.FAILED, "token 用量已到上限，任务没有获准继续。")

            core.meter.follow(load(limits={"day_calls": 1}))
            with pytest.raises(ModelLimit, match=r"今天的模型调用已达上限：\d+/1 次"):
                await run_here(core, TASK, human=people, store=StoredRuns(core.db))
            attempts = AttemptExecutor(core, Host(core.db, "h", listing=_nothing, picture=_no_picture))
            await _not_begun(core.db, attempts)
            await _over(core.db, attempts)
            await _later(core.db, attempts, core)


async def _not_begun(db: Database, attempts: AttemptExecutor) -> None:
    """An attempt of a new run says so, in the language of the run, without a look at the phone."""
    run_id = await Runs(db).create(NewRun(TASK, "nowhere", options={"lang": "en"}, begun=True))
    lease = await Leases(db).acquire("nowhere", "t", "t")
    assert run_id is not None
    assert lease is not None
    with pytest.raises(ModelLimit):
        await attempts.work(run_id, 1, HeldLease(lease, Leases(db)))
    (outcome,) = [event for event in await Events(db).after(0, run_id=run_id) if event.kind == "outcome"]
    assert outcome.data["error_kind"] == "model.limit"
    assert str(outcome.data["message"]).startswith("Today's calls of models are used up")


async def _over(db: Database, attempts: AttemptExecutor) -> None:
    """A part of a plan that ended after its attempt was handed out is not worked on any more."""
    run_id = await Runs(db).create(NewRun(TASK, "over", options={"kind": PLAN_PART}, begun=True))
    lease = await Leases(db).acquire("over", "t", "t")
    assert run_id is not None
    assert lease is not None
    assert (await attempts.work(run_id, 1, HeldLease(lease, Leases(db)))).status == "failed"  # it died at once
    assert await Runs(db).end_attempt(run_id, 1, status="stopped")
    with pytest.raises(LeaseLost):
        await attempts.work(run_id, 1, HeldLease(lease, Leases(db)))


async def _later(db: Database, attempts: AttemptExecutor, core: Core) -> None:
    """What begins by itself is put off, untold: a sweep does not look, and a run of one is none that has failed."""
    assert await core.limited()
    sweep = await Runs(db).create(
        NewRun("巡检 未读", "away", options={"kind": "sweep", "lang": "en"}, planned_at=db.now(), begun=True)
    )
    assert sweep is not None
    child = await Runs(db).create(NewRun(TASK, "away", parent_id=sweep, begun=True))
    assert child is not None
    lease = await Leases(db).acquire("away", "t", "t")
    assert lease is not None
    for run_id, status in ((sweep, "succeeded"), (child, "stopped")):
        outcome = await attempts.work(run_id, 1, HeldLease(lease, Leases(db)))
        assert outcome.status == status
        assert "今天的模型调用已达上限" in outcome.message or "Today's calls" in outcome.message
        assert "outcome" not in {event.kind for event in await Events(db).after(0, run_id=run_id)}


async def _nothing() -> dict[str, str]:
    return {}


async def _no_picture(serial: str) -> bytes:
    await asyncio.sleep(0)
    return b""
