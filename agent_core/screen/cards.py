"""Messages that are cards (a file, a place, a link): what is written on them tells which."""

from __future__ import annotations

import re

from PIL import Image

from agent_core.screen import picture
from agent_core.screen.ocr import OcrEngine
from agent_core.screen.readings import BubbleKind
from agent_core.screen.shapes import Shape

_FILE_SIZE = re.compile(r"^\d+(?:[.,]\d+)?\s*[KMG]?B?$", re.IGNORECASE)
_FILE_NAME = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_FOOTER = re.compile(r"^[^\w]{0,2}.{0,3}(?:QQ|微信)?(?:小程序|链接|网页|分享)$")


async def read_card(ocr: OcrEngine, image: Image.Image, shape: Shape) -> tuple[BubbleKind, str]:
    """The kind of a card and its name or title. OTHER, with all its words, where it cannot be told."""
    if shape.words is None:
        return shape.kind, ""
    lines = picture.text_lines(image, shape.words, shape.color)
    found = await ocr.recognise_lines([image.crop(line.as_tuple()) for line in lines])
    words = [line.text for line in found if line.text]
    if shape.kind is not BubbleKind.OTHER:
        return shape.kind, words[0] if words else ""
    if len(words) > 1 and _FILE_SIZE.match(words[-1]) and any(char.isdigit() for char in words[-1]):
        return BubbleKind.FILE, "".join(words[:-1])
    if words and _FILE_NAME.search("".join(words)):
        return BubbleKind.FILE, "".join(words)
    if len(words) > 1 and _FOOTER.match(words[-1]):
        return BubbleKind.CARD, "".join(words[:-1])
    return BubbleKind.OTHER, "\n".join(words)
