"""The answer log in the chat, over the real desk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agent_core.ports import AnswerEvent, Event, Record, ReplyState
from agent_core.session import ReplyRecord, Session, Status
from bot.channels.chat.answers import AnswersCommand, read_asking
from bot.channels.chat.run_cards import run_card
from bot.channels.chat.texts import texts
from bot.desk.actors import MessageRef, Role
from bot.desk.desk import Desk
from bot.desk.views import AnswersAsked
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import make_entry
from scheduler.runs.executor import StoredRuns
from storage.answers import Answers
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.bot.channels.chat.member import Member, member
from tests.support.shop import PHONE, Shop

SENT = AnswerEvent(
    1, "qq", "11", "怎么退货？", ReplyState.SENT, "退货",
    [Record("r7", "七天内可退", "退货", 0.914, True, "embedded:r7"), Record("r8", "换货找客服", "换货", 0.4)],
    "七天内可退", "knowledge", "r7", "embedded:r7", 0.914,
)  # fmt: skip


@pytest.fixture
async def owner(shop: Shop) -> Member:
    return await member(shop, Role.OWNER, "Desk A")


async def tell(shop: Shop, event: AnswerEvent, run_id: str = "r1", picture: bytes | None = None) -> str:
    shop.clock.move(minutes=1)
    await StoredRuns(shop.db).event(run_id, Event("answer", event.data()), picture=picture)
    return next(str(row.id) for row in await Answers(shop.db).find() if row.ledger_id == event.ledger_id)


async def many(shop: Shop, count: int) -> None:
    for number in range(1, count + 1):
        await tell(shop, AnswerEvent(number, "qq", f"客户{number}", f"问题{number}", ReplyState.SKIPPED))


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", AnswersCommand()),
        ("今天", AnswersCommand(AnswersAsked(since="today"))),
        ("Week bad", AnswersCommand(AnswersAsked(since="week", rating=-1))),
        ("差评 7天", AnswersCommand(AnswersAsked(since="7d", rating=-1))),
        ("好评 2026-11-01", AnswersCommand(AnswersAsked(since="2026-11-01", rating=1))),
        ("昨天", AnswersCommand(AnswersAsked(since="yesterday", until="yesterday"))),
        ("未完成 12h", AnswersCommand(AnswersAsked(since="12h", unanswered=True))),
        ("11", AnswersCommand(AnswersAsked(words="11"))),
        ("退货 多久 今天", AnswersCommand(AnswersAsked(words="退货 多久", since="today"))),
        ("联系人：退货", AnswersCommand(AnswersAsked(contact="退货"))),
        ("#12", AnswersCommand(entry="12")),
        ("未答", AnswersCommand(groups=True)),
        ("unanswered week", AnswersCommand(AnswersAsked(since="week"), groups=True)),
    ],
)
def test_what_can_be_asked_for(rest: str, read: AnswersCommand) -> None:
    assert read_asking(rest) == read


async def test_nothing_there_yet(owner: Member) -> None:
    assert (await owner.say("/answers")).startswith("还没有问答记录。\n可以写：/answers 今天")
    assert "没有符合条件的问答。" in await owner.say("/answers 今天 差评")
    assert "这段时间没有知识库答不上的问题。" in await owner.say("问答记录 未答")
    assert "没看懂这个时间" in await owner.say("/answers 9999-12-31")


async def test_pages_of_ten_with_buttons(shop: Shop, owner: Member) -> None:
    await many(shop, 23)
    said = await owner.say("/answers")
    assert said.startswith(
        "问答记录\n共 23 条\n#23: 03-01 17:23 · 客户23 · ⏭ 已跳过\n问题23\n#22: 03-01 17:22 · 客户22"
    )
    assert [button.label for button in owner.buttons] == [*(f"#{n}" for n in range(23, 13, -1)), "更早的 »"]
    said = await owner.tap(owner.action("更早的"))
    assert "#13: " in said
    assert owner.said.messages[0].replaces == MessageRef(owner.chat, "77")
    assert [button.label for button in owner.buttons[-2:]] == ["« 更新的", "更早的 »"]
    await owner.tap(owner.action("更早的"))
    assert [button.label for button in owner.buttons] == ["#3", "#2", "#1", "« 更新的"]
    assert "#13: " in await owner.tap(owner.action("更新的"))
    assert "#23: " in await owner.tap(owner.action("更新的"))
    assert [button.label for button in owner.buttons][-1] == "更早的 »"


async def test_the_pages_keep_what_was_asked_for(shop: Shop, owner: Member) -> None:
    await many(shop, 12)
    for number in (2, 7):
        await tell(shop, AnswerEvent(100 + number, "qq", "11", "别的", ReplyState.SENT, sent="好"))
    assert "共 12 条" in await owner.say("/answers 问题")
    assert "共 12 条" in await owner.tap(owner.action("更早的"))
    assert "#14" not in [button.label for button in owner.buttons]
    long = "未完成 问题" + " 今天" * 20
    assert "共 12 条" in await owner.say(f"/answers {long}")
    older = owner.action("更早的")
    assert len(older.encode()) <= 64
    assert "共 12 条" in await owner.tap(older, subject=f"/answers {long}")
    assert "共 12 条" in await owner.tap(older, subject=f"问答记录：{long}")
    assert "请再发一次 /answers" in await owner.tap(older)


async def test_one_answer_with_its_pictures(shop: Shop, owner: Member) -> None:
    await tell(shop, replace(SENT, state=ReplyState.PLANNED, sent="", provenance=""), picture=b"before")
    await tell(shop, SENT, picture=b"after")
    await owner.say("/answers 11")
    said = await owner.tap(owner.action("#1"))
    assert said == (
        "问答记录 #1\n时间: 2026-03-01 17:01\n联系人: 11 · QQ\n客户 11 问: 怎么退货？\n查询: 退货\n已发送: 七天内可退\n"
        "状态: ✅ 已发送\n依据: “退货” · 得分 0.91\n记录 2（0.40）: 换货找客服\n"
        "[👍]\n[👎]\n[发送前画面]\n[发送后画面]"
    )
    assert owner.said.messages[0].replaces is None
    before, after = owner.action("发送前"), owner.action("发送后")
    assert await owner.tap(before) == "问答 #1 · 发送前\n<picture>"
    assert owner.said.messages[0].card.picture == b"before"
    await owner.tap(after)
    assert owner.said.messages[0].card.picture == b"after"
    assert await owner.say("/answers #1") == said
    assert "没有问答记录 #9" in await owner.say("/answers #9")
    await tell(shop, replace(SENT, ledger_id=2))
    assert await owner.tap("shot:2:after") == "(这张图片没有留下，或已按保存期限删除。)"


async def test_thumbs_on_an_answer(shop: Shop, owner: Member) -> None:
    await tell(shop, SENT)
    await owner.say("/answers #1")
    up, down = owner.action("👍"), owner.action("👎")
    said = await owner.tap(up)
    assert said.startswith("(已评价：👍)\n问答记录 #1")
    assert "评价: 👍 Desk A" in said
    assert [button.label for button in owner.buttons] == ["👍 ✓", "👎"]
    assert owner.said.messages[0].replaces == MessageRef(owner.chat, "77")
    assert (await owner.tap(up)).startswith("(已取消评价。)")
    said = await owner.tap(down, key="a tap")
    assert said.startswith("(已评价：👎)")
    assert "记下了。可以这样改：\n改这条知识（复制，写上新答案发给我）\n/kb 修改 r7 答：（在这里写答案）\n" in said
    assert said.endswith("/kb 添加 问：怎么退货？\n答：（在这里写答案）")
    assert (await owner.tap(down, key="a tap")).startswith("(已评价：👎)")  # handed in again
    assert "👎" in await owner.say("/answers 差评")
    viewer = await member(shop, Role.VIEWER)
    await viewer.tap(down)
    assert viewer.said.alert


async def test_what_another_service_said_is_changed_there(shop: Shop, owner: Member) -> None:
    await tell(shop, replace(SENT, record_source="dify:returns.csv"))
    said = await owner.tap("rate:1:-1:entry")
    assert "这条答案来自 dify:returns.csv，请在那里修改。" in said
    assert "/kb 修改" not in said


async def ended_run(shop: Shop, *events: AnswerEvent) -> str:
    run_id = await Runs(shop.db).create(NewRun("QQ回复联系人11", PHONE, begun=True))
    assert run_id is not None
    session = Session(run_id=run_id, task="QQ回复联系人11", serial=PHONE, status=Status.SUCCEEDED)
    for event in events:
        reply = ReplyRecord(
            contact="11", question=event.question, text=event.sent, provenance=event.provenance, delivered=True
        )
        session.replies.append(reply)
        await tell(shop, event, run_id)
    await StoredRuns(shop.db).save(session)
    await Runs(shop.db).end_attempt(run_id, 1, status="succeeded", message="已回复")
    return run_id


async def test_thumbs_on_the_card_of_a_run(shop: Shop, owner: Member) -> None:
    run_id = await ended_run(shop, SENT)
    run = await shop.desk.runs.get(run_id)
    assert run is not None
    card = run_card(run, texts("zh"), now=shop.clock())
    assert [[(button.label, button.action) for button in row] for row in card.buttons] == [
        [("👍", "rate:1:1"), ("👎", "rate:1:-1")]
    ]
    said = await owner.tap("rate:1:1")
    assert said.startswith("(已评价：👍)\n✅ 已完成\n任务: QQ回复联系人11")
    assert said.endswith("评价: 👍 Desk A\n[👍 ✓]\n[👎]")
    assert owner.said.messages[0].replaces == MessageRef(owner.chat, "77")
    assert [button.style for button in owner.buttons] == ["success", ""]
    said = await owner.tap("rate:1:-1")
    assert [message.card.title for message in owner.said.messages] == ["✅ 已完成", "记下了。可以这样改："]
    assert "评价: 👎 Desk A" in said


async def test_thumbs_for_each_of_several_replies(shop: Shop, owner: Member) -> None:
    await ended_run(shop, SENT, replace(SENT, ledger_id=2, question="几天到", sent="三天"))
    said = await owner.tap("rate:2:1")
    assert said.endswith("评价 2: 👍 Desk A\n[1 👍]\n[1 👎]\n[2 👍 ✓]\n[2 👎]")


async def test_what_nobody_has_answered_yet_says_so_and_how_to_answer(shop: Shop, owner: Member) -> None:
    run_id = await Runs(shop.db).create(NewRun("t", PHONE, begun=True))
    assert run_id is not None
    await tell(shop, replace(SENT, state=ReplyState.PLANNED, sent=""), run_id)
    assert "⏳ 准备中" in await owner.say("/answers"), "a run is at it"
    payload = {"id": "q1", "kind": "no_sure_answer", "text": "?", "free_text": True, "data": {"contact": "11"}}
    await Questions(shop.db).ask("q1", run_id=run_id, kind="no_sure_answer", payload=payload)
    assert "❓ 等人回答" in await owner.say("/answers")
    assert "❓ 等人回答\n要回答：/ask" in await owner.tap("answer:1")
    await Runs(shop.db).park_attempt(run_id, 1)
    await Questions(shop.db).answer("q1", {"text": "可以"}, by="Desk A")
    assert "⏳ 排队等着发送" in await owner.say("/answers")
    await Runs(shop.db).request_stop(run_id)
    assert "⏹ 没有回复" in await owner.say("/answers")


async def test_a_run_that_goes_on_has_no_thumbs_yet(shop: Shop) -> None:
    run_id = await Runs(shop.db).create(NewRun("t", PHONE, begun=True))
    assert run_id is not None
    await StoredRuns(shop.db).save(Session(run_id=run_id, task="t", replies=[]))
    run = await shop.desk.runs.get(run_id)
    assert run is not None
    assert [button.label for row in run_card(run, texts("zh"), now=shop.clock()).buttons for button in row] == [
        "停止",
        "看屏幕",
        "暂停",
    ]


async def test_what_the_knowledge_base_had_no_answer_to(shop: Shop, owner: Member) -> None:
    await tell(shop, AnswerEvent(1, "qq", "11", "你好，能刻字吗", ReplyState.SKIPPED))
    await tell(
        shop,
        AnswerEvent(2, "qq", "12", "运费\n多少", ReplyState.SENT, sent="包邮", provenance="person", person="Desk A"),
    )
    await tell(shop, AnswerEvent(3, "qq", "12", "能刻字？", ReplyState.FAILED))
    assert await owner.say("/answers 未答") == (
        "知识库没有答上的问题\n#1: 问过 2 次 · 最近 03-01 17:03 · 来自 12、11\n能刻字？\n"
        "#2: 问过 1 次 · 最近 03-01 17:02 · 来自 12\n运费 多少\n人工答复: 包邮\n[补充答案 1]\n[补充答案 2]"
    )
    second = owner.action("补充答案 2")
    assert await owner.tap(owner.action("补充答案 1")) == (
        "复制下面这段，写好答案后发给我，这个问题就进知识库：\n/kb 添加 问：能刻字？\n答：（在这里写答案）"
    )
    assert owner.said.messages[0].card.lines[0].kind == "code"
    assert (await owner.tap(second)).endswith("/kb 添加 问：运费 多少\n答：包邮")


@pytest.fixture
async def store(shop: Shop) -> AsyncIterator[EmbeddedKnowledge]:
    """The shop's own entries, at the desk."""
    base = EmbeddedKnowledge(shop.db)
    shop.desk = Desk(replace(shop.desk.context, store=base))
    yield base
    await base.close()


