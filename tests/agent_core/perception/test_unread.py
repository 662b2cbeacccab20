"""Pages that were not read as a chat: which may be one all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from PIL import Image

from agent_core.devices.base import Frame, Node
from agent_core.errors import ModelUnreachable
from agent_core.geometry import Box
from agent_core.model.base import Completion, OnThinking
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Reading, Source
from simulator.phone.phone import VirtualPhone
from tests.support.ocr import needs_ocr

from .support import QQ, QQ_PACKAGE, Look, look, open_chat, scenario, them

WORLD = scenario(them("几天能发货？"), draft="好的")
NOTHING = ScreenReader(ocr=None, model=None)


async def below(reader: ScreenReader, seen: Look, *, nodes: bool = True, use_model: bool = True) -> int | None:
    tree = seen.nodes if nodes else None
    readings = await reader.readings(seen.frame, tree)
    return await reader.unread_below(seen.frame, tree, QQ, readings, use_model=use_model)


async def _list(phone: VirtualPhone) -> None:
    await phone.key("BACK")


async def _search(phone: VirtualPhone) -> None:
    await phone.key("BACK")
    field = next(node for node in await phone.tree() if node.text == "搜索").box.center
    await phone.tap(field.x, field.y)
    await phone.text("11")


async def _popup(phone: VirtualPhone) -> None:
    phone.set_fault("popup", "给我们评分？")


async def _home(phone: VirtualPhone) -> None:
    await phone.key("HOME")


OTHERS = [_list, _search, _popup, _home]


@pytest.mark.parametrize("typing", [False, True])
@pytest.mark.parametrize("mode", ["full", "no_texts", "empty"])
async def test_a_chat_may_be_one_whatever_its_tree_tells(mode: str, typing: bool) -> None:
    phone = await open_chat(WORLD, typing=typing)
    field = next(node for node in await phone.tree() if node.class_name.endswith("EditText")).box
    phone.set_tree(mode)
    found = await below(NOTHING, await look(phone))
    assert found is not None
    assert abs(found - field.top) <= 8


async def test_a_page_that_nothing_can_read_may_be_one_in_its_lower_half() -> None:
    phone = await open_chat(WORLD)
    await _list(phone)
    assert await below(NOTHING, await look(phone), nodes=False) == 1200


@pytest.mark.parametrize("go", OTHERS)
async def test_a_tree_without_an_input_is_of_no_chat(go: Callable[[VirtualPhone], Awaitable[None]]) -> None:
    phone = await open_chat(WORLD)
    await go(phone)
    assert await below(NOTHING, await look(phone)) is None


@pytest.mark.rotating(parts=3)
@needs_ocr
@pytest.mark.parametrize("go", [_list, _search, _home])
async def test_a_picture_that_is_read_and_shows_no_input_is_of_no_chat(
    go: Callable[[VirtualPhone], Awaitable[None]],
) -> None:
    phone = await open_chat(WORLD)
    await go(phone)
    assert await below(ScreenReader(ocr=OcrEngine(), model=None), await look(phone), nodes=False) is None


async def test_a_word_for_send_in_the_lower_half_tells_of_a_chat_in_any_colours() -> None:
    phone = VirtualPhone(WORLD)
    await phone.launch(QQ_PACKAGE)
    seen = await look(phone)
    box = next(node for node in seen.nodes if node.text == "动态").box
    readings = [Reading("发送", box, Source.OCR)]
    assert await NOTHING.unread_below(seen.frame, None, QQ, readings) == box.top
    readings = [Reading("动态", box, Source.OCR)]
    assert await NOTHING.unread_below(seen.frame, None, QQ, readings) is None


class Model:
    """Says one thing of every picture."""

    name = "said"

    def __init__(self, said: str | Exception) -> None:
        self.said = said
        self.asked = 0

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        raise NotImplementedError

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        raise NotImplementedError

    async def transcribe(self, image: Image.Image, instruction: str) -> str:
        self.asked += 1
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    ("said", "found"),
    [('{"draft":null}', None), ('{"draft":""}', 1200), ("没有", 1200), (ModelUnreachable("down"), 1200)],
)
async def test_a_model_may_say_that_there_is_no_input(said: str | Exception, found: int | None) -> None:
    phone = await open_chat(WORLD)
    await _list(phone)
    model = Model(said)
    reader = ScreenReader(ocr=None, model=model)
    seen = await look(phone)
    assert await below(reader, seen, nodes=False, use_model=False) == 1200
    assert model.asked == 0
    assert await below(reader, seen, nodes=False) == found
    assert model.asked == 1


async def test_a_bar_to_hold_and_talk_tells_of_a_chat_though_no_header_does() -> None:
    size = (1080, 2400)
    bar = Box(157, 2213, 819, 2327)
    nodes = [Node(Box(161, 404, 489, 512), text="几天能发货？"), Node(bar, text="按住 说话", clickable=True)]
    frame = Frame(Image.new("RGB", size, "white"), "d", 0.0)
    assert await NOTHING.chat(frame, nodes, QQ) is None
    assert await NOTHING.unread_below(frame, nodes, QQ, await NOTHING.readings(frame, nodes)) == bar.top
    assert await NOTHING.unread_below(frame, nodes[:1] * 2, QQ, ()) is None
