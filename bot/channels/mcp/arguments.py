"""The arguments of the tools: checks each one, and tells a client about wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent_core.actions import types
from agent_core.actions.types import MAX_WAIT_SECONDS, Action
from agent_core.errors import InputRejected
from agent_core.geometry import SCALE

DEFAULT_STEPS = 20
MAX_TEXT = 4000  # characters that are typed in one call
SLIDE_LENGTH = 400  # of 1000: how far a slide by direction goes, about half a screen
NEVER = " Any other value is refused."

Model = TypeVar("Model", bound="ToolArguments")


class ToolArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls: type[Model], given: Mapping[str, Any] | None) -> Model:
        """Check the arguments. Raises InputRejected, which names each wrong argument and the correct form."""
        try:
            return cls.model_validate(dict(given or {}))
        except ValidationError as error:
            said = dict.fromkeys(_told(cls, dict(problem)) for problem in error.errors())
            raise InputRejected(" ".join(said), advice="Call it again with the arguments put right.") from None


def _told(model: type[ToolArguments], problem: Mapping[str, Any]) -> str:
    """Describe one problem helpfully: a constraint of ours as it is, anything else by the argument's own rule."""
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    name = str(problem["loc"][0]) if problem["loc"] else ""
    if problem["type"] == "extra_forbidden":
        return f"There is no argument {name}; this tool takes {', '.join(model.model_fields) or 'none'}."
    if problem["type"] == "missing":
        return f"{name} is missing: {_rule(model, name)}"
    return f"{name} is not valid: {_rule(model, name)}"


def _rule(model: type[ToolArguments], name: str) -> str:
    field = model.model_fields.get(name)
    return (field.description or "") if field else ""


# -- the phone

DeviceId = Annotated[
    str,
    Field(
        max_length=200, description="The phone, by the device_id of the list. It may be left out where one is attached."
    ),
]
Coordinate = Annotated[int, Field(ge=0, le=SCALE, strict=True)]


def _two_numbers(value: object) -> object:
    right = (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= SCALE for number in value)
    )
    if not right:
        raise ValueError(
            f"A point is two whole numbers from 0 to {SCALE}, counted from the top left, such as [500, 300]."
        )
    return list(value)  # type: ignore[call-overload]  # it is a list or a tuple, as was just looked at


PointOnScreen = Annotated[
    list[Coordinate],
    BeforeValidator(_two_numbers),
    Field(
        min_length=2,
        max_length=2,
        description=f"[x, y]: two whole numbers from 0 to {SCALE}, from the top left, whatever the screen's size.",
    ),
]


class Direction(StrEnum):
    UP = "UP"
    DOWN = "DOWN"
    LEFT = "LEFT"
    RIGHT = "RIGHT"


_STEPS = {Direction.UP: (0, -1), Direction.DOWN: (0, 1), Direction.LEFT: (-1, 0), Direction.RIGHT: (1, 0)}


class NoArguments(ToolArguments):
    pass


class OfPhone(ToolArguments):
    device_id: DeviceId = ""


class Screenshot(OfPhone):
    pass


class Act(OfPhone):
    def action(self) -> Action:
        raise NotImplementedError


def _pair(point: list[int]) -> tuple[int, int]:
    return (point[0], point[1])


class Click(Act):
    point: PointOnScreen

    def action(self) -> Action:
        return types.Tap(element=_pair(self.point))


class DoubleClick(Act):
    point: PointOnScreen

    def action(self) -> Action:
        return types.DoubleTap(element=_pair(self.point))


class LongPressArguments(Act):
    point: PointOnScreen
    duration: float = Field(
        default=1.0, gt=0, le=MAX_WAIT_SECONDS, description=f"Seconds, more than 0 and at most {MAX_WAIT_SECONDS:g}."
    )

    def action(self) -> Action:
        return types.LongPress(element=_pair(self.point), duration=self.duration)


class TypeText(Act):
    value: str = Field(
        min_length=1,
        max_length=MAX_TEXT,
        description=f"The text, 1 to {MAX_TEXT} characters. It takes the place of what the field holds.",
    )
    point: PointOnScreen | None = Field(
        default=None, description=f"The field, which is tapped first: [x, y], whole numbers from 0 to {SCALE}."
    )

    def action(self) -> Action:
        return types.Type(text=self.value)


