"""Everything that is wrong with an owner's folder, without running anything in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent_core.apps.names import map_in
from agent_core.apps.profile import MAP_FILE, file_in, profiles
from agent_core.model.profile import model_profiles, profile_in
from agent_core.model.words import prompt_in
from agent_core.owner import folder as own
from agent_core.planner.tools import declared, tools_in
from agent_core.planner.words import rules_in

_READERS: Mapping[own.Part, Callable[[own.OwnerSource], object]] = {
    own.Part.MODELS: profile_in,
    own.Part.PROMPTS: prompt_in,
    own.Part.APPS: file_in,
    own.Part.PLANNER: rules_in,
    own.Part.TOOLS: tools_in,
}


def faults(folder: Path | None) -> list[own.Fault]:
    """Return the faults of each file of the folder, and of all of them together."""
    if folder is None:
        return []
    with own.looking_at(folder):
        found: list[own.Fault] = []
        for fault in (*_strays(), *(fault for part in own.Part for fault in _of_part(part))):
            if fault not in found:  # the folder itself, and what other files go by, are looked at several times
                found.append(fault)
        return found or list(_together())


def _strays() -> Iterator[own.Fault]:
    try:
        yield from own.strays()
    except own.OwnWrong as error:
        yield from error.faults


def _of_part(part: own.Part) -> Iterator[own.Fault]:
    try:
        files = own.files(part)
    except own.OwnWrong as error:
        yield from error.faults
        return
    for file in files:
        is_map = part is own.Part.APPS and file.name == MAP_FILE
        try:
            (map_in if is_map else _READERS[part])(own.source(part, file))
        except own.OwnWrong as error:
            yield from error.faults


def _together() -> Iterator[own.Fault]:
    """Find names that have two meanings. Called only if each file by itself is right."""
    try:
        model_profiles(), declared()
        apps = profiles()
    except own.OwnWrong as error:
        yield from error.faults
        return
    files = {file.name.removesuffix(".toml"): file for file in own.files(own.Part.APPS)}
    packages = Counter(package for app in apps for package in app.packages)
    for app in apps:
        for package in app.packages:
            if packages[package] > 1 and app.key in files:
                message = f"another app's profile has the package {package}, too"
                yield own.Fault(files[app.key], "own_package_twice", message, values={"package": package})
