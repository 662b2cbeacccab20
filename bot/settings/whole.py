"""What only shows when a server builds its parts: each value is right, and with them together it would not start."""

from __future__ import annotations

import re

from agent_core.errors import ConfigError
from bot.settings.layers import Settings
from bot.settings.loading import Problem
from bot.settings.names import Path

_NAMES = re.compile(r"PHONEDESK_[A-Z0-9_]+")


def incomplete(settings: Settings) -> list[Problem]:
    """What ``serve`` would refuse at its start, without opening or asking anything."""
    from bot.app import knowledge_config  # they know the settings, and not all that reads settings needs them
    from bot.models import build_chooser, build_model
    from knowledge.factory import build

    found = []
    parts = (
        (("knowledge", "provider"), lambda: build(knowledge_config(settings))),
        (("model",), lambda: build_model(settings)),
        (("chooser",), lambda: build_chooser(settings)),
    )
    for path, made in parts:
        try:
            made()
        except ConfigError as error:
            found.append(_problem(path, error))
    return [*found, *_no_log(settings)]


def _problem(path: Path, error: ConfigError) -> Problem:
    names = ", ".join(_NAMES.findall(error.advice))
    return Problem(path, error.kind, error.message, error.advice, {"names": names, "why": error.message})


def _no_log(settings: Settings) -> list[Problem]:
    file = settings.log_path
    if file is None or (file.parent.is_dir() and not file.is_dir()):
        return []
    why = f"{file.parent} is no folder." if not file.parent.is_dir() else f"{file} is a folder."
    return [Problem(("log_file",), "no_folder", why, values={"folder": str(file.parent)})]
