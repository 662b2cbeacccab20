"""Reading the settings, and describing each problem under the name and the place where it was written."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource, SettingsError

from agent_core.errors import ConfigInvalid, PhonedeskError
from agent_core.texts import Worded, json_problem
from bot.app.settings.files import CONFIG_NAME, ENV_FILE, PREFIX, config_file, unread_lines, written
from bot.app.settings.layers import Settings
from bot.app.settings.names import Path, environment_name, names, nearest
from bot.app.settings.own import own_problems
from bot.app.settings.problem import SettingProblem
from bot.app.settings.sources import ALIAS_PREFIX, ALIAS_SECONDS, no_seconds

UNKNOWN = "extra_forbidden"  # pydantic's kind for an unknown name
OF_COMMANDS = {f"{PREFIX}EVAL_MODEL_KEY"}  # options of commands that are not settings


class SettingsWrong(ConfigInvalid):
    """Settings that are wrong.

    problems: one by one, to be shown in the user's language.
    refused: nothing was changed.
    given: the values from the command line.
    """

    def __init__(
        self,
        message: str,
        problems: Sequence[SettingProblem] = (),
        *,
        advice: str = "",
        refused: bool = False,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, advice=advice)
        self.given = given
        self.problems = tuple(problems)
        self.refused = refused


def load(**overrides: Any) -> Settings:
    """Return the settings; ``overrides`` come from the command line.

    Raises ConfigInvalid, which names each wrong setting.
    """
    settings, problems = try_settings(**overrides)
    if settings is not None:
        return settings
    if problems[0].error is not None:
        raise problems[0].error
    if not problems[0].path and not problems[0].place:
        raise ConfigInvalid(problems[0].message, advice=problems[0].advice)
    raise SettingsWrong(
        "Settings are not usable. " + "; ".join(map(_line, problems)) + ".",
        problems,
        advice=f"Change them in the environment, in {ENV_FILE} or in {config_file()}.",
        given=overrides,
    )


def try_settings(**overrides: Any) -> tuple[Settings | None, list[SettingProblem]]:
    """Return the settings, or all of their problems."""
    try:
        settings = Settings(**{name: value for name, value in overrides.items() if value is not None})
        problems = [*_unknown_in_file(), *own_problems(settings)]
        return (None if problems else settings), problems
    except ValidationError as error:
        return None, [*_unknown_in_file(), *problems_of(error)]
    except SettingsError as error:  # a value of the environment that is to be JSON; its message holds no value
        if problems := [*no_json(), *_unknown_in_file()]:
            return None, problems
        advice = "Set single values, such as PHONEDESK_MODEL__NAME; a table is written as JSON."
        return None, [SettingProblem((), "environment", f"The environment is not usable: {error}.", advice)]
    except ConfigInvalid as error:  # of a file
        return None, [SettingProblem((), "file", error.message, error.advice, error=error)]


def problems_of(error: ValidationError) -> list[SettingProblem]:
    return [
        SettingProblem(
            tuple(map(str, wrong["loc"])),
            wrong["type"],
            wrong["msg"].removeprefix("Value error, "),
            values={name: _said(value) for name, value in wrong.get("ctx", {}).items()},
        )
        for wrong in error.errors(include_input=False, include_url=False)
    ]


def _said(value: object) -> object:
    """Return ``value`` for a text, unchanged if each language words it itself."""
    if isinstance(value, str | PhonedeskError):
        return value
    return f"{value:g}" if isinstance(value, float) else str(value)


def _unknown_in_file() -> Iterator[SettingProblem]:
    """Yield the names at the top of the file that are not settings.

    Names inside a section are refused by the section.
    """
    file = config_file()
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError):
        return  # reported as a problem of the file
    for name in sorted(given.keys() - Settings.model_fields.keys()):
        yield SettingProblem((name,), UNKNOWN, "there is no such setting")


def no_json() -> Iterator[SettingProblem]:
    """Yield the variables of the environment and of ``.env`` that must be JSON and are not."""
    broken = {**unparsed(source_of(DotEnvSettingsSource)), **unparsed(source_of(EnvSettingsSource))}
    for name, why in broken.items():
        path = tuple(name.removeprefix(PREFIX.lower()).split("__"))
        yield SettingProblem(path, "json_invalid", f"it is no JSON: {why}", values={"error": why})


def source_of(kind: type[EnvSettingsSource]) -> EnvSettingsSource:
    """Return the source that reads only the environment, or only ``.env``."""
    config = Settings.model_config
    more = {"env_file": ENV_FILE} if kind is DotEnvSettingsSource else {}
    made: Callable[..., EnvSettingsSource] = kind
    return made(
        Settings,
        env_prefix=config["env_prefix"],
        env_nested_delimiter=config["env_nested_delimiter"],
        env_ignore_empty=True,
        **more,
    )


def unparsed(source: EnvSettingsSource) -> dict[str, Worded]:
    """Return, by its name in lower case, the JSON error of each variable that cannot be read by itself."""
    broken: dict[str, Worded] = {}
    every = source.env_vars
    for name, value in every.items():
        if name.startswith(PREFIX.lower()):
            source.env_vars = {name: value}
            try:
                source()
            except SettingsError as error:
                cause = error.__cause__
                broken[name] = json_problem(cause if isinstance(cause, ValueError) else error)  # it holds no value
    source.env_vars = every
    return broken


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A setting that was given but has no effect.

    name: as it was written, or FILE:LINE if it has none.
    kind: unknown (``meant`` may be the right name), seconds (not a number of seconds), line (it cannot be read).
    """

    name: str
    kind: Literal["unknown", "seconds", "line"]
    meant: str = ""


