"""``phonedesk bench``: one server and many virtual phones, each with replies to give.

The phones and the demo model live in this process, the server in a separate one, so that its memory is measured alone.
For each number of phones there are two rounds of replies. In the first, all are submitted at once: how many runs a
minute. In the second, as many are submitted one by one, each for the next phone, at half of that rate: how soon a run
begins if the machine has room. A phone does one run at a time, so in the first round the wait for a phone says nothing
about the server.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.errors import PhonedeskError
from bot.tools.bench.served import BenchRun, RunSeen, Seen
from bot.tools.bench.usage import Say, say_nothing, usage
from knowledge.entries import Entry, sample_entries
from simulator.model.server import MODEL_NAME, DemoModel, start_demo_model
from simulator.phone.assembly import CHECKED
from simulator.phone.core import local_now
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from simulator.phone.server import RunningPhone, serve

UP_SECONDS = 120.0
HALF = 2.0
DATA = "data"  # the folder of the server's data
SETTLE_SECONDS = 12.0  # after the runs: by then the memory that they needed has been given back
P50, P95 = 0.5, 0.95
SIZES = ((1080, 2400), (720, 1600), (1440, 3200), (1080, 1920))  # of the phones, in turn


class BenchFailed(PhonedeskError):
    """The measured server ended, or did not come up."""

    kind = "bench.failed"
    default_advice = "The lines above are its log."


@dataclass(frozen=True, slots=True)
class Scale:
    """The results with this many phones. Times in seconds, memory in MiB (``resident``: some seconds after the runs).

    cpu: share of a core in the first round. phones_cpu, phones_resident: the same of the process with all the phones.
    """

    phones: int
    runs: int
    runs_a_minute: float
    every: float  # seconds between two submissions of the second round
    delay_p50: float
    delay_p95: float
    resident: float
    peak: float
    cpu: float
    phones_cpu: float
    phones_resident: float
    problems: tuple[str, ...]


@dataclass
class Measured:
    """A server in a separate process, with its phones.

    data: its data folder.
    model: its model's URL.
    """

    phones: Sequence[RunningPhone]
    process: asyncio.subprocess.Process
    orders: asyncio.StreamWriter
    answers: asyncio.StreamReader
    data: Path
    adb: AdbServer
    model: str

    async def order(self, order: BenchRun) -> Seen:
        self.orders.write(order.model_dump_json().encode() + b"\n")
        await self.orders.drain()
        return Seen.model_validate_json(await self._line(order.patience + order.idle))

    async def up(self) -> None:
        await self._line(UP_SECONDS)

    async def _line(self, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                line = await self.answers.readline()
        except TimeoutError:
            raise BenchFailed(
                f"The server did not answer within {seconds:.0f} s.", key="bench_late", seconds=f"{seconds:.0f}"
            ) from None
        if not line:
            raise BenchFailed(f"The server ended with {await self.process.wait()}.", key="bench_ended")
        return line


def customer(phone: int, number: int) -> str:
    """Return the name of a phone's customer, which no other phone's customer has."""
    return f"客户{phone:02d}{number:03d}"


def task(phone: int, number: int) -> str:
    return f"QQ回复联系人{customer(phone, number)}"


def asked(phone: int) -> Entry:
    """Return what a phone's customers ask. Phones next to each other ask different things."""
    entries = sample_entries()
    return entries[phone % len(entries)]


def world(phone: int, contacts: int) -> Scenario:
    """Return the world of a phone with this many contacts, who each asked a question that the sample shop can answer.

    Its screen, its customers and their question are its own: what is done on another's screen cannot go unseen.
    """
    history = [MessagePart(text=asked(phone).question, ago=60, unread=True)]
    contacts_of_it = [ContactPart(name=customer(phone, number), history=history) for number in range(contacts)]
    return Scenario(phone=PhonePart(size=SIZES[phone % len(SIZES)]), contacts=contacts_of_it)


