"""The parts of ``phonedesk bench``, in a module that imports nothing: the command line needs their names."""

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
