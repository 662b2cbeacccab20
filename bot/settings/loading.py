"""Reading the settings, and saying what is wrong with one, where it was written, under its name there."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from dotenv import dotenv_values
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from agent_core.errors import ConfigInvalid
from bot.settings.layers import Settings
from bot.settings.sources import CONFIG_NAME, ENV_FILE, PREFIX, config_file, written

OF_COMMANDS = {f"{PREFIX}EVAL_MODEL_KEY"}  # options of commands that are not settings


def load(**overrides: Any) -> Settings:
    """The settings; ``overrides`` come from the command line. ConfigInvalid names each wrong one and why."""
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        lines = [_line(wrong["loc"], wrong["type"], wrong["msg"]) for wrong in error.errors(include_input=False)]
        raise ConfigInvalid(
            "Settings are not usable. " + "; ".join(lines) + ".",
            advice=f"Change them in the environment, in {ENV_FILE} or in {config_file()}.",
        ) from None
    except SettingsError as error:  # a value of the environment that is to be JSON; its message holds no value
        raise ConfigInvalid(
            f"The environment is not usable: {error}.",
            advice="Set single values, such as PHONEDESK_MODEL__NAME; a table is written as JSON.",
        ) from None


def unknown_names() -> dict[str, str]:
    """Names of the environment and of ``.env`` that are meant for us and set nothing: each with the setting that may be
    meant, "" where none is near. A wrong name inside a section is not among them, ``load`` refuses it.
    """
    names = tuple(_names(Settings, PREFIX))
    known = {*names, CONFIG_NAME, *OF_COMMANDS}
    sections = {name.split("__")[0] for name in names if "__" in name}
    given = {name.upper() for name in (*os.environ, *dotenv_values(ENV_FILE)) if name.upper().startswith(PREFIX)}
    return {name: _nearest(name, names) for name in sorted(given - known) if name.split("__")[0] not in sections}


def _names(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _names(info.annotation, f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}"


def _nearest(name: str, names: Iterable[str]) -> str:
    """By the letters behind the prefix: what is most often wrong is the number of underscores."""
    by_letters = {known.removeprefix(PREFIX).replace("_", ""): known for known in names}
    near = difflib.get_close_matches(name.removeprefix(PREFIX).replace("_", ""), by_letters, n=1, cutoff=0.5)
    return by_letters[near[0]] if near else ""


def _line(location: tuple[int | str, ...], kind: str, message: str) -> str:
    """What is wrong with one setting. A name that does not exist is given as it was written, where it was written; one
    that does, under its name in the environment and in the file.
    """
    parts = [str(part) for part in location]
    name, key = PREFIX + "__".join(part.upper() for part in parts), ".".join(parts)
    if kind != "extra_forbidden":
        return f"{name} ({key} in {config_file()}): {message}"
    in_environment = name in {given.upper() for given in (*os.environ, *written())}
    where = f"{key} (in {config_file()})" if _in_file(parts) and not in_environment else name
    return f"{where}: there is no such setting"


def _in_file(parts: list[str]) -> bool:
    file = config_file()
    found: object = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for part in parts:
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True
