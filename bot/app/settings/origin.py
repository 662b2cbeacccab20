"""The origin of each value, layer by layer, and the settings as they may be shown: if some cannot be used, the valid
ones, and the text of the wrong ones.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
)

from bot.app.logs import mask
from bot.app.settings.files import config_file, written
from bot.app.settings.layers import ALIAS_PREFIX, ALIASES, Settings, aliases, lines_of_file
from bot.app.settings.loading import SettingProblem, own_problems, problems_of, source_of, unparsed
from bot.app.settings.masking import DOTS, plain_of
from bot.app.settings.names import Name, SettingPath, environment_name, names, value_at

Layer = Literal["command_line", "environment", "env_file", "file", "default"]
HIDING = {"json_invalid", "environment", "file"}  # kinds of problems: a layer could not be read
MOST_ROUNDS = 20  # each removes the problems that the last one found
OPTIONS = {"model.base_url": "--endpoint", "model.name": "--model"}
_NOTHING = object()


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


def survey(settings: Settings) -> list[ShownSetting]:
    """Return every setting with its value and its places."""
    places = Places()
    return [_shown(name, settings, places) for name in names()]


def _shown(name: Name, settings: Settings, places: Places) -> ShownSetting:
    value = value_at(settings, name.path)
    changed = value != name.default
    is_no_key = not changed and isinstance(name.default, SecretStr)
    plain = "" if is_no_key else plain_of(value)
    found = places.of(name.path)
    return ShownSetting(name, plain, found or (SettingPlace("default"),), changed)


class Places:
    """The values of each layer separately, read once."""

    def __init__(self, overrides: Mapping[str, Any] | None = None) -> None:
        env_file, environment = written(), dict(os.environ)
        given = {key: value for key, value in (overrides or {}).items() if value is not None}
        self._layers: list[tuple[Layer, Mapping[str, Any], Callable[[SettingPath], str]]] = [
            ("command_line", given, _option_in(given)),
            ("environment", _read(EnvSettingsSource), _named_in(environment)),
            ("env_file", _read(DotEnvSettingsSource), _named_in(env_file)),
            ("environment", aliases(environment), _alias_in(environment)),
            ("env_file", aliases(env_file), _alias_in(env_file)),
            ("file", *_file()),
        ]

    def merged(self) -> dict[str, Any]:
        """Return the values of all layers together, unchecked."""
        found: dict[str, Any] = {}
        for _, data, _ in reversed(self._layers):
            _merge(found, data)
        return found

    def of(self, path: SettingPath) -> tuple[SettingPlace, ...]:
        return tuple(
            SettingPlace(layer, where(path))
            for layer, data, where in self._layers
            if value_at(data, path, _NOTHING) is not _NOTHING
        )

    def named(self, path: SettingPath) -> tuple[SettingPlace, ...]:
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
    values = {name.environment: value_at(merged, name.path, _NOTHING) for name in names()}
    return {name: as_text(value) for name, value in values.items() if value is not _NOTHING}


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


def _option_in(given: Mapping[str, Any]) -> Callable[[SettingPath], str]:
    """Return a function that names the option of a setting with its value as typed.

    OPTIONS lists options with other names.
    """

    def where(path: SettingPath) -> str:
        value = value_at(given, path)
        option = OPTIONS.get(".".join(path), f"--{path[-1].replace('_', '-')}")
        return option if value is None else f"{option} {mask(str(value))}"

    return where


def _named_in(given: Mapping[str, str]) -> Callable[[SettingPath], str]:
    """Return a function that finds the name that is there: the setting's own, one inside it, or the section's, as
    JSON.
    """
    by_upper = {name.upper(): name for name, value in given.items() if value}

    def where(path: SettingPath) -> str:
        own = environment_name(path)
        inside = (name for name in by_upper if name.startswith(own + "__"))
        around = (environment_name(path[:length]) for length in range(len(path) - 1, 0, -1))
        return next((by_upper[name] for name in (own, *inside, *around) if name in by_upper), own)

    return where


def _alias_in(given: Mapping[str, str]) -> Callable[[SettingPath], str]:
    def where(path: SettingPath) -> str:
        field = "base_url" if path[-1] == "provider" else path[-1]
        found = [ALIAS_PREFIX + theirs for theirs, ours in ALIASES.items() if ours == field]
        return next((name for name in reversed(found) if given.get(name)), found[0] if found else "")

    return where


def _file() -> tuple[Mapping[str, Any], Callable[[SettingPath], str]]:
    file = config_file()
    try:
        text = file.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, ValueError):
        return {}, lambda _: ""
    lines = lines_of_file(text)
    return data, (lambda path: f"{file}:{lines(path)}") if lines else lambda _: str(file)


def as_text(value: Any) -> str:
    """Return a plain value as one would write it in the environment."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


