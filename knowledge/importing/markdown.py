"""Reads Markdown: a heading is a question and the text below its answer; or pairs of "Q:" and "A:" (问：, 答：).

The answer stays as it is written: a customer's chat shows asterisks and hashes as such, and so does the dry run. Our
own export writes a comment under each heading with the other fields, and a backslash before anything that would be read
as markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from knowledge.importing.drafts import LISTED, Draft, Fields, column, draft, named
from knowledge.importing.limits import Allowance
from knowledge.importing.messages import ImportMessage
from knowledge.importing.text import decode, lines_of

_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FIELDS = re.compile(r"<!-- (\{.*\}) -->")
_Q = r"(?:Q|q|问|问题|提问)"
_A = r"(?:A|a|答|答案|回答)"
_PAIR = re.compile(
    rf"\s{{0,8}}(?:[-*+>]\s{{1,4}})?\**(?:(?P<q>{_Q})|(?P<a>{_A}))\s?\d{{0,5}}\s?\**\s?[:：]\**\s{{0,8}}(?P<text>.*)"
)
# The beginnings of answer lines that would be read as markup.
_SIGN = re.compile(r"([ \t]*)(\\*)(?=#|`{3}|~{3}|<!--|" + _PAIR.pattern + ")", re.DOTALL)

_Lost = tuple[int, str]  # the number of a line that belongs to no entry, and why


@dataclass(slots=True)
class _Section:
    line: int
    asked: list[str]  # the question, line by line
    level: int = 0
    answer: list[str] = field(default_factory=list)
    ours: str | None = None  # the comment's JSON
    has_text: bool = False  # whether any line of the answer is not blank

    def add(self, line: str) -> None:
        self.answer.append(line)
        self.has_text = self.has_text or bool(line.strip())

    @property
    def question(self) -> str:
        return " ".join(self.asked).strip()

    @property
    def text(self) -> str:
        return "\n".join(self.answer).strip()


def read_markdown(name: str, data: bytes) -> Sequence[Draft]:
    """Read the pairs of the file.

    Text without a question is reported with its line; a heading over others is a title.
    """
    taken = Allowance(name)
    text = decode(name, data)
    lines = list(_outside_fences(line.rstrip("\r\n") for line in lines_of(name, text, taken)))
    ours = any(outside and _FIELDS.fullmatch(line) for line, outside in lines)
    in_pairs = not ours and any(outside and (match := _PAIR.fullmatch(line)) and match["q"] for line, outside in lines)
    sections, lost = (_pairs if in_pairs else _headings)(lines)
    drafts = [draft(ImportMessage("line", name=name, number=line), (), [why], taken=taken) for line, why in lost]
    titles: list[str] = []
    for index, section in enumerate(sections):
        below = sections[index + 1].level if index + 1 < len(sections) else 0
        if not in_pairs and not section.has_text and section.ours is None and below > section.level:
            title = named(section.question)
            titles.append(
                ImportMessage("title", place=ImportMessage("line", name=name, number=section.line), title=title)
            )
        else:
            drafts.append(_draft(name, section, taken, foreign=section.ours is None))
    if drafts and titles:
        more = [ImportMessage("titles", name=name, count=len(titles) - LISTED)] if len(titles) > LISTED else []
        drafts[0] = replace(drafts[0], notes=(*titles[:LISTED], *more))
    return drafts


def heading(question: str) -> str | None:
    """Return the heading that is read back as this question; None if none is."""
    line = f"## {question}"
    match = _HEADING.fullmatch(line)
    return line if match and _title(match) == question else None


def _title(match: re.Match[str]) -> str:
    """Return a heading's text, without hashes that close it."""
    text = match[2].strip(" \t")
    open_end = text.rstrip("#")
    return open_end.rstrip(" \t") if open_end != text and (not open_end or open_end[-1] in " \t") else text


def comment(fields: dict[str, object]) -> str:
    """Return the other fields of an entry as a comment that nothing in them can end."""
    plain = json.dumps(fields, ensure_ascii=False)
    return f"<!-- {plain.replace('--', '-' + chr(92) + 'u002d').replace('>', chr(92) + 'u003e')} -->"


