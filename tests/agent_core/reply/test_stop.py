"""Stop at any moment: at once, the phone clean; but never between Send and the look at its outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduler.runs.stop import Reason, StopSignal
from tests.agent_core.reply.dying import ACTS, REPLY, TELLING, WRITES, Reaper, mortal
from tests.support.lab import ANSWER, ASK, FINISH, Lab
from tests.support.model_server import ScriptedModel

SEND = 11  # of REPLY: the tap on Send


@dataclass
class Operator(Reaper):
    """Asks for a stop while the ``at``-th call is under way."""

    signal: StopSignal = field(default_factory=StopSignal)
    asked_at: float = 0.0

    async def call(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        self.calls.append(name)
        if len(self.calls) == self.at:
            self.asked_at = time.monotonic()
            asyncio.get_running_loop().call_soon(self.signal.request, Reason.STOP)
        return await work()


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("at", range(1, SEND + 3), ids=lambda n: f"{n}_{REPLY[n - 1]}")
async def test_stopped_at(bench_lab: Lab, at: int) -> None:
    await bench_lab.open_chat()
    operator = Operator(at=at)
    async with ScriptedModel([ASK, FINISH]) as model:
        attempt = bench_lab.run(
            model,
            guard=operator.signal,
            device=mortal(bench_lab.device, operator, ACTS),
            ledger=mortal(bench_lab.ledger, operator, WRITES),
            store=mortal(bench_lab.story, operator, TELLING),
        )
        task = asyncio.ensure_future(attempt)
        operator.signal.attach(task)
        with pytest.raises(asyncio.CancelledError):
            await task
    seconds = time.monotonic() - operator.asked_at
    report = bench_lab.phone.report()
    assert "sogou" in report["input_method"]
    assert report["drafts"] == {}
    assert not [name for _, name in bench_lab.phone.settings if name.startswith("phonedesk")]
    assert await bench_lab.ledger.unfinished(bench_lab.device.serial) == []
    if REPLY[:at].count("tap") == 2 or at == SEND - 1:  # the shield begins with the row in sending
        assert report["sent"] == {"11": [ANSWER]}
        assert "reply" in bench_lab.story.kinds()
    else:
        assert report["sent"] == {}
        assert seconds < 3  # a second, where nothing else runs
