"""A million spoilt replies of models, against the rules for reading them as they are stated anew.

    .venv/bin/python -m tests.acceptance.replies --replies 1000000 --seed 1 [--jobs 2] [--json]

Calls are written in each of the three dialects and then left whole, cut off, broken on purpose, or mangled at random.
What is read must be the call that was written, an ActionParseError, or at the very least an action that the rules
allow and the reply's own words bear out; and it must be read within 10 ms of the processor's time. Exits with 1 where
anything else came out. The calls are of ``replies_written``, what goes wrong of ``replies_spoilt``, the rules of
``replies_rules``; none of them looks at how the product reads: names, fields, bounds and escapes stand there anew.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from agent_core.actions import ActionParseError, Dialect, complete_call_end, parse_reply
from tests.acceptance.replies_rules import TYPED, complaint
from tests.acceptance.replies_spoilt import FATES, Fate, compute, mangle, smuggle
from tests.acceptance.replies_written import DIALECTS, Written, written

LIMIT = 0.01  # seconds of the processor; half of it on a machine that has nothing else to do
USUAL_LIMIT = 0.0002  # for a reply as models write them
BATCH = 5_000
SHOWN = 10  # violations that are printed
AGAIN = 8  # readings that a slow one gets: of a busy machine, not of the text


# One reply ------------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What came of some replies. ``wrong``: (what is wrong, dialect, fate, the text)."""

    replies: int = 0
    actions: int = 0
    refused: int = 0
    by_fate: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str, str]] = field(default_factory=list)
    slowest: float = 0.0
    usual: list[float] = field(default_factory=list)  # seconds, of whole replies

    def add(self, other: Found) -> None:
        self.replies += other.replies
        self.actions += other.actions
        self.refused += other.refused
        self.by_fate += other.by_fate
        self.wrong += other.wrong
        self.slowest = max(self.slowest, other.slowest)
        self.usual += other.usual


def read(text: str, dialect: Dialect, ended: bool | None = None) -> tuple[dict[str, Any] | None, str, float]:
    """The action as plain data (None where it was refused), what else was raised, and the seconds that it took."""
    begin = time.thread_time()
    try:
        reply = parse_reply(text, dialect, ended=ended)
    except ActionParseError as error:
        said = "" if 0 < len(error.message) < 600 else f"a message of {len(error.message)} characters"
        return None, said, time.thread_time() - begin
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return None, f"{type(error).__name__}: {error}", time.thread_time() - begin
    took = time.thread_time() - begin
    return reply.action.model_dump(), "", took


def judge(chance: random.Random, found: Found) -> None:
    """Write a reply, spoil it, have it read, and look at what came of it."""
    dialect, fate = chance.choice(DIALECTS), chance.choice(FATES)
    if fate == "computed" and dialect == "gelab":
        fate = "mangled"  # its values stand without quotes: nothing in it looks like an expression
    if fate == "smuggled":
        reply = written(chance, dialect, smuggle(chance, dialect))
    elif fate == "computed":
        reply = written(chance, dialect, compute(chance, dialect))
    else:
        reply = written(chance, dialect)
    text = reply.text
    if fate == "mangled":
        text = mangle(chance, text)
    elif fate == "cut":
        text = text[: chance.randint(0, reply.call[1])]
    how: Dialect = "auto" if chance.random() < 0.25 else dialect
    ended = False if fate == "cut" else None
    action, raised, took = read(text, how, ended)
    for _ in range(AGAIN):
        if took <= LIMIT:
            break
        took = min(took, read(text, how, ended)[2])
    found.replies += 1
    found.by_fate[fate] += 1
    found.slowest = max(found.slowest, took)
    found.actions += action is not None
    found.refused += action is None
    if fate == "whole":
        found.usual.append(took)
    wrong = (
        raised or (f"it took {took * 1000:.1f} ms" if took > LIMIT else "") or _verdict(fate, reply, action, text, how)
    )
    if not wrong and chance.random() < 0.05:
        wrong = _streamed(text, how, action)
    if wrong:
        found.wrong.append((wrong, how, fate, text))


