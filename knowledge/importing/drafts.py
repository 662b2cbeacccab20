"""A row of a person's file, before anything is decided about it: names of columns, and what is in a cell."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from knowledge.entries import LONGEST_QUESTION
from knowledge.importing.limits import ASKED, ENTRIES, LONGEST_LIST, WORDINGS, Allowance
from knowledge.importing.said import ImportMessage, SaidTogether

LISTED = 20  # names that a note tells
_LONGEST_NAME = 40  # characters of one of them
_NAMES = {
    "id": "id 编号",
    "question": "question questions q 问题 标准问 标准问题 标准问法 提问 问 用户问题 客户问题",
    "answer": "answer answers a reply 答案 标准答案 回复 标准回复 回答 答",
    "aliases": "aliases alias similar similarquestions 相似问 相似问题 相似问法 别名 扩展问 其他问法",
    "tags": "tags tag category categories 标签 分类 类别 类目 一级分类 二级分类 三级分类",
    "live": "live state status 状态 启用",
    "alias_of": "aliasof",
}
_COLUMNS = {name: column for column, names in _NAMES.items() for name in names.split()}
_YES = frozenset(["true", "yes", "y", "1", "live", "on", "是", "启用", "已启用", "上线"])
_NO = frozenset(["false", "no", "n", "0", "pending", "off", "否", "停用", "未启用", "待审核", "待审"])


@dataclass(frozen=True, slots=True)
class Draft:
    """One row. ``place`` tells a person where it stands: "faq.xlsx, sheet 售后, row 7".

    None is what the file has no column for: an entry that is changed keeps its own. ``problem`` says why this row
    cannot be taken; ``notes`` are what a person should know of the file ("… has no header"), said with its first row.
    """

    place: str
    question: str = ""
    answer: str = ""
    id: str = ""
    aliases: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    live: bool | None = None
    alias_of: str | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of cells as a person sees them; ``faults`` says of a cell (by its index) why it cannot be read."""

    place: str
    cells: Sequence[str]
    faults: dict[int, str] = field(default_factory=dict)

    @property
    def blank(self) -> bool:
        return not self.faults and not any(cell.strip() for cell in self.cells)


def column(name: str) -> str | None:
    """The field that a column of this name fills, in Chinese or English: "相似问 2", "答案（必填）", "Alias_of"."""
    if len(name) > 100:
        return None
    bare = re.sub(r"\([^)]*\)|\[[^\]]*\]", "", unicodedata.normalize("NFKC", name).lower())
    return _COLUMNS.get(re.sub(r"[\s_*:.\-]|\d+\s*$", "", bare))


def columns(cells: Iterable[str]) -> list[str | None] | None:
    """The fields of a header's cells, or None where it is no header: it names a question and an answer."""
    found = [column(cell) for cell in cells]
    return found if {"question", "answer"} <= set(found) else None


def named(text: str) -> str:
    """A name from the file for a line that a person reads: cut where it is long, on one line."""
    plain = " ".join(text.split()) if len(text) <= _LONGEST_NAME else " ".join(text[:_LONGEST_NAME].split()) + "…"
    return plain.encode("utf-8", "replace").decode("utf-8")


def listed(names: Iterable[str], sign: str = ", ") -> str:
    """The first of them, as ``named``; "…" where there are more."""
    found = list(names)
    return sign.join([*map(named, found[:LISTED]), *(["…"] if len(found) > LISTED else [])])


def split(text: str, *, commas: bool) -> tuple[str, ...]:
    """A cell that holds several: one a line where it has several lines, otherwise cut at | ; and their wide forms.

    ``commas``: at , ， 、 too. Tags are words, but a question may have a comma in it.
    """
    if "\n" in text:
        parts = text.split("\n")
    else:
        parts = re.split(r"[|｜;；,，、]" if commas else r"[|｜;；]", text)
    return tuple(part.strip() for part in parts if part.strip())


def joined(texts: Sequence[str], *, commas: bool) -> str:
    """A cell that ``split`` gives back as it was: a last line end tells that nothing else parts them."""
    text = "\n".join(texts)
    return text if not texts or split(text, commas=commas) == tuple(texts) else text + "\n"


Fields = Sequence[tuple[str, str | Sequence[str]]]


def draft(place: str, fields: Fields, faults: Sequence[str] = (), *, taken: Allowance) -> Draft:
    """A draft of the fields and their texts, counted as ``taken``.

    Aliases and tags may come more than once, as a text that holds several or as a list; a second question is an alias;
    else the first counts. InputRejected where the file has too many entries, or too much in them.
    """
    first: dict[str, str] = {}
    several: dict[str, tuple[str, ...]] = {}
    for name, value in fields:
        text = value if isinstance(value, str) else ""
        if name in ("aliases", "tags"):
            more = split(text, commas=name == "tags") if isinstance(value, str) else tuple(value)
            several[name] = several.get(name, ()) + more
        elif name == "question" and name in first:
            several["aliases"] = several.get("aliases", ()) + ((text.strip(),) if text.strip() else ())
        else:
            first.setdefault(name, text)
    texts = [*first.values(), *(text for parts in several.values() for text in parts)]
    asked = (len(text) for text in (first.get("question", ""), *several.get("aliases", ())))
    taken.take(ENTRIES)
    taken.take(WORDINGS, sum(map(len, several.values())))
    taken.take(ASKED, sum(length for length in asked if length <= LONGEST_QUESTION))  # longer ones are refused unread
    question, answer = first.get("question", "").strip(), first.get("answer", "").strip()
    live, problem = _live(first.get("live"))
    if faults:
        problem = SaidTogether(faults)
    elif not _whole("".join(texts)):
        problem = ImportMessage("half_a_character")
    elif max(map(len, several.values()), default=0) > LONGEST_LIST:
        problem = ImportMessage("long_list", most=LONGEST_LIST)
    elif not (question and answer):
        problem = ImportMessage("no_question" if answer else "no_answer" if question else "blank")
    return Draft(
        place=place,
        question=question,
        answer=answer,
        id=first.get("id", "").strip(),
        aliases=several.get("aliases"),
        tags=several.get("tags"),
        live=live,
        alias_of=first["alias_of"].strip() if "alias_of" in first else None,
        problem=problem,
    )


def _whole(text: str) -> bool:
    """Whether it is text: an escape in JSON or Excel may be half of a pair (a surrogate), which nothing can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _live(text: str | None) -> tuple[bool | None, str]:
    word = (text or "").strip().lower()
    if not word:
        return None, ""
    if word in _YES or word in _NO:
        return word in _YES, ""
    return None, ImportMessage("live", word=repr(named(word)))
