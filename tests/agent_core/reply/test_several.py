"""Several questions, long answers, and messages that are no text: each is answered, asked about, or left, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_core.ports import Record, ReplyState
from agent_core.reply.planning import in_parts
from agent_core.session import Answer, QuestionKind, Session, Status
from agent_core.settings import AgentSettings, new_session
from agent_core.texts import Lang
from simulator.phone.core import UPDATED
from simulator.phone.scenario import ContactPart, EventPart, MessagePart, PhonePart, Scenario
from simulator.phone.world import ContactKind, Kind
from tests.agent_core.reply.dying import Killed, Reaper, mortal
from tests.support.lab import ANSWER, ASK, ASK_INVOICE, FINISH, INVOICE, TASK, Lab, do, lab
from tests.support.model_server import ScriptedModel

pytestmark = pytest.mark.rotating(parts=3)

SHIP, BILL = "请问几天能发货？", "能开发票吗？"
LONG = "".join(f"第{n}步，打开我的订单，选择要处理的商品，再点申请售后。" for n in range(1, 40))
BOTH = {"发货": ANSWER, "发票": INVOICE}


def asked(*messages: str | MessagePart, events: list[EventPart] | None = None, **changes: Any) -> Scenario:
    history = [
        message if isinstance(message, MessagePart) else MessagePart(text=message, ago=60 - n, unread=True)
        for n, message in enumerate(messages)
    ]
    contacts = [ContactPart(name="11", number="20110011", history=history)]
    return Scenario(contacts=contacts, events=events or [], **changes)


async def reply(bench: Lab, *replies: Any, **options: Any) -> Session:
    async with ScriptedModel(replies) as model:
        return await bench.run(model, **options)


def states(bench: Lab) -> list[tuple[str, ReplyState]]:
    rows = bench.ledger._rows.values()  # type: ignore[attr-defined]  # the ledger in memory
    return [(row.question, row.state) for row in rows]


async def test_two_questions_get_two_answers_and_finish_waits_for_both() -> None:
    async with lab(asked(SHIP, BILL)) as bench:
        bench.knowledge.answers = BOTH
        await bench.open_chat()
        session = await reply(bench, ASK, FINISH, ASK_INVOICE, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER, INVOICE]}
        assert states(bench) == [(SHIP, ReplyState.SENT), (BILL, ReplyState.SENT)]
        refused = session.steps[1]
        assert refused.verdicts[0].policy == "customer_reply"


async def test_one_answer_to_both_is_sent_once() -> None:
    async with lab(asked(SHIP, BILL)) as bench:
        bench.knowledge.answers = {"发": ANSWER}
        await bench.open_chat()
        session = await reply(bench, ASK, ASK_INVOICE, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER]}
        assert states(bench) == [(SHIP, ReplyState.SENT), (BILL, ReplyState.SENT)]


async def test_one_of_two_is_skipped_by_a_person() -> None:
    """What nothing is known of may change the other question: a person answers that, too."""
    async with lab(asked(SHIP, BILL)) as bench:
        bench.knowledge.records = (Record(id="x", text="也许", score=0.2),)
        bench.knowledge.answers = {"发票": INVOICE}
        bench.people.answers = [Answer(choice="skip", by="店长"), Answer(choice="record:0", by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK, ASK_INVOICE, FINISH)
        assert [question.kind for question in bench.people.asked] == [QuestionKind.NO_SURE_ANSWER] * 2
        beside = [question.data["beside"] for question in bench.people.asked]
        assert beside == [[], [{"words": SHIP, "answer": None}]]  # what was skipped is shown as that
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [INVOICE]}
        assert states(bench) == [(SHIP, ReplyState.SKIPPED), (BILL, ReplyState.SENT)]


async def test_an_entry_that_a_person_chooses_for_two_questions_is_sent_once() -> None:
    async with lab(asked(SHIP, BILL)) as bench:
        bench.knowledge.records = (Record(id="x", text=ANSWER, score=0.3), Record(id="y", text="也许", score=0.2))
        bench.people.answers = [Answer(choice="record:0", by="店长"), Answer(choice="record:0", by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK, ASK_INVOICE, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        first, second = bench.people.asked
        assert [one["sent"] for one in first.data["candidates"]] == [False, False]
        assert [one["sent"] for one in second.data["candidates"]] == [True, False]  # the card says so
        assert bench.sent == {"11": [ANSWER]}
        assert states(bench) == [(SHIP, ReplyState.SENT), (BILL, ReplyState.SENT)]


ASK_LENGTH = do('do(action="GET_KNOWLEDGE_DATA", query="线多长")')
LENGTH = Record(id="length", text="有0.5米、1米和2米三种。", question="线多长", source="shop")
POWER = Record(id="power", text="有30W和65W两种。", question="功率多大", source="shop")


@pytest.mark.parametrize(
    ("second", "records", "offered"),
    [
        (POWER.question, (LENGTH, POWER), True),
        ("什么颜色好看", (LENGTH, POWER), False),  # nothing is sure of this one
        (POWER.question, (LENGTH, replace(POWER, text=LENGTH.text)), False),  # one answer to both
    ],
)
async def test_two_messages_that_each_have_a_sure_answer_are_answered_together_by_one_choice(
    second: str, records: tuple[Record, ...], offered: bool
) -> None:
    """Neither asks in a way that a program sees, so they are one question, to which no single record is the answer."""
    async with lab(asked("线多长", second)) as bench:
        bench.knowledge.records = records
        bench.people.answers = [Answer(choice="record:0" if offered else "skip", by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK_LENGTH, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        (question,) = bench.people.asked
        assert question.data["together"] == (2 if offered else 0)
        assert (question.choices[0].key == "card.together") is offered
        if not offered:
            assert bench.sent == {}
            return
        assert question.choices[0].value == "record:0"
        assert len(question.data["candidates"]) == len(question.choices) - 1
        assert bench.sent == {"11": [f"{LENGTH.text}\n{POWER.text}"]}
        (sent,) = session.replies
        assert (sent.provenance, sent.record_id, sent.person, sent.query) == (
            "composed",
            "length,power",
            "店长",
            "线多长",
        )


async def test_what_has_just_been_sent_is_not_offered_together_with_more() -> None:
    async with lab(asked("线多长？", "功率多大？", "线多长")) as bench:
        bench.knowledge.records = (LENGTH, POWER)
        bench.people.answers = [Answer(choice="record:0", by="店长"), Answer(choice="record:1", by="店长")]
        await bench.open_chat()
        await reply(bench, ASK_LENGTH, do('do(action="GET_KNOWLEDGE_DATA", query="功率多大")'), FINISH)
        assert bench.sent == {"11": [LENGTH.text, POWER.text]}
        assert not any(question.data["together"] for question in bench.people.asked[1:])


async def test_what_a_stopped_run_left_open_belongs_to_the_run_that_looks_later() -> None:
    async with lab(asked(SHIP)) as bench:
        stopped = await parked(bench)
        bench.phone.colleague("11", "今天就发。")
        later = await reply(bench, FINISH)
        assert later.run_id != stopped.run_id
        (row,) = await bench.ledger.recent(later.serial, "qq", "11")
        assert (row.state, row.run_id) == (ReplyState.PLANNED, later.run_id)


async def test_the_log_keeps_the_records_in_the_order_in_which_a_person_is_shown_them() -> None:
    async with lab(asked(SHIP)) as bench:
        found = [("a", "甲", 0.1), ("b", " ", 0.9), ("c", "丙", 0.3), ("d", "丁", 0.2), ("e", "戊", 0.4)]
        bench.knowledge.records = tuple(Record(id=id_, text=text, score=score) for id_, text, score in found)
        await bench.open_chat()
        await reply(bench, ASK, FINISH)
        (question,) = bench.people.asked
        shown = [candidate["id"] for candidate in question.data["candidates"]]
        told = next(event.data for event in bench.story.events if event.kind == "answer" and event.data.get("records"))
        assert shown == ["e", "c", "d"]
        assert [record["id"] for record in told["records"]] == ["e", "c", "d", "a", "b"]


async def test_a_query_of_other_words_is_replaced_by_the_customers() -> None:
    async with lab(asked(SHIP)) as bench:
        await bench.open_chat()
        session = await reply(bench, do('do(action="GET_KNOWLEDGE_DATA", query="保修期多长")'), FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.knowledge.queries == [SHIP]


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["full", "empty"])
async def test_a_new_question_while_the_second_answer_is_chosen(tree: str) -> None:
    async with lab(asked(SHIP, BILL)) as bench:
        bench.phone.set_tree(tree)
        bench.knowledge.answers = {**BOTH, "退": "七天内可以退。"}
        await bench.open_chat_by_url()

        def interrupt() -> None:
            if bench.sent:
                bench.knowledge.before = None
                bench.phone.receive("11", "不合适能退吗？")

        bench.knowledge.before = interrupt
        ask_return = do('do(action="GET_KNOWLEDGE_DATA", query="不合适能退吗")')
        session = await reply(bench, ASK, ASK_INVOICE, ASK_INVOICE, ask_return, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER, INVOICE, "七天内可以退。"]}


async def test_killed_between_two_answers_a_new_run_gives_the_second_alone() -> None:
    async with lab(asked(SHIP, BILL)) as bench:
        bench.knowledge.answers = BOTH
        await bench.open_chat()
        reaper = Reaper(at=3)  # kept awake, then the keyboard twice
        with pytest.raises(Killed):
            await reply(bench, ASK, ASK_INVOICE, device=mortal(bench.another(), reaper, frozenset({"keyboard"})))
        assert bench.sent == {"11": [ANSWER]}
        session = await reply(bench, ASK_INVOICE, FINISH, device=bench.another())
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER, INVOICE]}


# Long answers -----------------------------------------------------------------------------------------------------


def with_long_answer(bench: Lab) -> list[str]:
    bench.knowledge.records = (Record(id="l", text=LONG, question=SHIP, score=1.0, sure=True),)
    return in_parts(LONG, 500)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["full", "empty"])
async def test_a_long_answer_goes_out_in_parts(tree: str) -> None:
    async with lab(asked(SHIP)) as bench:
        bench.phone.set_tree(tree)
        parts = with_long_answer(bench)
        await bench.open_chat_by_url()
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert len(parts) == 3
        assert bench.sent == {"11": parts}
        assert session.replies[0].text == LONG
        assert bench.drafts == {}


@pytest.mark.rotating(parts=8)
@pytest.mark.parametrize("new_run", [False, True], ids=["next_attempt", "new_run"])
@pytest.mark.parametrize("at", range(1, 11))
async def test_a_long_answer_that_was_killed_is_finished(at: int, new_run: bool) -> None:
    """Before each call that changes the world from the first Send on."""
    async with lab(asked(SHIP)) as bench:
        parts = with_long_answer(bench)
        await bench.open_chat()
        reaper = Reaper(at=6 + 2 * at)
        device, ledger = bench.another(), bench.ledger
        acts = frozenset({"tap", "clear", "type", "keyboard"})
        writes = frozenset({"advance", "next_part", "plan"})
        killed = mortal(device, reaper, acts), mortal(ledger, reaper, writes), mortal(bench.story, reaper, frozenset())
        with pytest.raises(Killed):
            await reply(bench, ASK, FINISH, device=killed[0], ledger=killed[1], store=killed[2])
        saved = None if new_run else Session.model_validate_json(bench.story.saved)
        session = await reply(bench, *[_sensible] * 4, session=saved, device=bench.another())
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": parts}
        assert bench.drafts == {}


def _sensible(body: dict[str, Any]) -> str:
    told = str(body["messages"][-1])
    return FINISH if any(words in told for words in ("已经发送给", "已在聊天里看到")) else ASK


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(("choice", "sent"), [("send", 3), ("skip", 1)])
async def test_the_chat_changes_between_two_parts(choice: str, sent: int) -> None:
    """A person says whether the rest goes out; what was asked meanwhile is not lost."""
    late = EventPart(after_sent="11", contact="11", text=BILL)
    async with lab(asked(SHIP, events=[late])) as bench:
        parts = with_long_answer(bench)
        bench.knowledge.answers = {"发票": INVOICE}
        bench.people.answers = [Answer(choice=choice, by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK, ASK_INVOICE, FINISH)
        assert [question.kind for question in bench.people.asked] == [QuestionKind.REST_UNSENT]
        assert bench.sent["11"][:sent] == parts[:sent]
        if choice == "send":
            assert session.status is Status.SUCCEEDED, session.message
            assert bench.sent == {"11": [*parts, INVOICE]}
        else:
            assert session.status is Status.FAILED
            assert len(bench.sent["11"]) == 1


# What is no text --------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("tree", ["full", "empty"])
@pytest.mark.parametrize("kind", [Kind.IMAGE, Kind.VOICE, Kind.STICKER])
async def test_what_cannot_be_read_is_told_to_a_person_without_a_model(kind: Kind, tree: str) -> None:
    message = MessagePart(kind=kind, text="5" if kind is Kind.VOICE else "", ago=60, unread=True)
    async with lab(asked(message)) as bench:
        bench.phone.set_tree(tree)
        bench.people.answers = [Answer(text="收到图片了，马上看。", by="店长")]
        await bench.open_chat_by_url()
        session = await reply(bench, FINISH)
        assert [question.kind for question in bench.people.asked] == [QuestionKind.UNREADABLE]
        assert bench.people.asked[0].text.startswith("[")
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": ["收到图片了，马上看。"]}
        assert session.replies[0].provenance == "person"
        assert bench.knowledge.queries == []


async def test_what_was_sure_once_is_not_asked_for_again() -> None:
    async with lab(asked(SHIP, BILL)) as bench:
        bench.knowledge.answers = BOTH
        await bench.open_chat()
        session = await reply(bench, ASK, ASK_INVOICE, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER, INVOICE]}
        assert bench.knowledge.queries.count(SHIP) == 1


BESIDE: dict[str, dict[str, object]] = {
    "picture": {"kind": Kind.IMAGE},
    "voice": {"kind": Kind.VOICE, "text": "5"},
    "call": {"kind": Kind.CALL, "text": "未接听"},
    "quote": {"kind": Kind.QUOTE, "text": "急用", "quoted": "定制刻字的那款"},
}


@pytest.mark.parametrize("kind", BESIDE)
async def test_a_sure_answer_is_a_persons_to_give_if_something_stands_beside_the_question(kind: str) -> None:
    beside = MessagePart.model_validate({"ago": 10, "unread": True, **BESIDE[kind]})
    async with lab(asked(SHIP, beside)) as bench:
        bench.people.answers = [Answer(choice="record:0", by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        (question,) = bench.people.asked
        assert question.kind is QuestionKind.NO_SURE_ANSWER
        assert question.text.startswith(f"{SHIP}\n")
        assert "[" in question.text
        assert bench.people.pictures[0] is not None
        assert bench.sent == {"11": [ANSWER]}
        told = [event.data for event in bench.story.events if event.kind == "answer"][-1]
        assert (told["person"], told["query"]) == ("店长", "")  # nothing is learnt of it


async def test_a_sticker_beside_a_question_and_a_picture_that_was_answered_change_nothing() -> None:
    before = MessagePart(kind=Kind.IMAGE, ago=90)
    mine = MessagePart(side="me", text="您好", ago=80)
    async with lab(asked(before, mine, SHIP, MessagePart(kind=Kind.STICKER, ago=10, unread=True))) as bench:
        await bench.open_chat()
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert (bench.sent, bench.people.asked) == ({"11": [ANSWER]}, [])


async def test_a_question_longer_than_the_screen_is_scrolled_through() -> None:
    story = "".join(f"第{n}箱，之前买的那一批杯子少了好几只，说好要补的，" for n in range(1, 24)) + "几天能发货？"
    async with lab(asked(MessagePart(side="me", text="您好", ago=90), story)) as bench:
        bench.knowledge.answers = {"发货": ANSWER}
        bench.phone.set_tree("empty")
        await bench.open_chat_by_url()
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.people.asked == []
        assert bench.sent == {"11": [ANSWER]}


# Versions, numbers, people on the phone ---------------------------------------------------------------------------


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("choice", ["send", "skip"])
async def test_the_first_answer_in_an_unknown_version_is_confirmed(choice: str) -> None:
    async with lab(asked(SHIP, phone=PhonePart(app_versions={"qq": "99.1.0"}))) as bench:
        bench.people.answers = [Answer(choice=choice, by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK, FINISH)
        question = bench.people.asked[0]
        assert (question.kind, question.data["answer"]) == (QuestionKind.FIRST_DELIVERY, ANSWER)
        assert "99.1.0" in question.text
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == ({"11": [ANSWER]} if choice == "send" else {})
        if choice == "send":
            bench.phone.receive("11", "几天能发货？急")
            await reply(bench, ASK, FINISH)
            assert len(bench.people.asked) == 1  # it is known now
            assert len(bench.sent["11"]) == 2


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(("lang", "says"), [("en", "the first answer in QQ"), ("zh", "版本是第一次使用")])
async def test_after_an_update_the_first_answer_is_confirmed(lang: Lang, says: str) -> None:
    async with lab(asked(SHIP)) as bench:
        settings = AgentSettings(lang=lang)
        first, second = (new_session(TASK, bench.device.serial, settings, number="20110011") for _ in range(2))
        session = await reply(bench, ASK, FINISH, session=first)
        assert session.status is Status.SUCCEEDED, session.message
        assert (bench.people.asked, bench.sent) == ([], {"11": [ANSWER]})
        bench.phone.set_fault("app_update", "installed")
        bench.phone.receive("11", "几天能发货？急")
        bench.people.answers = [Answer(choice="send", by="店长")]
        session = await reply(bench, ASK, FINISH, session=second)
        assert session.status is Status.SUCCEEDED, session.message
        (question,) = bench.people.asked
        assert (question.kind, question.data["answer"]) == (QuestionKind.FIRST_DELIVERY, ANSWER)
        assert UPDATED in question.text
        assert says in question.text
        assert bench.sent == {"11": [ANSWER, ANSWER]}


async def test_a_contact_with_a_number_is_opened_by_it() -> None:
    async with lab(asked(SHIP)) as bench:
        session = await reply(bench, ASK, FINISH, number="20110011")
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER]}
        assert len(session.steps) == 3  # opened, asked, finished


async def test_a_number_of_somebody_else_does_not_make_it_their_chat() -> None:
    other = ContactPart(name="110", number="20110011", history=[MessagePart(text=SHIP, ago=60)])
    async with lab(Scenario(contacts=[other])) as bench:
        session = await reply(bench, ASK, max_steps=2, number="20110011")
        assert session.status is Status.FAILED
        assert bench.sent == {}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("choice", ["go_on", "stop"])
async def test_a_person_touches_the_phone_while_the_text_is_typed(choice: str) -> None:
    touch = EventPart(after_typed="11", do="person_tap", x=500, y=300)
    async with lab(asked(SHIP, events=[touch])) as bench:
        bench.people.answers = [Answer(choice=choice, by="店长")]
        await bench.open_chat()
        session = await reply(bench, ASK, ASK, FINISH)
        assert [question.kind for question in bench.people.asked] == [QuestionKind.PERSON_ON_PHONE]
        assert session.status is (Status.SUCCEEDED if choice == "go_on" else Status.FAILED), session.message
        assert bench.sent == ({"11": [ANSWER]} if choice == "go_on" else {})
        assert bench.drafts == {}


async def test_a_skipped_question_is_asked_about_again_when_more_is_written() -> None:
    async with lab(asked(SHIP)) as bench:
        bench.knowledge.records = ()
        bench.people.answers = [Answer(choice="skip", by="店长"), Answer(text="今天就发。", by="店长")]
        await bench.open_chat()
        await reply(bench, ASK)
        assert (await reply(bench, FINISH)).status is Status.SUCCEEDED  # nothing more: nobody is asked again
        assert len(bench.people.asked) == 1
        bench.phone.receive("11", "急用")
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.people.asked[1].text == f"{SHIP}\n急用"
        assert bench.sent == {"11": ["今天就发。"]}


# Answers of people, and other runs --------------------------------------------------------------------------------

BILL_ANSWER = {"发票": INVOICE}


async def parked(bench: Lab) -> Session:
    """A run that waits for a person's answer to the first question."""
    bench.knowledge.records = ()
    bench.knowledge.answers = BILL_ANSWER
    await bench.open_chat()
    session = await reply(bench, ASK)
    assert session.question is not None
    return session


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("choice", ["send", "skip"])
async def test_a_persons_answer_when_the_chat_has_changed_meanwhile(choice: str) -> None:
    """Another run has answered what was asked later: the person sees the chat and decides."""
    async with lab(asked(SHIP)) as bench:
        waiting = await parked(bench)
        bench.phone.receive("11", BILL)
        # The other run leaves the first question alone.
        bench.people.answers = [Answer(text=INVOICE, by="店长"), Answer(choice="skip", by="店长")]
        other = await reply(bench, ASK_INVOICE, ASK, FINISH)
        assert other.status is Status.SUCCEEDED, other.message
        assert bench.sent == {"11": [INVOICE]}
        waiting.answered = Answer(text="今天就发。", by="店长")
        bench.people.answers = [Answer(choice=choice, by="店长")]
        session = await reply(bench, FINISH, session=waiting)
        assert bench.people.asked[-1].kind is QuestionKind.STILL_SEND
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [INVOICE, "今天就发。"] if choice == "send" else [INVOICE]}


