"""A watch over Telegram, on a real phone server: who writes is answered within seconds, without a schedule."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.world import Side
from simulator.telegram import FakeUser
from storage.runs import RunRow
from tests.acceptance.stage import ANSWER, OPEN_QUESTION, PATIENCE, QUESTION, Stage, stage, until, until_async

pytestmark = pytest.mark.rotating(parts=3)

LAUNCHER = "com.android.launcher3"
NAMES = ("小王", "小李", "小张")


def quiet_world() -> Scenario:
    """Contacts who have written nothing new."""
    said = [MessagePart(side=Side.ME, text="您好", ago=5000)]
    named = enumerate(NAMES)
    return Scenario(contacts=[ContactPart(name=name, number=f"2011000{at}", history=said) for at, name in named])


async def replies(shop: Stage) -> list[RunRow]:
    return [run for run in reversed(await shop.runs()) if "回复" in run.task]


async def rests(shop: Stage) -> bool:
    """Every run is over, and the phone stands where notifications come."""
    runs = await shop.runs()
    return all(run.final for run in runs) and shop.phone.phone.window().package == LAUNCHER


async def watched(shop: Stage, text: str) -> tuple[FakeUser, int]:
    """The owner, once the look at the beginning is over, and how much the bot has said by then."""
    server = await shop.serve()
    owner = await shop.owner(server)
    await owner.send(text)
    await shop.sees(owner, "开始盯着")
    await until_async(lambda: begun(shop))
    return owner, len(owner.chat.from_bot)


async def begun(shop: Stage) -> bool:
    runs = await shop.runs()
    return bool(runs) and all(run.final for run in runs)


async def test_who_writes_is_answered_within_seconds(tmp_path: Path) -> None:
    async with stage(tmp_path, quiet_world()) as shop:
        owner, said = await watched(shop, "盯着 小王 小李")
        assert shop.brain.calls == []  # nobody has written
        shop.phone.phone.receive("小张", QUESTION)  # is not watched
        wrote = time.monotonic()
        shop.phone.phone.receive("小王", QUESTION)
        (run,) = await until_async(lambda: begin(shop))
        assert time.monotonic() - wrote < 5.0
        assert run.task == "QQ回复联系人小王"
        await until(lambda: shop.sent == {"小王": [ANSWER]})
        await until_async(lambda: rests(shop))
        [card] = owner.chat.from_bot[said:]
        assert card.silent
        await shop.shows(owner, card, ANSWER)

        shop.phone.phone.receive("小李", OPEN_QUESTION)
        # Its card is soundless, the question is not: a person is wanted.
        await owner.sees(lambda where: [m for m in where.saying(OPEN_QUESTION) if not m.silent], timeout=PATIENCE)
        shop.at_rest()


async def begin(shop: Stage) -> list[RunRow]:
    return [run for run in await replies(shop) if run.started_at is not None]
