"""What covering secrets costs a picture: ``python -m tests.agent_core.perception.measure_redaction``."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable

from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.perception import popups
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import BANNER, ScreenReader
from agent_core.perception.readings import Source
from agent_core.perception.redaction import Redaction, cover

from .support import QQ_PACKAGE, Look, look, me, open_chat, scenario, them

TIMES = 10
TALK = (them("几天能发货？", 4000), me("您好，下单后48小时内发货。", 3000), them("验证码 483920"))


async def reading(name: str, reader: ScreenReader, seen: Look, nodes: list[Node] | None, dot: tuple[int, int]) -> None:
    """A picture that nobody has read, ``TIMES`` times: a pixel at ``dot`` makes it new."""
    took = []
    for number in range(TIMES + 1):
        image = seen.frame.image.copy()
        image.putpixel((dot[0] + number, dot[1]), (0, 0, 0))
        frame = Frame(image, f"{name} {number}", 0.0)
        redaction = Redaction(reader)
        redaction.saw(frame, QQ_PACKAGE, nodes)
        began = time.perf_counter()
        await redaction.boxes(frame)
        took.append(time.perf_counter() - began)
    tell(name, took[1:])  # the first one loads what it needs


def work(name: str, call: Callable[[], object]) -> None:
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    tell(name, took)


def tell(name: str, took: list[float]) -> None:
    median, most = 1000 * statistics.median(took), 1000 * max(took)
    sys.stdout.write(f"{name:32} median {median:7.1f} ms   most {most:7.1f} ms\n")


async def main() -> None:
    seen = await look(await open_chat(scenario(*TALK)))
    nodes, image = list(seen.nodes), seen.frame.image
    strip = Box(0, 0, image.width, round(BANNER * image.height))
    await reading("tree", ScreenReader(ocr=None, model=None), seen, nodes, (300, 1500))
    work("something at the top?", lambda: popups.strange(image, nodes, strip))
    work("cover", lambda: cover(image, [Box(146, 576, 808, 676)]))
    if OcrEngine.available():
        ocr = OcrEngine()
        untold = [node for node in nodes if node.box.top > strip.bottom]  # the title bar is a stranger to this tree
        await reading("tree, a stranger at the top", ScreenReader(ocr=ocr, model=None), seen, untold, (300, 60))
        await reading("OCR alone", ScreenReader(ocr=ocr, model=None, sources=[Source.OCR]), seen, None, (300, 1500))


if __name__ == "__main__":
    asyncio.run(main())
