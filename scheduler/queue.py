"""The queue's port: four calls, so that the library behind it can be replaced.

A queue starts legs by their ids and makes up for a process that died. It is no lock: who has a phone is in the leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

Work = Callable[[str], Awaitable[None]]
"""Runs one leg, given its id; returns when the leg is over and raises nothing that matters to the queue."""


class Queue(Protocol):
    @property
    def running(self) -> bool: ...

    async def start(self, work: Work) -> None:
        """Begin to hand legs to ``work``: those of a former life that were not finished, then new ones."""

    async def enqueue(self, leg_id: str) -> None:
        """Have a leg started; the same id twice is started once."""

    async def stop(self) -> None:
        """Hand out nothing more and end. Legs at work are ended by the worker before."""


class LocalQueue:
    """Legs as tasks of this process. It remembers nothing: after a restart the reconciler finds what is due."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._seen: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        return self._work is not None

    async def start(self, work: Work) -> None:
        self._work = work

    async def enqueue(self, leg_id: str) -> None:
        if self._work is None:
            raise RuntimeError("The queue is not running.")
        if leg_id in self._seen:
            return
        self._seen.add(leg_id)
        task = asyncio.create_task(_run(self._work, leg_id), name=leg_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        self._work = None
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _run(work: Work, leg_id: str) -> None:
    await work(leg_id)


def leg_id(run_id: str, leg: int) -> str:
    return f"run-{run_id}-leg-{leg}"


def parse_leg_id(text: str) -> tuple[str, int]:
    """The run's id and the leg's number. ValueError for anything else."""
    head, _, number = text.rpartition("-leg-")
    if not head.startswith("run-") or not number.isdecimal():
        raise ValueError(f"Not the id of a leg: {text!r}")
    return head.removeprefix("run-"), int(number)
