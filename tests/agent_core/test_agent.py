"""The loop itself: what it raises, what it puts back, what it will not do for ever."""

from __future__ import annotations

import pytest

from agent_core.errors import CommandFailed, DeviceOffline, LeaseLost
from agent_core.repeats import rounds
from agent_core.retry import with_retries
from agent_core.session import QuestionKind, Session, Status
from tests.support.lab import ASK, FINISH, LAUNCH, Lab, do
from tests.support.model_server import ScriptedModel

HOME = do('do(action="Home")')


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
    assert bench_lab.story.kinds().count("outcome") == before + 1  # the leg may have died before it told


async def test_a_cycle_of_screens_is_called_out_and_ends_at_a_person(bench_lab: Lab) -> None:
    async with ScriptedModel([LAUNCH, HOME] * 10) as model:
        session = await bench_lab.run(model, "看看")
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


async def test_what_a_dead_leg_sent_is_told_to_the_model(bench_lab: Lab) -> None:
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
