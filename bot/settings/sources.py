"""Where settings are written: ``.env``, the TOML file, and the alias names of the knowledge base."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, TomlConfigSettingsSource

from agent_core import extras
from agent_core.errors import ConfigInvalid

logging.getLogger("dotenv.main").setLevel(logging.ERROR)  # it would tell of each line at each reading: we do, once

CONFIG_FILE = "phonedesk.toml"
PREFIX = "PHONEDESK_"
CONFIG_NAME = f"{PREFIX}CONFIG"
ENV_FILE = ".env"
ALIAS_PREFIX = "PHONE_AGENT_KNOWLEDGE_"
ALIAS_SECONDS = f"{ALIAS_PREFIX}TIMEOUT_SECONDS"
ALIASES = {
    "BASE_URL": "base_url",
    "DATASET_ID": "dataset_id",
    "TIMEOUT_SECONDS": "timeout_seconds",
    "TOKEN": "token",
    "AUTH_TOKEN": "token",
}

# While something is tried out that is not in its place yet.
_instead: ContextVar[Path | None] = ContextVar("instead", default=None)


def config_file() -> Path:
    """The TOML file that is read where it is there."""
    return _instead.get() or Path(os.environ.get(CONFIG_NAME) or CONFIG_FILE).expanduser()


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Read this TOML file in place of ours."""
    token = _instead.set(file)
    try:
        yield
    finally:
        _instead.reset(token)


def unread_lines() -> list[int]:
    """The numbers of the lines of ``.env`` that cannot be read; what stands in them may be a secret."""
    try:
        with Path(ENV_FILE).open(encoding="utf-8") as file:
            return [binding.original.line for binding in parse_stream(file) if binding.error]
    except (OSError, ValueError):
        return []


def written() -> dict[str, str]:
    """The values of ``.env`` in the folder that we were started from; empty ones count for nothing."""
    return {name: value for name, value in dotenv_values(ENV_FILE).items() if value}


class ConfigFile(TomlConfigSettingsSource):
    """The TOML file. ConfigInvalid where it cannot be read, or was named and is not there. A name in it that is none of
    ours is left to ``loading``, which tells it with all else that is wrong.
    """

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        file = config_file()
        if os.environ.get(CONFIG_NAME) and not _instead.get() and not file.is_file():
            raise ConfigInvalid(
                f"{CONFIG_NAME} names {file}, which is no file.", advice="Correct the path, or unset it."
            )
        try:
            super().__init__(settings_cls, toml_file=file)
        except (OSError, ValueError) as error:
            raise ConfigInvalid(f"{file} cannot be read: {error}.", advice="Mend the file.") from None


class KnowledgeAliases(PydanticBaseSettingsSource):
    """``PHONE_AGENT_KNOWLEDGE_BASE_URL``, ``…_DATASET_ID``, ``…_TIMEOUT_SECONDS``, ``…_AUTH_TOKEN`` or ``…_TOKEN``.

    An address means the Dify form. Of a time-out that is no number of seconds the default is kept, see ``no_seconds``.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False  # the values come all at once, from __call__

    def __call__(self) -> dict[str, Any]:
        found = aliases({**written(), **os.environ})
        return {"knowledge": found} if found else {}


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """The knowledge settings that the alias names give."""
    found: dict[str, Any] = {
        ours: environment[ALIAS_PREFIX + theirs]
        for theirs, ours in ALIASES.items()
        if environment.get(ALIAS_PREFIX + theirs) and theirs != "TIMEOUT_SECONDS"
    }
    seconds = environment.get(ALIAS_SECONDS, "")
    if (number := _seconds(seconds)) is not None:
        found["timeout_seconds"] = number
    if "base_url" in found:
        found["provider"] = "dify"
    return found


def no_seconds(environment: Mapping[str, str]) -> bool:
    """Whether the alias of the time-out is given and counts for nothing."""
    text = environment.get(ALIAS_SECONDS, "")
    return bool(text) and _seconds(text) is None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def lines_of_file(text: str) -> Callable[[tuple[str, ...]], int] | None:
    """The line of a setting in the text of a TOML file; of its table where it is not there.

    None where the extra [lab] is not installed: the file alone is told then.
    """
    if not extras.installed("lab"):
        return None
    from agent_core.file_lines import line_of, lines_of

    lines = lines_of(text, "toml")
    return lambda path: line_of(lines, path)