def _verdict(fate: Fate, reply: Written, action: Mapping[str, Any] | None, text: str, how: Dialect) -> str:
    """What is wrong with what was read; "" where nothing is."""
    if fate == "whole" and action != dict(reply.action):
        return f"read as {action}, written as {dict(reply.action)}"
    if action is None:
        return ""
    if fate in {"smuggled", "computed"}:
        return f"was to be refused, and is {action}"
    known = action["kind"] in TYPED or not BEGUN_IN_THE_PROMPT.match(reply.text)  # or it may be a thought
    if fate == "cut" and known and action != dict(reply.action):
        return f"cut off, and read as another: {action}"
    return complaint(action, text, "gelab" if how == "auto" else how) or _thought(text, how, action)


_CLEAN = re.compile(r"<think>([^<＜>＞]*)</think>\s*(<answer>[^<＜]*</answer>[^<＜]*)", re.DOTALL)


def _thought(text: str, how: Dialect, action: Mapping[str, Any]) -> str:
    """What is thought decides nothing: with another thought the action is the same."""
    clean = _CLEAN.fullmatch(text)
    if clean is None:
        return ""
    other, _, _ = read(f"<think>…</think>{clean[2]}", how)
    return "" if other == dict(action) else f"with another thought it is {other}"


BEGUN_IN_THE_PROMPT = re.compile(r"[^<＜]*[<＜]\s*/", re.DOTALL)


def _streamed(text: str, how: Dialect, action: Mapping[str, Any] | None) -> str:
    """A stream is closed where the call is complete: what is read up to there is what is read of the whole."""
    if BEGUN_IN_THE_PROMPT.match(text):
        return ""  # what arrives may be a thought, of which only its end will tell
    try:
        end = complete_call_end(text, how)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"while it arrives, {type(error).__name__}: {error}"
    if end is None or re.search(r"[<＜]", text[end:]):
        return ""  # tags that come later change what the whole is, and nobody waits for them
    early, raised, _ = read(text[:end], how)
    return raised or (
        "" if early == (dict(action) if action else None) else f"closed at {end} it is {early}, whole {action}"
    )


# A million ------------------------------------------------------------------------------------------------------------


def batch(seed: str, replies: int) -> Found:
    chance, found = random.Random(seed), Found()
    for _ in range(replies):
        judge(chance, found)
    return found


def fuzz(replies: int, seed: int, jobs: int = 1) -> Found:
    """``replies`` of them; the same for the same ``seed``, in however many processes."""
    sizes = [min(BATCH, replies - begin) for begin in range(0, replies, BATCH)]
    seeds = [f"{seed}:{number}" for number in range(len(sizes))]
    found = Found()
    if jobs == 1:
        for one in map(batch, seeds, sizes):
            found.add(one)
        return found
    with ProcessPoolExecutor(jobs) as pool:
        for one in pool.map(batch, seeds, sizes):
            found.add(one)
    return found


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    begin = time.monotonic()
    found = fuzz(asked.replies, asked.seed, asked.jobs)
    usual = _quantile(found.usual, 0.95)
    told = {
        "replies": found.replies,
        "fates": dict(sorted(found.by_fate.items())),
        "actions": found.actions,
        "refused": found.refused,
        "violations": len(found.wrong),
        "slowest_ms": round(found.slowest * 1000, 3),
        "usual_ms_median": round(_quantile(found.usual, 0.5) * 1000, 4),
        "usual_ms_p95": round(usual * 1000, 4),
        "seconds": round(time.monotonic() - begin, 1),
    }
    if asked.json:
        sys.stdout.write(json.dumps({**told, "wrong": found.wrong}, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{name:16} {value}\n" for name, value in told.items()))
        for wrong, how, fate, text in found.wrong[:SHOWN]:
            sys.stdout.write(f"\n{how}, {fate}: {wrong[:300]}\n  {text[:500]!r}\n")
    return 1 if found.wrong or usual > USUAL_LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
