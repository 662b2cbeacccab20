"""``kill -9`` and SIGTERM in the middle of the work: each customer has one answer, each card ends true."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.phone.scenario import KeyboardPart
from simulator.phone.scenario_file import default_scenario
from simulator.telegram import FakeUser, Message
from tests.acceptance.stage import (
    ANSWER,
    OPEN_QUESTION,
    QUICK_TASK,
    WITH_OCR,
    Server,
    Stage,
    asked,
    stage,
    until,
)
from tests.support.model_server import Hang, ScriptedModel

Moment = Callable[[Stage], bool]


def while_the_model_thinks(on: Stage) -> bool:
    return "GET_KNOWLEDGE_DATA" in "".join(on.brain.calls)


def while_it_types(on: Stage) -> bool:
    return on.report["drafts"] != {} and on.sent == {}


def directly_after_send(on: Stage) -> bool:
    return on.sent != {}


async def begun(on: Stage) -> tuple[Server, FakeUser]:
    server = await on.serve()
    return server, await on.owner(server)


async def ends_true(on: Stage, owner: FakeUser, card: Message) -> None:
    """The run ended with one answer; the card is the one that was there before."""
    shown = await on.shows(owner, card, "已完成")
    assert ANSWER in shown
    assert owner.chat.saying("任务：QQ回复") == [card]
    assert on.sent == {"11": [ANSWER]}
    assert [m["text"] for m in on.report["chats"]["11"]].count(ANSWER) == 1
    on.at_rest()
    [run] = await on.runs()
    assert run.status == "succeeded"
    [row] = await on.ledger(run.id)
    assert row.state == "sent"
    assert [answer.sent for answer in await on.answers()] == [ANSWER]


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("moment", [while_the_model_thinks, while_it_types, directly_after_send])
async def test_killed_in_the_middle_it_goes_on_and_answers_once(on: Stage, moment: Moment) -> None:
    server, owner = await begun(on)
    if moment is while_the_model_thinks:
        on.brain.instead["GET_KNOWLEDGE_DATA"] = Hang()
    card = await on.run(owner)
    await on.stored(card)
    await until(lambda: moment(on), what=moment.__name__)
    await server.kill()
    already = on.sent
    assert already == ({"11": [ANSWER]} if moment is directly_after_send else {})
    if moment is while_it_types:
        assert ANSWER.startswith(on.report["drafts"]["11"])
    on.brain.instead.clear()

    await on.serve(**WITH_OCR)
    await ends_true(on, owner, card)


@pytest.mark.rotating(parts=3)
async def test_killed_while_it_pastes_it_goes_on_and_answers_once(tmp_path: Path) -> None:
    """The phone has no ADB Keyboard."""
    scenario = default_scenario().model_copy(update={"keyboard": KeyboardPart(adb_installed=False)})
    async with stage(tmp_path, scenario) as on:
        server, owner = await begun(on)
        card = await on.run(owner)
        await on.stored(card)
        await until(lambda: while_it_types(on))
        await server.kill()
        assert on.sent == {}
        await on.serve(**WITH_OCR)
        await ends_true(on, owner, card)
        assert on.phone.phone.clipboard == ""
        assert not any(action["what"] == "input_method" for action in on.report["actions"])


@pytest.mark.rotating(parts=2)
async def test_killed_while_a_question_waits_it_takes_the_answer_afterwards(tmp_path: Path) -> None:
    async with stage(tmp_path, asked(OPEN_QUESTION)) as on:
        server, owner = await begun(on)
        card = await on.run(owner)
        question = await on.sees(owner, "知识库没有确定的答案")
        await owner.send("/whoami")
        await on.sees(owner, "账号")  # what was sent before is written down as sent
        await server.kill()
        await on.serve()
        await owner.send("可以的。", reply_to=question)
        shown = await on.shows(owner, card, "已完成")
        assert "可以的。" in shown
        await on.shows(owner, question, "店主已回答：可以的。")
        assert on.sent == {"11": ["可以的。"]}
        assert len(owner.chat.saying("知识库没有确定的答案")) == 1


@pytest.mark.rotating(parts=3)
async def test_a_run_that_waits_for_a_person_does_not_hold_the_queue(tmp_path: Path) -> None:
    async with stage(tmp_path, asked(OPEN_QUESTION)) as on:
        server = await on.serve(PHONEDESK_RUN__HOLD_SECONDS="1")
        owner = await on.owner(server)
        waiting = await on.run(owner)
        question = await on.sees(owner, "知识库没有确定的答案")
        other = await on.run(owner, QUICK_TASK)
        await on.shows(owner, other, "已完成")
        await on.shows(owner, waiting, "等待人工")
        assert on.report["window"]["package"] == "com.android.settings"
        await owner.tap(question, "1. ")
        await on.shows(owner, waiting, "已完成")
        assert list(on.sent) == ["11"]


async def test_sigterm_ends_well_in_the_middle_and_the_run_goes_on_after_it(on: Stage) -> None:
    server, owner = await begun(on)
    on.brain.instead["GET_KNOWLEDGE_DATA"] = Hang()
    card = await on.run(owner)
    await until(lambda: while_the_model_thinks(on))
    server.signal(signal.SIGTERM)
    server.signal(signal.SIGTERM)
    done = await server.ended(seconds=30)
    assert done.code == 0, done.err
    on.untouched_by_words()
    on.at_rest()
    assert "排队中" in card.words, "if it said that the run is at work, it would say so until the next start"
    on.brain.instead.clear()

    server = await on.serve()
    await ends_true(on, owner, card)
    assert await server.end() == 0


async def test_what_ends_in_the_time_that_sigterm_leaves_is_shown_before_the_process_ends(on: Stage) -> None:
    server, owner = await begun(on)
    card = await on.run(owner)
    await until(lambda: while_it_types(on))
    server.signal(signal.SIGTERM)
    done = await server.ended(seconds=60)
    assert done.code == 0, done.err
    assert "已完成" in card.words
    assert ANSWER in card.words
    assert on.sent == {"11": [ANSWER]}


async def test_sigterm_cuts_a_plan_off_and_its_card_says_so(on: Stage) -> None:
    async with ScriptedModel([Hang()]) as planner:
        server = await on.serve(PHONEDESK_PLANNER__BASE_URL=planner.url, PHONEDESK_PLANNER__NAME="scripted")
        owner = await on.owner(server)
        await owner.send("/plan 打开设置，再打开微信")
        card = await on.sees(owner, "打开设置，再打开微信")
        await until(lambda: planner.requests)
        server.signal(signal.SIGTERM)
        done = await server.ended(seconds=60)
    assert done.code == 0, done.err
    assert "服务停下了，这个计划没有做完" in card.words
