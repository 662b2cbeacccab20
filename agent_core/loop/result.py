"""What came of an action."""

from __future__ import annotations

from dataclasses import dataclass

from agent_core.devices.base import Frame
from agent_core.model.base import Usage
from agent_core.session import Question, Status


@dataclass(frozen=True, slots=True)
class Ending:
    """The run ends here, by code and not by the model."""

    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class ActResult:
    """``message`` is told to the model with the next prompt. ``question`` stops the run until a person has answered;
    ``frame`` is the picture that they are shown with it, where it is not that of the step. ``usage``: of a model that
    the action itself has asked."""

    message: str
    ok: bool = True
    ending: Ending | None = None
    question: Question | None = None
    frame: Frame | None = None
    usage: Usage | None = None
