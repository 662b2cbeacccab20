"""The settings by name: ``model.name`` in the file, ``PHONEDESK_MODEL__NAME`` in the environment; and which of them a
running process takes over.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from agent_core.errors import ConfigInvalid
from bot.app.settings.files import PREFIX
from bot.app.settings.layers import ALIAS_PREFIX, ALIASES, Settings

SettingPath = tuple[str, ...]

# A whole section, or one setting. Attempts that begin from now on use it; an active attempt keeps the old one.
LIVE: frozenset[SettingPath] = frozenset(
    {
        ("log_level",),
        ("keep_days",),
        ("model",),
        ("knowledge",),
        ("chooser",),
        ("planner",),
        ("observe",),
        ("pictures",),
        ("run", "max_steps"),
        ("run", "max_tokens"),
        ("run", "max_cost"),
        ("run", "hold_seconds"),
        ("run", "part_chars"),
        ("run", "checked_versions"),
        ("questions",),
        ("alerts", "chat"),
        ("quiet",),
        ("price",),
        ("trajectory",),
        ("limits",),
        ("webhooks", "allow_private"),
        ("telegram", "per_minute"),
        ("device", "connect"),
        ("device", "names"),
        ("device", "tags"),
        ("device", "pins"),
    }
)


@dataclass(frozen=True)
class Name:
    """One setting. ``field`` is pydantic's, with its type and its default."""

    path: SettingPath
    field: FieldInfo

    @property
    def key(self) -> str:
        """The name in the file: ``model.name``."""
        return ".".join(self.path)

    @property
    def environment(self) -> str:
        return environment_name(self.path)

    @property
    def default(self) -> Any:
        return self.field.get_default(call_default_factory=True)

    @property
    def is_table(self) -> bool:
        """True if its value is a table whose keys are not settings: ``device.names``."""
        return isinstance(self.default, dict)

    @property
    def is_secret(self) -> bool:
        """True if the setting is a secret, or holds some, as headers do."""
        return _holds_secret(self.field.annotation)

    @property
    def is_live(self) -> bool:
        """True if a running process takes it over; otherwise it waits for the next start."""
        return any(self.path[: len(path)] == path for path in LIVE)


def _holds_secret(annotation: Any) -> bool:
    if annotation is SecretStr:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return any(_holds_secret(info.annotation) for info in annotation.model_fields.values())
    return any(map(_holds_secret, get_args(annotation)))


def environment_name(path: Iterable[str]) -> str:
    return PREFIX + "__".join(part.upper() for part in path)


@cache
def names() -> tuple[Name, ...]:
    """Return every setting, in the order of the sections."""
    return tuple(_names(Settings, ()))


def _names(model: type[BaseModel], path: SettingPath) -> Iterator[Name]:
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _names(info.annotation, (*path, name))
        else:
            yield Name((*path, name), info)


def find(written: str) -> tuple[Name, str]:
    """Return the setting with this name in the file or in the environment, and the key inside it.

    The key is "" unless the setting is a table (``device.names.S1``). Raises ConfigInvalid for any other name, with the
    name that may be meant.
    """
    key = _as_key(written)
    for name in names():
        if name.key == key.lower():
            return name, ""
        if name.is_table and key.lower().startswith(name.key + "."):
            return name, key[len(name.key) + 1 :]
    near = nearest(written, [name.environment for name in names()])
    meant = next((name.key for name in names() if name.environment == near), "")
    raise ConfigInvalid(
        f"There is no setting {written}.",
        advice=f"Did you mean {meant}?" if meant else "See `phonedesk config show` for all of them.",
        key="no_setting_meant" if meant else "no_setting",
        name=written,
        meant=meant,
    )


def _as_key(written: str) -> str:
    if written.upper().startswith(ALIAS_PREFIX):
        theirs = written.upper().removeprefix(ALIAS_PREFIX)
        return f"knowledge.{ALIASES.get(theirs, theirs.lower())}"
    if written.upper().startswith(PREFIX):
        return ".".join(written[len(PREFIX) :].split("__"))
    return written.strip().replace("__", ".")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the most similar name by the letters behind the prefix; "" if none is similar.

    Most mistakes are in the number of underscores.
    """
    by_letters = {_letters(one): one for one in known}
    near = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=0.5)
    return by_letters[near[0]] if near else ""


def _letters(name: str) -> str:
    return name.upper().removeprefix(PREFIX).replace("_", "").replace(".", "")


def value_at(data: Any, path: SettingPath, missing: Any = None) -> Any:
    """Return the value at a path in settings or in nested tables; ``missing`` if there is none."""
    for part in path:
        if isinstance(data, BaseModel):
            data = dict(data)
        if not isinstance(data, Mapping) or part not in data:
            return missing
        data = data[part]
    return data
