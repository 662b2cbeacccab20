"""``phonedesk bench``: what phonedesk aims at, measured on this machine.

Three servers are started one after the other, each as ``phonedesk serve`` builds it, with one virtual phone: one reads
the accessibility tree, one nothing but pictures, one reads every picture by OCR. What is asked of the phone is counted
by the phone, what is asked of the model by the model.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median

from agent_core.extras import ExtraMissing, installed
from bot.tools.bench import BenchPart
from bot.tools.bench.scale import BenchFailed, Measured, customer, measured, task
from bot.tools.bench.served import BenchRun, Seen
from bot.tools.bench.steps import Steps, StepsModel, TimedModel, plain_steps, steps
from bot.tools.bench.usage import Say, busy_seconds, children_cpu, cores, own_cpu, say_nothing
from scheduler.sweeps.order import SweepOrder
from simulator.phone.core import local_now
from simulator.phone.phone import VirtualPhone

TIMES = 5  # runs of the six replies, and starts of the program; the median counts
IDLE_SECONDS = 20.0
LIVE_RATE = 5.0  # pictures a second, as the console asks for them
MOVES = 5.0  # letters a second that a fast typist writes on the phone that is looked at
LINE = 12  # letters, after which the typist begins anew
REST_SECONDS = 12.0  # by then everything that follows a run is over, and its memory given back
KB = 1000
PICTURES_ALONE = {"PHONEDESK_OBSERVE__TREE": "off"}
BY_OCR = {"PHONEDESK_OBSERVE__TREE": "off", "PHONEDESK_OBSERVE__OCR": "auto"}


class Figure(StrEnum):
    """A row of the table. The texts name each with its unit."""

    STEPS = "steps"
    OCR = "ocr"
    PICTURE = "picture"
    CALLS = "calls"
    PLAIN = "plain"
    SWEEP_MODEL = "sweep_model"
    SWEEP_CALLS = "sweep_calls"
    IDLE_CPU = "idle_cpu"
    IDLE_MEMORY = "idle_memory"
    LIVE = "live"
    LIVE_MOVING = "live_moving"
    READS = "reads"
    WRITES = "writes"
    HELP = "help"


# At most this much is aimed at; None is shown for comparison.
TARGETS: dict[Figure, float | None] = {
    Figure.STEPS: 0.6,
    Figure.OCR: 0.9,
    Figure.PICTURE: 70,
    Figure.CALLS: 3,
    Figure.PLAIN: None,
    Figure.SWEEP_MODEL: 0,
    Figure.SWEEP_CALLS: 3,
    Figure.IDLE_CPU: 1.5,
    Figure.IDLE_MEMORY: 170,
    Figure.LIVE: 15,
    Figure.LIVE_MOVING: None,
    Figure.READS: 100,
    Figure.WRITES: 40,
    Figure.HELP: 3,
}


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One figure. ``measured`` is NaN if this machine cannot tell it."""

    figure: Figure
    measured: float

    @property
    def target(self) -> float | None:
        return TARGETS[self.figure]

    @property
    def within(self) -> bool | None:
        """Tell whether the target is met; None if there is none, or nothing was measured."""
        return None if self.target is None or math.isnan(self.measured) else self.measured <= self.target


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The measured rows, in their order.

    calls: calls to the phone in each step of the six replies; empty if they were not measured.
    others: share of the machine's processors that other programs used meanwhile; NaN if the system does not say.
    """

    rows: tuple[TargetRow, ...]
    calls: dict[str, float]
    seconds: float
    others: float

    @property
    def met(self) -> bool:
        return all(row.within is not False for row in self.rows)


async def targets(
    parts: Collection[BenchPart] = tuple(BenchPart),
    *,
    say: Say = say_nothing,
    times: int = TIMES,
    idle: float = IDLE_SECONDS,
    rest: float = REST_SECONDS,
) -> TargetTable:
    """Measure these parts. Raises ExtraMissing if OCR is wanted and not installed."""
    if BenchPart.OCR in parts and not installed("ocr"):
        raise ExtraMissing("ocr")
    begun, busy, own = time.monotonic(), busy_seconds(), own_cpu()
    found: dict[Figure, float] = {}
    calls: dict[str, float] = {}
    if BenchPart.HELP in parts:
        found |= await _help(times, say)
    if {BenchPart.SWEEP, BenchPart.IDLE, BenchPart.REPLY, BenchPart.LIVE} & set(parts):
        found |= await _served(parts, idle, rest, say)
    if {BenchPart.STEPS, BenchPart.PLAIN} & set(parts):
        stepped, calls = await _stepped(parts, times, say)
        found |= stepped
    if BenchPart.OCR in parts:
        found |= await _by_ocr(times, say)
    seconds = time.monotonic() - begun
    others = (busy_seconds() - busy - (own_cpu() - own)) / (seconds * cores())
    rows = tuple(TargetRow(figure, found[figure]) for figure in Figure if figure in found)
    return TargetTable(rows, calls, seconds, max(0.0, others))


async def _help(times: int, say: Say) -> dict[Figure, float]:
    """Compare the processor time of ``phonedesk --help`` with that of importing what every command line needs."""
    say("helping")

    async def cpu(*args: str) -> float:
        taken = []
        for _ in range(times):
            before = children_cpu()
            process = await asyncio.create_subprocess_exec(
                sys.executable, *args, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
            )
            if await process.wait() != 0:
                raise BenchFailed("The help did not come.", key="bench_help")
            taken.append(children_cpu() - before)
        return median(taken)

    return {Figure.HELP: await cpu("-m", "bot.channels.cli.main", "--help") / await cpu("-c", "import typer")}


async def _served(parts: Collection[BenchPart], idle: float, rest: float, say: Say) -> dict[Figure, float]:
    """Measure the second reply of a server, two sweeps of that contact, the server at rest, and a live view."""
    found: dict[Figure, float] = {}
    say("starting", phones=1)
    model = TimedModel()
    async with measured(1, 2, model=model) as made:
        say("replying", runs=2)
        for number in range(2):  # the first one opens connections and fills caches
            reply = await _order(made, BenchRun(tasks=[(made.phones[0].address, task(0, number))]))
        if BenchPart.REPLY in parts:
            found |= {Figure.READS: reply.reads, Figure.WRITES: reply.writes}
        if BenchPart.SWEEP in parts:
            say("sweeping")
            found |= await _swept(made, model)
        if BenchPart.IDLE in parts:
            await made.order(BenchRun(idle=rest))
            say("looking", seconds=idle)
            seen = await made.order(BenchRun(idle=idle))
            found |= {Figure.IDLE_CPU: 100 * seen.cpu / seen.seconds, Figure.IDLE_MEMORY: seen.resident}
        if BenchPart.LIVE in parts:
            say("looking", seconds=idle / 2)
            await made.order(BenchRun(idle=1, live=LIVE_RATE))  # the first look reads the screen
            seen = await made.order(BenchRun(idle=idle / 2, live=LIVE_RATE))
            found[Figure.LIVE] = 100 * seen.cpu / seen.seconds
            async with _typing(made.phones[0].phone, customer(0, 0)):
                seen = await made.order(BenchRun(idle=idle / 2, live=LIVE_RATE))
            found[Figure.LIVE_MOVING] = 100 * seen.cpu / seen.seconds
    return found


@asynccontextmanager
async def _typing(phone: VirtualPhone, contact: str) -> AsyncIterator[None]:
    """Have somebody type into a chat of the phone, so that nearly every picture is another."""
    phone.show_chat(contact)
    phone.focus_on(phone.chat_field())

    async def type_on() -> None:
        for number in itertools.count():
            if number % LINE == 0:
                phone.erase(None)
            phone.insert(chr(ord("a") + number % 26))
            await asyncio.sleep(1 / MOVES)

    task = asyncio.create_task(type_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        phone.erase(None)


async def _swept(made: Measured, model: TimedModel) -> dict[Figure, float]:
    """Sweep a contact who has written nothing since the sweep before, as a schedule for one contact does."""
    phone, contact = made.phones[0], customer(0, 0)
    order = BenchRun(tasks=[(phone.address, f"巡检 {contact}")], options=SweepOrder((contact,)).data())
    await _order(made, order)  # brings the list of chats to the front, where it stays
    asked, began = len(model.asked), time.monotonic()
    await _order(made, order)
    made_calls = sum(call.at >= began for call in phone.calls)
    return {Figure.SWEEP_MODEL: len(model.asked) - asked, Figure.SWEEP_CALLS: made_calls}


async def _order(made: Measured, order: BenchRun) -> Seen:
    seen = await made.order(order)
    for run in seen.runs:
        if run.status != "succeeded":
            raise BenchFailed(f"{run.task}: {run.message}", key="bench_run", why=run.message)
    return seen


async def _stepped(parts: Collection[BenchPart], times: int, say: Say) -> tuple[dict[Figure, float], dict[str, float]]:
    """Do the six replies by pictures alone, and beside it with a plain client."""
    found: dict[Figure, float] = {}
    say("starting", phones=1)
    model = StepsModel()
    async with measured(1, 1, model=model, settings=PICTURES_ALONE) as made:
        ours = await steps(made, model, times, say=say)
        calls = {name: median(one.calls[name] for one in ours) for name in ours[0].calls}
        if BenchPart.STEPS in parts:
            found |= {
                Figure.STEPS: _overhead(ours),
                Figure.PICTURE: max(one.picture for one in ours) / KB,
                Figure.CALLS: median(calls.values()),
            }
        if BenchPart.PLAIN in parts:
            found[Figure.PLAIN] = (await plain_steps(made, model, say=say)).overhead / _overhead(ours)
    return found, calls


async def _by_ocr(times: int, say: Say) -> dict[Figure, float]:
    """Do the six replies with every picture read by OCR.

    Each run is a minute later on the phone's clock, so that no screen is exactly one that was read before.
    """
    say("starting", phones=1)
    model, clock = StepsModel(), _Clock()
    async with measured(1, 1, model=model, settings=BY_OCR, clock=clock) as made:
        return {Figure.OCR: _overhead(await steps(made, model, times, say=say, before=clock.forward))}


def _overhead(runs: Sequence[Steps]) -> float:
    return median(one.overhead for one in runs)


class _Clock:
    """The phone's clock: that of this machine, and a minute more for each ``forward``."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return local_now() + self._ahead

    def forward(self) -> None:
        self._ahead += timedelta(minutes=1)