async def test_a_person_may_write_it_anew_when_the_customer_has_written_more() -> None:
    async with lab(asked(SHIP)) as bench:
        waiting = await parked(bench)
        bench.phone.receive("11", "不用了，我明天自己来拿")
        waiting.answered = Answer(text="今天就发。", by="店长")
        bench.people.answers = [Answer(text="好的，明天见。", by="店长")]
        session = await reply(bench, FINISH, session=waiting)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": ["好的，明天见。"]}


async def test_what_was_left_open_is_taken_up_below_a_later_answer() -> None:
    """The first question waits in the ledger; all that stands below it is ours."""
    async with lab(asked(SHIP)) as bench:
        await parked(bench)  # and never answered: its run is gone
        bench.phone.receive("11", BILL)
        bench.people.answers = [Answer(text=INVOICE, by="店长")]
        await reply(bench, ASK_INVOICE, FINISH, FINISH, FINISH)  # it dies wanting to finish
        assert bench.sent == {"11": [INVOICE]}
        bench.knowledge.answers = BOTH
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [INVOICE, ANSWER]}


async def test_a_group_is_not_answered_by_itself() -> None:
    group = ContactPart(name="11", kind=ContactKind.GROUP, members=3, history=[MessagePart(text=SHIP, ago=60)])
    async with lab(Scenario(contacts=[group])) as bench:
        await bench.open_chat()
        session = await reply(bench, ASK, task="QQ回复联系人11(3)")
        assert session.question is not None
        assert session.question.kind is QuestionKind.RIGHT_CHAT
        assert bench.sent == {}
