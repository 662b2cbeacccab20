"""Quiet hours, the times of digests, and that each goes out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from agent_core.errors import InputRejected
from scheduler.jobs.digests import DigestChat, DigestWatch, digest_times
from scheduler.times.shop import DigestTime, Quiet, parse_digest_time, quiet_of
from storage.engine import Database
from storage.events import Events
from storage.tables import digests
from tests.support.clock import Clock

SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")
CHAT = {"channel": "telegram", "chat_id": "7", "thread_id": "", "kind": "private"}


def at(text: str, zone: ZoneInfo = SHANGHAI) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


@pytest.mark.parametrize(
    ("moment", "quiet", "over"),
    [
        ("2026-11-20 21:59", False, "2026-11-20 21:59"),
        ("2026-11-20 22:00", True, "2026-11-21 08:00"),
        ("2026-11-21 07:59", True, "2026-11-21 08:00"),
        ("2026-11-21 08:00", False, "2026-11-21 08:00"),
    ],
)
def test_quiet_hours_over_midnight(moment: str, quiet: bool, over: str) -> None:
    hours = quiet_of("22:00-08:00", "Asia/Shanghai")
    assert (hours.holds(at(moment)), hours.over(at(moment))) == (quiet, at(over))


def test_quiet_hours_within_a_day_and_never() -> None:
    hours = quiet_of("12:00-14:00", "Asia/Shanghai")
    assert hours.over(at("2026-11-20 13:00")) == at("2026-11-20 14:00")
    never = quiet_of("", "Asia/Shanghai")
    assert (never.holds(at("2026-11-20 03:00")), never.over(at("2026-11-20 03:00"))) == (False, at("2026-11-20 03:00"))


def test_times_of_digests() -> None:
    assert parse_digest_time(" 9:05 ") == DigestTime(time(9, 5))
    assert parse_digest_time("Monday 21:00", weekly=True) == DigestTime(time(21), 1)
    assert digest_times("", "sun 09:00") == {"weekly": DigestTime(time(9), 0)}
    for wrong, weekly in (("25:00", False), ("mon 09:00", False), ("09:00", True), ("xyz 09:00", True), ("9", False)):
        with pytest.raises(InputRejected, match="Write it as"):
            parse_digest_time(wrong, weekly=weekly)


@pytest.mark.parametrize(
    ("when", "planned", "since", "until"),
    [
        ("09:00", "2026-11-20 09:00", "2026-11-19 00:00", "2026-11-20 00:00"),
        ("21:30", "2026-11-20 21:30", "2026-11-19 21:30", "2026-11-20 21:30"),
        ("mon 09:00", "2026-11-23 09:00", "2026-11-16 00:00", "2026-11-23 00:00"),
        ("fri 18:00", "2026-11-20 18:00", "2026-11-13 18:00", "2026-11-20 18:00"),
    ],
)
def test_what_a_digest_tells_of(when: str, planned: str, since: str, until: str) -> None:
    parsed = parse_digest_time(when, weekly=" " in when)
    assert parsed is not None
    assert parsed.latest(at(planned) + timedelta(hours=3), SHANGHAI) == at(planned)
    assert parsed.period(at(planned), SHANGHAI) == (at(since), at(until))


def test_the_night_when_the_clock_is_changed() -> None:
    morning = DigestTime(time(9))
    begin, end = morning.period(at("2026-10-26 09:00", BERLIN), BERLIN)
    assert end - begin == timedelta(hours=25)
    gone = DigestTime(time(2, 30))  # does not exist in this night
    assert gone.latest(at("2026-03-29 12:00", BERLIN), BERLIN) == at("2026-03-29 03:00", BERLIN)


@dataclass
class Desk:
    """Who gets digests; ``asked``: the stretches that were looked at."""

    db: Database
    clock: Clock
    quiet: Quiet = field(default_factory=lambda: quiet_of("", "Asia/Shanghai"))
    chats: list[DigestChat] = field(default_factory=list)
    empty: bool = False
    asked: list[tuple[datetime, datetime]] = field(default_factory=list)

    def watch(self, daily: str = "09:00", weekly: str = "mon 09:00") -> DigestWatch:
        async def chats() -> list[DigestChat]:
            return self.chats

        async def is_empty(since: datetime, until: datetime, serials: Sequence[str]) -> bool:
            self.asked.append((since, until))
            return self.empty

        times = digest_times(daily, weekly)
        return DigestWatch(self.db, times, SHANGHAI, self.quiet, chats=chats, is_empty=is_empty)

    async def told(self) -> list[dict[str, Any]]:
        return [dict(event.data) for event in await Events(self.db).after(0) if event.kind == "digest"]

    async def states(self) -> list[str]:
        async with self.db.read() as connection:
            return list((await connection.execute(sa.select(digests.c.state).order_by(digests.c.planned_at))).scalars())


@pytest.fixture
def desk(db: Database, clock: Clock) -> Desk:
    clock.time = at("2026-11-20 08:59:30")  # a Friday
    chat = DigestChat("telegram:7", CHAT, 1, at("2026-11-01 00:00"), frozenset({"daily", "weekly"}))
    made = Desk(db, clock)
    made.chats.append(chat)
    return made


async def test_once_at_its_time_and_never_again(desk: Desk) -> None:
    desk.empty = True
    await desk.watch().once()  # those before this morning are missed or empty
    desk.empty = False
    assert await desk.told() == []
    desk.clock.move(seconds=31)
    await desk.watch().once()
    await desk.watch().once()  # another process, or this one started again
    (told,) = await desk.told()
    assert told == {
        "kind": "daily",
        "chat": CHAT,
        "person_id": 1,
        "since": at("2026-11-19 00:00").isoformat(),
        "until": at("2026-11-20 00:00").isoformat(),
    }
    desk.clock.time = at("2026-11-23 09:00:01")
    await desk.watch().once()
    assert [entry["kind"] for entry in await desk.told()] == ["daily", "daily", "weekly"]
    assert (await desk.told())[-1]["since"] == at("2026-11-16 00:00").isoformat()


@pytest.mark.parametrize(("late", "sent"), [(11.9, 1), (12.1, 0)])
async def test_a_missed_one_comes_late_or_not_at_all(desk: Desk, late: float, sent: int) -> None:
    desk.clock.time = at("2026-11-20 09:00") + timedelta(hours=late)
    await desk.watch(weekly="").once()
    assert len(await desk.told()) == sent
    await desk.watch(weekly="").once()
    assert await desk.states() == ["sent" if sent else "missed"]


async def test_an_empty_day_says_nothing_and_is_looked_at_once(desk: Desk) -> None:
    desk.empty = True
    desk.clock.time = at("2026-11-20 09:00:01")
    for _ in range(3):
        await desk.watch(weekly="").once()
    assert (await desk.told(), await desk.states(), len(desk.asked)) == ([], ["empty"], 1)


async def test_quiet_hours_hold_it_back(desk: Desk) -> None:
    desk.quiet = quiet_of("20:00-10:00", "Asia/Shanghai")
    desk.clock.time = at("2026-11-20 09:59")
    await desk.watch(weekly="").once()
    assert await desk.told() == []
    desk.clock.move(minutes=1)
    await desk.watch(weekly="").once()
    assert len(await desk.told()) == 1


async def test_from_evening_to_the_end_of_quiet_hours_is_not_late(desk: Desk) -> None:
    desk.quiet = quiet_of("20:30-10:00", "Asia/Shanghai")
    desk.clock.time = at("2026-11-20 10:00")
    await desk.watch(daily="21:00", weekly="").once()
    assert [entry["until"] for entry in await desk.told()] == [at("2026-11-19 21:00").isoformat()]


async def test_what_was_due_before_somebody_wanted_it_is_not_sent(desk: Desk) -> None:
    desk.clock.time = at("2026-11-20 09:10")
    desk.chats = [replace(desk.chats[0], since=at("2026-11-20 09:05"))]
    await desk.watch(weekly="").once()
    assert (await desk.told(), await desk.states()) == ([], [])
    desk.chats = [replace(desk.chats[0], since=at("2026-11-20 08:55"), kinds=frozenset({"weekly"}))]
    await desk.watch(weekly="").once()
    assert await desk.told() == []


async def test_off_starts_nothing(desk: Desk) -> None:
    watch = desk.watch(daily="", weekly="")
    await watch.start()
    await watch.once()
    await watch.stop()
    assert desk.asked == []
