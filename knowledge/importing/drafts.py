"""A row of a person's file before anything is decided about it: how cells become drafts.

A table's header is found, and the field of each column.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agent_core.errors import InputRejected
from knowledge.entries import LONGEST_QUESTION
from knowledge.importing.limits import ASKED, COLUMNS, ENTRIES, LONGEST_LIST, WORDINGS, Allowance
from knowledge.importing.messages import ImportMessage, SaidTogether

HEADER_WITHIN = 10  # rows with content: titles and explanations may be above it
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

Fields = Sequence[tuple[str, str | Sequence[str]]]


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


def has_header(rows: Sequence[Row]) -> bool:
    """Tell whether one of the first ``HEADER_WITHIN`` rows is a header; ``rows`` are those with content."""
    return _header(rows) is not None


def checked_width(where: str, cells: Sequence[str]) -> Sequence[str]:
    """Return the cells of a row, without blank ones after the last column that a table may have.

    Raises InputRejected if one of those has content.
    """
    if any(cell.strip() for cell in cells[COLUMNS.most :]):
        raise COLUMNS.passed(where)
    return cells[: COLUMNS.most]


def drafts_of(where: str, rows: Iterable[Row], taken: Allowance) -> list[Draft]:
    """Return drafts of the rows with content below the header. ``where`` is the file, or the file and the sheet.

    Without a header the first column is the question and the second the answer, and a note says so. Rows are read one
    by one, so that reading stops where a table gets too large (InputRejected of ``taken``).
    """
    rows = (row for row in rows if not row.blank)
    head = list(itertools.islice(rows, HEADER_WITHIN))
    at = _header(head)
    header: Sequence[str] = () if at is None else head[at].cells
    if at is None:
        _not_half_a_header(where, head)
        names: list[str | None] = ["question", "answer"]
        notes = [ImportMessage("no_header", where=where, **COLUMN_NAMES)]
    else:
        names = columns(header) or []
        notes = [ImportMessage("above_header", place=row.place) for row in head[:at]]
        unread = [cell for cell, name in zip(header, names, strict=True) if not name and cell.strip()]
        notes += [ImportMessage("columns_unread", where=where, names=listed(unread))] if unread else []
        notes += _read_once(where, header, names)
    drafts: list[Draft] = []
    left_out = nameless = False
    for row in itertools.chain(head[0 if at is None else at + 1 :], rows):
        drafts.append(_draft(row, names, taken, headed=at is not None))
        if at is None:
            left_out = left_out or len(row.cells) > 2
        else:
            nameless = nameless or any(
                cell.strip() and not name.strip() for cell, name in zip(row.cells, header, strict=False)
            )
    notes += [ImportMessage("columns_beyond", where=where)] if left_out else []
    notes += [ImportMessage("columns_nameless", where=where)] if nameless else []
    return [replace(drafts[0], notes=tuple(notes)), *drafts[1:]] if drafts else []


def _header(rows: Sequence[Row]) -> int | None:
    return next((index for index, row in enumerate(rows[:HEADER_WITHIN]) if columns(row.cells)), None)


def _not_half_a_header(where: str, rows: Sequence[Row]) -> None:
    """Raise if the first row names only a question or only an answer: it must not be read as a question."""
    cells = rows[0].cells if rows else ()
    found = {name: cell for cell in cells if (name := column(cell))}
    for one, other in (("question", "answer"), ("answer", "question")):
        if one in found and other not in found:
            unknown = listed(cell for cell in cells if cell.strip() and not column(cell))
            raise InputRejected(
                f"{where} has a column {named(found[one])} for the {one}, and none for the {other}."
                + (f" Not understood: {unknown}." if unknown else ""),
                advice="Name the columns question and answer (问题, 答案).",
                key=f"no_{other}_column" if unknown else "half_a_header",
                name=where,
                column=named(found[one]),
                unknown=unknown,
                **COLUMN_NAMES,
            )


def _read_once(where: str, cells: Sequence[str], names: Sequence[str | None]) -> list[ImportMessage]:
    """Report columns whose field an earlier one fills; second questions are aliases, tags and aliases add up."""
    again = [
        cell
        for index, (cell, name) in enumerate(zip(cells, names, strict=True))
        if name in ("id", "answer", "live", "alias_of") and name in names[:index]
    ]
    return [ImportMessage("columns_again", where=where, names=listed(again))] if again else []


def _draft(row: Row, names: Sequence[str | None], taken: Allowance, *, headed: bool) -> Draft:
    fields = [(name, cell) for name, cell in zip(names, row.cells, strict=False) if name]
    short = [(name, "") for name in names[len(row.cells) :] if name]
    faults = [fault for index, fault in sorted(row.faults.items()) if index < len(names) and names[index]]
    beyond = [cell for cell in row.cells[len(names) :] if cell.strip()]
    if beyond and headed:  # an unquoted comma would cut an answer short
        faults.append(ImportMessage("cells", count=len(row.cells), header=len(names)))
    return draft(row.place, [*fields, *short], faults, taken=taken)
