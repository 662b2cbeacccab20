"""Reading the arguments of ``/kb``: verbs and fields, in Chinese or English."""

from __future__ import annotations

import re

from bot.channels.chat.commands import unquoted
from bot.desk.knowledge_views import EntryText

_VERBS = {
    "search": ("search", "find", "搜索", "查找", "查询", "搜", "查"),
    "add": ("add", "new", "添加", "新增", "增加"),
    "edit": ("edit", "change", "修改", "编辑"),
    "delete": ("delete", "remove", "删除"),
    "pending": ("pending", "待审", "待审核"),
    "approve": ("approve", "通过", "批准"),
    "reject": ("reject", "拒绝", "驳回"),
    "import": ("import", "导入"),
    "export": ("export", "导出"),
    "stats": ("stats", "统计"),
}
_VERB = {word: verb for verb, words in _VERBS.items() for word in words}
_FIELDS = {
    "question": ("question", "问题", "问"),
    "answer": ("answer", "答案", "回答", "答"),
    "aliases": ("aliases", "alias", "相似问", "相似问题", "别名", "也问"),
    "added": ("add alias", "add aliases", "加相似问", "添加相似问"),
    "removed": ("remove alias", "remove aliases", "删相似问", "删除相似问", "去掉相似问"),
    "tags": ("tags", "tag", "标签"),
}
_SHORT = {"q": "question", "a": "answer"}  # at the beginning of a line only
_FIELD = {**_SHORT, **{word: field for field, words in _FIELDS.items() for word in words}}
# Longer names come first; otherwise 问题 would be read as 问 with a text after it.
_NAMES = "|".join(sorted((word for word in _FIELD if word not in _SHORT), key=len, reverse=True))
_NAMED = re.compile(rf"(?:^|(?<=\s))(?:({_NAMES})|(?:(?<![^\n])([qa])))[ \t]*[:：]", re.IGNORECASE)
_BARS = re.compile(r"\s*[|｜]\s*")
_NOTHING = {"", "-", "无", "none"}


def read_verb(rest: str) -> tuple[str, str]:
    """Return the verb and the text after it: ``search`` for words without a verb, and ("", "") for nothing."""
    rest = rest.strip()
    match = re.match(r"([^\s:：]+)[\s:：]*(.*)", rest, re.DOTALL)
    if match is None:
        return "", ""
    verb = _VERB.get(match.group(1).lower())
    return (verb, match.group(2).strip()) if verb else ("search", rest)


def read_id(rest: str) -> str:
    """Return an entry's id, which may have a number sign before it and words after it; "" if there is none."""
    match = re.match(r"#?\s*([^\s#]+)", rest.strip())
    return match.group(1) if match else ""


def read_meant(rest: str) -> tuple[str, str]:
    """Return an entry's id or words of its question, and the named fields that follow; "" if there are none."""
    first = _NAMED.search(rest)
    return (rest[: first.start()].strip(), rest[first.start() :].strip()) if first else (rest.strip(), "")


def read_entry(text: str) -> EntryText | None:
    """Read a new entry: ``QUESTION | ANSWER | another way to ask …``, named fields, or the question on its own line.

    Returns None if the question or the answer is missing.
    """
    written = read_fields(text)
    if written is None:
        parts = _BARS.split(text.strip())
        if len(parts) == 1:
            first, _, others = text.strip().partition("\n")
            parts = [first, others]
        question, answer, *aliases = (unquoted(part) for part in parts)
        written = EntryText(question, answer, tuple(alias for alias in aliases if alias) or None)
    return written if written.question and written.answer else None


def read_fields(text: str) -> EntryText | None:
    """Read named fields in any order, each up to the next one. Returns None if the text does not begin with a name."""
    found = list(_NAMED.finditer(text.strip()))
    if not found or found[0].start() > 0:
        return None
    text = text.strip()
    values: dict[str, list[str]] = {}
    for match, following in zip(found, [*found[1:], None], strict=True):
        name = _FIELD[(match.group(1) or match.group(2)).lower()]
        values.setdefault(name, []).append(text[match.end() : following.start() if following else None].strip())
    return EntryText(
        question=_one(values.get("question")),
        answer=_one(values.get("answer")),
        aliases=_several(values.get("aliases"), r"[|｜;；\n]"),
        added=_several(values.get("added"), r"[|｜;；\n]") or (),
        removed=tuple(value for value in values.get("removed", ()) if value.lower() not in _NOTHING),
        tags=_several(values.get("tags"), r"[|｜;；,，、\s]"),
    )


def _one(values: list[str] | None) -> str | None:
    return None if values is None else "\n".join(value for value in values if value)


def _several(values: list[str] | None, between: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    parts = (part.strip() for value in values for part in re.split(between, value))
    return tuple(dict.fromkeys(part for part in parts if part.lower() not in _NOTHING))
