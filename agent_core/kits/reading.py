"""Reads a kit with the picture reader: a kit is a test of the reader."""

from __future__ import annotations

from hashlib import blake2b

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.kits.drawing import draw_kit
from agent_core.kits.kit import Kit
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.page_report import PageReport, read_page, report
from agent_core.perception.reader import ScreenReader


async def read_kit(kit: Kit) -> PageReport:
    """Draw a kit's page and read the picture. Raises ExtraMissing if OCR is not installed."""
    image = draw_kit(kit)
    frame = Frame(image, blake2b(image.tobytes(), digest_size=16).hexdigest(), 0.0)
    return report(await read_page(ScreenReader(ocr=OcrEngine(), model=None), frame, None, profile(kit.app)))
