"""The loop itself: what it raises, what it puts back, what it will not do for ever."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from agent_core.actions.types import Finish, Home, Launch
from agent_core.agent import PhoneAgent
from agent_core.errors import CommandFailed, DeviceOffline, LeaseLost
from agent_core.loop.defaults import NoStore
from agent_core.loop.guard import rounds
from agent_core.loop.outcome import said_at_stop
from agent_core.loop.recording import Recorder
from agent_core.model.client import ChatModel
from agent_core.perception.observer import Observer
from agent_core.perception.reader import ScreenReader
from agent_core.ports import Event
from agent_core.retry import with_retries
from agent_core.session import QuestionKind, ReplyRecord, Session, Status
from agent_core.settings import AgentSettings, new_session
from agent_core.texts import say
from tests.support.clock import Clock
from tests.support.lab import ANSWER, ASK, FINISH, LAUNCH, Lab, Story, do, lab
from tests.support.model_server import ScriptedModel
from tests.support.model_server import Status as Refusal

HOME = do('do(action="Home")')
TAP = do('do(action="Tap", element=[500,300])')


class LostAfter:
    """A lease that another owner takes after some checks."""

    def __init__(self, checks: int) -> None:
        self.left = checks

    async def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise LeaseLost("The phone was taken by another owner.")


@pytest.mark.parametrize("checks", range(7))
async def test_a_phone_that_is_taken_is_not_touched_any_more(bench_lab: Lab, checks: int) -> None:
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, FINISH]) as model:
        with pytest.raises(LeaseLost):
            await bench_lab.run(model, lease=LostAfter(checks))
    assert bench_lab.sent == {}
    cleared = [a for a in bench_lab.phone.report()["actions"] if a["what"] == "broadcast"]
    assert len(cleared) == {5: 1, 6: 2}.get(checks, 0)  # clear, then type, and no clearing once it is theirs


async def test_what_a_dead_run_left_switched_is_put_back_at_the_start(bench_lab: Lab) -> None:
    dead = bench_lab.another()
    held = [dead.keyboard(), dead.kept_awake()]  # kept, or they would tidy up when they are collected
    for one in held:
        await one.__aenter__()
    async with ScriptedModel([FINISH]) as model:
        session = await bench_lab.run(model, "打开设置")
    assert session.status is Status.SUCCEEDED
    assert "sogou" in bench_lab.phone.report()["input_method"]
    assert not [name for _, name in bench_lab.phone.settings if name.startswith("phonedesk")]


async def test_a_run_that_has_ended_is_not_done_again(bench_lab: Lab) -> None:
    async with ScriptedModel([FINISH]) as model:
        session = await bench_lab.run(model, "打开设置")
    before = bench_lab.story.kinds().count("outcome")
    async with ScriptedModel([]) as model:
        again = await bench_lab.run(model, session=Session.model_validate_json(session.model_dump_json()))
        assert model.requests == []
    assert again.status is Status.SUCCEEDED
    assert bench_lab.story.kinds().count("outcome") == before + 1  # the attempt may have died before it told


async def test_a_cycle_of_screens_is_called_out_and_ends_at_a_person() -> None:
    """Also if the clock of the home screen goes on meanwhile: with most models, twelve steps take a minute."""
    clock, calls = Clock(), cycle([LAUNCH, HOME])

    def think(body: dict[str, Any]) -> str:
        clock.move(minutes=1)
        return next(calls)

    async with lab(clock=clock) as made, ScriptedModel([think], repeat_last=True) as model:
        session = await made.run(model, "看看")
        told = [n for n, request in enumerate(model.requests) if "重复" in str(request["messages"][-1])]
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.STUCK
    assert told
    assert len(session.steps) <= 14


def test_rounds_of_a_trail() -> None:
    assert rounds(list("aaa"), 1) == 3
    assert rounds(list("xabab"), 2) == 2
    assert rounds(list("ab"), 3) == 0
    assert rounds([], 1) == 0
    assert rounds(list("ababb"), 2) == 1


async def test_what_a_dead_attempt_sent_is_told_to_the_model(bench_lab: Lab) -> None:
    """The model asks once more; it is told instead of sent into the chat again."""
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, ASK, FINISH]) as model:
        session = await bench_lab.run(model)
        assert "已在聊天里看到" in str(model.requests[2]["messages"][-1])
    assert session.status is Status.SUCCEEDED
    assert len(bench_lab.sent["11"]) == 1


async def test_retries_do_not_multiply() -> None:
    tries: list[float] = []

    async def sleep(seconds: float) -> None:
        tries.append(seconds)

    async def away() -> None:
        raise DeviceOffline("gone")

    with pytest.raises(DeviceOffline):
        await with_retries(lambda: with_retries(away, sleep=sleep), sleep=sleep)
    assert tries == [1, 2, 4]

    async def failing() -> None:
        raise CommandFailed("no")

    with pytest.raises(CommandFailed):
        await with_retries(failing, sleep=sleep)
    assert tries == [1, 2, 4, 1, 2]


class Pictured(Story):
    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        await super().event(run_id, event, picture=picture, session=session)
        if event.kind in {"step", "outcome"}:
            assert (picture is None) is (event.data.get("status") == "succeeded")


async def test_the_step_that_failed_a_run_is_kept(bench_lab: Lab) -> None:
    """By the phone: what was thought and wanted; by the model: the screen that it did not answer about."""
    bench_lab.story = Pictured()
    bench_lab.phone.set_fault("input_denied", True)
    async with ScriptedModel([TAP]) as model:
        session = await bench_lab.run(model, "看看")
    [step] = session.steps
    assert (session.error_kind, step.ok, step.thinking) == ("device.input_denied", False, "想一想")
    assert step.asked == step.action == {"kind": "tap", "element": (500, 300), "message": None}
    assert (step.result, step.tokens_out) == (session.message, 20)
    assert {"model", "gate", "act", "step"} <= step.timings.keys()
    bench_lab.phone.set_fault("input_denied", False)
    async with ScriptedModel([LAUNCH, Refusal(401)]) as model:
        session = await bench_lab.run(model, "看看")
    assert (session.error_kind, len(session.steps)) == ("model.auth", 2)
    step = session.steps[1]
    assert (step.ok, step.asked, step.action, step.reply, step.model) == (False, None, None, "", "scripted")
    assert step.result == session.message
    assert bench_lab.story.kinds()[-2:] == ["step", "outcome"]
    run = Session(run_id="r", task="t")
    observer = Observer(bench_lab.device, ScreenReader(ocr=None, model=None))
    with pytest.raises(DeviceOffline):
        async with Recorder(run, NoStore(), observer.redaction).taking(await observer.observe(None)):
            raise DeviceOffline("away")
    assert "step" in run.steps[0].timings
    assert "model" not in run.steps[0].timings  # nobody had asked it yet


async def test_one_step_after_the_other(bench_lab: Lab) -> None:
    dead = bench_lab.another().keyboard()  # kept, or it would tidy up when it is collected
    await dead.__aenter__()
    bench_lab.phone.set_fault("asleep", True)
    async with ScriptedModel([LAUNCH, HOME, FINISH, FINISH, HOME]) as model:
        client = ChatModel(model.url, "scripted", "key", timeout=5)
        settings = AgentSettings(max_steps=3)
        agent = PhoneAgent(model=client, device=bench_lab.device, store=bench_lab.story, settings=settings)
        with pytest.raises(ValueError, match="needs a task"):
            await agent.step()
        first, second, third, over = [await agent.step("看看" if n == 0 else None) for n in range(4)]
        assert (first.action, first.success, first.finished, first.thinking) == (
            Launch(app="QQ"),
            True,
            False,
            "想一想",
        )
        assert "sogou" in bench_lab.phone.report()["input_method"]  # what a dead run left was put back
        assert (second.action, second.finished) == (Home(), False)
        assert (third.action, third.finished, third.message) == (Finish(message="已回复"), True, "已回复")
        assert (over.action, over.success, over.finished) == (None, True, True)
        assert bench_lab.story.kinds().count("outcome") == 1
        agent.reset()
        with pytest.raises(ValueError, match="no run"):
            _ = agent.session
        assert await agent.run("看看") == "已回复"
        agent.reset()
        agent._settings = AgentSettings(max_steps=1)
        assert (await agent.step("看看")).action == Home()
        limit = await agent.step()
        assert (limit.action, limit.success, limit.finished) == (None, False, True)
        assert "最大步数 1" in limit.message
        await client.close()
    assert not [name for _, name in bench_lab.phone.settings if name.startswith("phonedesk")]


async def test_a_dry_run_leaves_a_sleeping_phone_asleep_and_says_so(bench_lab: Lab) -> None:
    """Nor is put back what another run, dead for all it knows, has switched."""
    another = bench_lab.another()
    async with another.keyboard(), another.kept_awake():
        bench_lab.phone.set_fault("asleep", True)
        before = bench_lab.phone.report()["actions"], dict(bench_lab.phone.settings)
        for requests in (0, 1):
            session = new_session("看看", bench_lab.device.serial, AgentSettings(), dry_run=True)
            async with ScriptedModel([TAP]) as model:
                session = await bench_lab.run(model, session=session)
                assert len(model.requests) == requests
            if not requests:
                assert (session.status, session.error_kind) == (Status.FAILED, "")
                assert "屏幕是关着的" in session.message
                assert not (await bench_lab.device.look()).screen.awake
                bench_lab.phone.set_fault("asleep", False)
        assert "下一步是“点击 (500, 300)”，没有执行" in session.message
        assert (bench_lab.phone.report()["actions"], dict(bench_lab.phone.settings)) == before


@pytest.mark.parametrize(
    ("task", "opened", "advised"),
    [("帮我给张三发红包", False, False), ("QQ回复联系人11", False, True), ("QQ回复联系人11", True, False)],
)
async def test_a_dry_run_advises_to_open_the_chat_only_for_a_reply_whose_chat_is_not_in_front(
    bench_lab: Lab, task: str, opened: bool, advised: bool
) -> None:
    if opened:
        await bench_lab.open_chat()
    session = new_session(task, bench_lab.device.serial, AgentSettings(), dry_run=True)
    async with ScriptedModel(['do(action="Back")' if opened else 'do(action="Launch", app="QQ")']) as model:
        session = await bench_lab.run(model, session=session)
    assert "没有执行" in session.message
    assert ("请先在手机上打开联系人的聊天" in session.message) is advised


async def test_a_dry_run_with_nothing_new_says_it_once_and_that_the_run_would_end_there(bench_lab: Lab) -> None:
    bench_lab.phone.colleague("11", "您好，今天就发")
    await bench_lab.open_chat()
    session = new_session("QQ回复联系人11", bench_lab.device.serial, AgentSettings(), dry_run=True)
    async with ScriptedModel(['finish(message="没有新的提问")']) as model:
        session = await bench_lab.run(model, session=session)
    nothing_new = say("zh", "run.nothing_new", contact="11")
    assert session.message == say("zh", "run.dry_run_end", message=nothing_new)
    (step,) = session.steps
    assert [verdict.policy for verdict in step.verdicts] == ["nothing_new"], "not also that a question is open"


@pytest.mark.parametrize(("found", "said"), [(True, f"会回复“{ANSWER}”"), (False, "没有确定的答案")])
async def test_a_dry_run_says_what_a_question_would_be_answered(bench_lab: Lab, found: bool, said: str) -> None:
    if not found:
        bench_lab.knowledge.records = ()
    before = bench_lab.phone.report()["actions"]
    session = new_session("看看", bench_lab.device.serial, AgentSettings(), dry_run=True)
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model, session=session)
    assert session.status is Status.SUCCEEDED
    assert said in session.message
    assert bench_lab.phone.report()["actions"] == before


@pytest.mark.parametrize(("sent", "key"), [(False, "run.stopped_first"), (True, "run.stopped")])
def test_a_run_that_has_sent_something_is_not_said_to_have_done_no_step(sent: bool, key: str) -> None:
    session = Session(run_id="r", task="t")
    if sent:
        session.replies = [ReplyRecord(contact="11", question="?", text="!", provenance="kb", delivered=True)]
    assert said_at_stop(session) == say(session.lang, key)
