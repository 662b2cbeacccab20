"""``phonedesk bench soak``: whether many runs leave something behind in the server: memory, descriptors, threads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bot.tools.bench.growth import looked
from bot.tools.bench.scale import customer, measured, problems
from bot.tools.bench.served import BenchRun, RunSeen, Seen
from bot.tools.bench.usage import Say, unheard

WARM_UP = 50  # runs before the first look: caches and pools have filled by then
LOOKS = 10  # after the first one
LOOKS_COMPARED = 3  # at the beginning and at the end
REST_SECONDS = 12.0  # what the runs needed has been given back by then
MORE_MEMORY, MORE_OTHERS = 0.1, 3  # what is no leak: a share of the memory; a connection or a thread of a pool


@dataclass(frozen=True, slots=True)
class Level:
    """What the server holds after so many ``runs``, at rest. ``resident``: MiB. ``kept``: bytes of the data folder."""

    runs: int
    resident: float
    descriptors: int
    threads: int
    kept: int


@dataclass(frozen=True, slots=True)
class Soak:
    """``problems``: runs that did not end as they must. ``grown``: what the server holds more of than at first."""

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
    say: Say = unheard,
) -> Soak:
    """Have ``phones`` phones give ``warm_up`` replies, then ``runs`` more; look after the first and ten times later."""
    say("starting", phones=phones)
    turns = [warm_up, *_shares(runs, LOOKS)]
    async with measured(phones, math.ceil(sum(turns) / phones)) as made:
        addresses = [phone.address for phone in made.phones]
        tasks = [
            (addresses[turn % phones], f"QQ回复联系人{customer(turn // phones)}") for turn in range(warm_up + runs)
        ]
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
    """Tell what the server holds more of in the last looks than in the first ones.

    One look says little: Python gives memory back when it likes, and SQLite keeps a descriptor for each connection that
    there ever was at once. So the medians of three looks are compared, if there are six.
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
    """``runs`` in at most so many parts that differ by one at most."""
    parts = min(runs, parts)
    return [runs * (part + 1) // parts - runs * part // parts for part in range(parts)]


def _level(runs: int, rest: Seen, kept: int) -> Level:
    return Level(runs, rest.resident, rest.descriptors, rest.threads, kept)
