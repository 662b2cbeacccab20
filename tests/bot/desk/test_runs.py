from __future__ import annotations

import pytest

from agent_core.devices.adb.server import DeviceEntry
from agent_core.session import Question, QuestionKind, Session, Status, StepRecord
from bot.desk.actors import ChatRef, NotFound, Role
from bot.desk.port import RunStatus
from scheduler.ports import StoredHuman
from storage.leases import Leases
from storage.runs import NewRun, Runs
from tests.bot.desk.conftest import CHAT, PHONE, Shop


async def test_a_run_is_queued_with_all_that_was_asked(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR, "Desk A")
    view = await shop.desk.start_run(who, " 打开设置 ", chat=CHAT, serial=PHONE)
    assert (view.task, view.status, view.serial, view.chat) == ("打开设置", RunStatus.QUEUED, PHONE, CHAT)
    assert (view.by, view.lang, view.position, view.steps) == ("Desk A", "en", 1, 0)
    assert view.created_at == shop.clock.time
    second = await shop.desk.start_run(who, "打开设置", chat=CHAT, serial=PHONE)
    assert second.position == 2
    anywhere = await shop.desk.start_run(who, "打开设置", chat=CHAT)
    assert (anywhere.serial, anywhere.position) == ("", 1)  # another line
    assert await shop.desk.run("nothing") is None


async def test_the_same_request_starts_one_run(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    first = await shop.desk.start_run(who, "打开设置", chat=CHAT, key="m1")
    assert (await shop.desk.start_run(who, "打开设置", chat=CHAT, key="m1")).id == first.id
    assert (await shop.desk.start_run(who, "打开设置", chat=CHAT, key="m2")).id != first.id


async def test_a_phone_that_is_not_there_is_named(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    with pytest.raises(NotFound, match="ghost"):
        await shop.desk.start_run(who, "打开设置", chat=CHAT, serial="ghost")
    assert (await shop.desk.status(who)).runs == ()


async def test_stop_without_a_name_takes_ones_own_newest(shop: Shop) -> None:
    ann, bob = await shop.person(Role.OPERATOR, "Desk A"), await shop.person(Role.OPERATOR, "Desk B")
    assert await shop.desk.stop_run(ann) is None
    runs = [await shop.desk.start_run(who, "打开设置", chat=CHAT) for who in (ann, ann, bob)]
    for expected in (runs[1], runs[0]):
        stopped = await shop.desk.stop_run(ann)
        assert stopped is not None
        assert (stopped.id, stopped.status) == (expected.id, RunStatus.STOPPED)
        assert stopped.status.final
    assert await shop.desk.stop_run(bob, runs[0].id) is None  # it is over
    assert await shop.desk.stop_run(bob, "nothing") is None
    assert await shop.desk.stop_run(bob, runs[2].id) is not None


async def test_stop_without_a_name_leaves_other_peoples_runs_alone_but_not_a_schedules(shop: Shop) -> None:
    first, second = await shop.person(Role.OPERATOR), await shop.person(Role.OPERATOR)
    theirs = await shop.desk.start_run(first, "打开设置", chat=CHAT)
    assert await shop.desk.stop_run(second) is None
    tick = await Runs(shop.db).create(NewRun("打开设置", schedule_id=1, planned_at=shop.db.now()))
    stopped = await shop.desk.stop_run(second)
    assert stopped is not None
    assert stopped.id == tick
    still = await shop.desk.run(theirs.id)
    assert still is not None
    assert not still.status.final


async def test_the_view_follows_the_session(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    view = await shop.desk.start_run(who, "打开设置", chat=CHAT, serial=PHONE)
    runs = Runs(shop.db)
    await runs.begin_leg(view.id, 1, serial=PHONE)
    session = Session(
        run_id=view.id, task=view.task, serial=PHONE, max_steps=9, steps=[StepRecord(index=1, result="ok")]
    )
    await runs.save_session(view.id, session.model_dump_json())
    going = await shop.desk.run(view.id)
    assert going is not None
    assert (going.status, going.steps, going.max_steps, going.position) == (RunStatus.RUNNING, 1, 9, 0)
    assert going.last_step == session.steps[0]
    session.status = Status.WAITING  # the phone is held while a person is asked
    await runs.save_session(view.id, session.model_dump_json())
    waiting = await shop.desk.run(view.id)
    assert waiting is not None
    assert waiting.status is RunStatus.WAITING
    await runs.end_leg(view.id, 1, status="failed", message="no")
    session.error_kind = "model.auth"
    await runs.save_session(view.id, session.model_dump_json())
    over = await shop.desk.run(view.id)
    assert over is not None
    assert (over.status, over.message, over.error_kind) == (RunStatus.FAILED, "no", "model.auth")


async def test_status_shows_phones_runs_and_questions_oldest_first(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    shop.attached += [DeviceEntry("b", "unauthorized"), DeviceEntry("c", "offline"), DeviceEntry("d", "device")]
    runs = [await shop.desk.start_run(who, f"任务{number}", chat=CHAT) for number in range(3)]
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
    assert [phone.name for phone in status.phones][:2] == ["Pixel_8", "b"]
    assert [run.id for run in status.runs] == [run.id for run in runs]
    assert [view.id for view in status.questions] == ["q1"]


async def test_a_chat_is_stored_whole(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    for chat in (CHAT, ChatRef("telegram", "1")):
        assert (await shop.desk.start_run(who, "打开设置", chat=chat)).chat == chat
