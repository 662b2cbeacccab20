"""The owner's folder ``phonedesk.d``: its place, its faults, and the names in the settings that it adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_core.model.profile import BY_NAME, model_profiles
from agent_core.owner import folder as own
from agent_core.owner.faults import faults
from agent_core.planner.own_tools import declared
from agent_core.planner.tools import EXTRA
from agent_core.texts import Listed
from bot.app.settings.files import config_file
from bot.app.settings.problem import SettingProblem
from bot.app.settings.sources import lines_of_file

if TYPE_CHECKING:
    from bot.app.settings.layers import Settings


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
