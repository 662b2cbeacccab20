"""Twenty runs shown at once in one group while Telegram says 429: every card ends true, nothing is sent twice."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest

from agent_core.ports import Event
from agent_core.session import Session, Status, StepRecord
from scheduler.runs.executor import StoredRuns
from simulator.telegram import Chat, FakeTelegram, FakeUser, Message
from simulator.telegram.world import CallRecord
from storage.engine import Database
from storage.runs import Runs
from tests.bot.channels.telegram.door import OPERATOR, Door
from tests.bot.channels.telegram.house import until
from tests.bot.desk.past import screen

RUNS = 20
STEPS = 6
GROUP = -1001
RETRY_AFTER = 1
REFUSALS = (22, 27, 32)  # after so many calls to the group, the next one gets a 429; on a slow machine there are 42
ENDS = ("succeeded", "failed", "stopped")
SENDS = {"sendMessage", "sendPhoto", "sendDocument"}


async def carried_out(db: Database, run_id: str, number: int) -> None:
    """A run as its worker leaves it behind: thoughts, steps with pictures, the outcome, and then its row."""
    store, serial = StoredRuns(db), f"S{number}"
    await Runs(db).begin_attempt(run_id, 1, serial=serial)
    session = Session(run_id=run_id, task=f"任务{number}号", serial=serial)
    for index in range(1, STEPS + 1):
        await store.event(run_id, Event("thinking", {"text": f"想法 {index}"}))
        action = {"kind": "tap", "element": [500, index]}
        session.steps.append(StepRecord(index=index, thinking=f"想法 {index}", action=action, asked=action))
        await store.save(session)
        step = session.steps[-1].model_dump(exclude={"reply"})
        await store.event(run_id, Event("step", step), picture=screen(index) if index % 2 else None)
        await asyncio.sleep(0.1 * (1 + number % 4))  # the phones are of different speed
    status = ENDS[number % len(ENDS)]
    session.end(Status(status), f"结果{number}号")
    await store.save(session)
    await store.event(run_id, Event("outcome", {"status": status, "message": f"结果{number}号"}))
    await Runs(db).end_attempt(run_id, 1, status=status, message=f"结果{number}号")


class Telegram429:
    """Says 429 in the group now and then, and counts what is called there before the time is over."""

    def __init__(self, tg: FakeTelegram) -> None:
        self.world = tg.world

    @property
    def calls(self) -> list[CallRecord]:
        return [call for call in self.world.calls if call.chat_id == GROUP]

    @property
    def refused(self) -> list[CallRecord]:
        return [call for call in self.calls if call.code == 429]

    async def run(self) -> None:
        for before, count in enumerate(REFUSALS):
            await self.world.wait_until(partial(self._called, count, before), 60)
            self.world.limit_next(GROUP, 1, RETRY_AFTER)

    def _called(self, times: int, refused: int) -> bool:
        return len(self.calls) >= times and len(self.refused) == refused  # the one before was not overtaken

    def has_refused(self, times: int) -> bool:
        return len(self.refused) >= times

    @property
    def too_early(self) -> list[float]:
        """Seconds after a 429 at which the group was written to although it was to be left alone."""
        waits = [after.at - before.at for before, after in pairwise(self.calls) if before.code == 429]
        return [wait for wait in waits if wait < RETRY_AFTER]


def shows(card: Message, number: int) -> bool:
    word = {"succeeded": "已完成", "failed": "失败", "stopped": "已停止"}[ENDS[number % len(ENDS)]]
    return word in card.words and f"结果{number}号" in card.words


def steps_shown(card: Message) -> list[int]:
    """Which step each state of the card named."""
    texts = [edit.content.text or edit.content.caption for edit in card.edits]
    return [int(found[1]) for text in texts if (found := re.search(r"第 (\d+) 步", text))]


def card_of(group: Chat, number: int) -> list[Message]:
    return group.saying(f"任务{number}号")


async def answered_within(user: FakeUser) -> float:
    """Seconds until somebody has an answer in their private chat."""
    begun = asyncio.get_running_loop().time()
    asked = await user.send("/whoami")
    await user.sees(lambda chat: [message for message in chat.from_bot if message.reply_to is asked])
    return asyncio.get_running_loop().time() - begun


@pytest.mark.rotating(parts=2)
async def test_twenty_cards_in_one_group_under_429(door: Door) -> None:
    tg = door.tg
    group = tg.group(GROUP, "shop")
    operator, chief = await door.user(OPERATOR), await door.user(10)
    trouble = Telegram429(tg)
    slowest = 0.0
    async with door.adapter():
        for number in range(RUNS):
            await operator.send(f"/run 任务{number}号", chat=group)
        async with asyncio.timeout(90):
            while len(rows := await Runs(door.db).find(limit=100)) < RUNS or len(group.from_bot) < RUNS:
                await asyncio.sleep(0.01)
        runs = {int(row.task[2:-1]): row.id for row in rows}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(trouble.run())
            for number, run_id in runs.items():
                tasks.create_task(carried_out(door.db, run_id, number))
            # Another chat does not wait for the group's 429.
            for count in range(1, len(REFUSALS) + 1):
                await until(partial(trouble.has_refused, count), 60)
                slowest = max(slowest, await answered_within(chief))
        await chief.sees(
            lambda chat: all(card_of(chat, n) and shows(card_of(chat, n)[-1], n) for n in range(RUNS)),
            timeout=60,
            chat=group,
        )
    for number in range(RUNS):
        [card] = card_of(group, number)  # nothing twice
        assert shows(card, number), card.words
        assert steps_shown(card) == sorted(steps_shown(card))
        states = [(edit.content.text, edit.content.caption, edit.content.file) for edit in card.edits]
        assert all(one != other for one, other in pairwise(states))
    assert len(group.from_bot) == RUNS
    sent = Counter(call.code for call in trouble.calls if call.method in SENDS)
    assert sent[200] == RUNS
    assert [call for call in trouble.calls if call.code == 400] == []  # no call is wasted on what a card shows already
    assert len(trouble.refused) == len(REFUSALS)
    assert trouble.too_early == []
    assert slowest < RETRY_AFTER
