"""A phone that is locked while an answer is typed: our text is taken away as soon as the phone can be reached."""

from __future__ import annotations

import pytest

from agent_core.ports import ReplyState
from agent_core.reply import sender
from agent_core.session import Status
from simulator.phone import ime
from tests.support.lab import ANSWER, ASK, FINISH, Lab, do
from tests.support.model_server import ScriptedModel

OPEN_WECHAT = do('do(action="Launch", app="微信")')
DONE = do('finish(message="好了")')


def locked_while_typed(
    bench: Lab, monkeypatch: pytest.MonkeyPatch, *, looks: int | None, fault: str = "locked"
) -> None:
    """Lock the phone once the answer stands in the input; unlock it after so many looks, or never."""
    hear, look, left = ime.hear, bench.device.look, looks

    def heard(*arguments: object) -> None:
        hear(*arguments)  # type: ignore[arg-type]  # as they came
        if any(bench.drafts.values()) and not locked:
            locked.append(True)
            bench.phone.set_fault(fault, True)

    async def looked() -> object:
        nonlocal left
        if locked and left is not None:
            left -= 1
            if left == 0:
                bench.phone.set_fault(fault, False)
        return await look()

    locked: list[bool] = []
    monkeypatch.setattr(ime, "hear", heard)
    monkeypatch.setattr(bench.device, "look", looked)


async def test_the_run_waits_for_the_unlock_and_takes_its_text_away(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench_lab.open_chat()
    locked_while_typed(bench_lab, monkeypatch, looks=4)
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model, max_steps=1)
    assert session.status is Status.FAILED, "no step is left in which the run could see the chat again"
    assert (bench_lab.sent, bench_lab.drafts) == ({}, {})
    assert await bench_lab.ledger.unfinished(bench_lab.device.serial) == []
    async with ScriptedModel([ASK, FINISH]) as model:
        await bench_lab.run(model)
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_screen_that_was_switched_off_is_waited_for_too(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench_lab.open_chat()
    locked_while_typed(bench_lab, monkeypatch, looks=4, fault="asleep")
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert session.error_kind == "device.screen_off"
    assert (bench_lab.sent, bench_lab.drafts) == ({}, {})
    assert await bench_lab.ledger.unfinished(bench_lab.device.serial) == []


async def test_the_wait_ends_and_any_next_run_takes_the_text_away_first(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "UNLOCK_SECONDS", 1.0)
    await bench_lab.open_chat()
    locked_while_typed(bench_lab, monkeypatch, looks=None)
    async with ScriptedModel([ASK, *[do('do(action="Wait", duration="0 seconds")')] * 2]) as model:
        session = await bench_lab.run(model, max_steps=2)
    assert session.status is Status.FAILED
    assert bench_lab.drafts == {"11": ANSWER}
    bench_lab.phone.set_fault("locked", False)
    async with ScriptedModel([OPEN_WECHAT, DONE]) as model:
        await bench_lab.run(model, task="打开微信")
    assert (bench_lab.sent, bench_lab.drafts) == ({}, {})
    rows = await bench_lab.ledger.recent(bench_lab.device.serial, "qq", "11")
    assert [row.state for row in rows] == [ReplyState.PLANNED]
