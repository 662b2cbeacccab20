"""What reading a page costs: lines that are recognised, once each. Time depends on the machine, this does not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.geometry import Box
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Reading, Source
from simulator.phone.scenario import MessagePart
from simulator.phone.world import Side
from tests.support.drawing import draw
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr


class Counted(OcrEngine):
    """The engine, which counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0
        self.screens = 0

    async def recognise_lines(self, crops: Sequence[Image.Image]) -> list[Recognised]:
        self.lines += len(crops)
        return await super().recognise_lines(crops)

    async def read(self, image: Image.Image, region: Box | None = None, *, digest: str = "") -> list[Reading]:
        self.screens += 1
        return await super().read(image, region, digest=digest)


@pytest.mark.parametrize("look", ["qq-plain", "qq-classic", "wechat-light"])
async def test_each_line_is_recognised_once_and_no_screen_is_searched_for_text(look: str) -> None:
    talk = [
        MessagePart(text="几天能发货？", ago=90),
        MessagePart(side=Side.ME, text="今天就发", ago=80),
        MessagePart(text="第一行\n第二行", ago=70),
    ]
    ocr, app = Counted(), "qq" if look.startswith("qq") else "wechat"
    drawn = draw(look, "小王", talk, unread=3, draft="您好")
    reader = ScreenReader(ocr=ocr, model=None, sources=[Source.OCR])
    seen = await reader.chat(Frame(drawn.image, look, 0.0), None, profile(app))
    assert seen is not None
    assert seen.sure, seen.doubts
    name, time, draft, words, send = 2, 1, 1, 4, 1  # a name is read twice; a line in the middle might be a call
    assert (ocr.screens, ocr.lines) == (0, name + time + draft + words + send)
