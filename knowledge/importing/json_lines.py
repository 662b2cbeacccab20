"""Reads JSON: one object per line, or a list of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from agent_core.errors import InputRejected
from knowledge.importing.drafts import LISTED, Draft, column, draft, listed
from knowledge.importing.limits import ENTRIES, ENTRY, Allowance
from knowledge.importing.messages import ImportMessage
from knowledge.importing.text import decode, lines_of

_USUAL = 4_000  # characters of an item
_BLANKS = re.compile(r"[ \t\r\n]*")  # as JSON defines them


def read_json(name: str, data: bytes) -> Sequence[Draft]:
    """Read objects with our fields, named as columns are. A note names the fields that were not read."""
    text, taken = decode(name, data), Allowance(name)
    unread: dict[str, None] = {}
    start = _end_of_blanks(text, 0)
    objects = _items(name, text, start + 1) if text.startswith("[", start) else _lines(name, text, start, taken)
    drafts = [_draft(place, item, unread, taken) for place, item in objects]
    if drafts and unread:
        return [
            replace(drafts[0], notes=(ImportMessage("fields_unread", name=name, names=listed(unread)),)),
            *drafts[1:],
        ]
    return drafts


class _NoJson:
    """The marker for a value that could not be parsed, because None is a value."""


def _parsed(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):  # a number with thousands of digits, deeply nested lists
        return _NoJson()
    return value


def _end_of_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _items(name: str, text: str, at: int) -> Iterator[tuple[str, object]]:
    """Yield the items of a list one by one: parsed at once, a list of only brackets would take a gigabyte."""
    decoder, number = json.JSONDecoder(), 0
    at = _end_of_blanks(text, at)
    while not text.startswith("]", at):
        number += 1
        if number > ENTRIES.most:
            raise ENTRIES.passed(name)
        place = ImportMessage("item", name=name, number=number)
        for size in (_USUAL, ENTRY.most):
            piece = text[at : at + size]
            with suppress(ValueError, RecursionError):
                value, length = decoder.raw_decode(piece)
                break
        else:
            raise ENTRY.passed(place) if len(piece) == ENTRY.most else _broken(name, place)
        yield place, value
        at = _end_of_blanks(text, at + length)
        if text.startswith(",", at):
            at = _end_of_blanks(text, at + 1)
        elif not text.startswith("]", at):
            raise _broken(name, place)
    if _end_of_blanks(text, at + 1) < len(text):
        raise _broken(name, ImportMessage("item", name=name, number=number))


def _broken(name: str, place: str) -> InputRejected:
    return InputRejected(
        f"{place}: from here on the file is no JSON.",
        advice="Look for a comma, a bracket or a quotation mark that is missing.",
        key="broken_json",
        name=name,
        place=place,
    )


def _lines(name: str, text: str, start: int, taken: Allowance) -> Iterator[tuple[str, object]]:
    if len(text) <= ENTRY.most and isinstance(whole := _parsed(text[start:]), dict):
        yield ImportMessage("item", name=name, number=1), whole  # one object, over any number of lines
        return
    for number, line in enumerate(lines_of(name, text, taken), start=1):
        if line.strip():
            yield ImportMessage("line", name=name, number=number), _parsed(line)


def _draft(place: str, item: object, unread: dict[str, None], taken: Allowance) -> Draft:
    if not isinstance(item, dict):
        problem = ImportMessage("no_json" if isinstance(item, _NoJson) else "no_object")
        return draft(place, (), [problem], taken=taken)
    fields: list[tuple[str, str | Sequence[str]]] = []
    faults: list[str] = []
    for key, value in item.items():
        name = column(key)
        if name is None:
            if len(unread) <= LISTED:
                unread[key] = None
        elif name in ("aliases", "tags") and isinstance(value, list):
            if all(isinstance(part, str) for part in value):
                fields.append((name, value))
            else:
                faults.append(ImportMessage("no_list", name=key))
        elif (text := _text(value)) is not None:
            fields.append((name, text))
        else:
            faults.append(ImportMessage("no_text", name=key))
    return draft(place, fields, faults, taken=taken)


def _text(value: object) -> str | None:
    """Return a text, number or boolean as a cell would show it; null is blank, None anything else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else None