def escaped(answer: str) -> str:
    return "\n".join(_SIGN.sub(r"\1\\\2", line, count=1) if _SIGN.match(line) else line for line in answer.split("\n"))


def _unescaped(answer: str) -> str:
    def plain(line: str) -> str:
        match = _SIGN.match(line)
        return line.replace("\\", "", 1) if match and match[2] else line

    return "\n".join(map(plain, answer.split("\n")))


def _outside_fences(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it may contain markup: code does not."""
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if fence:
            ends = bool(match and match[1].startswith(fence) and not line[match.end() :].strip())
            yield line, False
            fence = "" if ends else fence
        else:
            fence = match[1] if match else ""
            yield line, not match


def _headings(lines: Sequence[tuple[str, bool]]) -> tuple[list[_Section], list[_Lost]]:
    sections: list[_Section] = []
    lost: list[_Lost] = []
    for number, (line, outside) in enumerate(lines, start=1):
        if outside and (match := _HEADING.fullmatch(line)):
            sections.append(_Section(number, [_title(match).strip()], len(match[1])))
        elif not sections:
            _lose(number, line, lost)
        elif outside and not sections[-1].has_text and (fields := _FIELDS.fullmatch(line)):
            sections[-1].ours = fields[1]
        else:
            sections[-1].add(line)
    return sections, lost


def _pairs(lines: Sequence[tuple[str, bool]]) -> tuple[list[_Section], list[_Lost]]:
    sections: list[_Section] = []
    lost: list[_Lost] = []
    open_part = ""  # the part that a line without markup continues
    for number, (line, outside) in enumerate(lines, start=1):
        match = _PAIR.fullmatch(line) if outside else None
        if match and match["q"]:
            sections.append(_Section(number, [match["text"].strip()]))
            open_part = "q"
        elif match and match["a"] and open_part == "q":
            sections[-1].add(match["text"])
            open_part = "a"
        elif outside and _HEADING.fullmatch(line):
            open_part = ""
            _lose(number, line, lost, ImportMessage("heading"))
        elif open_part == "q" and line.strip():
            sections[-1].asked.append(line.strip())
        elif open_part == "a":
            sections[-1].add(line)
        else:
            _lose(number, line, lost)
    return sections, lost


_STRAY = ImportMessage("stray")


def _lose(number: int, line: str, lost: list[_Lost], why: str = _STRAY) -> None:
    if line.strip():
        lost.append((number, why))


def _draft(name: str, section: _Section, taken: Allowance, *, foreign: bool) -> Draft:
    place = ImportMessage("line", name=name, number=section.line)
    question, answer = section.question, section.text
    if foreign:
        for sign, text in (("q", question), ("a", answer)):
            match = _PAIR.match(text)
            if match and match[sign]:
                stripped = text[match.start("text") :]
                question, answer = (stripped, answer) if sign == "q" else (question, stripped)
        return draft(place, [("question", question), ("answer", answer)], taken=taken)
    try:
        fields = json.loads(section.ours or "{}")
    except (ValueError, RecursionError):
        return draft(place, (), [ImportMessage("comment")], taken=taken)
    if isinstance(said := fields.pop("question", question), str):  # a question that no heading can hold
        question = said
    texts: Fields = [("question", question), ("answer", _unescaped(answer))]
    read, live, faults = _fields(fields)
    made = draft(place, [*texts, *read], faults, taken=taken)
    return replace(made, live=live)


def _fields(found: dict[str, object]) -> tuple[Fields, bool | None, list[str]]:
    """Return the other fields of the comment, whether the entry is live, and the parts that cannot be read."""
    fields: list[tuple[str, str | Sequence[str]]] = []
    faults: list[str] = []
    live: bool | None = None
    for key, value in found.items():
        match column(key), value:
            case ("aliases" | "tags" as name, list() as items) if all(isinstance(item, str) for item in items):
                fields.append((name, items))
            case ("id" | "alias_of" as name, str() as text):
                fields.append((name, text))
            case ("live", bool() as said):
                live = said
            case _:
                faults.append(ImportMessage("in_comment", name=named(key)))
    return fields, live, faults
