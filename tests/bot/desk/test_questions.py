from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.session import Question, Session
from bot.desk.actors import AccessDenied, BadRequest, ChatRef, MessageRef, NotFound, Role
from bot.desk.desk import Desk
from scheduler.jobs.deadlines import QuestionTimes
from scheduler.runs.human import StoredHuman
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.support.shop import CHAT, PHONE, QUESTION, Shop

CLOSED = QUESTION.model_copy(update={"id": "q2", "free_text": False})


async def ask(shop: Shop, question: Question = QUESTION) -> str:
    """A run that waits for this answer."""
    run = await shop.desk.runs.start(await shop.person(Role.OPERATOR), "QQ回复联系人11", chat=CHAT, serial=PHONE)
    await Runs(shop.db).begin_attempt(run.id, 1, serial=PHONE)
    assert await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=run.id, task=run.task), question) is None
    await Runs(shop.db).park_attempt(run.id, 1)
    return run.id


async def test_the_first_answer_wins_and_the_same_one_again_is_no_other(shop: Shop) -> None:
    run_id = await ask(shop)
    ann, bob = await shop.person(Role.OPERATOR, "Desk A"), await shop.person(Role.OPERATOR, "Desk B")
    first = await shop.desk.questions.answer(ann, "q1", choice="record:0")
    assert (first.state, first.by, first.answer) == ("accepted", "Desk A", "record:0")
    again = await shop.desk.questions.answer(ann, "q1", choice="record:0")
    assert again.state == "accepted"
    for who, choice in ((ann, "skip"), (bob, "record:0")):
        late = await shop.desk.questions.answer(who, "q1", choice=choice)
        assert (late.state, late.by, late.answer) == ("late", "Desk A", "record:0")
    run = await Runs(shop.db).get(run_id)
    assert run is not None
    assert run.attempt == 2
    assert run.attempt_due_at == shop.clock.time


async def test_own_words_where_they_are_allowed(shop: Shop) -> None:
    await ask(shop)
    await ask(shop, CLOSED)
    who = await shop.person(Role.OPERATOR, "Desk A")
    for question, choice, text in [("q1", "record:9", ""), ("q1", "", "  "), ("q2", "", "words")]:
        with pytest.raises(BadRequest):
            await shop.desk.questions.answer(who, question, choice=choice, text=text)
    said = await shop.desk.questions.answer(who, "q1", text=" 可以的 ")
    assert (said.state, said.answer) == ("accepted", "可以的")


async def test_a_question_that_nobody_asked(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    assert (await shop.desk.questions.answer(who, "nothing", choice="x")).state == "unknown"
    assert await shop.desk.questions.get("nothing") is None


async def test_the_question_of_a_stopped_run_is_over(shop: Shop) -> None:
    run_id = await ask(shop)
    who = await shop.person(Role.OPERATOR, "Desk A")
    await shop.desk.runs.stop(who, run_id)
    late = await shop.desk.questions.answer(who, "q1", choice="skip")
    assert (late.state, late.by, late.answer) == ("late", "", "")
    view = await shop.desk.questions.get("q1")
    assert view is not None
    assert not view.open


async def test_every_open_question_is_listed(shop: Shop) -> None:
    run_id = await ask(shop)
    for number in range(110):
        payload = QUESTION.model_copy(update={"id": f"more{number}"}).model_dump(mode="json")
        await Questions(shop.db).ask(f"more{number}", run_id=run_id, kind=QUESTION.kind.value, payload=payload)
    assert len(await shop.desk.questions.all_open(await shop.person(Role.OPERATOR))) == 111


async def test_the_view(shop: Shop) -> None:
    run_id = await ask(shop)
    view = await shop.desk.questions.get("q1")
    assert view is not None
    assert (view.run_id, view.question, view.chat, view.lang) == (run_id, QUESTION, CHAT, "en")
    assert (view.open, view.deadline, view.then, view.answer, view.by) == (True, None, "wait", "", "")
    assert [found.id for found in await shop.desk.questions.seen_by(None)] == ["q1"]
    who = await shop.person(Role.OPERATOR, "Desk A")
    await shop.desk.questions.answer(who, "q1", text="可以")
    answered = await shop.desk.questions.get("q1")
    assert answered is not None
    assert (answered.open, answered.answer, answered.by) == (False, "可以", "Desk A")
    assert await shop.desk.questions.seen_by(None) == []


async def test_messages_that_show_runs_and_questions_are_remembered(shop: Shop) -> None:
    run_id = await ask(shop)
    desk = shop.desk
    assert await desk.runs.card(run_id) is None
    card, question = MessageRef(CHAT, "10", picture=True), MessageRef(ChatRef("telegram", "77"), "11")
    await desk.runs.set_card(run_id, MessageRef(CHAT, "9"))
    await desk.runs.set_card(run_id, card)  # the newest counts
    await desk.questions.set_card("q1", question)
    assert await desk.runs.card(run_id) == card
    assert await desk.questions.card("q1") == question
    assert await desk.questions.at(MessageRef(CHAT, "11", picture=True)) == "q1"  # the same chat, whatever the topic
    assert await desk.questions.at(card) is None  # a card, but no question's
    assert await desk.questions.at(MessageRef(ChatRef("web", "77"), "11")) is None
    assert await desk.questions.at(MessageRef(ChatRef("telegram", "78"), "11")) is None


async def test_what_was_asked_for_outside_any_chat_asks_the_owner(shop: Shop) -> None:
    run_id = await Runs(shop.db).create(NewRun("QQ回复联系人11", PHONE, begun=True))
    assert run_id is not None
    quiet = await shop.desk.runs.get(run_id)
    assert quiet is not None
    assert quiet.chat is None
    assert await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=run_id, task="x"), QUESTION) is None
    nobody = await shop.desk.questions.get("q1")
    assert nobody is not None
    assert nobody.chat is None
    owner = await shop.person(Role.OWNER)
    for view in (await shop.desk.runs.get(run_id), await shop.desk.questions.get("q1")):
        assert view is not None
        assert view.chat == ChatRef("telegram", owner.user_id)


