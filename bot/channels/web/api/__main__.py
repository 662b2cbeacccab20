"""Writes the OpenAPI document of the docs: ``python -m bot.channels.web.api``."""

from __future__ import annotations

import json
from pathlib import Path

from bot.channels.web.api.openapi import document
from bot.channels.web.api.routes import OPERATIONS

PLACE = Path("docs/reference/openapi.json")

if __name__ == "__main__":
    PLACE.write_text(json.dumps(document(OPERATIONS), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
