"""A phone without a tree and a machine without OCR: the model is the only reader, and code holds it to the picture."""

from __future__ import annotations

import pytest

from agent_core.session import Session, Status
from bot.app.core import open_core
from bot.app.run_here import run_here
from bot.tools.demo.world import World, demo_world
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from tests.support.ocr import needs_ocr

pytestmark = [needs_ocr, pytest.mark.rotating(parts=4)]
PICTURES_ONLY = {"tree": "off", "ocr": "off", "elements": False}


async def run(world: World) -> Session:
    async with open_core(world.settings) as core:
        human = StoredHuman(core.db, hold_seconds=0)
        return await run_here(core, "QQ回复联系人11", human=human, store=StoredRuns(core.db))


@pytest.mark.device
async def test_the_answer_is_delivered_and_seen() -> None:
    async with demo_world(observe=PICTURES_ONLY) as world:
        session = await run(world)
        assert session.status is Status.SUCCEEDED, session.message
        sent = world.phone.report()["sent"]
    assert list(sent) == ["11"]
    assert [reply.text for reply in session.replies] == sent["11"]


@pytest.mark.device
async def test_a_red_mark_is_seen_though_a_model_only_writes_down_words() -> None:
    async with demo_world(observe=PICTURES_ONLY) as world:
        world.phone.set_fault("send_fails", True)
        session = await run(world)
        assert world.phone.report()["sent"] == {}
    assert session.status is Status.FAILED
    assert "红色感叹号" in session.message
    assert session.replies == []
