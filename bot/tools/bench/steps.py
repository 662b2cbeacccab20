"""``phonedesk bench steps``: what phonedesk adds to a step, compared with a plain client, at an instant model.

Six replies are carried out on a virtual phone: Launch, Tap, Tap, Type, Back and finish. The model keeps the time:
between a reply and the next request the client acts, observes and asks. The plain client does what small agents do: a
process of adb for each call, and a pause of a fixed length after each act.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from aiohttp import web

from agent_core.devices.adb.server import AdbServer
from agent_core.devices.base import Key
from bot.tools.bench.plain import PlainClient
from bot.tools.bench.scale import BenchFailed, measured
from bot.tools.bench.served import BenchRun
from bot.tools.bench.usage import Say, say_nothing
from simulator.model.reading import ChatRequest, View
from simulator.model.server import DemoModel

QQ = "com.tencent.mobileqq"
TASK = "在QQ里搜索 客户000"
REPLIES = (
    'do(action="Launch", app="QQ")',
    'do(action="Tap", element=[500, 110])',
    'do(action="Tap", element=[400, 60])',
    'do(action="Type", text="客户000")',
    'do(action="Back")',
    'finish(message="搜索过了")',
)


@dataclass
class StepsModel(DemoModel):
    """Answers with ``REPLIES`` in turn.

    asked, said: when each request came, and when its reply had been sent.
    """

    asked: list[float] = field(default_factory=list)
    said: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(None)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(time.monotonic())
        self.sizes.append(request.content_length or 0)
        response = await super().complete(request)
        self.said.append(time.monotonic())
        return response

    def taken(self, client: str) -> Steps:
        """Return the client's times since the last call."""
        asked, said, sizes = self.asked[:], self.said[:], self.sizes[:]
        for held in (self.asked, self.said, self.sizes):
            held.clear()
        if len(asked) != len(REPLIES):
            raise BenchFailed(f"{client} asked {len(asked)} times.", key="bench_steps", client=client, count=len(asked))
        between = [after - before for before, after in zip(said, asked[1:], strict=False)]
        return Steps(client, said[-1] - asked[0], median(between), max(between), median(sizes) / 1000)

    async def reply(self, request: web.Request, asked: ChatRequest, view: View) -> str:
        return REPLIES[(len(self.asked) - 1) % len(REPLIES)]


@dataclass(frozen=True, slots=True)
class Steps:
    """One client's times, in seconds.

    overhead: from the first request to the last reply.
    between: the median time from a reply to the next request.
    kilobytes: the median size of a request.
    """

    client: str
    overhead: float
    between: float
    longest: float
    kilobytes: float


async def steps(times: int, *, plain: bool = True, say: Say = say_nothing) -> list[Steps]:
    """Do the six steps ``times`` times with phonedesk, and once with the plain client; return the median runs."""
    model = StepsModel()
    say("starting", phones=1)
    async with measured(1, 1, model=model) as made:
        serial = made.phones[0].address
        found = []
        for number in range(times + 1):  # the first one installs the keyboard's helper and learns the phone
            say("stepping", run=number)
            await from_the_start(made.adb, serial)
            seen = await made.order(BenchRun(tasks=[(serial, TASK)], patience=120))
            if seen.runs[0].status != "succeeded":
                raise BenchFailed(f"{TASK}: {seen.runs[0].message}", key="bench_run", why=seen.runs[0].message)
            found.append(model.taken("phonedesk"))
        told = [middle(found[1:])]
        if plain:
            say("stepping_plain")
            await from_the_start(made.adb, serial)
            client = PlainClient(made.adb, serial, made.model, apps={"QQ": QQ}, size=made.phones[0].phone.size)
            await client.run(TASK)
            told.append(model.taken("plain"))
    return told


async def from_the_start(adb: AdbServer, serial: str) -> None:
    """Show the home screen, with QQ as at its first start, so that every run sees the same screens."""
    device = adb.device(serial)
    device.start_apps_afresh()
    await device.launch(QQ)
    await device.key(Key.HOME)
    await device.close()


def middle(found: Sequence[Steps]) -> Steps:
    """Return the run with the median overhead; the slower one of two."""
    return sorted(found, key=lambda one: one.overhead)[len(found) // 2]
