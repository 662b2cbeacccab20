"""Many virtual phones in a process of their own: ``python -m tests.acceptance.crowd PHONES CONTACTS QUESTION``.

Each contact of each phone has asked the question. One line of JSON tells where the phones are, then it serves them
until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp

from simulator.phone.report import Report
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.server import serve

START_SECONDS = 60.0


def contact(number: int) -> str:
    return f"客户{number:02d}"


def world(contacts: int, question: str) -> Scenario:
    """Contacts that have each asked something."""
    asked = [MessagePart(text=question, ago=60, unread=True)]
    return Scenario(contacts=[ContactPart(name=contact(number), history=asked) for number in range(contacts)])


@dataclass(frozen=True)
class CrowdPhone:
    port: int
    state_url: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def report(self) -> Report:
        async with aiohttp.ClientSession() as session, session.get(f"{self.state_url}/state") as answer:
            report: Report = await answer.json()
            return report


@asynccontextmanager
async def crowd(phones: int, contacts: int, question: str) -> AsyncIterator[list[CrowdPhone]]:
    """So many phones, in another process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.acceptance.crowd", str(phones), str(contacts), question),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            told = json.loads(await process.stdout.readline())
        yield [CrowdPhone(port, url) for port, url in told]
    finally:
        process.kill()
        await process.wait()


async def main(phones: int, contacts: int, question: str) -> None:
    async with AsyncExitStack() as stack:
        running = [await stack.enter_async_context(serve(world(contacts, question))) for _ in range(phones)]
        sys.stdout.write(json.dumps([(each.adb_port, each.state_url) for each in running]) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
