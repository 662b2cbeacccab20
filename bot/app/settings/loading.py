"""Reading the settings and the owner's folder ``phonedesk.d``, and describing each problem under the name and the place
where it was written.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource, SettingsError

from agent_core.errors import ConfigError, ConfigInvalid, PhonedeskError
from agent_core.model.profile import BY_NAME, model_profiles
from agent_core.owner import folder as own
from agent_core.owner.faults import faults
from agent_core.planner.tools import EXTRA, declared
from agent_core.texts import Listed, Worded, json_problem
from bot.app.settings.files import CONFIG_NAME, ENV_FILE, PREFIX, config_file, unread_lines, written
from bot.app.settings.layers import ALIAS_PREFIX, ALIAS_SECONDS, Settings, lines_of_file, no_seconds
from bot.app.settings.names import SettingPath, environment_name, names, nearest, value_at


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One problem.

    path: of the setting; () if the problem is about the whole.
    kind: pydantic's, or ours.
    message: in English; in the text files ``wrong.<kind>`` says the same, filled in with ``values``.
    place: FILE:LINE, for one of the owner's files; ``path`` is then a field in it, and no setting.
    error: our own error behind it, which is worded as it is anywhere else.
    """

    path: SettingPath
    kind: str
    message: str
    advice: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    error: ConfigError | None = field(default=None, compare=False)


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
        problems: Sequence[SettingProblem],
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


def _in_file(parts: SettingPath) -> bool:
    file = config_file()
    found = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return value_at(found, parts) is not None


def own_folder(settings: Settings) -> Path | None:
    """Return the folder that ``own_dir`` names, else the one beside the TOML file; None if there is none."""
    if settings.own_dir:
        return Path(settings.own_dir).expanduser()
    usual = config_file().parent / own.FOLDER
    return usual if usual.is_dir() else None


def own_problems(settings: Settings) -> list[SettingProblem]:
    """Return the faults in the owner's folder; if there are none, the names in the settings that nothing defines."""
    folder = own_folder(settings)
    if folder is not None and not folder.is_dir():
        why = f"{folder} is no folder"
        return [SettingProblem(("own_dir",), "own_missing", why, values={"folder": str(folder)})]
    if found := own_found(faults(folder)):
        return found
    with own.looking_at(folder):
        return list(_unknown_names(settings))


def own_found(found: Iterable[own.Fault]) -> list[SettingProblem]:
    """Return faults of the owner's files as problems, each with its line if that is known."""
    return [_problem(fault) for fault in found]


def _problem(fault: own.Fault) -> SettingProblem:
    line = fault.line
    if line is None and fault.path:
        text = fault.file.read_text("utf-8-sig")
        lines = lines_of_file(text)
        path = tuple(int(part) if part.isdigit() else part for part in fault.path)
        line = lines(cast("tuple[str, ...]", path)) if lines is not None else None
    place = f"{fault.file}:{line}" if line else str(fault.file)
    return SettingProblem(fault.path, fault.kind, fault.message, values=fault.values, place=place)


def _unknown_names(settings: Settings) -> Iterator[SettingProblem]:
    profiles = {BY_NAME, *(profile.name for profile in model_profiles())}
    wanted: list[tuple[tuple[str, ...], str]] = [(("model", "profile"), settings.model.profile)]
    for number, fallback in enumerate(settings.model.fallbacks):
        wanted.append((("model", "fallbacks", str(number), "profile"), fallback.profile))
    for path, name in wanted:
        if name not in profiles:
            known = Listed(sorted(profiles))
            message = f"there is no model profile {name!r}; there are {known}"
            yield SettingProblem(path, "no_profile", message, values={"said": name, "known": known})
    tools = (*EXTRA, *(tool.name for tool in declared()))
    for name in settings.planner.tools:
        if name not in tools:
            known = Listed(tools)
            message = f"there is no tool {name!r}; there are {known}"
            yield SettingProblem(("planner", "tools"), "no_tool", message, values={"said": name, "known": known})
