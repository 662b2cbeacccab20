from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from PIL import Image

from agent_core.geometry import Box
from agent_core.perception import ocr
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.readings import Source
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


async def test_lines_that_stood_on_the_screen_before_are_not_recognised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Image.Image] = []
    once = ocr._recognise_line

    def counted(crop: Image.Image) -> Recognised:
        asked.append(crop)
        return once(crop)

    monkeypatch.setattr(ocr, "_recognise_line", counted)
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


async def test_what_is_too_small_or_empty_says_nothing() -> None:
    engine = OcrEngine()
    assert await engine.recognise(Image.new("RGB", (1, 40))) == ("", 0.0)
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