async def test_what_has_an_entry_by_now_is_not_to_be_added(shop: Shop, store: EmbeddedKnowledge, owner: Member) -> None:
    for number, asked in enumerate(("能刻字吗", "运费多少", "几天到"), start=1):
        await tell(shop, AnswerEvent(number, "qq", "11", asked, ReplyState.SKIPPED))
    await store.add(make_entry(id="live1", question="刻字", answer="不能", aliases=["能刻字吗？"]))
    await store.add(make_entry(id="waits1", question="运费多少", answer="包邮", live=False))
    said = await owner.say("/answers 未答")
    assert said.endswith("[补充答案 1]\n[看条目 2]\n[看条目 3]")
    assert "有待审的条目: 运费多少" in said
    assert "已有条目: 刻字" in said
    assert (await owner.tap(owner.action("看条目 3"))).startswith("#live1\n问题: 刻字")
    said = await owner.tap("kbhow:1")  # of a list from before
    assert said == "已有条目\n#live1: 刻字\n不能\n[看条目]"
    viewer = await member(shop, Role.VIEWER)
    assert "补充答案" not in await viewer.say("/answers 未答")


async def test_advice_is_such_as_the_role_can_follow(shop: Shop, store: EmbeddedKnowledge, owner: Member) -> None:
    await store.add(make_entry(id="r7", question="退货", answer="七天内可退"))
    await tell(shop, SENT)
    operator = await member(shop, Role.OPERATOR)
    said = await operator.tap("rate:1:-1:entry")
    assert "这条答案来自条目 #r7，由管理员修改" in said
    assert "/kb 修改" not in said
    assert "提交一条答案，由管理员通过: /kb 添加" not in said
    assert "或者给这种问法提交一条答案，由管理员通过\n/kb 添加 问：怎么退货？" in said
    await store.edit("r7", aliases=["怎么退货"])
    await operator.tap("rate:1:-1:entry")
    said = await operator.tap("rate:1:-1:entry")
    assert "/kb 添加" not in said  # it would be refused: the entry has these words
    await owner.tap("rate:1:-1:entry")
    assert "/kb 修改 r7 答：" in await owner.tap("rate:1:-1:entry")


async def test_a_button_of_nonsense(shop: Shop, owner: Member) -> None:
    await tell(shop, SENT)
    for action in ("rate:1:5", "rate:", "rate:9:1", "answer:x", "shot:9:before", "kbhow:9"):
        await owner.tap(action)
        assert owner.said.toast
        assert owner.said.messages == ()
