"""What OCR is not sure of: a model is asked for the crop, and only the same words make it sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.devices.virtual.scenario import MessagePart
from agent_core.model.base import Completion, OnThinking
from agent_core.screen import transcribe
from agent_core.screen.ocr import OcrEngine, Recognised
from agent_core.screen.reader import ScreenReader
from agent_core.screen.readings import Source
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
