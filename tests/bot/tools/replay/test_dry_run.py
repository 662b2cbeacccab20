"""A recorded run shown to another model: what it is asked, how its answers count, and what the gate makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_core.loop.trajectory import Trajectory
from agent_core.model.client import ChatModel
from agent_core.model.profile import model_profile
from agent_core.session import Status
from agent_core.settings import AgentSettings, new_session
from bot.desk.history import recorded_steps
from bot.desk.history_views import RecordingView
from bot.desk.views import RunStatus, RunView
from bot.tools.replay.dry_run import messages_for, try_again
from scheduler.runs.executor import StoredRuns
from storage.engine import Database
from storage.model_calls import Trajectories
from storage.runs import NewRun, Runs
from tests.support.database import empty_sqlite
from tests.support.lab import ASK, FINISH, TASK, do, lab
from tests.support.model_server import Script, ScriptedModel
from tests.support.model_server import Status as Refusal
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr
USUAL = model_profile("autoglm-phone")


async def a_reply(db: Database, last: Script = FINISH) -> tuple[RecordingView, list[Any]]:
    """A customer's question answered on a virtual phone, recorded; and the requests that the model got."""
    run_id = await Runs(db).create(NewRun(TASK, begun=True))
    assert run_id is not None
    async with lab() as made:
        await made.open_chat()
        async with ScriptedModel([ASK, do("oops"), last]) as model:
            session = await made.run(
                model,
                session=new_session(TASK, made.device.serial, AgentSettings(), run_id=run_id),
                store=StoredRuns(db, attempt=1),
                trajectory=Trajectory(Trajectories(db, attempt=1)),
            )
            assert (session.status is Status.SUCCEEDED) is (last == FINISH), session.message
            sent = [request["messages"] for request in model.requests]
    run = RunView(id=run_id, task=TASK, status=RunStatus.SUCCEEDED)
    return RecordingView(1, run, session, await recorded_steps(db, session, {})), sent


async def test_another_model_over_the_same_run(tmp_path: Path) -> None:
    db = Database(await empty_sqlite(tmp_path / "desk.db"))
    view, sent = await a_reply(db)
    assert len(view.recorded) == len(sent)

    # A model of the same profile gets what was sent then; the session as it was gives the same words.
    for step, then in zip(view.recorded, sent, strict=True):
        assert step.asked is not None
        assert messages_for(view.session, step, step.asked, USUAL) == then
        rebuilt = messages_for(view.session, step, step.asked, USUAL.model_copy(update={"name": "a twin"}))
        assert rebuilt == then

    # One answers as before, one finishes before the knowledge base was asked, one cannot be read.
    async with ScriptedModel([FINISH, do("oops"), FINISH]) as model:
        client = ChatModel(model.url, "other", "key", timeout=5)
        tried = [one async for one in try_again(view, client, model_profile("general"))]
        await client.close()
        assert not model.invalid
        assert model.requests[0]["messages"][0]["content"] != sent[0][0]["content"]  # asked in its own form
        assert model.requests[0]["messages"][-1]["content"][0] == sent[0][-1]["content"][0]  # shown the same picture
    await db.close()
    assert [one.likeness.value for one in tried] == ["different", "invalid", "same"]
    early, unreadable, end = tried
    assert early.new is not None
    assert early.new.kind == "finish"
    assert early.allowed != early.new  # the gate holds for what is only tried, too
    assert early.rules
    assert unreadable.error
    assert end.allowed == end.new
    assert all(one.seconds > 0 and one.before > 0 and one.tokens_in for one in tried)


async def test_the_screen_that_a_model_failed_on_is_shown_and_not_compared(tmp_path: Path) -> None:
    db = Database(await empty_sqlite(tmp_path / "desk.db"))
    view, sent = await a_reply(db, Refusal(401))
    last = view.steps[-1]
    assert view.session.message == f"{last.record.result}\n已回复 11，发出 1 条。"
    assert last.messages[-1]["role"] == "user"
    assert last.picture is not None
    async with ScriptedModel([FINISH, FINISH]) as model:
        client = ChatModel(model.url, "other", "key", timeout=5)
        tried = [one.step async for one in try_again(view, client, USUAL)]
        await client.close()
    await db.close()
    assert len(view.recorded) == len(sent)
    assert tried == [step.record.index for step in view.recorded[:-1]]
