"""The sources of the settings: the TOML file, and the alias names of the knowledge base."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, TomlConfigSettingsSource

from agent_core import extras
from agent_core.errors import ConfigInvalid
from agent_core.texts import toml_problem
from bot.app.settings.files import CONFIG_NAME, config_file, is_missing, written

ALIAS_PREFIX = "PHONE_AGENT_KNOWLEDGE_"
ALIAS_SECONDS = f"{ALIAS_PREFIX}TIMEOUT_SECONDS"
ALIASES = {
    "BASE_URL": "base_url",
    "DATASET_ID": "dataset_id",
    "TIMEOUT_SECONDS": "timeout_seconds",
    "TOKEN": "token",
    "AUTH_TOKEN": "token",
}


class ConfigFile(TomlConfigSettingsSource):
    """The TOML file.

    Unknown names in it are left to ``loading``, which reports them with all other problems. Raises ConfigInvalid if the
    file cannot be read, or is named and does not exist.
    """

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        file = config_file()
        if is_missing(file):
            raise ConfigInvalid(
                f"{CONFIG_NAME} names {file}, which is no file.",
                advice="Correct the path, or unset it.",
                key="config_not_there",
                name=CONFIG_NAME,
                file=file,
            )
        try:
            super().__init__(settings_cls, toml_file=file)
        except (OSError, ValueError) as error:
            raise unread(file, error) from None


def unread(file: Path, error: Exception) -> ConfigInvalid:
    """Return the error of a TOML file that cannot be read."""
    why = toml_problem(error) if isinstance(error, tomllib.TOMLDecodeError) else error
    return ConfigInvalid(
        f"{file} cannot be read: {why}.", advice="Mend the file.", key="file_unread", file=file, why=why
    )


class KnowledgeAliases(PydanticBaseSettingsSource):
    """The aliases ``PHONE_AGENT_KNOWLEDGE_BASE_URL``, ``…_DATASET_ID``, ``…_TIMEOUT_SECONDS``, ``…_AUTH_TOKEN`` or
    ``…_TOKEN``.

    An address means the Dify form. If the time-out is not a number of seconds, the default is used, see ``no_seconds``.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False  # the values come all at once, from __call__

    def __call__(self) -> dict[str, Any]:
        found = aliases({**written(), **os.environ})
        return {"knowledge": found} if found else {}


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the knowledge settings that the alias names give."""
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
    """Tell whether the alias of the time-out is given but has no effect."""
    text = environment.get(ALIAS_SECONDS, "")
    return bool(text) and _seconds(text) is None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def lines_of_file(text: str) -> Callable[[tuple[str, ...]], int] | None:
    """Return a function that finds the line of a setting in a TOML text, or of its table if the setting is not there.

    None if the extra [lab] is not installed; then only the file is named.
    """
    if not extras.installed("lab"):
        return None
    from agent_core.owner.file_lines import line_of, lines_of

    lines = lines_of(text, "toml")
    return lambda path: line_of(lines, path)