def passed_over() -> list[PassedOver]:
    """Return the settings without effect in the environment and in ``.env``."""
    found = [PassedOver(name, "unknown", meant) for name, meant in unknown_names().items()]
    if no_seconds({**written(), **os.environ}):
        found.append(PassedOver(ALIAS_SECONDS, "seconds"))
    return [*found, *(PassedOver(f"{ENV_FILE}:{line}", "line") for line in unread_lines())]


def unknown_names() -> dict[str, str]:
    """Return the names in the environment and in ``.env`` that look like settings and set nothing.

    Each has the setting that may be meant, "" if none is similar. Wrong names inside a section are not among them,
    because ``load`` refuses those.
    """
    every = tuple(name.environment for name in names())
    known = {*every, CONFIG_NAME, *OF_COMMANDS}
    sections = {name.split("__")[0] for name in every if "__" in name}
    in_file = dotenv_values(ENV_FILE)
    given = {name.upper() for name in (*os.environ, *in_file) if name.upper().startswith(PREFIX)}
    wrong = {name: nearest(name, every) for name in sorted(given - known) if name.split("__")[0] not in sections}
    # ``.env`` is mostly ours alone, and no other program has names of this form.
    bare = {name: PREFIX + name.upper() for name in sorted(in_file) if "__" in name}
    return wrong | {name: meant for name, meant in bare.items() if meant in every}


def variables_set() -> list[str]:
    """Return the names in the environment that settings are read from. The others are in ``passed_over``."""
    unknown = unknown_names()
    given = [name for name, value in os.environ.items() if value and name.upper().startswith((PREFIX, ALIAS_PREFIX))]
    return sorted(name for name in given if name.upper() not in {*unknown, *OF_COMMANDS})


def _line(problem: SettingProblem) -> str:
    """Return the problem with one setting in one line, under its name at the place where it is written."""
    name, key = environment_name(problem.path), ".".join(problem.path)
    if problem.place:
        return f"{problem.place}: {f'{key}: ' if key else ''}{problem.message}"
    in_environment = name in {given.upper() for given in (*os.environ, *written())}
    where = f"{key} (in {config_file()})" if _in_file(problem.path) and not in_environment else name
    return f"{where}: {problem.message if problem.kind != UNKNOWN else 'there is no such setting'}"


def _in_file(parts: Path) -> bool:
    file = config_file()
    found: object = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for part in parts:
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True
