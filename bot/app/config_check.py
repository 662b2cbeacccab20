"""Checks of settings whose values are each valid, but with which a server could not build its parts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Protocol

from agent_core.errors import ConfigError, ConfigInvalid
from agent_core.owner import folder as own
from agent_core.planner.tools import own_tools
from bot.app.knowledge import knowledge_config
from bot.app.models import build_chooser, build_model
from bot.app.settings.layers import Settings
from bot.app.settings.loading import SettingProblem, own_folder, own_found
from bot.app.settings.names import SettingPath, names
from knowledge.factory import ChainKnowledge, remotes

_NAMES = re.compile(r"PHONEDESK_[A-Z0-9_]+")


class _Part(Protocol):
    async def close(self) -> None: ...


def incomplete(settings: Settings) -> list[SettingProblem]:
    """Return the problems that would stop ``serve`` at its start, without opening or asking anything.

    This runs an event loop, so it must not be called inside of one.
    """
    with own.looking_at(own_folder(settings)):
        return [*asyncio.run(_unbuilt(settings)), *_failing_tools(settings), *_no_log(settings)]


def _failing_tools(settings: Settings) -> list[SettingProblem]:
    """Return the errors of running the files with the owner's tools for the planner."""
    try:
        own_tools(settings.planner.tools if settings.planner.base_url.strip() else ())
    except own.OwnWrong as error:
        return own_found(error.faults)
    return []


async def _unbuilt(settings: Settings) -> list[SettingProblem]:
    """Return the problems of parts that cannot be built. The others are closed again."""
    parts: tuple[tuple[SettingPath, Callable[[], _Part | None]], ...] = (
        (("knowledge", "provider"), lambda: ChainKnowledge(tuple(remotes(knowledge_config(settings)).values()))),
        (("model",), lambda: build_model(settings)),
        (("chooser",), lambda: build_chooser(settings)),
    )
    found = []
    for path, made in parts:
        try:
            part = made()
        except ConfigError as error:
            found.append(_problem(path, error))
        else:
            if part is not None:
                await part.close()
    return found


def _problem(path: SettingPath, error: ConfigError) -> SettingProblem:
    """Return the error as a problem of the setting that it names, or of ``path`` if it names none or a setting is
    missing.
    """
    if isinstance(error, ConfigInvalid):
        paths = {name.environment: name.path for name in names()}
        path = next((paths[name] for name in _NAMES.findall(error.advice) if name in paths), path)
    return SettingProblem(path, error.kind, error.message, error=error)


def _no_log(settings: Settings) -> list[SettingProblem]:
    file = settings.log_path
    if file is None or (file.parent.is_dir() and not file.is_dir()):
        return []
    why = f"{file.parent} is no folder." if not file.parent.is_dir() else f"{file} is a folder."
    return [SettingProblem(("log_file",), "no_folder", why, values={"folder": str(file.parent)})]
