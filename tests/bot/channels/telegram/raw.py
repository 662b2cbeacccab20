"""Updates as raw JSON: of every kind that the Bot API knows, and broken in every way."""

from __future__ import annotations

import copy
import random
import types
import typing
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import aiogram.types
from aiogram.types import Update
from aiogram.types.base import TelegramObject

Raw = dict[str, Any]
KINDS = [name for name in Update.model_fields if name != "update_id"]
OWNER = {"id": 10, "is_bot": False, "first_name": "Chief", "username": "chief", "language_code": "zh"}
PRIVATE = {"id": 10, "type": "private", "first_name": "Chief"}
COMMAND = "/run 打开设置"
DEPTH = 4


class Maker:
    """Values of the Bot API's types, as aiogram's classes (made from its documentation) declare them.

    Every person is the owner, every private chat theirs, and every text a command: whatever is read of a kind that
    counts for nothing would start a run.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def update(self, kind: str, update_id: int, *, full: float = 0.3) -> Raw:
        """``full``: how likely a field is there that may be left out."""
        return {"update_id": update_id, kind: self._value(Update.model_fields[kind].annotation, kind, full, 0)}

    def _value(self, annotation: Any, name: str, full: float, depth: int) -> Any:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            return self._value(arguments[0], name, full, depth)
        if origin in {typing.Union, types.UnionType}:
            options = [option for option in arguments if option is not type(None)]
            return self._value(self._preferred(options), name, full, depth)
        if origin is list:
            return [self._value(arguments[0], name, full, depth) for _ in range(self.chance.randint(1, 2))]
        if origin is typing.Literal:
            return self.chance.choice(arguments)
        if isinstance(annotation, type):
            return self._plain(annotation, name, full, depth)
        return 1_700_000_000

    def _preferred(self, options: list[Any]) -> Any:
        """A number for a date; of kinds of objects any."""
        plain = [option for option in options if option in {int, str}]
        return plain[0] if plain else self.chance.choice(options)

    def _plain(self, annotation: type, name: str, full: float, depth: int) -> Any:
        if issubclass(annotation, TelegramObject):
            return self._object(annotation, full, depth)
        if issubclass(annotation, Enum):
            return self.chance.choice([member.value for member in annotation])
        if annotation is bool:
            return self.chance.random() < 0.5
        if annotation is int:
            return self.chance.randint(1, 9) if name != "date" else 1_700_000_000
        if annotation is float:
            return 0.5
        if issubclass(annotation, datetime | timedelta):
            return 1_700_000_000
        return COMMAND if name in {"text", "caption", "query", "data"} else f"{name} 1"

    def _object(self, cls: type[TelegramObject], full: float, depth: int) -> Raw:
        if cls is aiogram.types.User:
            return dict(OWNER)
        if cls is aiogram.types.Chat and self.chance.random() < 0.7:
            return dict(PRIVATE)
        made: Raw = {}
        for name, field in cls.model_fields.items():
            if isinstance(field.default, str | int) and not isinstance(field.default, bool):  # which kind it is
                made[field.alias or name] = getattr(field.default, "value", field.default)
                continue
            wanted = field.is_required() or name in {"text", "from_user", "data"}
            if not wanted and (depth >= DEPTH or self.chance.random() > full / (1 + depth)):
                continue
            made[field.alias or name] = self._value(field.annotation, name, full, depth + 1)
        return made


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a piece of JSON."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in inner for place in [(*path, key), *places(item, (*path, key))]]


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"reply_to_message": value}
    return value


ODD: list[Callable[[random.Random], Any]] = [
    lambda chance: None,
    lambda chance: chance.choice([-1, 0, 2**31, 2**53, 2**64, 10**300]),
    lambda chance: chance.choice([0.5, float("inf"), True]),
    lambda chance: chance.choice(["", "x", "\x00", "\ud83d", "\u202e", "10"]),
    lambda chance: "长" * chance.choice([4097, 40_000]),
    lambda chance: chance.choice([[], [None], [[[]]], {}, {"id": {}}, {"": 1}]),
    lambda chance: deep(chance.choice([3, 80, 400])),
]


def broken(update: Raw, chance: random.Random) -> Raw:
    """The update with one to three of its values gone, or put to something else."""
    made = copy.deepcopy(update)
    for _ in range(chance.randint(1, 3)):
        found = [place for place in places(made) if place != ("update_id",)]
        if not found:
            break
        *path, last = chance.choice(found)
        inside: Any = made
        for key in path:
            inside = inside[key]
        if chance.random() < 0.3 and isinstance(inside, dict):
            del inside[last]
        else:
            inside[last] = chance.choice(ODD)(chance)
    return made
