"""Several machines at one queue, killed again and again: ``python -m tests.acceptance.hosts --help``.

Each worker is a process with a data folder and an adb server of its own, and some of the phones; schedulers are
``phonedesk serve --no-phones`` over the same database. One worker without a scheduler is a whole ``phonedesk serve``. A
worker is killed with SIGKILL every few seconds. By chance it is started again at once, or its phones are attached to
another worker first, and both have them later on. In the end is looked at what happened: in the database, and in the
phones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # has no types
import sqlalchemy as sa

from agent_core.session import QuestionKind
from scheduler.runs.service import PERSON, SWEEP, RunService
from scheduler.times import parse_schedule, times_between
from simulator.phone.assembly import CHECKED
from storage.engine import Database
from storage.questions import Questions
from storage.runs import ACTIVE, FINAL, RunRow, Runs
from storage.schedules import NewSchedule, Schedules
from storage.tables import events, runs
from tests.acceptance.crowd import CrowdPhone, contact, crowd
from tests.acceptance.stage import ANSWER, QUESTION, QUICK_TASK, ZONE, Running, environment
from tests.storage import postgres
from tests.support import forked
from tests.support.adb import AdbServerProcess, adb_server

EVERY = "every 30s"
NEVER_SECONDS = 45.0  # a schedule that has no tick after so long is broken
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Wanted:
    """What is tried. ``replies``: which part of the runs answers a customer; the others take any phone."""

    database: str = "sqlite"
    workers: int = 2
    schedulers: int = 1
    phones: int = 4
    runs: int = 12
    kill_every: float = 10.0
    kills: int = 1_000_000  # at most
    schedules: int = 2
    replies: float = 0.5
    lost_after: float = 5.0  # seconds; a host that is not heard for so long is gone
    seed: int = 1
    patience: float = 3600.0


@dataclass
class Figures:
    """What was seen."""

    seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    moves: int = 0
    scheduler_kills: int = 0
    attempts: int = 0
    taken_over: int = 0  # runs that were done in more than one attempt
    replies: int = 0
    asked: int = 0  # whether a reply had arrived
    ticks: int = 0
    start_delay_p50: float = 0.0
    start_delay_p95: float = 0.0
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        each = {"runs_a_minute": round(60 * sum(self.ended.values()) / max(self.seconds, 1e-9), 1)}
        return json.dumps({**vars(self), **each}, ensure_ascii=False, indent=2)


@dataclass
class Machine:
    """A worker's machine: its adb server, its data folder, the phones that it connects to by itself."""

    name: str
    folder: Path
    adb: AdbServerProcess
    settings: dict[str, str]
    process: Running | None = None


