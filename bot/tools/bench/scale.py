"""``phonedesk bench``: one server and many virtual phones, each with replies to give.

The phones and the demo model live in this process, the server in one of its own, so that its memory is its own. For
each number of phones there are two rounds of replies. First all of them are submitted at once: how many runs a minute.
Then as many, one after the other, each for the phone whose turn it is, at half of that rate: how soon a run begins
where the machine has room. A phone does one run at a time, so what waits for its phone in the first round tells nothing
of the server.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.errors import PhonedeskError
from bot.tools.bench.served import BenchRun, RunSeen, Seen
from bot.tools.bench.usage import Say, unheard
from knowledge.entries import sample_entries
from simulator.model.server import MODEL_NAME, DemoModel, start_demo_model
from simulator.phone.assembly import CHECKED
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.server import RunningPhone, serve

UP_SECONDS = 120.0
HALF = 2.0
DATA = "data"  # the folder of it
SETTLE_SECONDS = 12.0  # after the runs: what they needed has been given back by then
P50, P95 = 0.5, 0.95


class BenchFailed(PhonedeskError):
    """The server that is measured ended, or did not come up."""

    kind = "bench.failed"
    default_advice = "The lines above are its log."


@dataclass(frozen=True, slots=True)
class Scale:
    """What was seen with so many phones. Times in seconds, memory in MiB (``resident``: some seconds after the runs).

    ``cpu``: share of a core in the first round.
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
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """A server with one phone and nothing to do. ``cpu``: share of a core. ``reads``: transactions a second.

    ``reply_reads`` and ``reply_writes``: those of a reply, from its submission to its end.
    """

    seconds: float
    cpu: float
    resident: float
    reads: float
    reply_reads: int
    reply_writes: int


@dataclass
class Measured:
    """A server that runs in a process of its own, with its phones; ``data`` is its data folder, ``model`` its model's
    URL.
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


def customer(number: int) -> str:
    return f"客户{number:03d}"


def world(contacts: int) -> Scenario:
    """So many contacts, who have each asked what the sample shop has an answer to."""
    asked = [MessagePart(text=sample_entries()[0].question, ago=60, unread=True)]
    return Scenario(contacts=[ContactPart(name=customer(number), history=asked) for number in range(contacts)])


@asynccontextmanager
async def measured(phones: int, contacts: int, *, model: DemoModel | None = None) -> AsyncIterator[Measured]:
    """A server over so many phones with so many customers each; everything is its own and gone afterwards."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phonedesk-bench-")))
        adb = await stack.enter_async_context(await open_adb(port=0, usb=False, home=folder))
        served = await start_demo_model(model=model)
        stack.push_async_callback(served.close)
        running = [await stack.enter_async_context(serve(world(contacts))) for _ in range(phones)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot.tools.bench.served",
            cwd=folder,
            env=_environment(folder, adb, served.url, [phone.address for phone in running]),
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
    """Nothing of this user's settings: only what is measured."""
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
    """Its input ends, and so does it; what does not is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(30):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def scale(phones: int, runs: int, *, say: Say = unheard, settle: float = SETTLE_SECONDS) -> Scale:
    """Measure with so many phones; at least ``runs`` replies in each round, the same number for every phone."""
    each = max(1, math.ceil(runs / phones))
    say("starting", phones=phones)
    async with measured(phones, 2 * each) as made:
        addresses = [phone.address for phone in made.phones]

        def tasks(first: int) -> list[tuple[str, str]]:
            return [(serial, f"QQ回复联系人{customer(first + turn)}") for turn in range(each) for serial in addresses]

        say("at_once", phones=phones, runs=each * phones)
        once = await made.order(BenchRun(tasks=tasks(0)))
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
            problems=tuple(problems([*once.runs, *in_turn.runs], made.phones)),
        )


async def idle(seconds: float, *, say: Say = unheard) -> Idle:
    """Measure a server with one phone that has answered once and has nothing to do any more."""
    say("starting", phones=1)
    async with measured(1, 2) as made:
        for number in range(2):  # the first one opens connections, and reads what is kept from then on
            reply = await made.order(BenchRun(tasks=[(made.phones[0].address, f"QQ回复联系人{customer(number)}")]))
        await made.order(BenchRun(idle=3.0))  # what follows a run is over by then
        say("looking", seconds=seconds)
        seen = await made.order(BenchRun(idle=seconds))
        reads = seen.reads / seen.seconds
        return Idle(seen.seconds, seen.cpu / seen.seconds, seen.resident, reads, reply.reads, reply.writes)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that ``share`` of them do not pass; NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def problems(runs: Sequence[RunSeen], phones: Sequence[RunningPhone]) -> list[str]:
    """What did not end as it must, as the rows tell it and as the phones do: nothing, if all is well."""
    found = [f"{run.task} on {run.serial}: {run.status} {run.message}" for run in runs if run.status != "succeeded"]
    found += [f"{run.task} was for {run.serial} and ran on {run.phone}" for run in runs if run.phone != run.serial]
    answer = sample_entries()[0].answer
    for phone in phones:
        wanted = Counter(run.task.removeprefix("QQ回复联系人") for run in runs if run.serial == phone.address)
        sent = phone.phone.report()["sent"]
        if sent != {who: [answer] * count for who, count in wanted.items()}:
            found.append(f"{phone.address} sent { ({who: len(texts) for who, texts in sent.items()}) }")
    return found
