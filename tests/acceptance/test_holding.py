"""Runs that are put aside, and questions that wait, with the whole product."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.stage import ANSWER, CANDIDATE, OPEN_QUESTION, QUICK_TASK, Stage, asked, stage, until
from tests.support.model_server import Hang

pytestmark = pytest.mark.rotating(parts=3)


def front(on: Stage) -> str:
    """The app that is in front on the phone."""
    return on.report["window"]["package"] or ""


async def test_hold_frees_the_phone_and_resume_brings_the_answer(on: Stage) -> None:
    server = await on.serve()
    owner = await on.owner(server)
    on.brain.instead["GET_KNOWLEDGE_DATA"] = Hang()
    card = await on.run(owner)
    await on.shows(owner, card, "第 2 步")  # the model is asked for the third, and says nothing

    tapped = time.monotonic()
    assert (await owner.tap(card, "暂停")).text == "正在暂停，马上让出手机。"
    await held(on)
    assert time.monotonic() - tapped < 2
    on.at_rest()
    on.untouched_by_words()
    on.brain.instead.clear()
    other = await on.run(owner, QUICK_TASK)
    await on.shows(owner, other, "已完成")
    await on.shows(owner, card, "⏸ 已暂停")
    assert card.buttons == [["继续", "停止", "看屏幕"]]

    assert await server.end() == 0
    server = await on.serve()
    [held_run] = [run for run in await on.runs() if run.hold]
    assert held_run.status == "waiting"
    assert on.sent == {}
    await owner.tap(card, "继续")
    await on.shows(owner, card, "已完成")
    assert on.sent == {"11": [ANSWER]}
    on.at_rest()


async def held(on: Stage) -> None:
    async with asyncio.timeout(20):
        while not any(run.hold and run.status == "waiting" for run in await on.runs()):
            await asyncio.sleep(0.02)


@pytest.fixture
async def unanswerable(tmp_path: Path) -> AsyncIterator[Stage]:
    """Contact 11 has asked what the base has no sure answer to."""
    async with stage(tmp_path, asked(OPEN_QUESTION)) as made:
        yield made


async def test_a_phone_is_parked_while_it_waits_and_brought_back_for_the_answer(unanswerable: Stage) -> None:
    on = unanswerable
    server = await on.serve(PHONEDESK_RUN__HOLD_SECONDS="0.3")
    owner = await on.owner(server)
    card = await on.run(owner)
    await on.sees(owner, "知识库没有确定的答案")
    await until(lambda: "launcher" in front(on), what="the phone is at home")
    on.untouched_by_words()
    await owner.send("/ask")
    listed = await on.sees(owner, "等待回答的问题：1 个")
    await owner.tap(listed, "看第 1 个")
    again = await on.sees(owner, "知识库没有确定的答案", count=3)  # the list names it, too
    assert again.content.media == "photo"
    await owner.tap(again, "1. ")
    await on.shows(owner, card, "已完成")
    assert on.sent == {"11": [CANDIDATE]}
    on.at_rest()


async def test_nobody_answers(unanswerable: Stage) -> None:
    on = unanswerable
    server = await on.serve(
        PHONEDESK_RUN__HOLD_SECONDS="0.3",
        PHONEDESK_QUESTIONS__DEADLINE_MINUTES="0.05",
        PHONEDESK_QUESTIONS__REMIND_MINUTES="0.01",
    )
    owner = await on.owner(server)
    card = await on.run(owner)
    question = await on.sees(owner, "知识库没有确定的答案")
    assert "到时没有回答，跳过这一条" in question.words
    assert (await on.sees(owner, "还在等回答")).reply_to is question
    shown = await on.shows(owner, card, "到时没有人回答，已跳过")
    assert "已完成" in shown
    await on.shows(owner, question, "没有人回答")
    assert question.buttons == []
    on.untouched_by_words()
    [run] = await on.runs()
    [row] = await on.ledger(run.id)
    assert row.state == "skipped"
