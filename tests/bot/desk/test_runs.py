from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent_core.devices.base import DeviceEntry
from agent_core.ports import MessageKey, ReplyState
from agent_core.session import Question, QuestionKind, Session, Status, StepRecord
from bot.channels.chat.history import past_lines
from bot.channels.chat.texts import LANGUAGES, texts
from bot.desk.actors import AccessDenied, Actor, ChatRef, MessageRef, NotFound, Role
from bot.desk.desk import Desk
from bot.desk.history_views import HistoryAsked
from bot.desk.views import BusyView, RunStatus, RunView
from scheduler.runs.host import Fleet
from scheduler.runs.human import StoredHuman
from storage.hosts import Phones
from storage.leases import TAKEN_OVER, Leases
from storage.ledger import StoredLedger
from storage.runs import NewRun, Runs
from tests.support.shop import CHAT, PHONE, Shop


async def test_a_run_is_queued_with_all_that_was_asked(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR, "Desk A")
    view = await shop.desk.runs.start(who, " 打开设置 ", chat=CHAT, serial=PHONE)
    assert (view.task, view.status, view.serial, view.chat) == ("打开设置", RunStatus.QUEUED, PHONE, CHAT)
    assert (view.by, view.lang, view.position, view.steps) == ("Desk A", "en", 1, 0)
    assert view.created_at == shop.clock.time
    second = await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    assert second.position == 2
    anywhere = await shop.desk.runs.start(who, "打开设置", chat=CHAT)
    assert (anywhere.serial, anywhere.position) == ("", 1)  # another line
    assert await shop.desk.runs.get("nothing") is None


async def test_the_same_request_starts_one_run(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    first = await shop.desk.runs.start(who, "打开设置", chat=CHAT, key="m1")
    assert (await shop.desk.runs.start(who, "打开设置", chat=CHAT, key="m1")).id == first.id
    assert (await shop.desk.runs.start(who, "打开设置", chat=CHAT, key="m2")).id != first.id


async def test_a_phone_that_is_not_there_is_named(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    with pytest.raises(NotFound, match="ghost"):
        await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial="ghost")
    assert (await shop.desk.status(who)).runs == ()


async def test_stop_without_a_name_takes_ones_own_newest(shop: Shop) -> None:
    ann, bob = await shop.person(Role.OPERATOR, "Desk A"), await shop.person(Role.OPERATOR, "Desk B")
    assert await shop.desk.runs.stop(ann) is None
    runs = [await shop.desk.runs.start(who, "打开设置", chat=CHAT) for who in (ann, ann, bob)]
    for expected in (runs[1], runs[0]):
        stopped = await shop.desk.runs.stop(ann)
        assert stopped is not None
        assert (stopped.id, stopped.status) == (expected.id, RunStatus.STOPPED)
        assert stopped.status.final
    assert await shop.desk.runs.stop(bob, runs[0].id) is None  # it is over
    with pytest.raises(NotFound, match="no run 99999"):
        await shop.desk.runs.stop(bob, "99999")
    assert await shop.desk.runs.stop(bob, runs[2].id) is not None


async def test_stop_without_a_name_leaves_other_peoples_runs_alone_but_not_a_schedules(shop: Shop) -> None:
    first, second = await shop.person(Role.OPERATOR), await shop.person(Role.OPERATOR)
    theirs = await shop.desk.runs.start(first, "打开设置", chat=CHAT)
    assert await shop.desk.runs.stop(second) is None
    tick = await Runs(shop.db).create(NewRun("打开设置", schedule_id=1, planned_at=shop.db.now()))
    stopped = await shop.desk.runs.stop(second)
    assert stopped is not None
    assert stopped.id == tick
    still = await shop.desk.runs.get(theirs.id)
    assert still is not None
    assert not still.status.final


async def test_stop_and_hold_without_a_name_take_what_is_at_work_before_what_is_in_line(shop: Shop) -> None:
    ann, boss = await shop.person(Role.OPERATOR, "Desk A"), await shop.person(Role.OWNER, "Boss")
    at_work = await shop.desk.runs.start(ann, "打开设置", chat=CHAT, serial=PHONE)
    await Runs(shop.db).begin_attempt(at_work.id, 1, serial=PHONE)
    in_line = await shop.desk.runs.start(ann, "打开相机", chat=CHAT, serial=PHONE)
    held = await shop.desk.runs.hold(boss)  # somebody else's, but it alone is at work
    assert held is not None
    assert held.id == at_work.id
    await shop.desk.runs.resume(boss, at_work.id)
    stopped = [await shop.desk.runs.stop(ann), await shop.desk.runs.stop(ann)]
    assert [run.id for run in stopped if run] == [at_work.id, in_line.id]
    assert await shop.desk.runs.stop(boss) is None  # what stops already is not stopped again


async def test_a_runs_card_and_its_questions_say_which_run_is_meant(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    run = await shop.desk.runs.start(who, "打开设置", chat=CHAT)
    card, asked = MessageRef(CHAT, "5", False), MessageRef(CHAT, "6", False)
    await shop.desk.runs.set_card(run.id, card)
    question = Question(id="q1", kind=QuestionKind.INTERACT, text="?", free_text=True)
    await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=run.id, task="t"), question)
    await shop.desk.questions.set_card("q1@again", asked)
    for ref, meant in ((card, run.id), (asked, run.id), (replace(card, message_id="7"), None)):
        assert await shop.desk.runs.at(ref) == meant


