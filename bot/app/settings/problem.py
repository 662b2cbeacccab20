"""What is wrong with a setting, or with a file that the settings lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_core.errors import ConfigError
from bot.app.settings.names import Path


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """``path`` is () where it is about the whole; ``kind`` is pydantic's, or ours. ``message`` is English; in the text
    files ``wrong.<kind>`` says the same, filled in with ``values``. ``place``: FILE:LINE, of one of the owner's files;
    ``path`` is a field in it then, and no setting. ``error``: the error of ours that it is, told as that one is
    anywhere.
    """

    path: Path
    kind: str
    message: str
    advice: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    error: ConfigError | None = field(default=None, compare=False)
