"""What follows from a person's answer, as a conversation over a real desk and a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from agent_core.loop.questions import no_sure_answer
from agent_core.ports import AnswerEvent, Event, Record, ReplyState
from agent_core.reply.choosing import decide
from agent_core.session import GateState, Planned, Question, Session
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.questions import question_card
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Incoming, Person
from bot.desk.actors import MessageRef, Role
from bot.desk.desk import Desk
from bot.desk.views import QuestionView
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from knowledge.learning import Learning
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from storage.people import People
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.bot.channels.chat.sender import PRIVATE, Drawer, Sender
from tests.support.shop import PHONE, Shop

SHIP = Entry(id="ship", question="几天能发货", answer="两天内")
RECORDS = (Record("ship", "两天内", "几天能发货", 0.6, source="embedded:ship"),)


@dataclass
class KnowledgeShop:
    shop: Shop
    desk: Desk
    store: EmbeddedKnowledge
    asked: int = 0

    async def sender(self, role: Role, lang: str = "zh") -> Sender:
        actor = await self.shop.person(role, f"{role.value} A")
        await People(self.shop.db).update(int(actor.id), lang=lang)
        return Sender(Conversation(self.desk, bot_name="desk_bot"), actor, Drawer(), lang)

    async def ask(
        self,
        words: str,
        contact: str = "11",
        records: tuple[Record, ...] = RECORDS,
        *,
        serial: str = PHONE,
        whole: bool = True,
    ) -> Question:
        """A run of this contact asks a person what to answer. Without ``whole`` a picture stands beside the words."""
        self.asked += 1
        self.shop.clock.time += timedelta(seconds=1)
        run_id = await Runs(self.shop.db).create(NewRun(f"QQ回复联系人{contact}", serial, options={"lang": "zh"}))
        assert run_id is not None
        await Runs(self.shop.db).begin_attempt(run_id, 1, serial=serial)
        session = Session(run_id=run_id, task="t", serial=serial, gate=GateState(contact=contact))
        planned = Planned(
            ledger_id=self.asked, fingerprint="f", asked=words, cluster=[words], query=words if whole else ""
        )
        question = no_sure_answer(session, planned, records)
        await StoredHuman(self.shop.db, hold_seconds=0).ask(session, question)
        await Runs(self.shop.db).park_attempt(run_id, 1)
        return question

    async def sent(self, question: Question) -> QuestionView:
        """The run sends what the person answered."""
        row = await Questions(self.shop.db).get(question.id)
        assert row is not None
        assert row.answer is not None
        told: dict[str, Any] = {"sent": row.answer["text"], "provenance": "person"}
        if row.answer["choice"]:
            told = {"sent": "两天内", "provenance": "knowledge", "record_id": "ship", "record_source": "embedded:ship"}
        event = AnswerEvent(
            question.data["ledger_id"],
            "qq",
            question.data["contact"],
            question.text,
            ReplyState.SENT,
            query=question.text,
            person=row.answered_by,
            **told,
        )
        learn = Learning(self.store).from_answer
        await StoredRuns(self.shop.db, learn=learn).event(row.run_id, Event("answer", event.data()))
        return await self.view(question)

    async def told(self, words: str) -> str:
        """What a customer who writes this gets without a person."""
        chosen = await decide(None, words, words, await self.store.retrieve(words))
        return chosen.text if chosen is not None else ""

    async def view(self, question: Question) -> QuestionView:
        view = await self.desk.questions.get(question.id)
        assert view is not None
        return view

    async def answers(self, *questions: Question) -> list[dict[str, Any] | None]:
        rows = [await Questions(self.shop.db).get(question.id) for question in questions]
        return [dict(row.answer) if row is not None and row.answer else None for row in rows]


@pytest.fixture
async def desk(shop: Shop) -> AsyncIterator[KnowledgeShop]:
    store = EmbeddedKnowledge(shop.db)
    await store.add(SHIP)
    yield KnowledgeShop(shop, Desk(replace(shop.desk.context, store=store)), store)
    await store.close()


@pytest.fixture
async def owner(desk: KnowledgeShop) -> Sender:
    return await desk.sender(Role.OWNER)


@pytest.fixture
async def operator(desk: KnowledgeShop, owner: Sender) -> Sender:
    return await desk.sender(Role.OPERATOR, "en")


def action(view: QuestionView, label: str) -> str:
    buttons = [button for row in question_card(view, texts("zh")).buttons for button in row]
    return next(button.action for button in buttons if button.label == label)


class TestToAnswerLikeThisAlways:
    async def test_a_picked_record_learns_the_customers_words_by_one_tap(
        self, desk: KnowledgeShop, owner: Sender
    ) -> None:
        question = await desk.ask("亲，啥时候寄？谢谢")
        await owner.press(f"q:{question.id}:0")
        view = await desk.sent(question)
        assert view.learnt is not None
        assert (view.learnt.question, view.learnt.alias_of, view.learnt.live) == ("啥时候寄？", "ship", False)
        said = await owner.press(action(view, "是"))
        assert said.startswith("(✓ 以后这样问也这样答（#ship）。)\n❓ 知识库没有确定的答案")
        assert await desk.told("请问，啥时候寄？") == "两天内"
        assert (await desk.view(question)).learnt is None
        assert await owner.press(action(view, "是")) == "(这一条已经处理过了。)"

    async def test_ones_own_answer_becomes_an_entry_by_one_tap(self, desk: KnowledgeShop, owner: Sender) -> None:
        question = await desk.ask("你家有彩虹绳没")
        await desk.desk.questions.answer(owner.actor, question.id, text="有的，9 元")
        view = await desk.sent(question)
        assert await desk.told("你家有彩虹绳没") == ""
        await owner.press(action(view, "是"))
        assert await desk.told("你家有彩虹绳没") == "有的，9 元"

    async def test_no_throws_it_away_and_can_be_taken_back(self, desk: KnowledgeShop, owner: Sender) -> None:
        question = await desk.ask("啥时候寄")
        await owner.press(f"q:{question.id}:0")
        view = await desk.sent(question)
        assert "这个回答没有放进知识库。" in await owner.press(action(view, "否"))
        assert await desk.store.pending() == ()
        await owner.tap("撤销")
        assert [entry.question for entry in await desk.store.pending()] == ["啥时候寄"]

    async def test_what_nobody_approves_waits(self, desk: KnowledgeShop, owner: Sender, operator: Sender) -> None:
        question = await desk.ask("啥时候寄")
        await operator.press(f"q:{question.id}:0")
        view = await desk.sent(question)
        assert "it needs owner" in await operator.press(action(view, "是"))
        assert [entry.question for entry in await desk.store.pending()] == ["啥时候寄"]
        assert await desk.told("啥时候寄") == ""

    async def test_what_was_changed_since_is_shown_before_it_is_approved(
        self, desk: KnowledgeShop, owner: Sender
    ) -> None:
        question = await desk.ask("你家有彩虹绳没")
        await desk.desk.questions.answer(owner.actor, question.id, text="有的")
        view = await desk.sent(question)
        assert view.learnt is not None
        await desk.store.edit(view.learnt.id, answer="没有了")
        said = await owner.press(action(view, "是"))
        assert said.startswith("(这一条被改过，请再看一遍。)")
        assert "答: 没有了" in said
        assert len(await desk.store.pending()) == 1

    async def test_a_wording_that_means_another_entry_by_now_is_refused(
        self, desk: KnowledgeShop, owner: Sender
    ) -> None:
        question = await desk.ask("啥时候寄")
        await owner.press(f"q:{question.id}:0")
        view = await desk.sent(question)
        await desk.store.add(Entry(id="other", question="啥时候寄", answer="三天"))
        said = await owner.press(action(view, "是"))
        assert "#other" in said
        assert len(await desk.store.pending()) == 1

    async def test_nothing_is_offered_if_the_entries_answer_nobody(self, desk: KnowledgeShop, owner: Sender) -> None:
        question = await desk.ask("啥时候寄")
        await owner.press(f"q:{question.id}:0")
        desk.desk = Desk(replace(desk.desk.context, provider="dify"))
        assert (await desk.sent(question)).learnt is None


class TestToAnswerOthersWhoAskAlike:
    async def test_the_others_are_told_of_and_offered_with_their_words(
        self, desk: KnowledgeShop, owner: Sender
    ) -> None:
        first, second = await desk.ask("怎么退货", "11"), await desk.ask("亲，怎么退货呀", "12")
        third, far = await desk.ask("请问怎么退货？", "13"), await desk.ask("怎么换货", "14")
        assert "另有 2 个还没回答的问题问得差不多" in await owner.press(f"ask:{first.id}")
        assert "问得差不多" not in await owner.press(f"ask:{far.id}")
        await desk.desk.questions.answer(owner.actor, far.id, choice="skip")
        said = await owner.press(f"q:{first.id}:0")
        assert said.startswith("(收到，已采用你的回答。)\n还有 2 个问题问得差不多，也这样答吗？\n回答: 两天内")
        assert "1. 12: 亲，怎么退货呀" in said
        assert "2. 13: 请问怎么退货？" in said
        said = await owner.tap("答第 2 个")
        assert said.startswith("(已用同样的话回答 1 个。)\n还有 1 个问题")
        assert await desk.answers(second, third) == [None, {"choice": "record:0", "text": ""}]
        assert await owner.tap("答第 1 个") == "(已用同样的话回答 1 个。)\n问得差不多的问题都有人回答了。"
        rows = [await Questions(desk.shop.db).get(question.id) for question in (first, second, third)]
        assert len({row.run_id for row in rows if row is not None}) == 3  # each goes on by its own run

    async def test_own_words_go_to_all_that_were_seen(self, desk: KnowledgeShop, owner: Sender) -> None:
        first, others = await desk.ask("怎么退货"), [await desk.ask("怎么退货呀", name) for name in ("12", "13")]
        card = MessageRef(PRIVATE, "55")
        await desk.desk.questions.set_card(first.id, card)
        person = Person(owner.actor.user_id, owner.actor.name, "zh")
        reply = Incoming("reply", person, PRIVATE, "r1", "今天就给您退", message_id="56", reply_to=card)
        said = await owner.hear(reply)
        assert said.startswith("收到，已采用你的回答。\n还有 2 个问题问得差不多，也这样答吗？\n回答: 今天就给您退")
        await owner.tap("2 个都这样答")
        assert await desk.answers(*others) == [{"choice": "", "text": "今天就给您退"}] * 2

    async def test_all_are_not_answered_if_there_is_one_more_by_now(self, desk: KnowledgeShop, owner: Sender) -> None:
        first, others = await desk.ask("怎么退货"), [await desk.ask("怎么退货呀", name) for name in ("12", "13")]
        await owner.press(f"q:{first.id}:0")
        new = await desk.ask("请问怎么退货", "15")
        said = await owner.tap("2 个都这样答")
        assert said.startswith("(问题有变化，请再看一遍。)\n还有 3 个问题")
        assert await desk.answers(*others, new) == [None] * 3
        await owner.tap("3 个都这样答")
        assert None not in await desk.answers(*others, new)

    async def test_a_record_that_the_other_was_not_offered_goes_as_words(
        self, desk: KnowledgeShop, owner: Sender
    ) -> None:
        first, other = await desk.ask("怎么退货"), await desk.ask("怎么退货呀", "12", records=())
        await owner.press(f"q:{first.id}:0")
        await owner.tap("答第 1 个")
        assert await desk.answers(other) == [{"choice": "", "text": "两天内"}]

    async def test_skipping_says_nothing_for_others(self, desk: KnowledgeShop, owner: Sender) -> None:
        first, other = await desk.ask("怎么退货"), await desk.ask("怎么退货呀", "12")
        skip = len(first.choices) - 1
        assert await owner.press(f"q:{first.id}:{skip}") == "(已跳过，这一条不再发送。)"
        assert "不是一段话" in await owner.press(f"same:{first.id}:{other.id}")
        assert await desk.answers(other) == [None]

    async def test_the_same_contact_is_not_told_twice(self, desk: KnowledgeShop, owner: Sender) -> None:
        first = await desk.ask("怎么退货")
        await desk.ask("怎么退货呀")
        assert "也这样答" not in await owner.press(f"q:{first.id}:0")

    async def test_only_what_one_may_see(self, desk: KnowledgeShop, owner: Sender, operator: Sender) -> None:
        first, other = await desk.ask("怎么退货"), await desk.ask("怎么退货呀", "12", serial="S2")
        await People(desk.shop.db).update(int(operator.actor.id), serials=[PHONE])
        assert "ask nearly the same" not in await operator.press(f"q:{first.id}:0")
        await operator.press(f"same:{first.id}:{other.id}")
        assert await desk.answers(other) == [None]


async def test_customers_who_sent_pictures_are_not_answered_together(desk: KnowledgeShop) -> None:
    words = "能换新的吗？\n[图片]"
    first = await desk.ask(words, "11", whole=False)
    await desk.ask(words, "12", whole=False)
    assert await desk.desk.questions.alike(first.id) == []
    second = await desk.ask("能换新的吗？", "13")
    await desk.ask("能换新的吗", "14")
    assert [view.question.data["contact"] for view in await desk.desk.questions.alike(second.id)] == ["14"]
