"""What OCR is not sure of: a model is asked for the crop, and only the same words make it sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.model.base import Completion, OnThinking
from agent_core.perception import transcribe
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import DoubtKind, Source
from simulator.phone.scenario import MessagePart
from simulator.phone.world import Side
from tests.support.drawing import Drawn, draw
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr


class Faint(OcrEngine):
    """The engine, with less confidence in some texts than it has."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self._texts = texts

    async def recognise_lines(self, crops: Sequence[Image.Image]) -> list[Recognised]:
        found = await super().recognise_lines(crops)
        return [Recognised(line.text, 0.5) if line.text in self._texts else line for line in found]


class Writer:
    """A model that answers each instruction with its line."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        self.asked.append(instruction)
        return self.answers[instruction]

    async def complete(self, messages: Any, on_thinking: OnThinking | None = None) -> Completion:
        raise AssertionError("nothing but crops is asked for")


PAGE = [MessagePart(text="几天能发货", ago=60)]


async def read(drawn: Drawn, ocr: OcrEngine, model: Writer | None, *, use_model: bool = True) -> Any:
    reader = ScreenReader(ocr=ocr, model=model, sources=[Source.OCR, Source.MODEL])  # type: ignore[arg-type]
    return await reader.chat(Frame(drawn.image, "page", 0.0), None, profile("qq"), use_model=use_model)


async def test_a_sure_page_costs_no_model_call() -> None:
    model = Writer({})
    seen = await read(draw("qq-plain", "小王", PAGE), OcrEngine(), model)
    assert seen.sure, seen.doubts
    assert model.asked == []


async def test_the_same_name_and_the_same_words_make_a_page_sure() -> None:
    model = Writer({transcribe.TITLE: '{"title":"小王"}', transcribe.WORDS: '{"text":"几天能发货"}'})
    seen = await read(draw("qq-plain", "小王", PAGE), Faint("小王", "几天能发货"), model)
    assert seen.sure, seen.doubts
    assert (seen.title, seen.question[0].text) == ("小王", "几天能发货")
    assert model.asked == [transcribe.TITLE, transcribe.WORDS]


@pytest.mark.parametrize(
    ("title", "words"),
    [("小玉", "几天能发货"), ("", "几天能发货"), ("小王", "几天能退货吗"), ("小王", "")],
)
async def test_another_name_or_other_words_leave_the_doubt(title: str, words: str) -> None:
    model = Writer({transcribe.TITLE: f'{{"title":"{title}"}}', transcribe.WORDS: f'{{"text":"{words}"}}'})
    seen = await read(draw("qq-plain", "小王", PAGE), Faint("小王", "几天能发货"), model)
    assert not seen.sure
    assert seen.title_sure is (title == "小王")


async def test_without_leave_no_model_is_asked() -> None:
    model = Writer({})
    seen = await read(draw("qq-plain", "小王", PAGE), Faint("小王"), model, use_model=False)
    assert not seen.title_sure
    assert model.asked == []


async def test_letters_that_look_like_others_are_not_made_sure() -> None:
    """The letters themselves tell that O0 is not 00, whatever two readers say."""
    model = Writer({transcribe.TITLE: '{"title":"00"}'})
    seen = await read(draw("qq-plain", "O0", PAGE), OcrEngine(), model)
    assert not seen.title_sure


async def test_a_status_in_the_place_of_the_name_is_no_name() -> None:
    """WeChat shows it there for as long as the other side types."""
    drawn = draw("wechat-light", "对方正在输入...", PAGE)
    reader = ScreenReader(ocr=OcrEngine(), model=None, sources=[Source.OCR])
    seen = await reader.chat(Frame(drawn.image, "page", 0.0), None, profile("wechat"))
    assert seen is not None
    assert not seen.title_sure


async def test_a_model_is_asked_for_nothing_above_our_own_answer() -> None:
    said = [MessagePart(text="几天能发货", ago=90), MessagePart(side=Side.ME, text="两天", ago=60)]
    model = Writer({})
    seen = await read(
        draw("qq-plain", "小王", [*said, MessagePart(text="好的谢谢", ago=30)]), Faint("几天能发货"), model
    )
    assert seen.sure, seen.doubts
    assert model.asked == []


# With the tree


async def with_tree(drawn: Drawn, ocr: OcrEngine, model: Writer | None, nodes: Sequence[Node] | None = None) -> Any:
    reader = ScreenReader(ocr=ocr, model=model)  # type: ignore[arg-type]  # what is used of one
    return await reader.chat(Frame(drawn.image, "page", 0.0), drawn.nodes if nodes is None else nodes, profile("qq"))


class Misread(OcrEngine):
    """The engine, which takes some texts for others and is not sure of them."""

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self._texts = texts

    async def recognise_lines(self, crops: Sequence[Image.Image]) -> list[Recognised]:
        found = await super().recognise_lines(crops)
        return [Recognised(self._texts[line.text], 0.5) if line.text in self._texts else line for line in found]


MISREAD = {"小王": "小玉", "几天能发货": "几大能友货吗"}


async def test_what_ocr_misreads_is_borne_out_by_the_tree_and_a_model() -> None:
    drawn = draw("qq-plain", "小王", PAGE)
    alone = await with_tree(drawn, Misread(**MISREAD), None)
    assert {doubt.kind for doubt in alone.doubts} == {DoubtKind.TITLES_DIFFER, DoubtKind.MESSAGES_DIFFER}
    model = Writer({transcribe.TITLE: '{"title":"小王"}', transcribe.WORDS: '{"text":"几天能发货"}'})
    seen = await with_tree(drawn, Misread(**MISREAD), model)
    assert seen.sure, seen.doubts
    assert sorted(model.asked) == sorted([transcribe.TITLE, transcribe.WORDS])


async def test_a_model_that_sees_something_else_leaves_the_doubts_of_a_stale_tree() -> None:
    stale = draw("qq-plain", "小玉", [MessagePart(text="能开发票", ago=60)])
    model = Writer({transcribe.TITLE: '{"title":"小王"}', transcribe.WORDS: '{"text":"几天能发货"}'})
    seen = await with_tree(draw("qq-plain", "小王", PAGE), Faint("小王", "几天能发货"), model, stale.nodes)
    assert not seen.title_sure
    assert {doubt.kind for doubt in seen.doubts} == {DoubtKind.TITLES_DIFFER, DoubtKind.MESSAGES_DIFFER}


@pytest.mark.parametrize(("shown", "sure"), [("小王", True), ("小玉", False)])
async def test_a_sure_picture_tells_which_text_of_the_header_is_the_name(shown: str, sure: bool) -> None:
    """A tag of the name's height in the tree leaves open which one it is."""
    drawn, tree = draw("qq-plain", shown, PAGE), draw("qq-plain", "小王", PAGE).nodes
    title = next(node for node in tree if node.text == "小王")
    beside = Box(title.box.right + 300, title.box.top, title.box.right + 380, title.box.bottom)
    seen = await with_tree(drawn, OcrEngine(), None, [*tree, replace(title, text="标签", box=beside, resource_id="")])
    assert seen.title == "小王"
    assert (seen.title_sure, seen.sure) == (sure, sure), seen.doubts
