"""Thumbs and the answer log through the whole channel: a real desk behind it, the stand-in server before it."""

from __future__ import annotations

from agent_core.ports import AnswerEvent, Event, ReplyState
from agent_core.session import ReplyRecord, Session, Status
from bot.desk.actors import Role
from scheduler.runs.executor import StoredRuns
from storage.runs import NewRun, Runs
from tests.bot.channels.telegram.shop import Shop
from tests.support.telegram import picture

CHAT = {"channel": "telegram", "chat_id": "11", "thread_id": "", "kind": "private"}
SENT = AnswerEvent(
    1, "qq", "11", "怎么退货？", ReplyState.SENT, "退货", (), "七天内可退", "knowledge", "r7", "embedded:r7", 0.9
)


async def run_that_replies(at: Shop) -> None:
    """As the agent and the worker tell of it: the outcome's event is there before the row is closed."""
    store = StoredRuns(at.db)
    run_id = await Runs(at.db).create(NewRun("QQ回复联系人11", "S1", options={"lang": "zh"}, chat=CHAT, begun=True))
    assert run_id is not None
    reply = ReplyRecord(contact="11", question=SENT.question, text=SENT.sent, provenance="knowledge", delivered=True)
    await store.save(Session(run_id=run_id, task="t", replies=[reply], status=Status.SUCCEEDED, message="已回复"))
    await store.event(run_id, Event("answer", SENT.data()), picture=picture())
    await store.event(run_id, Event("reply", reply.model_dump()))
    await store.event(run_id, Event("outcome", {"status": "succeeded", "message": "已回复"}))
    await Runs(at.db).end_attempt(run_id, 1, status="succeeded", message="已回复")


async def test_thumbs_on_the_outcome(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    async with tg_shop.adapter():
        await owner.send("/answers 未答")
        await owner.sees(lambda chat: chat.saying("没有知识库答不上的问题"))
        await run_that_replies(tg_shop)
        card = await owner.sees(lambda chat: chat.saying("已完成")[-1])
        await owner.sees(lambda chat: card.buttons == [["👍", "👎"]])
        assert (await owner.tap(card, "👎")).text == "已评价：👎"
        await owner.sees(lambda chat: card.buttons == [["👍", "👎 ✓"]])
        assert "评价：👎 Person 11" in card.words
        assert card.content.media == "photo"
        advice = await owner.sees(lambda chat: chat.saying("可以这样改")[0])
        assert "/kb 修改 r7 答：" in advice.words
        assert (await owner.tap(card, "👎")).text == "已取消评价。"
        await owner.sees(lambda chat: card.buttons == [["👍", "👎"]])
        assert len(owner.chat.saying("已完成")) == 1


async def test_pages_are_turned_in_place(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    store = StoredRuns(tg_shop.db)
    for number in range(1, 13):
        event = AnswerEvent(number, "qq", "12", f"能不能在手机壳上面刻字 {number}", ReplyState.SKIPPED)
        await store.event("r", Event("answer", event.data()), picture=picture())
    async with tg_shop.adapter():
        await owner.send("/answers 未完成 能不能在手机壳上面刻字")  # too long for a button
        page = await owner.sees(lambda chat: chat.saying("共 12 条")[0])
        assert page.buttons == [["#12", "#11", "#10", "#9", "#8"], ["#7", "#6", "#5", "#4", "#3"], ["更早的 »"]]
        await owner.tap(page, "更早的 »")
        await owner.sees(lambda chat: page.buttons == [["#2", "#1"], ["« 更新的"]])
        await owner.tap(page, "#2")
        entry = await owner.sees(lambda chat: chat.saying("问答记录 #2")[0])
        assert entry.buttons == [["发送后画面"], ["补充答案"]]
        await owner.tap(entry, "发送后画面")
        shot = await owner.sees(lambda chat: chat.saying("问答 #2 · 发送后")[0])
        assert shot.content.media == "photo"
        await owner.tap(entry, "补充答案")
        await owner.sees(lambda chat: chat.saying("/kb 添加 问：能不能在手机壳上面刻字 2")[0])
