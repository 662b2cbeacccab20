"""The settings that a running process takes over, and those that wait for its next start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from bot.app.settings.layers import Settings
from bot.app.settings.names import Name, Path, names, value_of

# A whole section, or one setting. Attempts that begin from now on use it; an active attempt keeps the old one.
LIVE: frozenset[Path] = frozenset(
    {
        ("log_level",),
        ("keep_days",),
        ("model",),
        ("knowledge",),
        ("chooser",),
        ("planner",),
        ("observe",),
        ("pictures",),
        ("run", "max_steps"),
        ("run", "max_tokens"),
        ("run", "max_cost"),
        ("run", "hold_seconds"),
        ("run", "part_chars"),
        ("run", "checked_versions"),
        ("questions",),
        ("alerts", "chat"),
        ("quiet",),
        ("price",),
        ("trajectory",),
        ("limits",),
        ("webhooks", "allow_private"),
        ("telegram", "per_minute"),
        ("device", "connect"),
        ("device", "names"),
        ("device", "tags"),
        ("device", "pins"),
    }
)


def is_live(name: Name) -> bool:
    return any(name.path[: len(path)] == path for path in LIVE)


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """The result of reading the settings again.

    settings: the old ones with the ``live`` ones taken over.
    live, waiting: the keys that were taken over, and those that need a restart.
    """

    settings: Settings
    live: tuple[str, ...]
    waiting: tuple[str, ...]


def change(old: Settings, new: Settings) -> SettingsChange:
    changed = [name for name in names() if value_of(old, name.path) != value_of(new, name.path)]
    merged: Any = old
    for name in changed:
        if is_live(name):
            merged = _with(merged, name.path, value_of(new, name.path))
    live = tuple(name.key for name in changed if is_live(name))
    return SettingsChange(merged, live, tuple(name.key for name in changed if not is_live(name)))


def _with(settings: BaseModel, path: Path, value: Any) -> BaseModel:
    if len(path) > 1:
        value = _with(getattr(settings, path[0]), path[1:], value)
    return settings.model_copy(update={path[0]: value})
