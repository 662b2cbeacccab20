"""The HTTP API under load: programs that follow the event log, others that ask, and runs beside them.

    python -m tests.acceptance.api_load --url http://127.0.0.1:8737 --key KEY --streams 200 --rate 50 --seconds 60

``--key`` is an operator's. With ``--runs`` one run after the other is started meanwhile, and timed. Prints the seconds
of the requests, how late events came to the streams, and how many requests failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector

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
        async with client.get(f"{self.url}/api/v1/events", headers=self.headers) as response:
            if response.status != 200:
                self.failed[f"stream {response.status}"] += 1
                return
            async for line in response.content:
                if line.startswith(b"data: "):
                    at = datetime.fromisoformat(json.loads(line[6:])["at"])
                    self.late.append((datetime.now(UTC) - at).total_seconds())

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

    async def run(self, client: ClientSession) -> None:
        """One run after the other."""
        while True:
            async with client.post(f"{self.url}/api/v1/runs", headers=self.headers, json={"task": TASK}) as response:
                if response.status == 429:
                    await asyncio.sleep(int(response.headers["Retry-After"]))
                    continue
                run: dict[str, Any] = await response.json()
            while run.get("ended_at") is None:
                await asyncio.sleep(0.2)
                async with client.get(f"{self.url}/api/v1/runs/{run['id']}", headers=self.headers) as response:
                    run = await response.json()
            begun, ended = (datetime.fromisoformat(run[name]) for name in ("created_at", "ended_at"))
            self.runs.append((ended - begun).total_seconds())
            await asyncio.sleep(0.5)


async def loaded(options: argparse.Namespace) -> Load:
    load = Load(options.url.rstrip("/"), options.key)
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)) as client:
        tasks = [asyncio.create_task(load.follow(client)) for _ in range(options.streams)]
        await asyncio.sleep(2)
        if options.runs:
            tasks.append(asyncio.create_task(load.run(client)))
        begun, asked = time.perf_counter(), 0
        asking: set[asyncio.Task[None]] = set()
        while (now := time.perf_counter()) - begun < options.seconds:
            while options.rate and asked < (now - begun) * options.rate:
                task = asyncio.create_task(load.ask(client, PATHS[asked % len(PATHS)]))
                asking.add(task)
                task.add_done_callback(asking.discard)
                asked += 1
            await asyncio.sleep(0.005)
        await asyncio.gather(*asking)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8737")
    parser.add_argument("--key", required=True)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--runs", action="store_true")
    load = asyncio.run(loaded(parser.parse_args()))
    told = (("requests", load.seconds), ("events", load.late), ("runs", load.runs))
    said = [f"{name} {_spread(values)}" for name, values in told]
    sys.stdout.write("\n".join([*said, f"failed {dict(load.failed)}"]) + "\n")


if __name__ == "__main__":
    main()
