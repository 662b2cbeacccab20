"""The mark of a test that reads pictures."""

from __future__ import annotations

import pytest

from agent_core.perception.ocr import OcrEngine

needs_ocr = pytest.mark.skipif(not OcrEngine.available(), reason="the extra [ocr] is not installed")
