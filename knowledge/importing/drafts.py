"""A row of a person's file before anything is decided about it: names of columns, and contents of cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from knowledge.entries import LONGEST_QUESTION
from knowledge.importing.limits import ASKED, ENTRIES, LONGEST_LIST, WORDINGS, Allowance
from knowledge.importing.said import ImportMessage, SaidTogether

LISTED = 20  # names that a note lists
_LONGEST_NAME = 40  # characters of one of them
_NAMES = {
    "id": "id 编号",
    "question": "question questions q 问题 标准问 标准问题 标准问法 提问 问 用户问题 客户问题",
    "answer": "answer answers a reply 答案 标准答案 回复 标准回复 回复内容 回答 答",
    "aliases": "aliases alias similar similarquestions otherwaystoask otherwaystoaskit alsoasked "
    "相似问 相似问题 相似问法 别名 扩展问 其他问法 别的问法",
    "tags": "tags tag category categories 标签 分类 类别 类目 一级分类 二级分类 三级分类",
    "live": "live state status 状态 启用",
    "alias_of": "aliasof",
}
# As an error and a note give them.
COLUMN_NAMES = {f"{field}s": ", ".join(_NAMES[field].split()) for field in ("question", "answer")}
_COLUMNS = {name: column for column, names in _NAMES.items() for name in names.split()}
_YES = frozenset(["true", "yes", "y", "1", "live", "on", "是", "启用", "已启用", "上线"])
_NO = frozenset(["false", "no", "n", "0", "pending", "off", "否", "停用", "未启用", "待审核", "待审"])


@dataclass(frozen=True, slots=True)
class Draft:
    """One row of the file.

    place: its place in words for a person: "faq.xlsx, sheet 售后, row 7".
    problem: why this row cannot be taken.
    notes: facts about the file for a person ("… has no header"), attached to its first row.

    A field is None if the file has no column for it: an entry that is changed keeps its own.
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
    """A row of cells as a person sees them. ``faults`` says, by a cell's index, why it cannot be read."""

    place: str
    cells: Sequence[str]
    faults: dict[int, str] = field(default_factory=dict)

    @property
    def blank(self) -> bool:
        return not self.faults and not any(cell.strip() for cell in self.cells)


def column(name: str) -> str | None:
    """Return the field of a column's name in Chinese or English ("相似问 2", "答案（必填）", "Alias_of"), or None."""
    if len(name) > 100:
        return None
    bare = re.sub(r"\([^)]*\)|\[[^\]]*\]", "", unicodedata.normalize("NFKC", name).lower())
    return _COLUMNS.get(re.sub(r"[\s_*:.\-]|\d+\s*$", "", bare))


def columns(cells: Iterable[str]) -> list[str | None] | None:
    """Return the fields of a header's cells; None if it is not a header, which names a question and an answer."""
    found = [column(cell) for cell in cells]
    return found if {"question", "answer"} <= set(found) else None


def named(text: str) -> str:
    """Return a name from the file for display: on one line, cut if it is long."""
    plain = " ".join(text.split()) if len(text) <= _LONGEST_NAME else " ".join(text[:_LONGEST_NAME].split()) + "…"
    return plain.encode("utf-8", "replace").decode("utf-8")


def listed(names: Iterable[str], sign: str = ", ") -> str:
    """Return the first names, as ``named``, with "…" if there are more."""
    found = list(names)
    return sign.join([*map(named, found[:LISTED]), *(["…"] if len(found) > LISTED else [])])


def split(text: str, *, commas: bool) -> tuple[str, ...]:
    """Split a cell with several values: at line ends if it has several lines, otherwise at | ; and their wide forms.

    commas: also at , ， 、, because tags are words, while a question may contain a comma.
    """
    if "\n" in text:
        parts = text.split("\n")
    else:
        parts = re.split(r"[|｜;；,，、]" if commas else r"[|｜;；]", text)
    return tuple(part.strip() for part in parts if part.strip())


def joined(texts: Sequence[str], *, commas: bool) -> str:
    """Join texts to a cell that ``split`` returns as they were: a final line end makes line ends the separators."""
    text = "\n".join(texts)
    return text if not texts or split(text, commas=commas) == tuple(texts) else text + "\n"


Fields = Sequence[tuple[str, str | Sequence[str]]]


def draft(place: str, fields: Fields, faults: Sequence[str] = (), *, taken: Allowance) -> Draft:
    """Make a draft of the fields and their texts, counted as ``taken``.

    Aliases and tags may occur more than once, as a text with several values or as a list; a second question is an
    alias; of other fields the first counts. Raises InputRejected if the file has too many entries, or too much in them.
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
    """Tell whether it can be encoded: an escape in JSON or Excel may be half of a surrogate pair."""
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