@asynccontextmanager
async def measured(
    phones: int,
    contacts: int,
    *,
    model: DemoModel | None = None,
    settings: Mapping[str, str] | None = None,
    clock: Callable[[], datetime] = local_now,
) -> AsyncIterator[Measured]:
    """Run a server with this many phones and customers per phone; everything is temporary.

    settings: environment variables of the server that differ from those of the other measurements.
    clock: the time on the phones.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phonedesk-bench-")))
        adb = await stack.enter_async_context(await open_adb(port=0, usb=False, home=folder))
        served = await start_demo_model(model=model)
        stack.push_async_callback(served.close)
        worlds = [VirtualPhone(world(number, contacts), clock=clock) for number in range(phones)]
        running = [await stack.enter_async_context(serve(phone=phone)) for phone in worlds]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot.tools.bench.served",
            cwd=folder,
            env=_environment(folder, adb, served.url, [phone.address for phone in running]) | dict(settings or {}),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
        )
        stack.push_async_callback(_end, process)
        if process.stdin is None or process.stdout is None:
            raise BenchFailed("The server has no input or output.", key="bench_no_pipe")
        made = Measured(running, process, process.stdin, process.stdout, folder / DATA, adb, served.url)
        await made.up()
        yield made


def _environment(folder: Path, adb: AdbServer, model: str, addresses: Sequence[str]) -> dict[str, str]:
    """Return the server's environment: only the measured settings, none of this user's."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    home = Path(__file__).parents[3]
    return {
        **kept,
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(home), os.environ.get("PYTHONPATH")))),
        "PYTHONUTF8": "1",
        "PHONEDESK_DATA_DIR": str(folder / DATA),
        "PHONEDESK_LOG_LEVEL": "warning",
        "PHONEDESK_TIMEZONE": "UTC",
        "PHONEDESK_MODEL__BASE_URL": model,
        "PHONEDESK_MODEL__NAME": MODEL_NAME,
        "PHONEDESK_KNOWLEDGE__SAMPLE": "true",
        "PHONEDESK_OBSERVE__OCR": "off",
        "PHONEDESK_DEVICE__ADB_HOST": adb.host,
        "PHONEDESK_DEVICE__ADB_PORT": str(adb.port),
        "PHONEDESK_DEVICE__CONNECT": json.dumps(list(addresses)),
        "PHONEDESK_WEB__PORT": "0",
        "PHONEDESK_RUN__CHECKED_VERSIONS": json.dumps(CHECKED),
    }


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process by closing its input; kill it if it does not end."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(30):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def scale(phones: int, runs: int, *, say: Say = say_nothing, settle: float = SETTLE_SECONDS) -> Scale:
    """Measure with this many phones; at least ``runs`` replies in each round, the same number for every phone."""
    each = max(1, math.ceil(runs / phones))
    say("starting", phones=phones)
    async with measured(phones, 2 * each) as made:

        def tasks(first: int) -> list[tuple[str, str]]:
            turns = range(first, first + each)
            return [(one.address, task(number, turn)) for turn in turns for number, one in enumerate(made.phones)]

        say("at_once", phones=phones, runs=each * phones)
        before = usage()
        once = await made.order(BenchRun(tasks=tasks(0)))
        after = usage()
        every = HALF * once.seconds / len(once.runs)
        say("in_turn", phones=phones, runs=each * phones, every=every)
        in_turn = await made.order(BenchRun(tasks=tasks(each), every=every, patience=600 + every * len(once.runs)))
        rest = await made.order(BenchRun(idle=settle))
        delays = [run.delay for run in in_turn.runs if run.delay is not None]
        return Scale(
            phones=phones,
            runs=len(once.runs) + len(in_turn.runs),
            runs_a_minute=60 * len(once.runs) / once.seconds,
            every=every,
            delay_p50=quantile(delays, P50),
            delay_p95=quantile(delays, P95),
            resident=rest.resident,
            peak=rest.peak,
            cpu=once.cpu / once.seconds,
            phones_cpu=(after.cpu - before.cpu) / once.seconds,
            phones_resident=after.resident,
            problems=tuple(problems([*once.runs, *in_turn.runs], made.phones)),
        )


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of them do not exceed; NaN if there are none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def problems(runs: Sequence[RunSeen], phones: Sequence[RunningPhone]) -> list[str]:
    """Return what did not end as it must, by the rows and by the phones; empty if all is well.

    phones: every phone of the measured server, in its order.
    """
    found = [f"{run.task} on {run.serial}: {run.status} {run.message}" for run in runs if run.status != "succeeded"]
    found += [f"{run.task} was for {run.serial} and ran on {run.phone}" for run in runs if run.phone != run.serial]
    for number, phone in enumerate(phones):
        wanted = Counter(run.task.removeprefix("QQ回复联系人") for run in runs if run.serial == phone.address)
        sent = phone.phone.report()["sent"]
        answer = asked(number).answer
        if sent != {who: [answer] * count for who, count in wanted.items()}:
            found.append(f"{phone.address} sent { ({who: len(texts) for who, texts in sent.items()}) }")
    return found
