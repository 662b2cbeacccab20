"""Limits of a person to phones and chats, and how much they may ask: over every call of the desk."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import PhonedeskError, RateLimited
from agent_core.ports import AnswerEvent, Event, ReplyState
from agent_core.session import Session
from bot.desk.actors import AccessDenied, Actor, ChatRef, Role, StillLimited
from bot.desk.answers_views import AnswersAsked
from bot.desk.contacts_views import ContactView
from bot.desk.desk import HouseDesk
from bot.desk.digest import DigestPart
from bot.desk.history import HistoryPart
from bot.desk.history_views import HistoryAsked
from bot.desk.knowledge import KnowledgePart
from bot.desk.knowledge_views import EntryText, KnowledgeFile
from bot.desk.pairing import NOTED_OF_ONE, OWNER_TIMES, Pace
from bot.desk.plans import PlansPart
from bot.desk.team import TeamPart
from knowledge.embedded import EmbeddedKnowledge
from scheduler.ports import StoredHuman, StoredRuns
from storage.ids import new_id
from storage.people import Audit
from storage.runs import NewRun, Runs
from storage.schedules import NewSchedule, Schedules
from tests.bot.desk.conftest import CHAT, PHONE, Shop
from tests.bot.desk.test_questions import QUESTION

OTHER = "127.0.0.1:16002"
ELSEWHERE = ChatRef("telegram", "78", "5", "group")
FILE = KnowledgeFile("faq.csv", "问题,答案\n怎么退货,七天\n".encode())


@dataclass
class Busy:
    """A shop with something of everything on PHONE."""

    shop: Shop
    desk: HouseDesk
    run_id: str
    answer_id: str


@pytest.fixture
async def busy(shop: Shop, tmp_path: Path) -> AsyncIterator[Busy]:
    store = EmbeddedKnowledge(tmp_path / "knowledge.sqlite3")
    desk = HouseDesk(replace(shop.desk.house, store=store))
    run_id = await Runs(shop.db).create(NewRun("QQ回复联系人11", PHONE))
    assert run_id is not None
    await Runs(shop.db).begin_leg(run_id, 1, serial=PHONE)
    await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=run_id, task="x"), QUESTION)
    await Runs(shop.db).wait_leg(run_id, 1)
    told = AnswerEvent(1, "qq", "11", "怎么退货", ReplyState.SKIPPED)
    await StoredRuns(shop.db).event(run_id, Event("answer", told.data()))
    await Schedules(shop.db).add(
        NewSchedule(expression="0 9 * * *", timezone="Asia/Shanghai", task="x", serial=PHONE, chat=None, options={})
    )
    yield Busy(shop, desk, run_id, "1")
    await store.close()


Call = Callable[[Busy, Actor], Awaitable[Any]]

# What is about the phone, whatever is named.
ON_THE_PHONE: dict[str, Call] = {
    "start_run": lambda at, who: at.desk.start_run(who, "打开设置", chat=CHAT, serial=PHONE),
    "start_sweep": lambda at, who: at.desk.start_sweep(who, "未读", chat=CHAT, serial=PHONE),
    "plans.start": lambda at, who: at.desk.plans.start(who, "打开设置", chat=CHAT, serial=PHONE),
    "stop_run": lambda at, who: at.desk.stop_run(who, at.run_id),
    "hold_run": lambda at, who: at.desk.hold_run(who, at.run_id),
    "resume_run": lambda at, who: at.desk.resume_run(who, at.run_id),
    "screenshot": lambda at, who: at.desk.screenshot(who, PHONE),
    "screen_page": lambda at, who: at.desk.screen_page(who, PHONE),
    "answer": lambda at, who: at.desk.answer(who, QUESTION.id, choice="skip"),
    "question_to_answer": lambda at, who: at.desk.question_to_answer(who, QUESTION.id),
    "show_question": lambda at, who: at.desk.show_question(who, QUESTION.id, chat=CHAT, name="again"),
    "answer_entry": lambda at, who: at.desk.answer_entry(who, at.answer_id),
    "answer_pictures": lambda at, who: at.desk.answer_pictures(who, at.answer_id),
    "rate_answer": lambda at, who: at.desk.rate_answer(who, at.answer_id, 1),
    "find_schedule": lambda at, who: at.desk.find_schedule(who, "1"),
    "run_schedule": lambda at, who: at.desk.run_schedule(who, "1", chat=CHAT),
    "history.run": lambda at, who: at.desk.history.run(who, "1"),
    "history.replay": lambda at, who: at.desk.history.replay(who, "1"),
}


async def _status(at: Busy, who: Actor) -> int:
    view = await at.desk.status(who)
    return len(view.phones) + len(view.runs) + len(view.questions)


async def _questions_here(at: Busy, who: Actor) -> int:
    """With a card of the question in the chat."""
    await at.desk.show_question(await at.shop.person(Role.OWNER), QUESTION.id, chat=CHAT, name="here")
    return len(await at.desk.questions_here(who, CHAT))


async def _alike_questions(at: Busy, who: Actor) -> int:
    """Another contact asks the same on PHONE."""
    run_id = await Runs(at.shop.db).create(NewRun("QQ回复联系人12", OTHER))
    assert run_id is not None
    await Runs(at.shop.db).begin_leg(run_id, 1, serial=OTHER)
    alike = QUESTION.model_copy(update={"id": new_id(), "data": {"contact": "12"}})
    await StoredHuman(at.shop.db, hold_seconds=0).ask(Session(run_id=run_id, task="x"), alike)
    await Runs(at.shop.db).wait_leg(run_id, 1)
    return len(await at.desk.alike_questions(alike.id, actor=who))


# What lists things that are on phones, with how many there are for somebody who may see them all.
LISTS: dict[str, tuple[Callable[[Busy, Actor], Awaitable[int]], int]] = {
    "going": (lambda at, who: _count(at.desk.going(who)), 1),
    "status": (_status, 3),
    "list_questions": (lambda at, who: _count(at.desk.list_questions(who)), 1),
    "questions_here": (_questions_here, 1),
    "open_questions": (lambda at, who: _count(at.desk.open_questions(who)), 1),
    "alike_questions": (_alike_questions, 1),
    "list_schedules": (lambda at, who: _count(at.desk.list_schedules(who)), 1),
    "answers": (lambda at, who: _total(at.desk.answers(who, AnswersAsked())), 1),
    "unanswered": (lambda at, who: _count(at.desk.unanswered(who)), 1),
    "history.runs": (lambda at, who: _total(at.desk.history.runs(who, HistoryAsked())), 1),
}
# What is the same on every phone.
THE_REST: dict[str, Call] = {
    "contacts": lambda at, who: at.desk.contacts(who),
    "kb.search": lambda at, who: at.desk.kb.search(who, "x"),
    "kb.entry": lambda at, who: at.desk.kb.entry(who, "a1"),
    "kb.add": lambda at, who: at.desk.kb.add(who, EntryText("问", "答")),
    "kb.pending": lambda at, who: at.desk.kb.pending(who),
    "kb.means": lambda at, who: at.desk.kb.means(who, "x"),
    "kb.reject": lambda at, who: at.desk.kb.reject(who, "a1"),
    "kb.stats": lambda at, who: at.desk.kb.stats(who),
    "plans.stop": lambda at, who: at.desk.plans.stop(who, "mine"),
    "plans.forget": lambda at, who: at.desk.plans.forget(who, "mine"),
    "digest.look": lambda at, who: at.desk.digest.look(who, "today"),
    "digest.setting": lambda at, who: at.desk.digest.setting(who, CHAT),
    "digest.switch": lambda at, who: at.desk.digest.switch(who, CHAT, daily=True),
    "team.speak": lambda at, who: at.desk.team.speak(who, "zh"),
    "team.stream": lambda at, who: at.desk.team.stream(who, False),
}
# For owners, who are never limited.
OWNERS: dict[str, Call] = {
    "add_schedule": lambda at, who: at.desk.add_schedule(who, "* * * * *", "x", chat=CHAT),
    "pause_schedule": lambda at, who: at.desk.pause_schedule(who, "1"),
    "resume_schedule": lambda at, who: at.desk.resume_schedule(who, "1"),
    "remove_schedule": lambda at, who: at.desk.remove_schedule(who, "1"),
    "put_back_schedule": lambda at, who: at.desk.put_back_schedule(who, "1"),
    "edit_schedule": lambda at, who: at.desk.edit_schedule(who, "1", task="打开设置"),
    "add_contact": lambda at, who: at.desk.add_contact(who, ContactView("qq", "12")),
    "edit_contact": lambda at, who: at.desk.edit_contact(who, "12"),
    "remove_contact": lambda at, who: at.desk.remove_contact(who, "12"),
    "kb.edit": lambda at, who: at.desk.kb.edit(who, "a1", EntryText("问", "答")),  # what waits: an operator, too
    "kb.approve": lambda at, who: at.desk.kb.approve(who, "a1"),
    "kb.delete": lambda at, who: at.desk.kb.delete(who, "a1"),
    "kb.allow_import": lambda at, who: at.desk.kb.allow_import(who),
    "kb.plan_import": lambda at, who: at.desk.kb.plan_import(who, [FILE]),
    "kb.carry_out": lambda at, who: at.desk.kb.carry_out(who, [FILE]),
    "kb.export": lambda at, who: at.desk.kb.export(who, "csv"),
    "history.recording": lambda at, who: at.desk.history.recording(who, "1"),
    "team.people": lambda at, who: at.desk.team.people(who),
    "team.find": lambda at, who: at.desk.team.find(who, "#1"),
    "team.invite": lambda at, who: at.desk.team.invite(who, Role.OPERATOR),
    "team.invites": lambda at, who: at.desk.team.invites(who),
    "team.revoke": lambda at, who: at.desk.team.revoke(who, "0123456789"),
    "team.set_role": lambda at, who: at.desk.team.set_role(who, "#1", Role.OWNER),
    "team.limit": lambda at, who: at.desk.team.limit(who, "#1", phones=[PHONE]),
    "team.remove": lambda at, who: at.desk.team.remove(who, "#1"),
    "team.undo_remove": lambda at, who: at.desk.team.undo_remove(who, "1"),
    "team.refused": lambda at, who: at.desk.team.refused(who),
}
# ``admit`` counts; ``kb.undo`` looks first whether there is something, and then is as ``kb.edit``;
# ``open_questions`` and ``alike_questions`` are for those who have been let in.
NO_RIGHTS_OF_THEIR_OWN = {"admit", "kb.undo", "open_questions", "alike_questions"}


async def _count(listing: Awaitable[Any]) -> int:
    return len(await listing)


async def _total(page: Awaitable[Any]) -> int:
    return int((await page).total)


def every_call() -> set[str]:
    parts = {"": HouseDesk, "kb.": KnowledgePart, "team.": TeamPart, "history.": HistoryPart, "digest.": DigestPart}
    parts["plans."] = PlansPart
    return {
        prefix + name
        for prefix, part in parts.items()
        for name, method in inspect.getmembers(part, inspect.isfunction)
        if not name.startswith("_") and "actor" in inspect.signature(method).parameters
    }


def test_every_call_of_the_desk_is_looked_at_here() -> None:
    looked_at = {*ON_THE_PHONE, *LISTS, *THE_REST, *OWNERS, *NO_RIGHTS_OF_THEIR_OWN}
    assert every_call() == looked_at


async def refused(busy: Busy, call: Awaitable[Any], why: str) -> None:
    with pytest.raises(AccessDenied):
        await call
    row = (await Audit(busy.shop.db).last(1))[0]
    assert (row.allowed, row.detail["why"]) == (False, why)


async def let_in(busy: Busy, call: Awaitable[Any]) -> None:
    """Whatever comes of it: it was not for want of a right."""
    try:
        await call
    except AccessDenied:
        raise
    except PhonedeskError:
        pass
    assert (await Audit(busy.shop.db).last(1))[0].allowed


@pytest.mark.parametrize("name", ON_THE_PHONE)
async def test_another_phone_is_refused(busy: Busy, name: str) -> None:
    who = await busy.shop.person(Role.OPERATOR)
    await refused(busy, ON_THE_PHONE[name](busy, replace(who, phones=(OTHER,))), "phone")
    await let_in(busy, ON_THE_PHONE[name](busy, replace(who, phones=(OTHER, PHONE))))


@pytest.mark.parametrize("name", LISTS)
async def test_what_is_on_another_phone_is_not_listed(busy: Busy, name: str) -> None:
    call, all_of_them = LISTS[name]
    who = await busy.shop.person(Role.OPERATOR)
    assert await call(busy, who) == all_of_them
    assert await call(busy, replace(who, phones=(PHONE,))) == all_of_them
    assert await call(busy, replace(who, phones=(OTHER,))) == 0


CHATTED: dict[str, Any] = {**ON_THE_PHONE, **{name: call for name, (call, _) in LISTS.items()}, **THE_REST}


@pytest.mark.parametrize("name", sorted(CHATTED.keys() - NO_RIGHTS_OF_THEIR_OWN))
async def test_another_chat_is_refused(busy: Busy, name: str) -> None:
    who = replace(await busy.shop.person(Role.OPERATOR), chats=(CHAT.key,))
    for where in (ELSEWHERE, None):  # None: a channel without chats
        if where is None and name in {
            "start_run",
            "plans.start",
            "start_sweep",
            "run_schedule",
            "show_question",
            "questions_here",
            "digest.setting",
            "digest.switch",
        }:
            continue  # they name the chat
        await refused(busy, CHATTED[name](busy, replace(who, chat=where)), "chat")
    await let_in(busy, CHATTED[name](busy, replace(who, chat=replace(CHAT, thread_id="9"))))


@pytest.mark.parametrize("name", OWNERS)
async def test_an_owner_is_never_limited_and_nobody_else_gets_there(busy: Busy, name: str) -> None:
    operator = await busy.shop.person(Role.OPERATOR)
    await refused(busy, OWNERS[name](busy, operator), "role")
    await busy.shop.desk.team.limit(
        await busy.shop.person(Role.OWNER), "operator", phones=[OTHER], chats=["telegram:1"]
    )
    await busy.shop.desk.team.set_role(await busy.shop.person(Role.OWNER), "#1", Role.OWNER)
    raised = await busy.shop.desk.actor("telegram", operator.user_id)
    assert raised is not None
    assert (raised.role, raised.phones, raised.chats) == (Role.OWNER, (), ())
    await let_in(busy, OWNERS[name](busy, replace(raised, chat=ELSEWHERE)))


async def test_a_card_is_not_put_into_a_chat_that_is_not_theirs(busy: Busy) -> None:
    who = replace(await busy.shop.person(Role.OPERATOR), chats=(CHAT.key,), chat=CHAT)
    await refused(busy, busy.desk.start_run(who, "打开设置", chat=ELSEWHERE), "chat")


async def test_where_no_phone_is_named_it_is_their_own(busy: Busy) -> None:
    who = replace(await busy.shop.person(Role.OPERATOR), phones=(PHONE,))
    assert (await busy.desk.start_run(who, "打开设置", chat=CHAT)).serial == PHONE
    of_two = replace(who, phones=(OTHER, PHONE))
    with pytest.raises(AccessDenied, match=r"Which phone is meant\? Yours: 127.0.0.1:16002, 127.0.0.1:16001"):
        await busy.desk.start_run(of_two, "打开设置", chat=CHAT)
    usual = HouseDesk(replace(busy.desk.house, serial=PHONE))
    assert (await usual.start_run(of_two, "打开设置", chat=CHAT)).serial == PHONE


async def test_stop_without_a_name_passes_over_what_is_not_theirs(busy: Busy) -> None:
    who = await busy.shop.person(Role.OPERATOR)
    run = await busy.desk.start_run(who, "打开设置", chat=CHAT, serial=PHONE)
    assert await busy.desk.stop_run(replace(who, phones=(OTHER,))) is None
    stopped = await busy.desk.stop_run(who)
    assert stopped is not None
    assert stopped.id == run.id


async def test_a_run_that_has_no_phone_yet_is_not_for_the_limited(busy: Busy) -> None:
    who = await busy.shop.person(Role.OPERATOR)
    run = await busy.desk.start_run(who, "打开设置", chat=CHAT)
    assert run.serial == ""
    limited = replace(who, phones=(PHONE,))
    assert run.id not in {listed.id for listed in (await busy.desk.status(limited)).runs}
    await refused(busy, busy.desk.stop_run(limited, run.id), "phone")


# How much a person may ask --------------------------------------------------------------------------------------------


def paced(shop: Shop, per_minute: int) -> HouseDesk:
    return HouseDesk(replace(shop.desk.house, pace=Pace(per_minute)))


async def test_one_line_then_silence_until_it_is_over(shop: Shop) -> None:
    desk, who = paced(shop, 3), await shop.person(Role.VIEWER)
    for _ in range(3):
        await desk.status(who)
    shop.clock.move(seconds=20)
    with pytest.raises(RateLimited, match=r"More than 3 commands within a minute. Go on in 40 s.") as first:
        await desk.status(who)
    assert not isinstance(first.value, StillLimited)
    for _ in range(5):
        with pytest.raises(StillLimited):
            await desk.kb.stats(who)  # another part of the desk counts together
    rows = await Audit(shop.db).refused()
    assert [(row.command, row.actor, row.detail) for row in rows] == [("status", who.id, {"why": "rate"})]
    await desk.status(await shop.person(Role.VIEWER))  # somebody else
    shop.clock.move(seconds=40)
    for _ in range(3):
        await desk.status(who)
    with pytest.raises(RateLimited) as again:
        await desk.status(who)
    assert not isinstance(again.value, StillLimited)


async def test_an_owner_may_ask_more_and_zero_is_no_limit(shop: Shop) -> None:
    desk, owner = paced(shop, 2), await shop.person(Role.OWNER)
    for _ in range(2 * OWNER_TIMES):
        await desk.status(owner)
    with pytest.raises(RateLimited):
        await desk.status(owner)
    for _ in range(100):
        await paced(shop, 0).admit(owner)


async def test_one_request_counts_once(shop: Shop) -> None:
    desk, who = paced(shop, 2), await shop.person(Role.VIEWER)
    for request in ("a", "b"):
        asked = replace(who, request=request)
        for _ in range(4):
            await desk.admit(asked)
            await desk.status(asked)
    for _ in range(2):  # handed in again: not known to be answered
        with pytest.raises(RateLimited) as told:
            await desk.admit(replace(who, request="c"))
        assert not isinstance(told.value, StillLimited)
    with pytest.raises(StillLimited):
        await desk.admit(replace(who, request="d"))


# Strangers ------------------------------------------------------------------------------------------------------------


async def test_what_strangers_try_is_written_down_up_to_a_point(shop: Shop) -> None:
    for _ in range(NOTED_OF_ONE + 3):
        await shop.desk.turned_away("telegram", "9", "Evil\u202e\nowner", "run")
    who = await shop.person(Role.VIEWER, "Anna")
    await shop.desk.turned_away("telegram", who.user_id, "Anna", "forwarded")
    rows = await Audit(shop.db).refused(50)
    assert [(row.actor, row.command, row.detail) for row in rows] == [
        (who.id, "forwarded", {"name": "Anna", "why": "forwarded"}),
        *[("telegram:9", "run", {"name": "Evil owner", "why": "stranger"})] * NOTED_OF_ONE,
    ]
    shop.clock.move(hours=1)
    await shop.desk.turned_away("telegram", "9", "Evil", "run")
    assert len(await Audit(shop.db).refused(50)) == len(rows) + 1
