from __future__ import annotations

from agent_core.screen.ocr import use_threads

use_threads(1)  # the workers share few cores: a screen takes a third less of them
