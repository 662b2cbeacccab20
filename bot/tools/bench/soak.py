"""``phonedesk bench soak``: checks whether many runs leave memory, descriptors or threads behind in the server."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bot.tools.bench.growth import looked
from bot.tools.bench.scale import measured, problems, task
from bot.tools.bench.served import BenchRun, RunSeen, Seen
from bot.tools.bench.usage import Say, say_nothing

WARM_UP = 50  # runs before the first measurement: by then caches and pools have filled
LOOKS = 10  # measurements after the first one
LOOKS_COMPARED = 3  # at the beginning and at the end
REST_SECONDS = 12.0  # by then the memory that the runs needed has been given back
MORE_MEMORY, MORE_OTHERS = 0.1, 3  # no leak: a share of the memory; a connection or a thread of a pool


@dataclass(frozen=True, slots=True)
class Level:
    """The server's resources at rest after ``runs`` runs. ``resident``: MiB. ``kept``: bytes of the data folder."""

    runs: int
    resident: float
    descriptors: int
    threads: int
    kept: int


@dataclass(frozen=True, slots=True)
class Soak:
    """The results of a soak.

    problems: runs that did not end as they must.
    grown: what the server holds more of than at first.
    """

    phones: int
    seconds: float
    levels: tuple[Level, ...]
    problems: tuple[str, ...]
    grown: tuple[str, ...]

    @property
    def bytes_a_run(self) -> float:
        first, last = self.levels[0], self.levels[-1]
        return (last.kept - first.kept) / (last.runs - first.runs)


async def soak(
    runs: int,
    phones: int,
    *,
    warm_up: int = WARM_UP,
    rest: float = REST_SECONDS,
    say: Say = say_nothing,
) -> Soak:
    """Have phones give ``warm_up`` replies, then ``runs`` more; measure after the first ones and ten times later."""
    say("starting", phones=phones)
    turns = [warm_up, *_shares(runs, LOOKS)]
    async with measured(phones, math.ceil(sum(turns) / phones)) as made:
        addresses = [phone.address for phone in made.phones]
        tasks = [(addresses[turn % phones], task(turn % phones, turn // phones)) for turn in range(warm_up + runs)]
        seen: list[RunSeen] = []
        levels: list[Level] = []
        seconds = 0.0
        for count in turns:
            say("soaking", done=len(seen), runs=len(tasks))
            now = tasks[len(seen) : len(seen) + count]
            done = await made.order(BenchRun(tasks=now, patience=600 + 10 * count))
            idle = await made.order(BenchRun(idle=rest))
            seconds += done.seconds
            seen += done.runs
            levels.append(_level(len(seen), idle, looked(made.data).bytes))
        found = problems(seen, made.phones)
    return Soak(phones, seconds, tuple(levels), tuple(found), tuple(grown(levels)))


def grown(levels: Sequence[Level]) -> list[str]:
    """Return what the server holds more of in the last measurements than in the first ones.

    One measurement says little: Python gives memory back when it likes, and SQLite keeps a descriptor for each
    connection that was ever open at the same time. So the medians of three measurements are compared, if there are six.
    """
    some = LOOKS_COMPARED if len(levels) >= 2 * LOOKS_COMPARED else 1
    first, last = levels[:some], levels[-some:]
    found = []
    before, after = (statistics.median(level.resident for level in part) for part in (first, last))
    if after > before * (1 + MORE_MEMORY):
        found.append(f"memory: {before:.0f} MiB at first, {after:.0f} MiB at the end")
    for name, count in (("descriptors", lambda level: level.descriptors), ("threads", lambda level: level.threads)):
        before, after = (statistics.median(map(count, part)) for part in (first, last))
        if after > before + MORE_OTHERS:
            found.append(f"{name}: {before:.0f} at first, {after:.0f} at the end")
    return found


def _shares(runs: int, parts: int) -> list[int]:
    """Split ``runs`` into at most ``parts`` parts that differ by one at most."""
    parts = min(runs, parts)
    return [runs * (part + 1) // parts - runs * part // parts for part in range(parts)]


def _level(runs: int, rest: Seen, kept: int) -> Level:
    return Level(runs, rest.resident, rest.descriptors, rest.threads, kept)
