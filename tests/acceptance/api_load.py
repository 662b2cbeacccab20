"""The HTTP API under load: programs that follow the event log, others that ask, and runs beside them.

    python -m tests.acceptance.api_load
    python -m tests.acceptance.api_load --url http://127.0.0.1:8737 --key KEY --runs

Without ``--url`` it starts a server of its own with a virtual phone, a model that answers after 1.5 s, and answers,
runs and schedules to list; it measures runs one after the other, first alone, then beside the load. With it, runs are
started beside the load if ``--runs`` is given, and ``--key`` is an operator's.

Prints the seconds of the requests, how late events came to the streams, the seconds of the runs, and which requests
failed; with its own server also by how much a run was slowed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from bot.tools.bench.scale import measured, task
from bot.tools.bench.served import BenchRun
from simulator.model.server import DemoModel
from tests.support.proxies import free_port

ALONE_SECONDS = 30.0
LISTED = 20
THINKING_SECONDS = 1.5  # of the model of the own server
PATHS = ("/runs?limit=20", "/status", "/questions", "/answers?limit=20", "/schedules")
TASK = "打开设置"


@dataclass
class Load:
    url: str
    key: str
    seconds: list[float] = field(default_factory=list)  # of each request
    late: list[float] = field(default_factory=list)  # seconds from an event to a stream that gets it
    runs: list[float] = field(default_factory=list)  # seconds of each run, from its start to its end
    failed: Counter[str] = field(default_factory=Counter)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    async def follow(self, client: ClientSession) -> None:
        try:
            async with client.get(f"{self.url}/api/v1/events", headers=self.headers) as response:
                if response.status != 200:
                    self.failed[f"stream {response.status}"] += 1
                    return
                async for line in response.content:
                    if line.startswith(b"data: "):
                        at = datetime.fromisoformat(json.loads(line[6:])["at"])
                        self.late.append((datetime.now(UTC) - at).total_seconds())
        except ClientError as error:
            self.failed[f"stream {type(error).__name__}"] += 1

    async def ask(self, client: ClientSession, path: str) -> None:
        begun = time.perf_counter()
        try:
            async with client.get(f"{self.url}/api/v1{path}", headers=self.headers) as response:
                await response.read()
                if response.status != 200:
                    self.failed[f"{path} {response.status}"] += 1
        except (OSError, TimeoutError) as error:
            self.failed[f"{path} {type(error).__name__}"] += 1
        self.seconds.append(time.perf_counter() - begun)

    async def run(self, client: ClientSession, over: asyncio.Event) -> None:
        """One run after the other, each to its end, until ``over``."""
        while not over.is_set():
            async with client.post(f"{self.url}/api/v1/runs", headers=self.headers, json={"task": TASK}) as response:
                if response.status == 429:
                    await asyncio.sleep(int(response.headers["Retry-After"]))
                    continue
                if response.status != 201:
                    self.failed[f"run {response.status}"] += 1
                    return
                run: dict[str, Any] = await response.json()
            while run.get("ended_at") is None:
                await asyncio.sleep(0.2)
                async with client.get(f"{self.url}/api/v1/runs/{run['id']}", headers=self.headers) as response:
                    run = await response.json()
            begun, ended = (datetime.fromisoformat(run[name]) for name in ("created_at", "ended_at"))
            self.runs.append((ended - begun).total_seconds())
            await asyncio.sleep(0.5)


class SlowModel(DemoModel):
    thinking = 0.0  # seconds

    async def complete(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.thinking)
        return await super().complete(request)


@asynccontextmanager
async def own_server(listed: int = LISTED) -> AsyncIterator[tuple[str, str]]:
    """Run a server with a phone, a model, and so many answers and schedules; yield its URL and a key."""
    port, model = str(free_port()), SlowModel(None)
    settings = {"PHONEDESK_WEB__PORT": port, "PHONEDESK_OBSERVE__OCR": "auto"}  # as shipped
    async with measured(1, listed, model=model, settings=settings) as made:
        adding = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-c",
                "from bot.channels.cli.main import app; app()",
                "keys",
                "add",
                "load",
                "--role",
                "owner",
                "--json",
            ),
            env={**os.environ, "PHONEDESK_DATA_DIR": str(made.data)},
            cwd=made.data,
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await adding.communicate()
        url, key = f"http://127.0.0.1:{port}", json.loads(said)["key"]
        async with ClientSession(headers={"Authorization": f"Bearer {key}"}) as client:
            for number in range(listed):
                schedule = {"task": TASK, "expression": f"0 0 {number + 1} 1 *"}
                async with client.post(f"{url}/api/v1/schedules", json=schedule) as response:
                    response.raise_for_status()
        phone = made.phones[0].address
        await made.order(BenchRun(tasks=[(phone, task(0, number)) for number in range(listed)]))
        model.thinking = THINKING_SECONDS
        yield url, key


async def loaded(url: str, key: str, *, streams: int, rate: float, seconds: float, runs: bool) -> Load:
    load = Load(url.rstrip("/"), key)
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)) as client:
        tasks = [asyncio.create_task(load.follow(client)) for _ in range(streams)]
        over, running = asyncio.Event(), list[asyncio.Task[None]]()
        await asyncio.sleep(2)
        if runs:
            running.append(asyncio.create_task(load.run(client, over)))
        begun, asked = time.perf_counter(), 0
        asking: set[asyncio.Task[None]] = set()
        while (now := time.perf_counter()) - begun < seconds:
            while asked < (now - begun) * rate:
                task = asyncio.create_task(load.ask(client, PATHS[asked % len(PATHS)]))
                asking.add(task)
                task.add_done_callback(asking.discard)
                asked += 1
            await asyncio.sleep(0.005)
        over.set()
        await asyncio.gather(*asking, *running)
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    return load


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{len(values)}"
    hundredths = statistics.quantiles(values, n=100)
    return f"{len(values)}: p50 {hundredths[49]:.3f} s, p95 {hundredths[94]:.3f} s, most {max(values):.3f} s"


def _told(load: Load) -> str:
    told = (("requests", load.seconds), ("events", load.late), ("runs", load.runs))
    return "\n".join([*(f"{name} {_spread(values)}" for name, values in told), f"failed {dict(load.failed)}", ""])


async def measure(options: argparse.Namespace) -> None:
    amounts = {"streams": options.streams, "rate": options.rate, "seconds": options.seconds}
    if options.url:
        sys.stdout.write(_told(await loaded(options.url, options.key, runs=options.runs, **amounts)))
        return
    async with own_server() as (url, key):
        alone = await loaded(url, key, streams=0, rate=0, seconds=ALONE_SECONDS, runs=True)
        beside = await loaded(url, key, runs=True, **amounts)
    slowed = statistics.median(beside.runs) / statistics.median(alone.runs) - 1
    sys.stdout.write(f"alone: runs {_spread(alone.runs)}\n{_told(beside)}a run was slowed by {slowed:.1%}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="")
    parser.add_argument("--key", default="")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--runs", action="store_true")
    options = parser.parse_args()
    if options.url and not options.key:
        parser.error("--url needs --key")
    try:
        asyncio.run(measure(options))
    except ClientError as error:
        sys.exit(f"The server cannot be asked: {error}")


if __name__ == "__main__":
    main()