class OnlyGiven(Settings):
    """Settings from the given values only, without the environment and files."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def survey_of_wrong(problems: Sequence[SettingProblem]) -> tuple[Settings, list[ShownSetting], list[SettingProblem]]:
    """Return the settings without the wrong values, every setting as it may be shown, and all problems.

    A problem that stops a whole layer from being read hides the other problems from the caller that found ``problems``.
    """
    places = Places()
    data, told = places.merged(), list(problems)
    hidden = all(problem.kind in HIDING for problem in problems)
    # () is about a file, which gave nothing; a problem with a place is not about a setting.
    for path in (problem.path for problem in problems if problem.path and not problem.place):
        _take_out(data, path)
    settings: Settings = OnlyGiven()
    for number in range(MOST_ROUNDS):
        try:
            settings = OnlyGiven(**data)
            break
        except ValidationError as error:
            found = problems_of(error)
        told += found if hidden and number == 0 else []  # later problems only follow from the removals
        for problem in found:
            _take_out(data, problem.path)
    if not any(problem.path == ("own_dir",) for problem in told):
        # Its files; the names in them can be checked once everything else is right.
        told += [problem for problem in own_problems(settings) if problem.place and problem not in told]
    written_so, of_settings = places.merged(), [problem for problem in told if not problem.place]
    return settings, [_as_written(one, of_settings, written_so, places) for one in survey(settings)], told


def _take_out(data: dict[str, Any], path: SettingPath) -> None:
    """Remove the setting at ``path``, or the one around it, because an entry of a list is not a setting. () removes
    everything.
    """
    for part in path[:-1]:
        inside = data.get(part)
        if not isinstance(inside, dict):
            data.pop(part, None)
            return
        data = inside
    if path:
        data.pop(path[-1], None)
    else:
        data.clear()


def _as_written(
    shown: ShownSetting, problems: Sequence[SettingProblem], given: Mapping[str, Any], places: Places
) -> ShownSetting:
    """Return ``shown`` with the written value if that was removed because it, or something in its section, is wrong."""
    path = shown.name.path
    wrong = any(problem.path[: len(path)] == path for problem in problems)
    if not wrong and not any(problem.path and path[: len(problem.path)] == problem.path for problem in problems):
        return shown
    value = value_at(given, path)
    if value is None:  # mostly invalid JSON
        name = environment_name(path)
        value = next((text for key, text in {**written(), **os.environ}.items() if key.upper() == name), None)
    if value is None:
        return shown
    return replace(shown, value=_covered(shown.name, value), places=places.named(path), changed=True, wrong=wrong)


def _covered(name: Name, value: Any) -> Any:
    """Return an unchecked value without secrets: a wrong address may also hold a password, and the text of a table
    keys.
    """
    unread = isinstance(value, str) and isinstance(name.default, dict | list | tuple)
    secret = name.is_secret or isinstance(value, SecretStr) or "@" in str(value)
    return DOTS if secret or unread else plain_of(value)
