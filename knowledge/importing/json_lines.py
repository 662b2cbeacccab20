"""JSON: one object a line, or a list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.importing.drafts import MOST_ROWS, Draft, column, draft, too_many
from knowledge.importing.text import decode


def read_json(name: str, data: bytes) -> Sequence[Draft]:
    """Objects with our fields, named as columns are. A note names the fields that were not read."""
    text = decode(name, data)
    whole = _parsed(text)
    unread: dict[str, None] = {}
    drafts: list[Draft] = []
    objects = _items(name, whole) if isinstance(whole, list) else _lines(name, text, whole)
    for place, item in objects:
        if len(drafts) >= MOST_ROWS:
            raise too_many(name, "entries")
        drafts.append(_draft(place, item, unread))
    if drafts and unread:
        note = f"{name}: these fields were not read: {', '.join(unread)}"
        return [replace(drafts[0], note=note), *drafts[1:]]
    return drafts


class _NoJson:
    """What could not be parsed; None is a value."""


def _parsed(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists in lists
        return _NoJson()
    return value


def _items(name: str, whole: list[object]) -> Iterator[tuple[str, object]]:
    return ((f"{name}, item {number}", item) for number, item in enumerate(whole, start=1))


def _lines(name: str, text: str, whole: object) -> Iterator[tuple[str, object]]:
    if isinstance(whole, dict):  # one object, over any number of lines
        yield f"{name}, item 1", whole
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{name}, line {number}", _parsed(line)


def _draft(place: str, item: object, unread: dict[str, None]) -> Draft:
    if isinstance(item, _NoJson):
        return Draft(place, problem="it is no JSON")
    if not isinstance(item, dict):
        return Draft(place, problem="it is no object with a question and an answer")
    fields: list[tuple[str, str]] = []
    faults: list[str] = []
    lists: dict[str, tuple[str, ...]] = {}
    for key, value in item.items():
        name = column(str(key))
        if name is None:
            unread[str(key)] = None
        elif name in ("aliases", "tags") and isinstance(value, list):
            if all(isinstance(part, str) for part in value):
                lists[name] = lists.get(name, ()) + tuple(value)
            else:
                faults.append(f"{key} is no list of texts")
        elif (text := _text(value)) is not None:
            fields.append((name, text))
        else:
            faults.append(f"{key} is no text")
    made = draft(place, fields, faults)
    return replace(
        made,
        aliases=_both(made.aliases, lists.get("aliases")),
        tags=_both(made.tags, lists.get("tags")),
    )


def _text(value: object) -> str | None:
    """A text, a number or yes and no as a cell would have it; null is a blank."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else None


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return one if other is None else (one or ()) + other
