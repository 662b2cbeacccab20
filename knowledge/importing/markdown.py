"""Markdown: a heading is a question and what follows its answer; or pairs of "Q:" and "A:" (问：, 答：).

The answer stays as it is written: a customer's chat shows stars and hashes as such, and so does the dry run. What our
own export writes has a comment under each heading with the other fields, and a backslash before what would be a sign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from knowledge.importing.drafts import MOST_ROWS, Draft, column, draft, too_many
from knowledge.importing.text import decode

_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FIELDS = re.compile(r"<!-- (\{.*\}) -->")
_Q = r"(?:Q|q|问|问题|提问)"
_A = r"(?:A|a|答|答案|回答)"
_PAIR = re.compile(
    rf"\s{{0,8}}(?:[-*+>]\s{{1,4}})?\**(?:(?P<q>{_Q})|(?P<a>{_A}))\s?\d{{0,5}}\s?\**\s?[:：]\**\s{{0,8}}(?P<text>.*)"
)
# What begins a line of an answer and would be taken for a sign.
_SIGN = re.compile(r"([ \t]*)(\\*)(?=#|`{3}|~{3}|<!--|" + _PAIR.pattern + ")", re.DOTALL)


@dataclass(slots=True)
class _Section:
    line: int
    question: str
    level: int = 0
    answer: list[str] = field(default_factory=list)
    ours: str | None = None  # the JSON of the comment

    @property
    def text(self) -> str:
        return "\n".join(self.answer).strip()


def read_markdown(name: str, data: bytes) -> Sequence[Draft]:
    """The pairs of the file. Text of no question is told with its line; a heading over others is a title."""
    text = decode(name, data).replace("\r\n", "\n").replace("\r", "\n")
    lines = list(_outside_fences(text.split("\n")))
    ours = any(outside and _FIELDS.fullmatch(line) for line, outside in lines)
    in_pairs = not ours and any(outside and (match := _PAIR.fullmatch(line)) and match["q"] for line, outside in lines)
    sections, drafts = (_pairs if in_pairs else _headings)(name, lines)
    if len(sections) > MOST_ROWS:
        raise too_many(name, "questions")
    titles: list[str] = []
    for index, section in enumerate(sections):
        below = sections[index + 1].level if index + 1 < len(sections) else 0
        if not in_pairs and not section.text and section.ours is None and below > section.level:
            titles.append(f"{name}, line {section.line}: {section.question} was taken as a title, not as a question")
        else:
            drafts.append(_draft(name, section, foreign=section.ours is None))
    if drafts and titles:
        drafts[0] = replace(drafts[0], note="\n".join(titles))
    return drafts


def heading(question: str) -> str | None:
    """The heading that is read back as this question, or None where none is."""
    line = f"## {question}"
    match = _HEADING.fullmatch(line)
    return line if match and _title(match) == question else None


def _title(match: re.Match[str]) -> str:
    """A heading's text, without the hashes that may close it."""
    text = match[2].strip(" \t")
    open_end = text.rstrip("#")
    return open_end.rstrip(" \t") if open_end != text and (not open_end or open_end[-1] in " \t") else text


def comment(fields: dict[str, object]) -> str:
    """The other fields of an entry, as a comment that nothing in them can end."""
    plain = json.dumps(fields, ensure_ascii=False)
    return f"<!-- {plain.replace('--', '-' + chr(92) + 'u002d').replace('>', chr(92) + 'u003e')} -->"


def escaped(answer: str) -> str:
    return "\n".join(_SIGN.sub(r"\1\\\2", line, count=1) if _SIGN.match(line) else line for line in answer.split("\n"))


def _unescaped(answer: str) -> str:
    def plain(line: str) -> str:
        match = _SIGN.match(line)
        return line.replace("\\", "", 1) if match and match[2] else line

    return "\n".join(map(plain, answer.split("\n")))


def _outside_fences(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether signs count in it: code is code."""
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


def _headings(name: str, lines: Sequence[tuple[str, bool]]) -> tuple[list[_Section], list[Draft]]:
    sections: list[_Section] = []
    lost: list[Draft] = []
    for number, (line, outside) in enumerate(lines, start=1):
        if outside and (match := _HEADING.fullmatch(line)):
            sections.append(_Section(number, _title(match).strip(), len(match[1])))
        elif not sections:
            _lose(name, number, line, lost)
        elif outside and not sections[-1].text and (fields := _FIELDS.fullmatch(line)):
            sections[-1].ours = fields[1]
        else:
            sections[-1].answer.append(line)
    return sections, lost


def _pairs(name: str, lines: Sequence[tuple[str, bool]]) -> tuple[list[_Section], list[Draft]]:
    sections: list[_Section] = []
    lost: list[Draft] = []
    open_part = ""  # which part a line without a sign goes on with
    for number, (line, outside) in enumerate(lines, start=1):
        match = _PAIR.fullmatch(line) if outside else None
        if match and match["q"]:
            sections.append(_Section(number, match["text"].strip()))
            open_part = "q"
        elif match and match["a"] and open_part == "q":
            sections[-1].answer.append(match["text"])
            open_part = "a"
        elif outside and _HEADING.fullmatch(line):
            open_part = ""
            _lose(name, number, line, lost, "it is a heading between questions and answers, and was not read")
        elif open_part == "q" and line.strip():
            sections[-1].question = f"{sections[-1].question} {line.strip()}".strip()
        elif open_part == "a":
            sections[-1].answer.append(line)
        else:
            _lose(name, number, line, lost)
    return sections, lost


def _lose(name: str, number: int, line: str, lost: list[Draft], why: str = "it belongs to no question") -> None:
    if line.strip():
        lost.append(Draft(f"{name}, line {number}", problem=why))


def _draft(name: str, section: _Section, *, foreign: bool) -> Draft:
    place = f"{name}, line {section.line}"
    question, answer = section.question, section.text
    if foreign:
        for sign, text in (("q", question), ("a", answer)):
            match = _PAIR.match(text)
            if match and match[sign]:
                stripped = text[match.start("text") :]
                question, answer = (stripped, answer) if sign == "q" else (question, stripped)
        return draft(place, [("question", question), ("answer", answer)])
    try:
        fields = json.loads(section.ours or "{}")
    except (ValueError, RecursionError):
        return Draft(place, problem="the comment under the heading is no JSON")
    if isinstance(said := fields.pop("question", question), str):  # one that no heading can hold
        question = said
    made = draft(place, [("question", question), ("answer", _unescaped(answer))])
    return _with_fields(made, fields)


def _with_fields(made: Draft, fields: dict[str, object]) -> Draft:
    faults: list[str] = []
    for key, value in fields.items():
        match column(key), value:
            case ("aliases", list() as items) if all(isinstance(item, str) for item in items):
                made = replace(made, aliases=tuple(map(str, items)))
            case ("tags", list() as items) if all(isinstance(item, str) for item in items):
                made = replace(made, tags=tuple(map(str, items)))
            case ("id", str() as text):
                made = replace(made, id=text.strip())
            case ("alias_of", str() as text):
                made = replace(made, alias_of=text.strip())
            case ("live", bool() as live):
                made = replace(made, live=live)
            case _:
                faults.append(f"{key} in the comment cannot be read")
    return replace(made, problem="; ".join(faults)) if faults and not made.problem else made