class Town:
    """Everything that runs. ``begin`` and ``until_over``, then ``check``."""

    def __init__(self, folder: Path, db: Database, wanted: Wanted, phones: Sequence[CrowdPhone]) -> None:
        self.figures = Figures()
        self.machines: list[Machine] = []
        self.schedulers: list[Machine] = []
        self.folder = folder
        self.db = db
        self._wanted = wanted
        self.phones = phones
        self._chance = random.Random(wanted.seed)
        self._started: list[Running] = []
        self._starts = 0
        self._replies: list[tuple[CrowdPhone, str]] = []
        self.service = RunService(db)

    # -- processes

    async def process(self, machine: Machine, *arguments: str) -> Running:
        """``phonedesk ARGUMENTS`` on a machine."""
        self._starts += 1
        log = self.folder / f"{machine.name}-{self._starts}.log"
        with log.open("wb") as errors:
            process = await forked.start(arguments, machine.settings, machine.folder, errors)
        return Running(process, log, self._started)

    async def start(self, machine: Machine, *arguments: str) -> str:
        """The same, until it says that it is up; what it says."""
        machine.process = await self.process(machine, *arguments)
        return await machine.process.line()

    async def work(self, machine: Machine) -> None:
        """The only one, with no scheduler beside it, is everything in one process."""
        alone = self._wanted.workers == 1 and not self._wanted.schedulers
        await self.start(machine, *(("serve",) if alone else ("worker", "--host", machine.name)))

    async def schedule(self, machine: Machine) -> None:
        await self.start(machine, "serve", "--no-phones")

    async def close(self) -> None:
        for running in self._started:
            await running.kill()

    # -- what is done

    async def begin(self) -> None:
        """The runs and the schedules."""
        wanted, phones = self._wanted, self.phones
        for number in range(wanted.schedules):
            phone = phones[number % len(phones)]
            await Schedules(self.db).add(NewSchedule(EVERY, ZONE, QUICK_TASK, serial=phone.address))
        replies = round(wanted.runs * wanted.replies)
        for number in range(wanted.runs):
            if number < replies:
                phone, who = phones[number % len(phones)], contact(number // len(phones))
                self._replies.append((phone, who))
                await self.service.submit(f"QQ回复联系人{who}", serial=phone.address, priority=PERSON)
            else:
                await self.service.submit(QUICK_TASK, priority=SWEEP)

    async def until_over(self) -> None:
        """Kill now and then, answer what is asked, until every run is over."""
        begun = time.monotonic()
        kill_at = begun + self._wanted.kill_every
        while time.monotonic() - begun < self._wanted.patience:
            await self._answer()
            left = await self._left()
            if not left:
                break
            if time.monotonic() >= kill_at and self.figures.kills < self._wanted.kills:
                await self._kill_one()
                kill_at = time.monotonic() + self._wanted.kill_every
            await asyncio.sleep(LOOK_SECONDS)
        else:
            self.figures.problems.append(f"not over: {[run.id for run in await self._left()]}")
        self.figures.seconds = round(time.monotonic() - begun, 1)

    async def _left(self) -> list[RunRow]:
        """Our runs; those of schedules are never over."""
        return [run for run in await Runs(self.db).find(statuses=ACTIVE, limit=10_000) if run.schedule_id is None]

    async def _kill_one(self) -> None:
        if len(self.schedulers) > 1 and self._chance.random() < 0.2:
            scheduler = self._chance.choice(self.schedulers)
            await self.kill(scheduler)
            self.figures.scheduler_kills += 1
            await self.schedule(scheduler)
            return
        victim = self._chance.choice(self.machines)
        await self.kill(victim)
        self.figures.kills += 1
        others = [machine for machine in self.machines if machine is not victim]
        if others and self._chance.random() < 0.5:
            self.figures.moves += 1
            heir = self._chance.choice(others)
            for phone in self.phones:
                if phone.address in victim.settings["PHONEDESK_DEVICE__CONNECT"]:
                    await heir.adb.connect(phone.port)
            await asyncio.sleep(self._wanted.lost_after)
        await self.work(victim)

    async def kill(self, machine: Machine) -> None:
        """``kill -9``."""
        assert machine.process is not None
        await machine.process.kill()

    async def _answer(self) -> None:
        """A person says truthfully whether a reply stands in the chat; nothing else is asked."""
        questions = Questions(self.db)
        for question in await questions.find(state="open"):
            run = await self.service.get(question.run_id)
            if question.kind != QuestionKind.DELIVERY_UNKNOWN or run is None:
                self.figures.problems.append(f"{question.kind} was asked: {question.run_id} {question.payload['text']}")
                await self.service.request_stop(question.run_id)
                continue
            self.figures.asked += 1
            phone = next(phone for phone in self.phones if phone.address == run.serial)
            who = run.task.removeprefix("QQ回复联系人")
            arrived = ANSWER in (await phone.report())["sent"].get(who, [])
            await questions.answer(question.id, {"choice": "arrived" if arrived else "not_arrived"}, by="店长")

    # -- what is seen

    async def check(self) -> Figures:
        await self._check_runs()
        await self._check_phones()
        await self._check_turns()
        await self._check_ticks()
        return self.figures

    async def _check_runs(self) -> None:
        """Each ended once, well."""
        said = sa.select(events.c.run_id, events.c.data).where(events.c.kind == "status").order_by(events.c.id)
        async with self.db.read() as connection:
            told = (await connection.execute(said)).all()
        ends = Counter(row.run_id for row in told if row.data["status"] in FINAL)
        delays = []
        for run in await Runs(self.db).find(limit=100_000):
            self.figures.attempts += run.attempt if run.started_at else 0
            self.figures.taken_over += run.attempt > 1
            if run.started_at is not None:
                delays.append((run.started_at - run.created_at).total_seconds())
            if run.schedule_id is not None and not run.final:
                continue
            self.figures.ended[run.status] += 1
            if run.status != "succeeded" or ends[run.id] != 1:
                self.figures.problems.append(f"{run.id} {run.status} {ends[run.id]} times: {run.message}")
        if delays:
            delays.sort()
            self.figures.start_delay_p50 = round(delays[len(delays) // 2], 2)
            self.figures.start_delay_p95 = round(delays[int(len(delays) * 0.95)], 2)

    async def _check_phones(self) -> None:
        """What really left from each phone, and how it was left."""
        wanted = {phone.address: {who: [ANSWER] for at, who in self._replies if at is phone} for phone in self.phones}
        for phone in self.phones:
            report = await phone.report()
            self.figures.replies += sum(map(len, report["sent"].values()))
            if report["sent"] != wanted[phone.address]:
                seen = {who: len(texts) for who, texts in report["sent"].items() if texts != [ANSWER]}
                lost = sorted(set(wanted[phone.address]) - set(report["sent"]))
                self.figures.problems.append(f"{phone.address}: sent {seen}, lost {lost}")
            if report["drafts"] or report["pay_taps"] or report["ai_asked"]:
                self.figures.problems.append(f"{phone.address}: left with {report['drafts']}")

    async def _check_turns(self) -> None:
        """No phone acted for two at once: the steps of each attempt on it stand together."""
        kinds = events.c.kind.in_(("status", "step"))
        statement = (
            sa.select(events.c.run_id, events.c.kind, events.c.data, runs.c.serial)
            .join(runs, runs.c.id == events.c.run_id)
            .where(kinds)
            .order_by(events.c.id)
        )
        async with self.db.read() as connection:
            rows = (await connection.execute(statement)).all()
        attempt: dict[str, int] = {}
        turns: dict[str, list[tuple[str, int]]] = {}
        for row in rows:
            if row.kind == "status":
                attempt[row.run_id] = row.data["attempt"]
            else:
                turns.setdefault(row.serial, []).append((row.run_id, attempt.get(row.run_id, 1)))
        for serial, steps in turns.items():
            blocks = Counter(key for key, _ in groupby(steps))
            cut = [key for key, count in blocks.items() if count > 1]
            if cut:
                self.figures.problems.append(f"{serial}: two at once, {cut[:3]}")

    async def _check_ticks(self) -> None:
        """Each planned time of each schedule was taken once: by a run, or by a note why not."""
        noted = sa.select(events.c.data).where(events.c.kind == "schedule")
        async with self.db.read() as connection:
            told = [row.data for row in await connection.execute(noted)]
        for schedule in await Schedules(self.db).all():
            found = [run.planned_at for run in await Runs(self.db).find(schedule_id=schedule.id, limit=10_000)]
            taken = Counter(moment.isoformat() for moment in found if moment is not None)
            mine = [note for note in told if note["schedule_id"] == schedule.id]
            taken.update(note["planned_at"] for note in mine if note["what"] != "missed")
            missed = sum(note["count"] for note in mine if note["what"] == "missed")
            if schedule.last_planned_at is None:
                if self.figures.seconds > NEVER_SECONDS:
                    self.figures.problems.append(f"schedule {schedule.id}: never")
                continue
            times = parse_schedule(schedule.expression, schedule.timezone)
            planned = {
                moment.isoformat() for moment in times_between(times, schedule.created_at, schedule.last_planned_at)
            }
            self.figures.ticks += len(planned)
            doubled = [moment for moment, count in taken.items() if count > 1]
            if doubled or len(planned - set(taken)) > missed or set(taken) - planned:
                lost = sorted(planned - set(taken))
                self.figures.problems.append(f"schedule {schedule.id}: doubled {doubled}, lost {lost}, missed {missed}")


async def _postgres_database(stack: AsyncExitStack) -> str:
    folder = stack.enter_context(postgres.server())
    connection = await asyncpg.connect(host=str(folder), user="postgres", database="postgres")
    await connection.execute("CREATE DATABASE desk")
    await connection.close()
    return f"postgresql://postgres@/desk?host={folder}"


@asynccontextmanager
async def town(folder: Path, wanted: Wanted) -> AsyncIterator[Town]:
    """Workers, schedulers, phones and the model, in processes of their own."""
    async with AsyncExitStack() as stack:
        each = -(-wanted.runs // wanted.phones)
        phones = await stack.enter_async_context(crowd(wanted.phones, max(1, min(each, 40)), QUESTION))
        url = f"sqlite:///{folder / 'desk.sqlite3'}"
        if wanted.database == "postgres":
            url = await _postgres_database(stack)
        db = Database(url)
        stack.push_async_callback(db.close)
        await db.migrate()
        made = Town(folder, db, wanted, phones)
        stack.push_async_callback(made.close)

        async def machine(name: str, addresses: Sequence[str], **settings: str) -> Machine:
            own = folder / name
            own.mkdir()
            adb = await stack.enter_async_context(adb_server())
            usual = {
                "PHONEDESK_DATA_DIR": str(own / "data"),
                "PHONEDESK_DATABASE_URL": url,
                "PHONEDESK_KNOWLEDGE__SAMPLE": "true",
                "PHONEDESK_TIMEZONE": ZONE,
                "PHONEDESK_MODEL__NAME": "phonedesk-demo",
                "PHONEDESK_DEVICE__CONNECT": json.dumps(list(addresses)),
                "PHONEDESK_WEB__PORT": "0",
                "PHONEDESK_OBSERVE__OCR": "off",
                "PHONEDESK_QUEUE__LOST_AFTER_SECONDS": str(wanted.lost_after),
                "PHONEDESK_RUN__HOLD_SECONDS": "5",
                "PHONEDESK_RUN__CHECKED_VERSIONS": json.dumps(CHECKED),
            }
            return Machine(name, own, adb, environment(own, adb, {**usual, **settings}))

        model = await machine("model", ())
        said = await made.start(model, "demo-model")
        model_url = {"PHONEDESK_MODEL__BASE_URL": said[said.index("http://") :].strip()}
        addresses = [phone.address for phone in phones]
        for number in range(wanted.workers):
            made.machines.append(await machine(f"host-{number}", addresses[number :: wanted.workers], **model_url))
        for number in range(wanted.schedulers):
            made.schedulers.append(await machine(f"desk-{number}", (), **model_url))
        await asyncio.gather(*map(made.work, made.machines), *map(made.schedule, made.schedulers))
        yield made


async def hosts(folder: Path, wanted: Wanted) -> Figures:
    """Everything from the beginning to the end; what was seen."""
    async with town(folder, wanted) as made:
        await made.begin()
        await made.until_over()
        return await made.check()


def main() -> int:
    usual = Wanted()
    parser = argparse.ArgumentParser(description="Several machines at one queue, killed again and again.")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default=usual.database)
    for name in ("workers", "schedulers", "phones", "runs", "schedules", "seed", "kills"):
        parser.add_argument(f"--{name}", type=int, default=getattr(usual, name))
    parser.add_argument("--kill-every", type=float, default=usual.kill_every, help="Seconds.")
    parser.add_argument("--replies", type=float, default=usual.replies, help="Which part of the runs replies.")
    parser.add_argument("--lost-after", type=float, default=usual.lost_after, help="Seconds.")
    parser.add_argument("--patience", type=float, default=usual.patience, help="Seconds until it is given up.")
    folder = Path(tempfile.mkdtemp(prefix="hosts-"))
    figures = asyncio.run(hosts(folder, Wanted(**vars(parser.parse_args()))))
    sys.stdout.write(figures.as_json() + "\n")
    if figures.problems:
        sys.stderr.write(f"What was left is in {folder}.\n")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
