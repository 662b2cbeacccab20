"""The names of the product."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("agent_core", "bot", "knowledge", "scheduler", "storage")


def test_a_public_class_name_means_one_thing() -> None:
    """Whoever searches for a class finds it."""
    places = defaultdict(list)
    for package in PRODUCT:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


# Other words for the 管理员 of the product and for the 令牌 of a bot. A token is what models are paid by.
_SECOND_WORDS = re.compile(
    r"店主|机主|拥有者|(?:机器人|BotFather|Telegram|知识库)[^，。；：|\n]{0,12}(?<![A-Za-z_./{-])token(?![A-Za-z_}=])"
)


def test_chinese_has_one_word_for_an_owner_and_one_for_a_bots_token() -> None:
    texts = [path for package in PRODUCT for path in (ROOT / package).rglob("zh.toml")]
    docs = [*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs").rglob("*.zh-CN.md")]
    assert len(texts) > 10
    assert len(docs) > 40
    found = {
        str(path.relative_to(ROOT)): _SECOND_WORDS.findall(re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8")))
        for path in (*texts, *docs)
    }
    assert {name: words for name, words in found.items() if words} == {}
