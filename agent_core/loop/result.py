"""The parts of a step: the model's reply and the result of its action."""

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
    """The result of one action.

    message: for the model's next prompt.
    question: stops the run until a person has answered.
    frame: the picture that is shown with the question, if it is not the step's.
    usage: of a model that the action itself has asked.
    acted: something was done on the phone that may change its screen.
    query: the query to the knowledge base, if it was not the model's.
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
    """A model's reply, as read. ``problem`` is set if no action could be read from it."""

    completion: Completion
    seconds: float
    thinking: str = ""
    action: Action | None = None
    ignored: str = ""
    problem: ActResult | None = field(default=None)
