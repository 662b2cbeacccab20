"""What the model said, and what its action led to."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_core.actions.types import Action
from agent_core.devices.base import Frame
from agent_core.model.base import Completion, Usage
from agent_core.session import Question, Status


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run, decided by code and not by the model."""

    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class ActResult:
    """What an action led to.

    message: told to the model in the next prompt.
    question: stops the run until a person has answered.
    frame: the picture that is shown with the question, if it is not the step's.
    usage: of a model that the action itself has asked.
    acted: something was done on the phone that may change its screen.
    query: what the knowledge base was asked, if it was not the model's query.
    """

    message: str
    ok: bool = True
    ending: Ending | None = None
    question: Question | None = None
    frame: Frame | None = None
    usage: Usage | None = None
    acted: bool = False
    query: str = ""


@dataclass(frozen=True, slots=True)
class Thought:
    """What the model said. ``problem`` is set if no action could be read from it."""

    completion: Completion
    seconds: float
    thinking: str = ""
    action: Action | None = None
    ignored: str = ""
    problem: ActResult | None = field(default=None)