async def test_further_cards_of_a_question(shop: Shop) -> None:
    await ask(shop)
    who = await shop.person(Role.OPERATOR)
    here = ChatRef("telegram", who.user_id)
    for _ in range(2):  # handed on twice
        view = await shop.desk.questions.show(who, "q1", chat=here, name="telegram:7")
    assert (view.id, view.serial, view.asked_at) == ("q1", PHONE, shop.clock.time)
    assert await shop.desk.questions.copies("q1") == [("telegram:7", here)]
    message = MessageRef(here, "31")
    await shop.desk.questions.set_card("q1@telegram:7", message)
    assert await shop.desk.questions.at(message) == "q1"
    assert not await shop.desk.questions.asks_for_words(message)
    prompt = MessageRef(here, "32")
    await shop.desk.questions.set_card("q1@own:7", prompt)
    assert (await shop.desk.questions.at(prompt), await shop.desk.questions.asks_for_words(prompt)) == ("q1", True)
    with pytest.raises(NotFound):
        await shop.desk.questions.show(who, "nothing", chat=here, name="x")
    assert [found.id for found in await shop.desk.questions.all_open(who)] == ["q1"]


async def test_who_else_sees_what_nobody_answers(shop: Shop) -> None:
    await ask(shop)
    assert await shop.desk.questions.escalate("q1") == []
    owners = [await shop.person(Role.OWNER), await shop.person(Role.OWNER)]
    private = [ChatRef("telegram", owner.user_id) for owner in owners]
    for _ in range(2):
        assert await shop.desk.questions.escalate("q1") == private
    assert [chat for _, chat in await shop.desk.questions.copies("q1")] == private
    named = Desk(replace(shop.desk.context, escalate_chat="-1009"))
    assert await named.questions.escalate("q1") == [ChatRef("telegram", "-1009", kind="group")]
    own = Desk(replace(shop.desk.context, escalate_chat=CHAT.chat_id))
    assert await own.questions.escalate("q1") == [], "it is there already"


async def test_the_picture_of_then(shop: Shop) -> None:
    run_id = await ask(shop)
    assert await shop.desk.questions.picture("q1") is None
    session = Session(run_id=run_id, task="x")
    await StoredHuman(shop.db, hold_seconds=0).ask(session, QUESTION, picture=b"jpeg")
    assert await shop.desk.questions.picture("q1") == b"jpeg"
    assert await shop.desk.questions.picture("nothing") is None


async def test_the_deadline_is_shown_in_the_owners_zone_with_what_happens_then(shop: Shop) -> None:
    run = await shop.desk.runs.start(await shop.person(Role.OPERATOR), "QQ回复联系人11", chat=CHAT, serial=PHONE)
    human = StoredHuman(shop.db, hold_seconds=0, times=QuestionTimes(deadline=240))
    await human.ask(Session(run_id=run.id, task=run.task), QUESTION)
    view = await shop.desk.questions.get("q1")
    assert view is not None
    assert view.deadline is not None
    assert (view.deadline.strftime("%H:%M"), view.then) == ("21:00", "skip")  # asked at 9:00 UTC


async def test_hold_and_resume_by_name_and_without(shop: Shop) -> None:
    ann, bob = await shop.person(Role.OPERATOR, "Desk A"), await shop.person(Role.OPERATOR, "Desk B")
    assert await shop.desk.runs.hold(ann) is None
    first = await shop.desk.runs.start(ann, "QQ回复联系人11", chat=CHAT, serial=PHONE)
    second = await shop.desk.runs.start(bob, "QQ回复联系人12", chat=CHAT, serial=PHONE)
    held = [await shop.desk.runs.hold(ann), await shop.desk.runs.hold(bob, second.id), await shop.desk.runs.hold(ann)]
    assert [(run.id, run.held) for run in held if run] == [(first.id, True), (second.id, True), (first.id, True)]
    resumed = [await shop.desk.runs.resume(ann), await shop.desk.runs.resume(ann), await shop.desk.runs.resume(ann)]
    assert [run.id if run else None for run in resumed] == [first.id, second.id, None]
    await shop.desk.runs.stop(ann, first.id)
    assert await shop.desk.runs.hold(ann, first.id) is None
    viewer = await shop.person(Role.VIEWER)
    for call in (shop.desk.runs.hold, shop.desk.runs.resume):
        with pytest.raises(AccessDenied):
            await call(viewer, second.id)
