"""A folder of an owner's files, as ``phonedesk.d`` is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MODEL = 'models = ["{name}*"]\nform = "autoglm"\ndialect = "autoglm"\ncontext_tokens = 25480\n'
APP = """\
key = "dd"
name = "钉钉"
aliases = ["DingTalk"]
packages = ["com.alibaba.android.rimet"]
risky = ["转账"]
input_ids = ["et_sendmessage"]

[[layers]]
name = "7"
versions = ">=7"
title_ids = ["tv_title"]
"""
TOOL = '''\
"""What the shop has."""

import asyncio


async def stock_of(article: str, shop: int = 1) -> dict[str, object]:
    """How many pieces of an article a shop has. article: its number."""
    await asyncio.sleep(0)
    return {"article": article, "shop": shop, "pieces": _pieces()}


def _pieces() -> int:
    return 7
'''


def write_own(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files that nobody else may write; the folder."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.parent.chmod(0o755)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o644)
    return folder
