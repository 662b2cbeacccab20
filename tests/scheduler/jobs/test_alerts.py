"""Alerts: told once when something is down for a while, and once when it is back; and how gently it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from agent_core.devices.base import Battery
from scheduler.jobs.alerts import FORGOTTEN, AlertTimes, AlertWatch, PhonesSeen, Probe
from storage.engine import Database
from storage.events import Events
from storage.outages import Outages
from storage.runs import NewRun, Runs
from tests.support.clock import Clock

TIMES = AlertTimes(after=timedelta(minutes=5), poll=timedelta(minutes=10))


@dataclass
class Desk:
    """What is there, and what was asked of it."""

    db: Database
    clock: Clock
    usable: set[str] = field(default_factory=lambda: {"S1"})
    named: set[str] = field(default_factory=set)
    states: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=lambda: {"model": "", "knowledge": ""})
    dear: str = ""  # what the model says where a reply is asked for
    asked: list[tuple[str, bool]] = field(default_factory=list)
    batteries: dict[str, Battery] = field(default_factory=dict)
    battery_reads: int = 0

    def watch(self) -> AlertWatch:
        async def phones() -> PhonesSeen:
            return PhonesSeen(frozenset(self.usable), frozenset(self.named), self.states)

        async def model(doubted: bool) -> str:
            self.asked.append(("model", doubted))
            return self.why["model"] or (self.dear if doubted else "")

        async def knowledge(doubted: bool) -> str:
            self.asked.append(("knowledge", doubted))
            return self.why["knowledge"]

        async def batteries() -> Mapping[str, Battery]:
            self.battery_reads += 1
            return dict(self.batteries)

        probes = {"model": Probe(model, "model.", proves=True), "knowledge": Probe(knowledge, "knowledge.")}
        return AlertWatch(self.db, TIMES, phones=phones, probes=probes, batteries=batteries)

    async def told(self) -> list[tuple[str, str]]:
        events = [event.data for event in await Events(self.db).after(0) if event.kind == "alert"]
        return [(str(data["subject"]), str(data["state"])) for data in events]

    async def minutes(self, watch: AlertWatch, minutes: float) -> None:
        """Two looks a minute."""
        for _ in range(round(minutes * 2)):
            self.clock.move(seconds=30)
            await watch.once()

    async def step(self, data: Mapping[str, object] | None = None) -> None:
        await Events(self.db).append("r1", "step", data or {"timings": {"first_token": 0.3}})

    async def fail(self, kind: str) -> None:
        await Events(self.db).append("r1", "outcome", {"status": "failed", "error_kind": kind, "message": "x"})


@pytest.fixture
def desk(db: Database, clock: Clock) -> Desk:
    return Desk(db, clock)


async def test_a_phone_that_was_seen_goes_and_comes_back(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    desk.usable, desk.states = set(), {"S1": "offline"}
    await desk.minutes(watch, 5)
    assert await desk.told() == []
    await desk.minutes(watch, 1)
    assert await desk.told() == [("phone:S1", "down")]
    restarted = desk.watch()
    await desk.minutes(restarted, 30)
    desk.usable = {"S1"}
    await desk.minutes(restarted, 2)
    assert await desk.told() == [("phone:S1", "down"), ("phone:S1", "up")]
    (data,) = [event.data for event in await Events(desk.db).after(0) if event.data.get("state") == "up"]
    assert (data["why"], data["seconds"]) == ("offline", pytest.approx(36 * 60, abs=60))


async def test_a_flapping_cable_says_nothing(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    for _ in range(4):
        desk.usable = set()
        await desk.minutes(watch, 4)
        desk.usable = {"S1"}
        await desk.minutes(watch, 1)
    assert await desk.told() == []


async def test_a_phone_of_the_settings_counts_though_it_was_never_seen(desk: Desk) -> None:
    desk.usable, desk.named, desk.states = set(), {"192.168.1.9:5555"}, {"": "no adb"}
    await desk.minutes(desk.watch(), 7)
    assert await desk.told() == [("phone:192.168.1.9:5555", "down")]
    rows = await Outages(desk.db).all()
    assert [row.why for row in rows if row.subject.startswith("phone:")] == ["no adb"]


async def test_a_phone_that_stays_away_is_forgotten(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    desk.usable = set()
    await desk.minutes(watch, 6)
    desk.clock.move(days=FORGOTTEN.days + 1)
    await watch.once()
    desk.usable = {"S1"}
    await watch.once()
    assert await desk.told() == [("phone:S1", "down")]


@pytest.mark.parametrize(
    ("subject", "readings"),
    [
        (
            "battery:S1",
            [(Battery(15, False), 0), (Battery(14, False), 1), (Battery(20, False), 1), (Battery(21, False), 2)],
        ),
        (
            "battery:S1",
            [(Battery(9, True), 0), (Battery(9, False), 1), (Battery(None, None), 1), (Battery(9, True), 2)],
        ),
        ("battery:S1", [(Battery(14), 1)]),
        (
            "heat:S1",
            [
                (Battery(celsius=45.0), 0),
                (Battery(celsius=45.1), 1),
                (Battery(celsius=42.0), 1),
                (Battery(), 1),
                (Battery(celsius=41.9), 2),
                (Battery(celsius=44.0), 2),
            ],
        ),
    ],
)
async def test_a_battery_is_told_of_at_once_and_once(
    desk: Desk, subject: str, readings: list[tuple[Battery, int]]
) -> None:
    for battery, told in readings:
        desk.batteries = {"S1": battery}
        await desk.minutes(desk.watch(), 1)  # a restart between two readings changes nothing
        assert await desk.told() == [(subject, "down"), (subject, "up")][:told]


async def test_batteries_are_read_every_five_minutes(desk: Desk) -> None:
    desk.batteries = {"S1": Battery(9, False)}
    watch = desk.watch()
    await desk.minutes(watch, 29)
    assert desk.battery_reads == 6
    desk.batteries = {}  # the phone is gone for good
    desk.clock.move(days=FORGOTTEN.days + 1)
    await watch.once()
    assert [row.subject for row in await Outages(desk.db).all() if row.subject == "battery:S1"] == []


async def test_services_are_asked_gently(desk: Desk) -> None:
    watch = desk.watch()
    await desk.minutes(watch, 60)
    assert desk.asked.count(("model", False)) in {6, 7}
    assert desk.asked.count(("knowledge", False)) in {6, 7}
    assert {doubted for _, doubted in desk.asked} == {False}


async def test_nothing_is_asked_over_the_net_at_the_start_but_of_what_is_down(desk: Desk) -> None:
    await desk.minutes(desk.watch(), 4)
    assert desk.asked == []
    await Outages(desk.db).down("model", "x", after=TIMES.after, gap=TIMES.gap)
    await desk.watch().once()
    assert desk.asked == [("model", True)]


async def test_while_runs_show_that_the_model_works_it_is_not_asked(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    desk.asked.clear()
    for _ in range(12):
        await desk.step()
        await desk.minutes(watch, 5)
    assert [name for name, _ in desk.asked if name == "model"] == []


async def test_down_and_back_by_the_free_question(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    desk.why["model"] = "refused"
    await desk.minutes(watch, 17)  # found out within ten minutes, told five later
    assert await desk.told() == [("model", "down")]
    desk.why["model"] = ""
    await desk.minutes(watch, 3)
    assert await desk.told() == [("model", "down"), ("model", "up")]


async def test_a_runs_error_is_looked_into_at_once_and_a_reply_is_asked_for(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    desk.asked.clear()
    desk.dear = "the balance is spent"
    await desk.fail("model.quota")
    await desk.minutes(watch, 0.5)
    assert desk.asked == [("model", True)]
    await desk.minutes(watch, 8)
    assert await desk.told() == [("model", "down")]
    asked = len([name for name, doubted in desk.asked if name == "model"])
    assert asked <= 5  # not at each look
    await desk.step()  # topped up, and a run goes on
    await desk.minutes(watch, 0.5)
    assert await desk.told() == [("model", "down"), ("model", "up")]


async def test_one_failed_run_is_no_outage(desk: Desk) -> None:
    watch = desk.watch()
    await watch.once()
    for kind in ("model.timeout", "model.refused", "device.offline", "knowledge.network"):
        await desk.fail(kind)
        await desk.minutes(watch, 20)
    assert await desk.told() == []
    assert desk.asked.count(("model", True)) == 1
    assert desk.asked.count(("knowledge", True)) == 1


async def test_a_run_that_is_put_off_is_a_sign_and_people_are_told_once_for_all_of_them(desk: Desk) -> None:
    watch, runs = desk.watch(), Runs(desk.db)
    await watch.once()
    run_ids = [await runs.create(NewRun(f"QQ回复联系人1{number}", begun=True)) for number in range(3)]
    desk.why["knowledge"] = "down"
    for attempt in range(1, 5):
        for run_id in run_ids:
            assert run_id is not None
            put_off = await runs.put_off_attempt(run_id, attempt, seconds=60, error_kind="knowledge.network")
            assert put_off
        await desk.minutes(watch, 3)
        for run_id in run_ids:
            await runs.begin_attempt(str(run_id), attempt + 1, serial="S1")
    assert desk.asked[:1] == [("knowledge", True)]
    desk.why["knowledge"] = ""
    await desk.minutes(watch, 20)
    assert [one for one in await desk.told() if one[0] == "knowledge"] == [("knowledge", "down"), ("knowledge", "up")]


async def test_what_was_before_the_start_is_no_news(desk: Desk) -> None:
    await desk.fail("model.auth")
    await desk.watch().once()
    assert ("model", True) not in desk.asked
