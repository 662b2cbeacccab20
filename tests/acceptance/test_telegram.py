"""The product over Telegram, as its people use it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from PIL import Image

from simulator.telegram import FakeUser
from tests.acceptance.stage import (
    ANSWER,
    CANDIDATE,
    OPEN_QUESTION,
    QUESTION,
    QUICK_TASK,
    SOURCE,
    TASK,
    WITH_OCR,
    Server,
    Stage,
    asked,
    known_answers,
    stage,
)
from tests.support.model_server import Hang

PUBLIC = "https://desk.example.com"
Way = Callable[[Stage], Awaitable[Server]]


async def by_polling(on: Stage) -> Server:
    return await on.serve(**WITH_OCR)


async def by_webhook(on: Stage) -> Server:
    server = await on.serve(
        PHONEDESK_TELEGRAM__MODE="webhook",
        PHONEDESK_TELEGRAM__WEBHOOK_URL=PUBLIC,
        PHONEDESK_TELEGRAM__WEBHOOK_SECRET="a-secret-of-the-test",
    )
    on.telegram.proxies[PUBLIC] = server.url
    return server


async def meets_a_stranger(on: Stage) -> None:
    stranger = on.telegram.user(99, "Stranger", "en")
    for text in ("hello", f"/run {TASK}", "/status", "/start WRONGCODE"):
        await stranger.send(text)
    await on.sees(stranger, "This pairing code is wrong")  # the last of the four has been dealt with
    assert [m.words for m in stranger.chat.from_bot if "paired members only" in m.words] != []
    assert len(stranger.chat.from_bot) == 2, "one line for all they wrote, one for the wrong code"
    assert await on.runs() == []


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("way", [by_polling, by_webhook])
async def test_a_customer_is_answered_while_the_owner_watches_one_card(on: Stage, way: Way) -> None:
    server = await way(on)
    owner = await on.owner(server)
    await meets_a_stranger(on)

    on.brain.delay = 0.06  # so that there is something to watch: the chat's pace is one change in 1.2 s
    card = await on.run(owner)
    shown = await on.shows(owner, card, "已完成")

    # One card: the message that answered /run, changed in place, with the phone's screen in it.
    assert [m for m in owner.chat.from_bot if f"任务：{TASK}" in m.words] == [card]
    assert len(card.edits) >= 3
    assert any(edit.content.media == "photo" for edit in card.edits)
    assert not any("已完成" in edit.content.text + edit.content.caption for edit in card.edits[:-1])
    assert card.buttons == [["👍", "👎"], ["🎬 回放"]]
    assert QUESTION in shown
    assert ANSWER in shown
    assert "依据：“下单后多久发货？”" in shown  # the entry's question, which a person knows, not its id
    # What the customer has: the knowledge base's own words, once, and nobody else has anything.
    assert on.sent == {"11": [ANSWER]}
    assert ANSWER in known_answers()
    assert on.report["chats"]["11"][-1]["text"] == ANSWER
    assert on.report["ai_asked"] == on.report["pay_taps"] == []
    on.at_rest()
    # What is written down.
    [run] = await on.runs()
    assert (run.status, run.task) == ("succeeded", TASK)
    [answer] = await on.answers()
    assert (answer.contact, answer.question, answer.sent) == ("11", QUESTION, ANSWER)
    assert (answer.provenance, answer.record_source) == ("knowledge", SOURCE)
    [row] = await on.ledger(run.id)
    assert (row.state, row.text) == ("sent", ANSWER)
    polled = any(call.method == "getUpdates" for call in on.telegram.world.calls)
    assert polled is (way is by_polling)
    if way is by_webhook:
        await refuses_a_forged_update(on, server, owner)


async def refuses_a_forged_update(on: Stage, server: Server, owner: FakeUser) -> None:
    message = {
        "message_id": 9000,
        "date": 1,
        "chat": owner.chat.json(),
        "from": owner.member.json(),
        "text": "/run 打开微信",
    }
    async with aiohttp.ClientSession() as session:
        for headers in ({}, {"X-Telegram-Bot-Api-Secret-Token": "guess"}):
            forged = {"update_id": 777_777, "message": message}
            async with session.post(f"{server.url}/telegram/webhook", json=forged, headers=headers) as response:
                assert response.status == 403
    await owner.send("/whoami")
    await on.sees(owner, "身份")  # what came after it has been dealt with
    assert len(await on.runs()) == 1


async def test_stop_by_the_button_frees_the_phone_within_two_seconds(on: Stage) -> None:
    server = await on.serve()
    owner = await on.owner(server)
    on.brain.instead["GET_KNOWLEDGE_DATA"] = Hang()
    card = await on.run(owner)
    await on.shows(owner, card, "第 2 步")  # the model is asked for the third, and says nothing
    await owner.send("/status")
    assert "使用中" in (await on.sees(owner, "现状")).words

    tapped = datetime.now(UTC)
    toast = await owner.tap(card, "停止")
    assert toast.text == "正在停止。"
    await on.shows(owner, card, "已停止")
    shown = datetime.now(UTC)
    [run] = await on.runs()
    assert run.status == "stopped"
    assert run.ended_at is not None
    assert run.ended_at - tapped < timedelta(seconds=2)
    assert shown - tapped < timedelta(seconds=5)  # the chat's pace of edits comes on top
    assert card.buttons == [["🎬 回放"]]
    on.untouched_by_words()
    on.at_rest()

    on.brain.instead.clear()
    following = await on.run(owner, QUICK_TASK)
    await on.shows(owner, following, "已完成")
    assert on.report["opened"][-1] == "com.android.settings"
    await owner.send("/stop")
    await on.sees(owner, "没有可以停止的任务")


@pytest.fixture
async def unanswerable(tmp_path: Path) -> AsyncIterator[Stage]:
    """Contact 11 has asked what the base has no sure answer to."""
    async with stage(tmp_path, asked(OPEN_QUESTION)) as made:
        yield made


async def test_a_question_is_answered_in_own_words_and_who_comes_later_is_told(unanswerable: Stage) -> None:
    on = unanswerable
    server = await on.serve()
    owner = await on.owner(server)
    colleague = await on.colleague()
    group = on.telegram.group(-1001, "客服群")
    card = await on.run(owner, chat=group)
    question = await on.sees(owner, "知识库没有确定的答案", chat=group)
    assert OPEN_QUESTION in question.words
    assert CANDIDATE in question.words
    assert question.content.media == "photo"
    assert on.sent == {}

    skip = question.button("跳过").data
    words = "可以带上高铁的，<放心> & 谢谢！"
    await owner.send(words, chat=group, reply_to=question)
    await on.sees(owner, "已采用你的回答", chat=group)
    late = await colleague.tap_stale(question, skip)
    assert late.alert
    assert "店主已经先回答了" in late.text
    shown = await on.shows(owner, card, "已完成")

    assert on.sent == {"11": [words]}
    assert words in shown
    assert "由店主撰写" in shown
    assert f"店主已回答：{words}" in question.words
    [answer] = await on.answers()
    assert (answer.sent, answer.provenance, answer.person) == (words, "person", "店主")
    on.at_rest()

    assert "以后这样问也这样答？" in question.words
    assert question.buttons == [["是", "否"]]
    assert (await colleague.tap(question, "是")).alert  # an operator proposes, an owner approves
    await owner.tap(question, "是")
    await owner.sees(lambda _: "✓ 以后这样问也这样答" in question.words)
    assert question.buttons == []


@pytest.mark.rotating(parts=2)
async def test_a_question_is_answered_by_the_button_of_a_candidate(unanswerable: Stage) -> None:
    on = unanswerable
    server = await on.serve()
    owner = await on.owner(server)
    card = await on.run(owner)
    question = await on.sees(owner, "知识库没有确定的答案")
    assert question.buttons[:1] == [["1. 充电宝能带上飞机吗？"]]
    await owner.tap(question, "自己写")
    prompt = await owner.sees(lambda chat: next((m for m in chat.from_bot if m.force_reply), None))
    assert prompt is not None
    assert (await owner.tap(question, "1. ")).text == "收到，已采用你的回答。"
    await on.shows(owner, card, "已完成")
    assert on.sent == {"11": [CANDIDATE]}
    [answer] = await on.answers()
    assert (answer.sent, answer.provenance, answer.record_id) == (CANDIDATE, "knowledge", "powerbank-flight")


@pytest.mark.rotating(parts=2)
async def test_a_question_is_skipped_and_what_else_can_be_asked_meanwhile(unanswerable: Stage) -> None:
    on = unanswerable
    server = await on.serve()
    owner = await on.owner(server)
    card = await on.run(owner)
    question = await on.sees(owner, "知识库没有确定的答案")
    await owner.send("/status")
    status = await on.sees(owner, "现状")
    assert "等待人工" in status.words
    assert OPEN_QUESTION in status.words
    await owner.send("/screen")
    screen = await owner.sees(lambda chat: next((m for m in chat.from_bot if m.caption.startswith("手机屏幕")), None))
    assert screen is not None
    with Image.open(io.BytesIO(screen.photo or b"")) as picture:
        assert picture.format == "JPEG"
        assert picture.height / picture.width == pytest.approx(2400 / 1080, rel=0.01)
    await owner.send("/help")
    assert "/schedule" in (await on.sees(owner, "使用说明")).words
    await owner.send("/whoami")
    assert "管理员" in (await on.sees(owner, str(owner.id))).words

    await owner.tap(question, "跳过")
    shown = await on.shows(owner, card, "已由人工跳过")
    assert "已完成" in shown
    on.untouched_by_words()
    [run] = await on.runs()
    [row] = await on.ledger(run.id)
    assert row.state == "skipped"
    # The same words of the customer are not brought up again.
    again = await on.run(owner)
    await on.shows(owner, again, "此前已跳过")
    on.untouched_by_words()
