"""The result of a call of the high-level tools: why it ended, its last action, and its steps."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter

from agent_core.actions import types
from agent_core.actions.types import Action
from agent_core.errors import ScreenOff
from agent_core.loop.outcome import ended_at_limit
from agent_core.session import Question, Session, Status, StepRecord
from agent_core.texts import is_said

JPEG = "image/jpeg"
# Messages of runs that ended because somebody who was asked said stop.
SAID_STOP = (
    "run.person_stopped",
    "run.person_stopped_program",
    "run.stuck_stopped",
    "run.stuck_stopped_program",
    "run.budget_stopped",
    "run.budget_stopped_tokens",
)
_ACTION: TypeAdapter[Action] = TypeAdapter(Action)


class StopReason(StrEnum):
    COMPLETED = "TASK_COMPLETED_SUCCESSFULLY"
    ABORTED = "TASK_ABORTED_BY_AGENT"
    NEEDS_REPLY = "INFO_ACTION_NEEDS_REPLY"
    MAX_STEPS = "MAX_STEPS_REACHED"
    SCREEN_OFF = "MANUAL_STOP_SCREEN_OFF"
    NOT_STARTED = "NOT_STARTED"
    STOPPED = "STOPPED_BY_OPERATOR"
    ERROR = "ERROR"


IS_ERROR = frozenset({StopReason.NOT_STARTED, StopReason.ERROR})


def stop_reason(session: Session) -> StopReason:
    """Return why a session rests.

    A held session counts as stopped for its client, though the server may continue it.
    """
    match session.status:
        case Status.SUCCEEDED:
            return StopReason.COMPLETED
        case Status.STOPPED:
            return StopReason.STOPPED
        case Status.WAITING if session.is_put_off:
            return StopReason.ERROR
        case Status.WAITING | Status.RUNNING:
            return StopReason.NEEDS_REPLY if session.question is not None else StopReason.STOPPED
        case Status.FAILED:
            return _why_failed(session)


def _why_failed(session: Session) -> StopReason:
    if session.error_kind == ScreenOff.kind:
        return StopReason.SCREEN_OFF
    if ended_at_limit(session):
        return StopReason.MAX_STEPS
    if any(is_said(session.message, session.lang, key, "by") for key in SAID_STOP):
        return StopReason.STOPPED
    last = session.steps[-1] if session.steps else None
    if not session.error_kind and last is not None and (last.action or {}).get("kind") == "finish":
        return StopReason.ABORTED
    return StopReason.ERROR


def gui_action(action: Action) -> dict[str, Any]:  # noqa: C901, PLR0912 - one line an action
    """Return an action under its name in the low-level tools, with their arguments."""
    match action:
        case types.Launch(app=app):
            return {"action": "AWAKE", "value": app}
        case types.Tap(element=point):
            return {"action": "CLICK", "point": list(point)}
        case types.DoubleTap(element=point):
            return {"action": "DOUBLE_CLICK", "point": list(point)}
        case types.LongPress(element=point, duration=seconds):
            return {"action": "LONG_PRESS", "point": list(point), "duration": seconds}
        case types.Swipe(start=start, end=end):
            return {"action": "SLIDE", "point1": list(start), "point2": list(end)}
        case types.Type(text=text) | types.TypeName(text=text):
            return {"action": "TYPE", "value": text}
        case types.Back():
            return {"action": "HOT_KEY", "key": "BACK"}
        case types.Home():
            return {"action": "HOT_KEY", "key": "HOME"}
        case types.PressKey(key=key):
            return {"action": "HOT_KEY", "key": key.upper()}
        case types.Wait(duration=seconds):
            return {"action": "WAIT", "value": seconds}
        case types.TakeOver(message=text) | types.Interact(question=text):
            return {"action": "INFO", "value": text}
        case types.Finish(message=text, success=True):
            return {"action": "COMPLETE", "status": "SUCCESS", "return": text}
        case types.Finish(message=text):
            return {"action": "ABORT", "value": text}
        case types.GetKnowledgeData(query=query):
            return {"action": "GET_KNOWLEDGE_DATA", "query": query}
        case types.Note(message=text):
            return {"action": "NOTE", "value": text}
        case types.CallAPI(instruction=text):
            return {"action": "CALL_API", "value": text}
    raise TypeError(f"no form for {type(action).__name__}")


def agent_action(step: StepRecord) -> dict[str, Any]:
    """Return the action of a step (or the proposal, if the gate stopped it), its reason, and its result."""
    done = step.action or step.asked
    named = gui_action(_ACTION.validate_python(done)) if done else {"action": "NONE"}
    return {**named, "explain": step.thinking, "ok": step.ok, "result": step.result}


def info_action(question: Question, *, answered_by: str) -> dict[str, Any]:
    """Return the question that a session waits for. ``answered_by``: who may answer it, ``client`` or ``person``."""
    return {
        "action": "INFO",
        "value": question.text,
        "question_id": question.id,
        "kind": question.kind.value,
        "choices": [{"value": choice.value, "label": choice.label} for choice in question.choices],
        "free_text": question.free_text,
        "answered_by": answered_by,
    }


@dataclass(frozen=True, slots=True)
class ResultPicture:
    """A screenshot as JPEG, and its caption; None if it has none."""

    jpeg: bytes | None = None
    caption: str | None = None

    @property
    def base64(self) -> str:
        return base64.b64encode(self.jpeg or b"").decode()

    @property
    def url(self) -> str | None:
        return f"data:{JPEG};base64,{self.base64}" if self.jpeg else None


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """One step of this call, as the client asked to see it. ``index`` counts within the session, from 1."""

    index: int
    action: Mapping[str, Any]
    shot: ResultPicture = ResultPicture()

    def data(self) -> dict[str, Any]:
        return {
            "agent_action": dict(self.action),
            "global_step_idx": self.index,
            "screenshot_b64_url": self.shot.url,
            "screenshot_caption": self.shot.caption,
        }


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a high-level call.

    task, reply: the call's task or reply, one of the two.
    logs: None if none were requested.
    final: the screen at the end; None if it was not requested.
    """

    device_id: str
    size: tuple[int, int]
    session_id: str
    stop_reason: StopReason
    message: str = ""
    final_action: Mapping[str, Any] | None = None
    global_steps: int = 0
    local_steps: int = 0
    task: str | None = None
    reply: str | None = None
    logs: Sequence[LoggedStep] | None = None
    final: ResultPicture | None = None
    extra_info: Mapping[str, Any] = field(default_factory=dict)
    question: Question | None = None  # the question that it waits for
    client_may_answer: bool = False

    @property
    def shots(self) -> list[ResultPicture]:
        """Every picture in it, in order."""
        shots = [step.shot for step in self.logs or ()]
        return [shot for shot in [*shots, *([self.final] if self.final else [])] if shot.jpeg]

    def data(self) -> dict[str, Any]:
        brought = {"task": self.task} if self.reply is None else {"reply_from_client": self.reply}
        whole: dict[str, Any] = {
            "device_info": {"device_id": self.device_id, "device_wm_size": list(self.size)},
            "session_id": self.session_id,
            **brought,
            "stop_reason": self.stop_reason.value,
            "message": self.message,
            "final_action": None if self.final_action is None else dict(self.final_action),
            "global_step_idx": self.global_steps,
            "local_step_idx": self.local_steps,
        }
        if self.logs is not None:
            whole["intermediate_logs"] = [step.data() for step in self.logs]
        if self.final is not None:
            whole["final_screenshot_b64_url"] = self.final.url
            whole["final_screenshot_caption"] = self.final.caption
        if self.extra_info:
            whole["extra_info"] = dict(self.extra_info)
        return whole

    def in_words(self) -> dict[str, Any]:
        """Return ``data`` with each picture replaced by its number: pictures are beside the text, not in it."""
        numbered = replace(self, logs=None, final=None).data()
        number = 0

        def named(shot: ResultPicture) -> str | None:
            nonlocal number
            number += bool(shot.jpeg)
            return f"image {number}" if shot.jpeg else None

        if self.logs is not None:
            numbered["intermediate_logs"] = [
                {**step.data(), "screenshot_b64_url": named(step.shot)} for step in self.logs
            ]
        if self.final is not None:
            numbered["final_screenshot_b64_url"] = named(self.final)
            numbered["final_screenshot_caption"] = self.final.caption
        return numbered