class Slide(Act):
    """A slide from ``point1`` to ``point2``, or from ``point`` in a direction."""

    point1: PointOnScreen | None = None
    point2: PointOnScreen | None = None
    point: PointOnScreen | None = None
    direction: Direction | None = Field(
        default=None, description=f"Where the finger goes from point: UP, DOWN, LEFT or RIGHT.{NEVER}"
    )
    duration: float = Field(
        default=0.5, gt=0, le=MAX_WAIT_SECONDS, description=f"Seconds, more than 0 and at most {MAX_WAIT_SECONDS:g}."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Slide:
        by_points = (self.point1 is not None, self.point2 is not None)
        by_direction = (self.point is not None, self.direction is not None)
        if (all(by_points) and not any(by_direction)) or (all(by_direction) and not any(by_points)):
            return self
        raise ValueError("SLIDE takes either point1 and point2, or point and direction.")

    def action(self) -> Action:
        if self.point1 is not None and self.point2 is not None:
            return types.Swipe(start=_pair(self.point1), end=_pair(self.point2), duration=self.duration)
        start, way = _pair(self.point or []), _STEPS[self.direction or Direction.UP]
        end = [min(SCALE, max(0, at + step * SLIDE_LENGTH)) for at, step in zip(start, way, strict=True)]
        return types.Swipe(start=start, end=_pair(end), duration=self.duration)


class HotKey(Act):
    key: Literal["ENTER", "BACK", "HOME", "APP_SWITCH"] = Field(
        description=f"One of ENTER, BACK, HOME, APP_SWITCH.{NEVER}"
    )

    def action(self) -> Action:
        match self.key:
            case "BACK":
                return types.Back()
            case "HOME":
                return types.Home()
            case "ENTER":
                return types.PressKey(key="enter")
            case "APP_SWITCH":
                return types.PressKey(key="app_switch")


class Awake(Act):
    value: str = Field(
        min_length=1, max_length=200, description="An installed app: its name, another name of it, or its package."
    )

    def action(self) -> Action:
        return types.Launch(app=self.value)


class WaitFor(Act):
    value: float = Field(ge=0, le=MAX_WAIT_SECONDS, description=f"Seconds, 0 to {MAX_WAIT_SECONDS:g}.")

    def action(self) -> Action:
        return types.Wait(duration=self.value)


# -- the agent


class ReplyMode(StrEnum):
    PASS_TO_CLIENT = "pass_to_client"  # noqa: S105 - a word, no password
    AUTO_REPLY = "auto_reply"
    MANUAL_REPLY = "manual_reply"
    NO_REPLY = "no_reply"


_TASK = Field(description="What is to be done, in words: one simple thing in one app that is installed on the phone.")
_SESSION = Field(min_length=1, max_length=64, description="The session_id of a result that asked something.")
_REPLY = Field(
    min_length=1,
    max_length=MAX_TEXT,
    description='What answers the session\'s question; "done" once a person has verified.',
)
Confirm = Annotated[
    bool,
    Field(
        description="Send reply_from_client to the customer though it looks like a command of the desk (it begins with "
        "a slash, or is a word such as stop)."
    ),
]
Task = Annotated[str, _TASK]
AnyTask = Annotated[str | None, _TASK]
SessionId = Annotated[str, _SESSION]
AnySession = Annotated[str | None, _SESSION]
ReplyText = Annotated[str, _REPLY]
AnyReply = Annotated[str | None, _REPLY]
Steps = Annotated[
    int,
    Field(
        ge=1,
        strict=True,
        description=f"A whole number from 1: how many steps this call may take. {DEFAULT_STEPS} where it is left out; "
        "the server's own limit holds above it.",
    ),
]


class TaskCall(ToolArguments):
    """The full form of every call of the agent, with exactly one of ``task`` and ``session_id``."""

    device_id: DeviceId = ""
    task: AnyTask = None
    session_id: AnySession = None
    reply_from_client: AnyReply = None
    confirm: Confirm = False
    max_steps: Steps = DEFAULT_STEPS
    reset_environment: bool = Field(
        default=True,
        description="Begin a new task at the home screen, its app started afresh. A session goes on as it is.",
    )
    enable_intermediate_logs: bool = Field(default=False, description="Give the steps before the last one.")
    enable_intermediate_screenshots: bool = Field(
        default=False, description="… with a screenshot each; needs enable_intermediate_logs."
    )
    enable_intermediate_image_caption: bool = Field(
        default=False, description="… with each screenshot in words; needs enable_intermediate_logs."
    )
    enable_final_screenshot: bool = Field(default=False, description="Give the screen as it is at the end.")
    enable_final_image_caption: bool = Field(default=False, description="Give the screen at the end in words.")
    reply_mode: ReplyMode = Field(
        default=ReplyMode.PASS_TO_CLIENT,
        description="Who answers what the agent asks: pass_to_client (you), auto_reply (a model), manual_reply (a "
        f"person at the server's terminal), no_reply (nobody: it goes on without).{NEVER}",
    )
    extra_info: dict[str, Any] = Field(
        default_factory=dict, description="Your own notes: kept with the run, given back."
    )

    @model_validator(mode="after")
    def _fits(self) -> TaskCall:
        if (self.task is None) == (self.session_id is None):
            raise ValueError("Give exactly one of task (to begin) and session_id (to go on).")
        if self.session_id is not None and self.reply_from_client is None:
            raise ValueError("session_id needs reply_from_client: what answers the session's question.")
        if self.session_id is None and self.reply_from_client is not None:
            raise ValueError("reply_from_client goes with session_id; a new task has asked nothing yet.")
        between = self.enable_intermediate_screenshots or self.enable_intermediate_image_caption
        if between and not self.enable_intermediate_logs:
            raise ValueError(
                "enable_intermediate_screenshots and enable_intermediate_image_caption need enable_intermediate_logs."
            )
        return self


class AskAgent(ToolArguments):
    device_id: DeviceId = ""
    task: AnyTask = None
    session_id: AnySession = None
    reply_from_client: AnyReply = None
    confirm: Confirm = False
    max_steps: Steps = DEFAULT_STEPS


class StartTask(ToolArguments):
    device_id: DeviceId = ""
    task: Task
    max_steps: Steps = DEFAULT_STEPS


class ContinueTask(ToolArguments):
    session_id: SessionId
    reply_from_client: ReplyText
    confirm: Confirm = False
    device_id: DeviceId = ""
    max_steps: Steps = DEFAULT_STEPS


def task_call(arguments: AskAgent | StartTask | ContinueTask) -> TaskCall:
    """Return the short forms as the full one: all flags off, and the client answers."""
    return TaskCall.read(arguments.model_dump(exclude_none=True))
