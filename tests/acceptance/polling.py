"""A day of polling one contact: a schedule of every five minutes, and what the owner is told of it.

    python -m tests.acceptance.polling --ticks 108      9:00 to 17:55

The customer asks three times: what the base knows, what it does not know, and once more what it knows. Every other tick
finds nothing new, or a question that waits for a person.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.world import Side
from simulator.telegram import Message
from storage.runs import RunRow, Runs
from storage.schedules import Schedules, Tick
from tests.acceptance.stage import OPEN_QUESTION, PATIENCE, QUESTION, TASK, ZONE, Stage, stage, until_async

EVERY = timedelta(minutes=5)
OWN_WORDS, LATER = "可以带上高铁的。", "支持七天无理由退货吗？"


@dataclass(frozen=True)
class Day:
    """``cards`` and ``questions``: what the bot said without being asked, as text. ``calls``: of the model, by tick.

    ``outcomes``: of the ticks' runs. ``quiet``: seconds of each tick that asked no model.
    """

    ticks: int
    cards: Sequence[str]
    questions: Sequence[str]
    calls: dict[int, int]
    outcomes: dict[str, int]
    sent: list[str]
    quiet: Sequence[float]


def world() -> Scenario:
    said = [MessagePart(side=Side.ME, text="您好", ago=5000)]
    named = enumerate(("11", "老王", "张三"))
    return Scenario(contacts=[ContactPart(name=name, number=f"2011000{at}", history=said) for at, name in named])


async def day(folder: Path, ticks: int) -> Day:
    """So many ticks; the customer writes before the second, the middle one and the last but one."""
    first, second, third = 1, ticks // 2, ticks - 2
    writes = {first: QUESTION, second: OPEN_QUESTION, third: LATER}
    answered = second + max(2, ticks // 10)  # the tick before which a person answers the second one
    async with stage(folder, world()) as shop:
        server = await shop.serve()
        owner = await shop.owner(server)
        await owner.send(f"/schedule add 每5分钟 {TASK}")
        await shop.sees(owner, "已添加定时任务 #1")
        before = {message.id for message in owner.chat.from_bot}
        calls: dict[int, int] = {}
        outcomes: dict[str, int] = {}
        quiet: list[float] = []
        begin = datetime.now(ZoneInfo(ZONE)).replace(hour=9, minute=0, second=0, microsecond=0) + timedelta(days=1)
        for number in range(ticks):
            if number in writes:
                shop.phone.phone.receive("11", writes[number])
            if number == answered:
                question = await shop.sees(owner, OPEN_QUESTION)
                await owner.send(OWN_WORDS, reply_to=question)
                await until_async(lambda: all_over(shop), what="the answered question's run")
            asked, began = len(shop.brain.calls), time.monotonic()
            run = await tick(shop, begin + number * EVERY)
            if len(shop.brain.calls) > asked:
                calls[number] = len(shop.brain.calls) - asked
            else:
                quiet.append(time.monotonic() - began)
            outcomes[run.status] = outcomes.get(run.status, 0) + 1
        new = [message for message in owner.chat.from_bot if message.id not in before]
        unasked = [message for message in new if message.reply_to is None]
        questions = [message.words for message in unasked if is_question(message)]
        cards = [message.words for message in unasked if not is_question(message)]
        assert await server.end() == 0
        return Day(ticks, cards, questions, calls, outcomes, shop.sent["11"], quiet)


def is_question(message: Message) -> bool:
    return message.words.startswith("❓")


async def all_over(shop: Stage) -> bool:
    return all(run.final for run in await shop.runs())


async def tick(shop: Stage, planned: datetime) -> RunRow:
    """The schedule's time ``planned`` has come; its run, once every run is over or waits for a person."""
    async with shop.database() as db:
        result = await Schedules(db).tick(1, planned.astimezone(UTC))
        assert result.tick is Tick.STARTED, result
        async with asyncio.timeout(PATIENCE):
            while True:
                rows = {row.id: row for row in await Runs(db).find(limit=500)}
                if all(row.final or (row.status == "waiting" and not row.attempt_due_at) for row in rows.values()):
                    return rows[result.run_id]
                await asyncio.sleep(0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A day of polling one contact.")
    parser.add_argument("--ticks", type=int, default=108, help="10 or more (108)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        seen = asyncio.run(day(Path(temporary), max(10, given.ticks)))
    sys.stdout.write(json.dumps(asdict(seen), ensure_ascii=False, indent=1) + "\n")
