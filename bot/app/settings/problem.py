"""Problems with a setting, or with a file that the settings lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_core.errors import ConfigError
from bot.app.settings.names import Path


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One problem.

    path: of the setting; () if the problem is about the whole.
    kind: pydantic's, or ours.
    message: in English; in the text files ``wrong.<kind>`` says the same, filled in with ``values``.
    place: FILE:LINE, for one of the owner's files; ``path`` is then a field in it, and no setting.
    error: our own error behind it, which is worded as it is anywhere else.
    """

    path: Path
    kind: str
    message: str
    advice: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    error: ConfigError | None = field(default=None, compare=False)
