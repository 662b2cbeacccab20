"""``phonedesk bench``: measures the product on this machine with virtual phones.

The command line needs the names of the parts, so this imports nothing.
"""

from __future__ import annotations

from enum import StrEnum


class BenchPart(StrEnum):
    """A part of the measurement, which can be had alone."""

    STEPS = "steps"
    PLAIN = "plain"
    OCR = "ocr"
    SWEEP = "sweep"
    IDLE = "idle"
    REPLY = "reply"
    LIVE = "live"
    HELP = "help"
