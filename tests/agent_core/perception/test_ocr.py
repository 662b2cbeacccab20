from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from PIL import Image, ImageDraw

from agent_core.geometry import Box
from agent_core.perception import ocr
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.readings import Source
from agent_core.texts.layout import font
from tests.support.ocr import needs_ocr

from .support import look, open_chat, scenario, them

pytestmark = needs_ocr


async def test_boxes_are_those_of_the_whole_screen_also_in_a_region() -> None:
    seen = await look(await open_chat(scenario(them("几天能发货？"))))
    bubble = next(node.box for node in seen.nodes if node.text == "几天能发货？")
    engine = OcrEngine()
    for region in (None, Box(0, 250, 1080, 700)):
        found = [r for r in await engine.read(seen.frame.image, region) if r.text == "几天能发货？"]
        assert len(found) == 1
        assert bubble.contains(found[0].box.center)
        assert found[0].box.height < bubble.height
        assert found[0].source is Source.OCR
        assert found[0].confidence > 0.9


async def test_recognising_a_line_after_reading_a_screen_and_the_other_way_round() -> None:
    seen = await look(await open_chat(scenario(them("几天能发货？"))))
    bubble = next(node.box for node in seen.nodes if node.text == "几天能发货？")
    engine = OcrEngine()
    crop = seen.frame.image.crop((bubble.left + 20, bubble.top + 10, bubble.right - 20, bubble.bottom - 10))
    results = await asyncio.gather(
        engine.recognise(crop), engine.read(seen.frame.image), engine.recognise(crop), engine.read(seen.frame.image)
    )
    assert results[0] == results[2]
    assert results[0][0] == "几天能发货？"
    assert results[1] == results[3]
    assert len(results[1]) >= 4


async def test_a_screen_is_kept_by_its_digest() -> None:
    seen = await look(await open_chat(scenario(them("几天能发货？"))))
    engine = OcrEngine()
    first = await engine.read(seen.frame.image, digest="a")
    assert await engine.read(Image.new("RGB", (400, 400)), digest="a") == first
    assert await engine.read(Image.new("RGB", (400, 400)), digest="b") == []
    assert await engine.read(Image.new("RGB", (400, 400))) == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Image.Image]:
    """The lines that are recognised."""
    crops: list[Image.Image] = []
    once = ocr._recognise_line

    def counted(crop: Image.Image) -> Recognised:
        crops.append(crop)
        return once(crop)

    monkeypatch.setattr(ocr, "_recognise_line", counted)
    return crops


async def test_lines_that_stood_on_the_screen_before_are_not_recognised_again(asked: list[Image.Image]) -> None:
    talk = [
        them(words, 300 - 60 * number) for number, words in enumerate(("有没有七号电池？", "要四节装的", "谢谢老板"))
    ]
    first = await look(await open_chat(scenario(*talk[:2])))
    then = await look(await open_chat(scenario(*talk)))
    engine = OcrEngine()
    await engine.read(first.frame.image)
    asked.clear()
    read = await OcrEngine().read(then.frame.image)  # of another phone, say
    assert {"有没有七号电池？", "要四节装的", "谢谢老板"} <= {reading.text for reading in read}
    assert 1 <= len(asked) < len(read) * 3 / 4
    assert [reading for reading in await engine.read(then.frame.image) if reading not in read] == []


def line(words: str, left: int, top: int, *, fill: str = "black", ground: str = "white") -> Image.Image:
    """A line of letters 30 pixels high, in a frame that begins so many pixels before it."""
    crop = Image.new("RGB", (left + 31 * len(words) + 8, top + 46), ground)
    ImageDraw.Draw(crop).text((left, top), words, font=font(30), fill=fill)
    return crop


async def test_a_line_in_another_frame_is_the_same_line(asked: list[Image.Image]) -> None:
    engine = OcrEngine()
    first = await engine.recognise(line("请问今天还能发货吗", 6, 2))
    assert first[0] == "请问今天还能发货吗"
    assert await engine.recognise(line("请问今天还能发货吗", 11, 5)) == first
    assert len(asked) == 1
    for other in (
        line("请问今天还能发货妈", 6, 2),
        line("请问今天还能发货吗", 6, 2, fill="gray"),
        line("请问今天还能发货吗", 6, 2, ground="#ddffdd"),
    ):
        asked.clear()
        await engine.recognise(other)
        assert len(asked) == 1


@pytest.mark.parametrize("words", ["——————", "好", "oO0oO0oO0"])
async def test_what_its_frame_may_decide_is_read_in_each(asked: list[Image.Image], words: str) -> None:
    """Dashes may be an underline, a letter alone may be part of another; the last ones are not read surely."""
    engine = OcrEngine()
    await engine.recognise(line(words, 6, 2))
    await engine.recognise(line(words, 11, 5))
    assert len(asked) == 2


async def test_what_is_too_small_or_empty_says_nothing() -> None:
    engine = OcrEngine()
    for size in ((1, 40), (0, 40), (40, 0)):
        assert await engine.recognise(Image.new("RGB", size)) == ("", 0.0)
    assert (await engine.recognise(Image.new("RGB", (90, 40), "white")))[0] == ""
    assert await engine.read(Image.new("RGB", (100, 100)), Box(10, 10, 10, 10)) == []


def test_importing_the_reader_loads_neither_ocr_nor_numpy() -> None:
    code = (
        "import sys, agent_core.perception.reader; print([m for m in ('numpy', 'rapidocr', 'cv2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_everything_imports_and_the_engine_is_passed_over() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(("rapidocr", "onnxruntime", "numpy", "cv2")))
import agent_core.perception.reader, agent_core.perception.marks, agent_core.perception.compare
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.reader import ScreenReader
print(OcrEngine.available(), ScreenReader(ocr=OcrEngine(), model=None)._ocr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "False None"), done.stderr
