"""Settings that cannot be used, as far as they can be shown: the valid ones, and the text of the wrong ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from bot.app.settings.files import written
from bot.app.settings.layers import Settings
from bot.app.settings.loading import problems_of
from bot.app.settings.names import Name, Path, environment_name
from bot.app.settings.origin import DOTS, Places, ShownSetting, plain_of, survey
from bot.app.settings.own import own_problems
from bot.app.settings.problem import SettingProblem

MOST_ROUNDS = 20  # each removes the problems that the last one found
HIDING = {"json_invalid", "environment", "file"}  # kinds of problems: a layer could not be read


class OnlyGiven(Settings):
    """Settings from the given values only, without the environment and files."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
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


def _take_out(data: dict[str, Any], path: Path) -> None:
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
    value: Any = given
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
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
