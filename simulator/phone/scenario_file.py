"""Reading scenario files, TOML or JSON. Errors name the file, the line, and the allowed values."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError

from agent_core import extras
from agent_core.errors import ConfigInvalid, ConfigMissing
from agent_core.owner.file_lines import Form, Place, line_of, lines_of
from simulator.phone.scenario import Scenario

S = TypeVar("S", bound=Scenario)
_SYNTAX_PLACE = re.compile(r"at line (\d+)|line (\d+) column")
_FIELD_FIRST = re.compile(r"((?:[a-z_]+|\[\d+\])(?:\.[a-z_]+|\[\d+\])*): ")  # how our own validators name a place


class ScenarioMissing(ConfigMissing):
    kind = "config.scenario"  # a file is meant, no setting: there is nothing to look up in the settings


class ScenarioInvalid(ConfigInvalid):
    kind = "config.scenario"


def load_scenario(path: Path, kind: type[S] = Scenario) -> S:  # type: ignore[assignment]  # the default of S
    """Return the scenario of a ``.toml`` or ``.json`` file.

    kind: the type of the scenario: the world only, or a class that has more fields.

    Raises ConfigMissing if there is no file, ConfigInvalid with ``FILE:LINE`` of each fault.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ScenarioMissing(
            f"Scenario file {path} is not there.",
            advice="Name a .toml or .json file.",
            key="scenario_missing",
            file=path,
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioInvalid(
            f"Scenario file {path} can not be read: {error}.", advice="", key="scenario_unread", file=path, why=error
        ) from error
    return parse_scenario(text, kind, name=str(path), form="json" if path.suffix.lower() == ".json" else "toml")


def parse_scenario(
    text: str,
    kind: type[S] = Scenario,  # type: ignore[assignment]  # the default of S
    *,
    name: str = "scenario",
    form: Form = "toml",
) -> S:
    """Return the scenario in ``text``.

    Raises ConfigInvalid, with each wrong place in ``name`` and the allowed values.
    """
    try:
        data: object = json.loads(text) if form == "json" else tomllib.loads(text)
    except ValueError as error:
        line = _syntax_line(str(error), text)
        raise ScenarioInvalid(
            f"{name}:{line}: not {form.upper()}: {error}.",
            advice="",
            key="scenario_form",
            place=f"{name}:{line}",
            form=form.upper(),
            why=error,
        ) from error
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        faults = [_fault(item["loc"], item["type"], item["msg"], kind, data) for item in error.errors()]
        if not extras.installed("lab"):
            raise _without_lines([f"{name}: {message}." for _, message in faults]) from error
        lines = lines_of(text, form)
        placed = sorted((line_of(lines, path), message) for path, message in faults)
        told = "\n".join(f"{name}:{line}: {message}." for line, message in placed)
        raise ScenarioInvalid(told, advice="") from error


def _without_lines(faults: list[str]) -> ScenarioInvalid:
    told, command = "\n".join(faults), extras.install_command("lab")
    advice = f"The extra [lab] tells the lines; install it: {command}"
    return ScenarioInvalid(told, advice=advice, key="scenario_lines", faults=told, command=command)


def default_scenario() -> Scenario:
    """Return the shipped scenario."""
    file = resources.files("simulator.phone").joinpath("scenarios", "default.toml")
    return parse_scenario(file.read_text(encoding="utf-8"), name="default.toml")


def parts_of(kind: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the tables of a scenario by their fields' names, with those inside them: ``contacts``, ``history`` …"""
    found: dict[str, type[BaseModel]] = {}
    for name, info in kind.model_fields.items():
        for part in _models(info.annotation):
            found[name] = part
            found |= parts_of(part)
    return found


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _syntax_line(message: str, text: str) -> int:
    place = _SYNTAX_PLACE.search(message)
    return int(place[1] or place[2]) if place else len(text.splitlines()) or 1


def _fault(
    location: tuple[int | str, ...], kind: str, message: str, model: type[BaseModel], data: object
) -> tuple[Place, str]:
    """Return the path that is meant, and what is wrong there."""
    message = message.removeprefix("Value error, ")
    if kind == "extra_forbidden" and not _holds(data, location):  # a field's value that had to be another part's field
        return location[:-1], f"{_shown(location[:-1])}: {location[-1]!r} is not known"
    if kind == "extra_forbidden":
        names = [part for part in location[:-1] if isinstance(part, str)]
        fields = (parts_of(model).get(names[-1], model) if names else model).model_fields
        return location, f"{_shown(location)}: there is no such field; allowed are {', '.join(fields)}"
    if kind == "value_error" and (named := _FIELD_FIRST.match(message)):
        inner = tuple(int(part) if part.isdecimal() else part for part in re.findall(r"\w+", named[1]))
        location, message = (*location, *inner), message[named.end() :]
    return location, f"{_shown(location)}: {message}" if location else message


def _holds(data: object, path: Place) -> bool:
    """Tell whether there is a value at ``path``."""
    for part in path:
        try:
            data = data[part]  # type: ignore[index]  # a table by its keys, or an array by its places
        except (LookupError, TypeError):
            return False
    return True


def _shown(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
