"""What is written behind /kb, as people write it."""

from __future__ import annotations

import pytest

from bot.channels.chat.kb_reading import read_entry, read_fields, read_id, read_verb
from bot.desk.knowledge_views import EntryText


@pytest.mark.parametrize(
    ("written", "verb", "rest"),
    [
        ("", "", ""),
        ("  \n", "", ""),
        ("search 退货", "search", "退货"),
        ("退货", "search", "退货"),
        ("怎么 退货", "search", "怎么 退货"),
        ("添加：怎么退货 | 七天内可退", "add", "怎么退货 | 七天内可退"),
        ("add\n问：怎么退货\n答：七天内", "add", "问：怎么退货\n答：七天内"),
        ("Delete abc", "delete", "abc"),
        ("待审", "pending", ""),
        ("导出 xlsx", "export", "xlsx"),
        ("adding a phone", "search", "adding a phone"),
    ],
)
def test_verbs(written: str, verb: str, rest: str) -> None:
    assert read_verb(written) == (verb, rest)


@pytest.mark.parametrize("written", ["a1b2 答案：好", "#a1b2 答案：好", "# a1b2\n答案：好"])
def test_ids(written: str) -> None:
    assert read_id(written) == "a1b2"
    assert read_id(" ") == ""


@pytest.mark.parametrize(
    "written",
    [
        "怎么退货 | 七天内可退",
        "怎么退货｜七天内可退",
        "“怎么退货” | “七天内可退”",
        "怎么退货\n七天内可退",
        "问：怎么退货\n答：七天内可退",
        "问题: 怎么退货 答案: 七天内可退",
        "Q: 怎么退货\nA: 七天内可退",
        "answer: 七天内可退\nquestion: 怎么退货",
    ],
)
def test_new_entries(written: str) -> None:
    assert read_entry(written) == EntryText("怎么退货", "七天内可退")


@pytest.mark.parametrize("written", ["", "怎么退货", "怎么退货 |", "| 七天内可退", "问：怎么退货", "答：七天内可退"])
def test_half_an_entry_is_none(written: str) -> None:
    assert read_entry(written) is None


def test_other_ways_to_ask() -> None:
    assert read_entry("怎么退货 | 七天内可退 | 能退吗 | | 退货流程") == EntryText(
        "怎么退货", "七天内可退", ("能退吗", "退货流程")
    )
    fields = read_fields("答：第一行\n第二行: 问谁都行\n相似问：能退吗；退货流程\n相似问：退不退 标签：售后，退货")
    assert fields == EntryText(None, "第一行\n第二行: 问谁都行", ("能退吗", "退货流程", "退不退"), ("售后", "退货"))


def test_only_what_is_named_is_changed() -> None:
    assert read_fields("答案：新的") == EntryText(answer="新的")
    assert read_fields("相似问：无") == EntryText(aliases=())
    assert read_fields("新的答案") is None
    assert read_fields("价格 a: 12 元") is None
    assert read_fields("答案：见说明 a: 12 元") == EntryText(answer="见说明 a: 12 元")
