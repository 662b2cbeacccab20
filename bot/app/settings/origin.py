"""The origin of each value: the layers one by one, and the part of a value that may be shown."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, SettingsError

from bot.app.logs import mask
from bot.app.settings.files import config_file, written
from bot.app.settings.free import is_secret
from bot.app.settings.layers import Settings
from bot.app.settings.loading import source_of, unparsed
from bot.app.settings.names import Name, Path, environment_name, names, value_of
from bot.app.settings.sources import ALIAS_PREFIX, ALIASES, aliases, lines_of_file

Layer = Literal["command_line", "environment", "env_file", "file", "default"]
OPTIONS = {"model.base_url": "--endpoint", "model.name": "--model"}
DOTS = "••••"
SHOWS_END = 16  # letters: of a secret that has as many, the last two are shown


@dataclass(frozen=True, slots=True)
class SettingPlace:
    """A place that gives a setting its value.

    where: the option and its value; the name in the environment or in ``.env``; ``FILE:LINE`` of the TOML file; else
    "".
    """

    layer: Layer
    where: str = ""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as it may be shown. ``places``: all places that name it, the one that wins first."""

    name: Name
    value: Any
    places: tuple[SettingPlace, ...]
    changed: bool  # it differs from the default
    wrong: bool = False  # ``value`` is the written one, and cannot be used


def survey(settings: Settings, overrides: Mapping[str, Any] | None = None) -> list[ShownSetting]:
    """Return every setting with its value and its places."""
    places = Places(overrides)
    return [_shown(name, settings, places) for name in names()]


def _shown(name: Name, settings: Settings, places: Places) -> ShownSetting:
    value = value_of(settings, name.path)
    changed = value != name.default
    is_no_key = not changed and isinstance(name.default, SecretStr)
    plain = "" if is_no_key else plain_of(value)
    found = places.of(name.path)
    return ShownSetting(name, plain, found or (SettingPlace("default"),), changed)


def plain_of(value: Any) -> Any:
    """Return ``value`` as plain data without secrets, found by their type or by their form."""
    if isinstance(value, SecretStr):
        return masked(value.get_secret_value())
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, BaseModel):
        return {key: plain_of(item) for key, item in value}
    if isinstance(value, Mapping):
        return {str(key): masked(item) if is_secret(key, item) else plain_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_of(item) for item in value]
    return mask(str(value))


def masked(secret: str) -> str:
    """Return dots for a secret, "" for "".

    A long key keeps its last two letters, to tell two keys apart; a PIN keeps none.
    """
    shows_end = len(secret) >= SHOWS_END and not secret.isdecimal()
    return "" if not secret else DOTS + (secret[-2:] if shows_end else "")


class Places:
    """The values of each layer separately, read once."""

    def __init__(self, overrides: Mapping[str, Any] | None = None) -> None:
        env_file, environment = written(), dict(os.environ)
        given = {key: value for key, value in (overrides or {}).items() if value is not None}
        self._layers: list[tuple[Layer, Mapping[str, Any], Callable[[Path], str]]] = [
            ("command_line", given, _option_in(given)),
            ("environment", _read(EnvSettingsSource), _named_in(environment)),
            ("env_file", _read(DotEnvSettingsSource), _named_in(env_file)),
            ("environment", _of_aliases(environment), _alias_in(environment)),
            ("env_file", _of_aliases(env_file), _alias_in(env_file)),
            ("file", *_file()),
        ]

    def merged(self) -> dict[str, Any]:
        """Return the values of all layers together, unchecked."""
        found: dict[str, Any] = {}
        for _, data, _ in reversed(self._layers):
            _merge(found, data)
        return found

    def of(self, path: Path) -> tuple[SettingPlace, ...]:
        return tuple(SettingPlace(layer, where(path)) for layer, data, where in self._layers if _has(data, path))

    def named(self, path: Path) -> tuple[SettingPlace, ...]:
        """Return the places as ``of`` does; for a value that cannot be read, the variable that holds it."""
        if found := self.of(path):
            return found
        name = environment_name(path)
        given: tuple[tuple[Layer, Mapping[str, str]], ...] = (("environment", os.environ), ("env_file", written()))
        return tuple(SettingPlace(layer, name) for layer, values in given if name in map(str.upper, values))[:1]


def in_force() -> dict[str, str]:
    """Return every value that is set anywhere, as one would write it in the environment, by environment name,
    unchecked.
    """
    merged = Places().merged()
    return {name.environment: as_text(_at(merged, name.path)) for name in names() if _has(merged, name.path)}


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _read(source: type[EnvSettingsSource]) -> Mapping[str, Any]:
    read = source_of(source)
    try:
        return read()
    except SettingsError:  # invalid JSON hides no other problem
        broken = unparsed(read)
        read.env_vars = {name: value for name, value in read.env_vars.items() if name not in broken}
        return read()


def _merge(into: dict[str, Any], data: Mapping[str, Any]) -> None:
    for key, value in data.items():
        inside = into.get(key)
        if isinstance(value, Mapping):
            into[key] = dict(inside) if isinstance(inside, Mapping) else {}
            _merge(into[key], value)
        else:
            into[key] = value


def _has(data: object, path: Path) -> bool:
    for part in path:
        if isinstance(data, BaseModel | BaseSettings):
            data = dict(data)
        if not isinstance(data, Mapping) or part not in data:
            return False
        data = data[part]
    return True


def _of_aliases(given: Mapping[str, str]) -> Mapping[str, Any]:
    found = aliases(given)
    return {"knowledge": found} if found else {}


def _nowhere(_: Path) -> str:
    return ""


def _option_in(given: Mapping[str, Any]) -> Callable[[Path], str]:
    """Return a function that names the option of a setting with its value as typed.

    OPTIONS lists options with other names.
    """

    def where(path: Path) -> str:
        value: Any = given
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        option = OPTIONS.get(".".join(path), f"--{path[-1].replace('_', '-')}")
        return option if value is None else f"{option} {mask(str(value))}"

    return where


def _named_in(given: Mapping[str, str]) -> Callable[[Path], str]:
    """Return a function that finds the name that is there: the setting's own, one inside it, or the section's, as
    JSON.
    """
    by_upper = {name.upper(): name for name, value in given.items() if value}

    def where(path: Path) -> str:
        own = environment_name(path)
        inside = (name for name in by_upper if name.startswith(own + "__"))
        around = (environment_name(path[:length]) for length in range(len(path) - 1, 0, -1))
        return next((by_upper[name] for name in (own, *inside, *around) if name in by_upper), own)

    return where


def _alias_in(given: Mapping[str, str]) -> Callable[[Path], str]:
    def where(path: Path) -> str:
        field = "base_url" if path[-1] == "provider" else path[-1]
        found = [ALIAS_PREFIX + theirs for theirs, ours in ALIASES.items() if ours == field]
        return next((name for name in reversed(found) if given.get(name)), found[0] if found else "")

    return where


def _file() -> tuple[Mapping[str, Any], Callable[[Path], str]]:
    file = config_file()
    try:
        text = file.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, ValueError):
        return {}, _nowhere
    lines = lines_of_file(text)
    return data, (lambda path: f"{file}:{lines(path)}") if lines else lambda _: str(file)


def as_text(value: Any) -> str:
    """Return a plain value as one would write it in the environment."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
