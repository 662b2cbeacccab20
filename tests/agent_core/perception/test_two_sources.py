"""The tree held against the picture: what only one of them shows counts, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Node
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import BubbleState, ChatScreen, Source
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import MessagePart
from simulator.phone.world import MessageState, Side
from tests.support.drawing import Drawn, draw
from tests.support.ocr import needs_ocr


async def read(drawn: Drawn, look: str, nodes: Sequence[Node] | None = None, *, ocr: bool = True) -> ChatScreen:
    reader = ScreenReader(ocr=OcrEngine() if ocr else None, model=None)
    seen = await reader.chat(
        Frame(drawn.image, "page", 0.0), drawn.nodes if nodes is None else nodes, profile(LOOKS[look].app)
    )
    assert seen is not None
    assert seen.source is Source.TREE
    return seen


def is_mark(node: Node) -> bool:
    return "重新发送" in node.description


def renamed(nodes: Sequence[Node]) -> list[Node]:
    """The mark as a build shows it whose ids nobody knows, and which does not describe it."""
    return [replace(node, description="", resource_id="x:id/m9k") if is_mark(node) else node for node in nodes]


def left_out(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if not is_mark(node)]


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("spoil", [renamed, left_out])
@pytest.mark.parametrize("look", ["qq-plain", "wechat-light", "wechat-dark", "wechat-wallpaper"])
@pytest.mark.parametrize("ocr", [pytest.param(True, marks=needs_ocr), False])
async def test_red_mark_that_the_tree_does_not_name_is_seen(
    look: str, spoil: Callable[[Sequence[Node]], list[Node]], ocr: bool
) -> None:
    said = [
        MessagePart(side=Side.THEM, text="在吗，这个有货吗", ago=90),
        MessagePart(side=Side.ME, text="有的", ago=80),
        MessagePart(side=Side.ME, text="今天就能发货", ago=60, state=MessageState.FAILED),
    ]
    drawn = draw(look, "小王", said)
    assert any(is_mark(node) for node in drawn.nodes)
    seen = await read(drawn, look, spoil(drawn.nodes), ocr=ocr)
    assert [bubble.state for bubble in seen.bubbles] == [BubbleState.OK, BubbleState.OK, BubbleState.FAILED]


@pytest.mark.parametrize("look", ["qq-plain", "wechat-wallpaper"])
async def test_a_message_that_was_sent_stays_so(look: str) -> None:
    said = [MessagePart(side=Side.ME, text="今天就能发货", ago=60)]
    seen = await read(draw(look, "小王", said), look, ocr=False)
    assert [bubble.state for bubble in seen.bubbles] == [BubbleState.OK]
