"""Limits of a person to phones and chats, and how much they may ask: over every call of the desk."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_core.actions.types import Back
from agent_core.apps.profile import profile
from agent_core.errors import PhonedeskError, RateLimited
from agent_core.loop.tasks import TaskRules
from agent_core.session import Session
from bot.channels.chat.texts import LANGUAGES, catalogue, texts
from bot.channels.mcp.tools import LOW_LEVEL
from bot.channels.web.console.team import ROW_FIELDS, fields_of
from bot.channels.web.console.texts import console_texts
from bot.desk.actors import AccessDenied, Actor, ChatRef, Role, StillLimited
from bot.desk.context import API, FAILED, DeskService
from bot.desk.desk import Desk
from bot.desk.history_views import HistoryAsked
from bot.desk.knowledge_views import EntryText, KnowledgeFile
from bot.desk.request_limits import NOTED_OF_ONE, OWNER_TIMES, RequestLimit
from bot.desk.schedules import CHOICES, TIMES
from bot.desk.schedules_views import ScheduleWish, SweepChange, SweepWhom
from bot.desk.team_views import PersonView
from bot.desk.views import AnswersAsked, ContactView
from bot.desk.week import WeekView
from knowledge.entries import Entry
from scheduler.runs.human import StoredHuman
from scheduler.sweeps.order import SweepOrder
from storage.ids import new_id
from storage.people import Audit
from storage.runs import NewRun, Runs
from tests.support.busy import Busy, busy_shop
from tests.support.shop import CHAT, PHONE, QUESTION, Shop

OTHER = "127.0.0.1:16002"
ELSEWHERE = ChatRef("telegram", "78", "5", "group")
EVERYBODY = SweepWhom("qq", everybody=True)
FILE = KnowledgeFile("faq.csv", "问题,答案\n怎么退货,七天\n".encode())


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Busy]:
    async with busy_shop(tmp_path) as made:
        yield made


Call = Callable[[Busy, Actor], Awaitable[Any]]

# What is about the phone, whatever is named.
ON_THE_PHONE: dict[str, Call] = {
    "runs.start": lambda at, who: at.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE),
    "runs.submit": lambda at, who: at.desk.runs.submit(
        who, "run", "打开设置", chat=CHAT, serial=PHONE, options={}, key=""
    ),
    "sweeps.start": lambda at, who: at.desk.sweeps.start(who, "未读", chat=CHAT, serial=PHONE),
    "plans.start": lambda at, who: at.desk.plans.start(who, "打开设置", chat=CHAT, serial=PHONE),
    "runs.stop": lambda at, who: at.desk.runs.stop(who, at.run_id),
    "runs.hold": lambda at, who: at.desk.runs.hold(who, at.run_id),
    "runs.resume": lambda at, who: at.desk.runs.resume(who, at.run_id),
    "phones.screenshot": lambda at, who: at.desk.phones.screenshot(who, PHONE),
    "phones.page": lambda at, who: at.desk.phones.page(who, PHONE),
    "questions.answer": lambda at, who: at.desk.questions.answer(who, QUESTION.id, choice="skip"),
    "questions.look": lambda at, who: at.desk.questions.look(who, QUESTION.id),
    "questions.to_answer": lambda at, who: at.desk.questions.to_answer(who, QUESTION.id),
    "questions.show": lambda at, who: at.desk.questions.show(who, QUESTION.id, chat=CHAT, name="again"),
    "answers.get": lambda at, who: at.desk.answers.get(who, at.answer_id),
    "answers.pictures": lambda at, who: at.desk.answers.pictures(who, at.answer_id),
    "answers.rate": lambda at, who: at.desk.answers.rate(who, at.answer_id, 1),
    "log.follow": lambda at, who: at.desk.log.follow(who, run_id=at.run_id),
    "log.picture": lambda at, who: at.desk.log.picture(who, 1),
    "take_over.take": lambda at, who: at.desk.take_over.take(who, PHONE),
    "take_over.act": lambda at, who: at.desk.take_over.act(who, PHONE, Back()),
    "take_over.give_back": lambda at, who: at.desk.take_over.give_back(who, PHONE),
    "log.newest_picture": lambda at, who: at.desk.log.newest_picture(who, at.run_id),
    "schedules.get": lambda at, who: at.desk.schedules.get(who, "1"),
    "schedules.run": lambda at, who: at.desk.schedules.run(who, "1", chat=CHAT),
    "history.run": lambda at, who: at.desk.history.run(who, "1"),
    "history.replay": lambda at, who: at.desk.history.replay(who, "1"),
}


async def _status(at: Busy, who: Actor) -> int:
    view = await at.desk.status(who)
    return len(view.phones) + len(view.runs) + len(view.questions)


async def _questions_here(at: Busy, who: Actor) -> int:
    """With a card of the question in the chat."""
    await at.desk.questions.show(await at.shop.person(Role.OWNER), QUESTION.id, chat=CHAT, name="here")
    return len(await at.desk.questions.here(who, CHAT))


async def _alike_questions(at: Busy, who: Actor) -> int:
    """Another contact asks the same on PHONE."""
    run_id = await Runs(at.shop.db).create(NewRun("QQ回复联系人12", OTHER))
    assert run_id is not None
    await Runs(at.shop.db).begin_attempt(run_id, 1, serial=OTHER)
    alike = QUESTION.model_copy(update={"id": new_id(), "data": {"contact": "12"}})
    await StoredHuman(at.shop.db, hold_seconds=0).ask(Session(run_id=run_id, task="x"), alike)
    await Runs(at.shop.db).park_attempt(run_id, 1)
    return len(await at.desk.questions.alike(alike.id, actor=who))


async def _sweeps(at: Busy, who: Actor) -> int:
    """With one on PHONE."""
    owner = await at.shop.person(Role.OWNER)
    if not await at.desk.sweeps.scheduled(owner):
        await at.desk.sweeps.schedule(owner, EVERYBODY, "every 5m", wish=ScheduleWish(serial=PHONE))
    return len(await at.desk.sweeps.scheduled(who))


# What lists things that are on phones, with how many there are for somebody who may see them all.
LISTS: dict[str, tuple[Callable[[Busy, Actor], Awaitable[int]], int]] = {
    "runs.going": (lambda at, who: _count(at.desk.runs.going(who)), 1),
    "status": (_status, 3),
    "questions.all_open": (lambda at, who: _count(at.desk.questions.all_open(who)), 1),
    "questions.here": (_questions_here, 1),
    "questions.seen_by": (lambda at, who: _count(at.desk.questions.seen_by(who)), 1),
    "questions.alike": (_alike_questions, 1),
    "schedules.week": (lambda at, who: _starts(at.desk.schedules.week(who)), 6),
    "sweeps.scheduled": (_sweeps, 1),
    "schedules.all": (lambda at, who: _count(at.desk.schedules.all(who)), 1),
    "answers.find": (lambda at, who: _total(at.desk.answers.find(who, AnswersAsked())), 1),
    "answers.unanswered": (lambda at, who: _count(at.desk.answers.unanswered(who)), 1),
    "history.runs": (lambda at, who: _total(at.desk.history.runs(who, HistoryAsked())), 1),
}
# What is the same on every phone.
THE_REST: dict[str, Call] = {
    "contacts.find": lambda at, who: at.desk.contacts.find(who),
    "kb.search": lambda at, who: at.desk.kb.search(who, "x"),
    "kb.entry": lambda at, who: at.desk.kb.entry(who, "a1"),
    "kb.add": lambda at, who: at.desk.kb.add(who, EntryText("问", "答")),
    "kb.pending": lambda at, who: at.desk.kb.pending(who),
    "kb.named": lambda at, who: at.desk.kb.named(who, "x"),
    "kb.means": lambda at, who: at.desk.kb.means(who, "x"),
    "kb.reject": lambda at, who: at.desk.kb.reject(who, "a1"),
    "kb.stats": lambda at, who: at.desk.kb.stats(who),
    "plans.stop": lambda at, who: at.desk.plans.stop(who, "mine"),
    "plans.forget": lambda at, who: at.desk.plans.forget(who, "mine"),
    "schedules.next_times": lambda at, who: at.desk.schedules.next_times(who, "every 5m"),
    "digest.days": lambda at, who: at.desk.digest.days(who, 7),
    "digest.look": lambda at, who: at.desk.digest.look(who, "today"),
    "digest.setting": lambda at, who: at.desk.digest.setting(who, CHAT),
    "digest.switch": lambda at, who: at.desk.digest.switch(who, CHAT, daily=True),
    "console.link": lambda at, who: at.desk.console.link(who),
    "team.speak": lambda at, who: at.desk.team.speak(who, "zh"),
    "team.stream": lambda at, who: at.desk.team.stream(who, False),
}

ANNA = PersonView("1", "Anna", Role.OPERATOR, "en", "101", datetime(2026, 11, 1, tzinfo=UTC))
# For owners, who are never limited.
OWNERS: dict[str, Call] = {
    "schedules.add": lambda at, who: at.desk.schedules.add(who, "* * * * *", "x", chat=CHAT),
    "sweeps.schedule": lambda at, who: at.desk.sweeps.schedule(who, EVERYBODY, "every 5m"),
    "sweeps.edit": lambda at, who: at.desk.sweeps.edit(who, "1", SweepChange(tags=("none",))),
    "schedules.pause": lambda at, who: at.desk.schedules.pause(who, "1"),
    "schedules.resume": lambda at, who: at.desk.schedules.resume(who, "1"),
    "schedules.remove": lambda at, who: at.desk.schedules.remove(who, "1"),
    "schedules.undo": lambda at, who: at.desk.schedules.undo(who, "1"),
    "schedules.edit": lambda at, who: at.desk.schedules.edit(who, "1", task="打开设置"),
    "contacts.add": lambda at, who: at.desk.contacts.add(who, ContactView("qq", "12")),
    "contacts.edit": lambda at, who: at.desk.contacts.edit(who, "12"),
    "contacts.undo": lambda at, who: at.desk.contacts.undo(who, "12"),
    "contacts.remove": lambda at, who: at.desk.contacts.remove(who, "12"),
    "kb.edit": lambda at, who: at.desk.kb.edit(who, "a1", EntryText("问", "答")),  # what waits: an operator, too
    "kb.approve": lambda at, who: at.desk.kb.approve(who, "a1"),
    "kb.delete": lambda at, who: at.desk.kb.delete(who, "a1"),
    "kb.allow_import": lambda at, who: at.desk.kb.allow_import(who),
    "kb.plan_import": lambda at, who: at.desk.kb.plan_import(who, [FILE]),
    "kb.carry_out": lambda at, who: at.desk.kb.carry_out(who, [FILE]),
    "kb.export": lambda at, who: at.desk.kb.export(who, "csv"),
    "keys.add": lambda at, who: at.desk.keys.add(who, "ERP", Role.VIEWER),
    "keys.all": lambda at, who: at.desk.keys.all(who),
    "keys.rotate": lambda at, who: at.desk.keys.rotate(who, "ERP"),
    "keys.remove": lambda at, who: at.desk.keys.remove(who, "ERP"),
    "webhooks.add": lambda at, who: at.desk.webhooks.add(who, "https://192.168.1.1/", ["question"]),
    "webhooks.all": lambda at, who: at.desk.webhooks.all(who),
    "webhooks.remove": lambda at, who: at.desk.webhooks.remove(who, 1),
    "webhooks.rotate": lambda at, who: at.desk.webhooks.rotate(who, 1),
    "webhooks.test": lambda at, who: at.desk.webhooks.test(who, 1),
    "webhooks.deliveries": lambda at, who: at.desk.webhooks.deliveries(who, 1),
    "webhooks.retry": lambda at, who: at.desk.webhooks.retry(who, 1, 1),
    "incoming.add": lambda at, who: at.desk.incoming.add(who, "shop", "run"),
    "incoming.all": lambda at, who: at.desk.incoming.all(who),
    "incoming.rotate": lambda at, who: at.desk.incoming.rotate(who, "shop"),
    "incoming.remove": lambda at, who: at.desk.incoming.remove(who, "shop"),
    "learning.show": lambda at, who: at.desk.learning.show(who, profile("qq"), "11"),
    "learning.try_reply": lambda at, who: at.desk.learning.try_reply(who, "0", "x", send=False),
    "learning.choose": lambda at, who: at.desk.learning.choose(who, "0", "button"),
    "learning.correct": lambda at, who: at.desk.learning.correct(who, "0", "title"),
    "learning.shown": lambda at, who: at.desk.learning.shown(who, "0"),
    "phones.connect": lambda at, who: at.desk.phones.connect(who, PHONE),
    "phones.disconnect": lambda at, who: at.desk.phones.disconnect(who, PHONE),
    "phones.pair": lambda at, who: at.desk.phones.pair(who, PHONE, "123456"),
    "phones.can_scan": lambda at, who: at.desk.phones.can_scan(who),
    "phones.rename": lambda at, who: at.desk.phones.rename(who, PHONE, "x"),
    "phones.tag": lambda at, who: at.desk.phones.tag(who, PHONE, ["x"]),
    "phones.plan_setup": lambda at, who: at.desk.phones.plan_setup(who, PHONE),
    "phones.set_up": lambda at, who: at.desk.phones.set_up(who, PHONE),
    "phones.undo_setup": lambda at, who: at.desk.phones.undo_setup(who, PHONE),
    "history.recording": lambda at, who: at.desk.history.recording(who, "1"),
    "team.people": lambda at, who: at.desk.team.people(who),
    "team.find": lambda at, who: at.desk.team.find(who, "#1"),
    "console.link_for": lambda at, who: at.desk.console.link_for(who, ANNA),
    "team.invite": lambda at, who: at.desk.team.invite(who, Role.OPERATOR),
    "team.invites": lambda at, who: at.desk.team.invites(who),
    "team.revoke": lambda at, who: at.desk.team.revoke(who, "0123456789"),
    "team.set_role": lambda at, who: at.desk.team.set_role(who, "#1", Role.OWNER),
    "team.limit": lambda at, who: at.desk.team.limit(who, "#1", phones=[PHONE]),
    "team.remove": lambda at, who: at.desk.team.remove(who, "#1"),
    "team.undo_remove": lambda at, who: at.desk.team.undo_remove(who, "1"),
    "team.refused": lambda at, who: at.desk.team.refused(who),
    "team.audit": lambda at, who: at.desk.team.audit(who),
    "team.settings": lambda at, who: at.desk.team.settings(who),
}
# ``people.admit`` counts; ``kb.undo`` looks first whether there is something, and then is as ``kb.edit``;
# ``questions.seen_by`` and ``questions.alike`` are for those who have been let in.
NO_RIGHTS_OF_THEIR_OWN = {"people.admit", "kb.undo", "questions.seen_by", "questions.alike"}


async def _starts(call: Awaitable[WeekView]) -> int:
    return sum(entry.count for day in (await call).days for entry in day.entries)


async def _count(listing: Awaitable[Any]) -> int:
    return len(await listing)


async def _total(page: Awaitable[Any]) -> int:
    return int((await page).total)


def every_call(desk: Desk) -> set[str]:
    services = {f"{name}.": type(part) for name, part in vars(desk).items() if isinstance(part, DeskService)}
    return {
        prefix + name
        for prefix, service in {"": Desk, **services}.items()
        for name, method in inspect.getmembers(service, inspect.isfunction)
        if not name.startswith("_") and "actor" in inspect.signature(method).parameters
    }


def test_every_call_of_the_desk_is_looked_at_here(shop: Shop) -> None:
    looked_at = {*ON_THE_PHONE, *LISTS, *THE_REST, *OWNERS, *NO_RIGHTS_OF_THEIR_OWN}
    assert every_call(shop.desk) == looked_at


async def refused(busy: Busy, call: Awaitable[Any], why: str) -> None:
    with pytest.raises(AccessDenied):
        await call
    row = (await Audit(busy.shop.db).last(1))[0]
    assert (row.allowed, row.detail["why"]) == (False, why)
    assert nameless(row.command) == []
    assert unlabelled(row.detail) == set()


async def let_in(busy: Busy, call: Awaitable[Any]) -> None:
    """Whatever comes of it: it was not for want of a right."""
    try:
        await call
    except AccessDenied:
        raise
    except PhonedeskError:
        pass
    row = (await Audit(busy.shop.db).last(1))[0]
    assert row.allowed
    assert nameless(row.command) == []
    if row.command != "act":  # its detail is an action, which has words of its own
        assert unlabelled(row.detail) == set()


def nameless(command: str) -> list[str]:
    """The languages in which the audit log has no words for it."""
    return [lang for lang in LANGUAGES if texts(lang).operation(command) == command]


def unlabelled(detail: Mapping[str, Any]) -> set[str]:
    """The fields of a detail of the audit log that a language has no label for."""
    states = [fields_of(detail[key]) for key in ("before", "after") if detail.get("before") and detail.get("after")]
    fields = {*detail, *(key for state in states for key in state)} - {"before", "after", "why", FAILED} - ROW_FIELDS
    return {field for field in fields for lang in LANGUAGES if not console_texts(lang).find_own(f"detail.{field}", "")}


def test_what_is_changed_or_done_without_a_call_of_the_desk_has_labels_too() -> None:
    fields = {*Entry.model_fields, *(field.name for field in dataclass_fields(ContactView))}
    fields |= {"task", *TaskRules("free", ("qq",)).data(), *SweepOrder().data(), "names", "chat"}
    fields |= {*CHOICES, *TIMES, "said", *(field.name for field in dataclass_fields(ScheduleWish))}
    fields |= {field for tool in LOW_LEVEL if tool.acts for field in tool.arguments.model_fields}
    assert unlabelled(dict.fromkeys(fields - {"device_id"})) == set()
    assert unlabelled({"limited": True, "name": "Bob", "session": "1"}) == set()


def test_what_is_tried_without_a_call_of_the_desk_has_a_name_too() -> None:
    tried = {key.partition(".")[2] for key in catalogue("en") if key.startswith("command.")}
    tried = {name for name in tried if "_" not in name}  # the others are what a menu says to those who may do less
    tried |= {"button", "text", "pair", "webhook", "api key", "mcp key", "console log-in", "console log-out"}
    tried |= {"edited", "forwarded", "inline", "channel", "forged", "old", "secret"}  # ways of Telegram
    tried |= {"mcp task", "mcp reply", *(f"mcp {tool.name}" for tool in LOW_LEVEL if tool.acts)}
    assert {command: nameless(command) for command in tried if nameless(command)} == {}
    whys = ("stranger", "code", "role", "phone", "chat", "rate", "unknown key", "wrong link", "signature")
    assert all(texts(lang).refusal(why) != why for lang in LANGUAGES for why in whys)


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
            "runs.start",
            "runs.submit",
            "plans.start",
            "sweeps.start",
            "schedules.run",
            "questions.show",
            "questions.here",
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
    raised = await busy.shop.desk.people.actor("telegram", operator.user_id)
    assert raised is not None
    assert (raised.role, raised.phones, raised.chats) == (Role.OWNER, (), ())
    await let_in(busy, OWNERS[name](busy, replace(raised, chat=ELSEWHERE)))


async def test_a_card_is_not_put_into_a_chat_that_is_not_theirs(busy: Busy) -> None:
    who = replace(await busy.shop.person(Role.OPERATOR), chats=(CHAT.key,), chat=CHAT)
    await refused(busy, busy.desk.runs.start(who, "打开设置", chat=ELSEWHERE), "chat")


async def test_where_no_phone_is_named_it_is_their_own(busy: Busy) -> None:
    who = replace(await busy.shop.person(Role.OPERATOR), phones=(PHONE,))
    assert (await busy.desk.runs.start(who, "打开设置", chat=CHAT)).serial == PHONE
    of_two = replace(who, phones=(OTHER, PHONE))
    with pytest.raises(AccessDenied, match=r"Which phone is meant\? Yours: 127.0.0.1:16002, 127.0.0.1:16001"):
        await busy.desk.runs.start(of_two, "打开设置", chat=CHAT)
    usual = Desk(replace(busy.desk.context, serial=PHONE))
    assert (await usual.runs.start(of_two, "打开设置", chat=CHAT)).serial == PHONE


async def test_stop_without_a_name_passes_over_what_is_not_theirs(busy: Busy) -> None:
    who = await busy.shop.person(Role.OPERATOR)
    run = await busy.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    assert await busy.desk.runs.stop(replace(who, phones=(OTHER,))) is None
    stopped = await busy.desk.runs.stop(who)
    assert stopped is not None
    assert stopped.id == run.id


async def test_a_run_that_has_no_phone_yet_is_not_for_the_limited(busy: Busy) -> None:
    who = await busy.shop.person(Role.OPERATOR)
    run = await busy.desk.runs.start(who, "打开设置", chat=CHAT)
    assert run.serial == ""
    limited = replace(who, phones=(PHONE,))
    assert run.id not in {listed.id for listed in (await busy.desk.status(limited)).runs}
    await refused(busy, busy.desk.runs.stop(limited, run.id), "phone")


# How much a person may ask --------------------------------------------------------------------------------------------


def paced(shop: Shop, per_minute: int) -> Desk:
    return Desk(replace(shop.desk.context, pace=RequestLimit(per_minute)))


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
        await paced(shop, 0).people.admit(owner)


async def test_one_request_counts_once(shop: Shop) -> None:
    desk, who = paced(shop, 2), await shop.person(Role.VIEWER)
    for request in ("a", "b"):
        asked = replace(who, request=request)
        for _ in range(4):
            await desk.people.admit(asked)
            await desk.status(asked)
    for _ in range(2):  # handed in again: not known to be answered
        with pytest.raises(RateLimited) as told:
            await desk.people.admit(replace(who, request="c"))
        assert not isinstance(told.value, StillLimited)
    with pytest.raises(StillLimited):
        await desk.people.admit(replace(who, request="d"))


# Strangers ------------------------------------------------------------------------------------------------------------


async def test_what_strangers_try_is_written_down_up_to_a_point(shop: Shop) -> None:
    for _ in range(NOTED_OF_ONE + 3):
        await shop.desk.people.turned_away("telegram", "9", "Evil\u202e\nowner", "run")
    who = await shop.person(Role.VIEWER, "Anna")
    await shop.desk.people.turned_away("telegram", who.user_id, "Anna", "forwarded")
    rows = await Audit(shop.db).refused(50)
    assert [(row.actor, row.command, row.detail) for row in rows] == [
        (who.id, "forwarded", {"name": "Anna", "why": "forwarded"}),
        *[("telegram:9", "run", {"name": "Evil owner", "why": "stranger"})] * NOTED_OF_ONE,
    ]
    shop.clock.move(hours=1)
    await shop.desk.people.turned_away("telegram", "9", "Evil", "run")
    assert len(await Audit(shop.db).refused(50)) == len(rows) + 1


async def test_the_same_look_of_a_program_is_in_the_audit_log_once_a_minute(busy: Busy) -> None:
    who = replace(await busy.shop.person(Role.OPERATOR), channel=API)

    async def written() -> list[str]:
        rows = await Audit(busy.shop.db).last(100)
        return [row.command for row in rows if row.channel == API]

    for _ in range(3):
        await busy.desk.status(who)
    assert await written() == ["status"]
    await busy.desk.history.run(who, "1")  # another look
    await busy.desk.status(replace(who, id="key:other"))  # somebody else's
    assert sorted(await written()) == ["history open", "status", "status"]
    busy.shop.clock.move(seconds=60)
    await busy.desk.status(who)
    assert (await written()).count("status") == 3
    for _ in range(2):  # what is done is written down every time
        await busy.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    assert (await written()).count("run") == 2
    person = await busy.shop.person(Role.OPERATOR)
    for _ in range(2):
        await busy.desk.status(person)
    rows = await Audit(busy.shop.db).last(2)
    assert [(row.channel, row.command) for row in rows] == [(person.channel, "status")] * 2