async def test_a_view_does_not_wait_for_an_adb_that_hangs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.desk.runs.GLANCE_SECONDS", 0.05)
    hanging = Desk(replace(shop.desk.context, glance=asyncio.Event().wait))  # type: ignore[arg-type]  # never there
    view = await hanging.runs.start(await shop.person(Role.OPERATOR), "打开设置", chat=CHAT)
    assert (view.status, view.away) == (RunStatus.QUEUED, "")


async def test_a_stopped_reply_names_the_customer_whom_it_left_unanswered(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    view = await shop.desk.runs.start(who, "QQ回复联系人11", chat=CHAT, serial=PHONE)
    runs = Runs(shop.db)
    await runs.begin_attempt(view.id, 1, serial=PHONE)
    ledger = StoredLedger(shop.db)
    first, second = [
        await ledger.open(MessageKey(PHONE, "qq", "11", mark), run_id=view.id, question="?") for mark in ("f1", "f2")
    ]
    await ledger.advance(first.id, ReplyState.SKIPPED, expected=[ReplyState.PLANNED])
    assert await told_in(shop, view.id, who) == ("", ""), "it goes on"
    over = Session(run_id=view.id, task=view.task, status=Status.STOPPED)
    await runs.save_session(view.id, over.model_dump_json())
    now = await shop.desk.runs.get(view.id)
    assert now is not None
    assert now.unanswered == "11", "its row is closed after its end is told"
    await runs.end_attempt(view.id, 1, status="stopped", message="")
    assert await told_in(shop, view.id, who) == ("11", "11")
    await ledger.advance(second.id, ReplyState.SKIPPED, expected=[ReplyState.PLANNED])
    assert await told_in(shop, view.id, who) == ("", "")


async def told_in(shop: Shop, run_id: str, who: Actor) -> tuple[str, str]:
    """Whom a run has left unanswered, as its view says and as the list of past runs does."""
    now = await shop.desk.runs.get(run_id)
    assert now is not None
    listed = (await shop.desk.history.runs(who, HistoryAsked())).runs[0]
    assert listed.id == run_id
    for lang in LANGUAGES:
        said = texts(lang).get("card.unanswered", contact="11")
        assert (said in past_lines(listed, texts(lang))[1].text) == bool(listed.unanswered)
    return now.unanswered, listed.unanswered


async def test_a_run_that_was_stopped_while_it_waited_no_longer_says_what_to_do_for_it(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    view = await shop.desk.runs.start(who, "QQ回复联系人11", chat=CHAT, serial=PHONE)
    runs, asks = Runs(shop.db), "Confirm it before it is sent."
    await runs.begin_attempt(view.id, 1, serial=PHONE)
    session = Session(run_id=view.id, task=view.task, status=Status.WAITING, message=asks)
    await runs.save_session(view.id, session.model_dump_json())
    await runs.park_attempt(view.id, 1, message=asks)
    waiting = await shop.desk.runs.get(view.id)
    assert waiting is not None
    assert waiting.message == asks
    stopped = await shop.desk.runs.stop(who, view.id)
    assert stopped is not None
    assert (stopped.status, stopped.message) == (RunStatus.STOPPED, "")
    assert (await shop.desk.history.runs(who, HistoryAsked())).runs[0].message == ""


async def test_a_queued_run_tells_what_has_its_phone(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    first = await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    runs = Runs(shop.db)
    second = await shop.desk.runs.start(who, "打开QQ", chat=CHAT, serial=PHONE)
    assert second.busy_with is None, "nothing has it yet"
    await runs.begin_attempt(first.id, 1, serial=PHONE)
    lease = await Leases(shop.db).acquire(PHONE, owner="host", run_id=first.id)
    assert lease is not None
    session = Session(run_id=first.id, task=first.task, steps=[StepRecord(index=1, result="ok")])
    busy = BusyView("run", 1, "打开设置", 1, who.name)
    for status, seen in ((Status.RUNNING, busy), (Status.WAITING, replace(busy, kind="asks"))):
        session.status = status
        await runs.save_session(first.id, session.model_dump_json())
        now = await shop.desk.runs.get(second.id)
        assert now is not None
        assert now.busy_with == seen
    anywhere = await shop.desk.runs.start(who, "打开QQ", chat=CHAT)
    assert anywhere.busy_with == BusyView("asks", 1, "打开设置", 1, who.name)
    its = await shop.desk.runs.get(first.id)
    assert its is not None
    assert its.busy_with is None
    for why, seen in ((TAKEN_OVER + "Anna", BusyView("person", by="Anna")), ("doctor", BusyView("other"))):
        await Leases(shop.db).release(lease)
        lease = await Leases(shop.db).acquire(PHONE, owner="host", run_id=why)
        assert lease is not None
        now = await shop.desk.runs.get(second.id)
        assert now is not None
        assert now.busy_with == seen


async def test_the_view_follows_the_session(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    view = await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    runs = Runs(shop.db)
    await runs.begin_attempt(view.id, 1, serial=PHONE)
    session = Session(
        run_id=view.id, task=view.task, serial=PHONE, max_steps=9, steps=[StepRecord(index=1, result="ok")]
    )
    await runs.save_session(view.id, session.model_dump_json())
    going = await shop.desk.runs.get(view.id)
    assert going is not None
    assert (going.status, going.steps, going.max_steps, going.position) == (RunStatus.RUNNING, 1, 9, 0)
    assert going.last_step == session.steps[0]
    session.status = Status.WAITING  # the phone is held while a person is asked
    await runs.save_session(view.id, session.model_dump_json())
    waiting = await shop.desk.runs.get(view.id)
    assert waiting is not None
    assert waiting.status is RunStatus.WAITING
    await runs.end_attempt(view.id, 1, status="failed", message="no")
    session.error_kind = "model.auth"
    await runs.save_session(view.id, session.model_dump_json())
    over = await shop.desk.runs.get(view.id)
    assert over is not None
    assert (over.status, over.message, over.error_kind) == (RunStatus.FAILED, "no", "model.auth")


async def test_status_shows_phones_runs_and_questions_oldest_first(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    shop.attached += [DeviceEntry("b", "unauthorized"), DeviceEntry("c", "offline"), DeviceEntry("d", "device")]
    runs = [await shop.desk.runs.start(who, f"任务{number}", chat=CHAT) for number in range(3)]
    question = Question(id="q1", kind=QuestionKind.INTERACT, text="?", free_text=True)
    await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=runs[0].id, task="t"), question)
    await Leases(shop.db).acquire("d", "me", runs[1].id)
    status = await shop.desk.status(who)
    assert [(phone.serial, phone.state) for phone in status.phones] == [
        (PHONE, "free"),
        ("b", "unauthorized"),
        ("c", "offline"),
        ("d", "busy"),
    ]
    assert [phone.name for phone in status.phones][:2] == ["Pixel 8", "b"]
    assert [run.id for run in status.runs] == [run.id for run in runs]
    assert [view.id for view in status.questions] == ["q1"]


def glancing(shop: Shop, **more: Any) -> Desk:
    """A desk that knows at once what is attached."""
    return Desk(replace(shop.desk.context, glance=shop.desk.context.entries, host="here", **more))


async def test_a_run_whose_phone_is_away_says_so_until_it_is_back(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    desk = glancing(shop, fleet=Fleet(shop.db, wait=timedelta(minutes=5)), names={"S1": "Counter"})
    view = await desk.runs.start(who, "打开设置", chat=CHAT, serial="counter")
    assert (view.serial, view.phone, view.status, view.away) == ("S1", "Counter", RunStatus.QUEUED, "offline")
    assert view.away_until is not None
    assert view.away_until == shop.clock.time + timedelta(minutes=5)
    assert str(view.away_until.tzinfo) == "Asia/Shanghai"
    status = await desk.status(who)
    assert [(phone.name, phone.state) for phone in status.phones][1:] == [("Counter", "offline")]
    shop.attached.append(DeviceEntry("S1", "unauthorized"))
    assert (await run_of(desk, view.id)).away == "unauthorized"
    shop.attached[-1] = DeviceEntry("S1", "device", "Mate_60")
    assert (await run_of(desk, view.id)).away == ""
    anywhere = await desk.runs.start(who, "打开设置", chat=CHAT)
    assert anywhere.away == ""
    shop.attached.clear()
    assert (await run_of(desk, anywhere.id)).away == "none"


async def test_what_was_resumed_waits_for_its_phone_and_for_nobody(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    desk = glancing(shop)
    view = await desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    await Runs(shop.db).begin_attempt(view.id, 1, serial=PHONE)
    await desk.runs.hold(who, view.id)
    await Runs(shop.db).park_attempt(view.id, 1)
    held = await run_of(desk, view.id)
    assert (held.status, held.held, held.away) == (RunStatus.WAITING, True, "")
    shop.attached.clear()
    resumed = await desk.runs.resume(who, view.id)
    assert resumed is not None
    assert (resumed.status, resumed.held, resumed.position, resumed.away) == (RunStatus.QUEUED, False, 1, "offline")


async def test_history_tells_what_waits_for_a_person_from_what_does_not(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    runs, desk = Runs(shop.db), shop.desk
    views = [await desk.runs.start(who, f"任务{number}", chat=CHAT, serial=PHONE) for number in range(4)]
    for view in views[:3]:
        await runs.begin_attempt(view.id, 1, serial=PHONE)
    question = Question(id="q1", kind=QuestionKind.INTERACT, text="?", free_text=True)
    await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=views[0].id, task="t"), question)  # the phone is held
    await desk.runs.hold(who, views[1].id)
    await runs.park_attempt(views[1].id, 1)
    await runs.interrupt_attempt(views[2].id, 1)  # by a restart
    page = await desk.history.runs(who, HistoryAsked())
    assert [(run.status, run.held) for run in reversed(page.runs)] == [
        (RunStatus.WAITING, False),
        (RunStatus.WAITING, True),
        (RunStatus.QUEUED, False),
        (RunStatus.QUEUED, False),
    ]
    assert {run.phone for run in page.runs} == {PHONE}
    for status, numbers in (("waiting", [2, 1]), ("queued", [4, 3]), ("running", [])):
        found = await desk.history.runs(who, HistoryAsked(status=status))
        assert [run.number for run in found.runs] == numbers


async def test_a_phone_is_called_the_same_everywhere(shop: Shop) -> None:
    who = replace(await shop.person(Role.OPERATOR), phones=(PHONE,))
    await Phones(shop.db).saw({PHONE: "Pixel_8"})
    await Phones(shop.db).saw({PHONE: ""})  # it does not let us in: what it is stays known
    name = "Pixel 8"
    view = await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial="Pixel 8")
    assert (view.serial, view.phone) == (PHONE, name)
    assert (await shop.desk.status(who)).phones[0].name == name
    assert (await shop.desk.history.runs(who, HistoryAsked(words=name))).total == 1
    assert await shop.desk.phones.names(who.phones) == (name,)
    with pytest.raises(AccessDenied, match=name):
        await shop.desk.runs.stop(who, (await shop.desk.runs.start(replace(who, phones=()), "x", chat=CHAT)).id)
    await Phones(shop.db).saw({"192.168.1.7:5555": "Pixel_8"})  # from now on the model alone does not tell which
    assert await shop.desk.phones.names([PHONE, "192.168.1.7:5555"]) == ("Pixel 8 · 1:16001", "Pixel 8 · 7:5555")
    assert (await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial="Pixel 8 · 1:16001")).serial == PHONE


async def run_of(desk: Desk, run_id: str) -> RunView:
    view = await desk.runs.get(run_id)
    assert view is not None
    return view


async def test_a_chat_is_stored_whole(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    for chat in (CHAT, ChatRef("telegram", who.user_id)):
        assert (await shop.desk.runs.start(who, "打开设置", chat=chat)).chat == chat
