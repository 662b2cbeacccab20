"""The actions a model can ask for: one set for all dialects.

Points are pairs of whole numbers 0–1000 of the picture that the model saw; durations are seconds. A model sets these
fields and no others: ``kind`` is ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Coordinate = Annotated[int, Field(ge=0, le=1000)]
Pair = tuple[Coordinate, Coordinate]

MAX_WAIT_SECONDS = 30.0


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Launch(_Action):
    kind: Literal["launch"] = "launch"
    app: str = Field(min_length=1, max_length=200)


class Tap(_Action):
    kind: Literal["tap"] = "tap"
    element: Pair
    message: str | None = None  # a sensitive tap: a person is asked first


class DoubleTap(_Action):
    kind: Literal["double_tap"] = "double_tap"
    element: Pair


class LongPress(_Action):
    kind: Literal["long_press"] = "long_press"
    element: Pair
    duration: float = Field(default=1.0, gt=0, le=MAX_WAIT_SECONDS)


class Swipe(_Action):
    kind: Literal["swipe"] = "swipe"
    start: Pair
    end: Pair
    duration: float = Field(default=0.5, gt=0, le=MAX_WAIT_SECONDS)


class Type(_Action):
    kind: Literal["type"] = "type"
    text: str


class TypeName(_Action):
    kind: Literal["type_name"] = "type_name"
    text: str


class Back(_Action):
    kind: Literal["back"] = "back"


class Home(_Action):
    kind: Literal["home"] = "home"


class PressKey(_Action):
    kind: Literal["press_key"] = "press_key"
    key: Literal["enter", "app_switch"]


class Wait(_Action):
    kind: Literal["wait"] = "wait"
    duration: float = Field(default=1.0, ge=0, le=MAX_WAIT_SECONDS)


class TakeOver(_Action):
    kind: Literal["take_over"] = "take_over"
    message: str = ""


class Interact(_Action):
    kind: Literal["interact"] = "interact"
    question: str = ""
    choices: tuple[str, ...] = ()


class Note(_Action):
    kind: Literal["note"] = "note"
    message: str = ""


class CallAPI(_Action):
    kind: Literal["call_api"] = "call_api"
    instruction: str = ""


class GetKnowledgeData(_Action):
    """A query of the knowledge base. A blank one is a failed action with a message, not an unreadable reply."""

    kind: Literal["get_knowledge_data"] = "get_knowledge_data"
    query: str = ""


class Finish(_Action):
    kind: Literal["finish"] = "finish"
    message: str = ""
    success: bool = True


Action = Annotated[
    Launch
    | Tap
    | DoubleTap
    | LongPress
    | Swipe
    | Type
    | TypeName
    | Back
    | Home
    | PressKey
    | Wait
    | TakeOver
    | Interact
    | Note
    | CallAPI
    | GetKnowledgeData
    | Finish,
    Field(discriminator="kind"),
]


class Reply(BaseModel):
    """A model's reply after parsing.

    ignored: the text after the first complete call.
    summary: the model's own summary of what was done, in the dialect that has one (gelab).
    """

    model_config = ConfigDict(frozen=True)

    thinking: str
    action: Action
    ignored: str = ""
    summary: str = ""
