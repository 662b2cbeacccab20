"""Shows a recorded run to another model, step by step; nothing is done on any phone.

Each step is asked with the recorded past, whatever the other model would have done before. A model with the run's
profile gets exactly the messages that were sent then; another one is asked in its own form.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from agent_core.actions import parse_reply
from agent_core.actions.types import (
    Action,
    DoubleTap,
    Finish,
    GetKnowledgeData,
    Interact,
    Launch,
    LongPress,
    Note,
    Swipe,
    TakeOver,
    Tap,
    Type,
    TypeName,
    Wait,
)
from agent_core.apps.profile import profile as app_profile
from agent_core.errors import ActionParseError
from agent_core.geometry import Point
from agent_core.loop.trajectory import Message, ModelRequest, picture_url, with_pictures
from agent_core.model.base import Model
from agent_core.model.history import app_name
from agent_core.model.profile import ModelProfile
from agent_core.model.prompt import build_messages
from agent_core.perception.readings import Reading
from agent_core.policies import Judgement, PolicyName, Situation, policies_of, review
from agent_core.session import Session
from bot.desk.history_views import RecordedStep, RecordingView

_ACTION: TypeAdapter[Action] = TypeAdapter(Action)
NEAR = 0.03  # of the screen's longer side


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """One step of the comparison.

    recorded, done: the recorded proposal, and the gate's result for it; ``new`` and ``allowed`` likewise.
    reply: the new one.
    error: why no action can be read from ``reply``.
    rules: the policies that changed the new proposal.
    seconds, before: of the new reply, and of the recorded one.
    """

    step: int
    recorded: Action | None
    done: Action | None
    new: Action | None
    allowed: Action | None
    likeness: ActionLikeness
    reply: str
    thinking: str = ""
    error: str = ""
    rules: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    first_token: float | None = None
    before: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass
class Comparison:
    """The results up to now."""

    model: str
    profile: str
    tried: list[ReplayedStep] = field(default_factory=list)

    def count(self, kind: ActionLikeness) -> int:
        return Counter(one.likeness for one in self.tried)[kind]

    @property
    def agreement(self) -> float:
        """The share of steps with the same or an equivalent action, 0–1; 0 if there are none."""
        alike = self.count(ActionLikeness.SAME) + self.count(ActionLikeness.NEAR)
        return alike / len(self.tried) if self.tried else 0.0


async def try_again(
    view: RecordingView, model: Model, profile: ModelProfile, *, elements: bool = True
) -> AsyncIterator[ReplayedStep]:
    """Ask ``model`` for each recorded step. Raises ModelError if it cannot be reached.

    elements: list the texts read from the screen, if the profile wants it.
    """
    for step in view.recorded:
        if step.asked is not None and step.record.reply:  # otherwise there is nothing to compare
            messages = messages_for(view.session, step, step.asked, profile, elements=elements)
            yield await _try(view.session, step, step.asked, messages, model, profile)


def messages_for(
    session: Session, step: RecordedStep, asked: ModelRequest, profile: ModelProfile, *, elements: bool = True
) -> list[Message]:
    """Return the messages to send for this step."""
    url = picture_url(step.picture) if step.picture else ""
    if profile.name == asked.profile:
        return with_pictures(step.messages, lambda _: url)
    messages = build_messages(
        as_it_was(session, asked),
        current_app=app_name(asked.window.package),
        picture=None,
        elements=asked.readings if elements and profile.elements and asked.readings else None,
        profile=app_profile(asked.gate.app) if asked.gate.enabled else None,
        size=asked.size,
        model=profile,
    )
    if url:  # the bytes that were sent then, not encoded again
        messages[-1]["content"].insert(0, {"type": "image_url", "image_url": {"url": url}})
    return messages


def as_it_was(session: Session, asked: ModelRequest) -> Session:
    """Return the session at the moment of the request."""
    return session.model_copy(
        update={
            "steps": session.steps[: asked.step - 1],
            "observation": asked.observation,
            "summary": asked.summary,
            "summarised_at": asked.summarised_at,
            "gate": asked.gate,
            "replies": session.replies[: asked.replies],
        }
    )


async def _try(
    session: Session,
    step: RecordedStep,
    asked: ModelRequest,
    messages: list[Message],
    model: Model,
    profile: ModelProfile,
) -> ReplayedStep:
    begun = time.monotonic()
    completion = await model.complete(messages)
    seconds = time.monotonic() - begun
    recorded, done = _action(step.record.asked), _action(step.record.action)
    new, thinking, error = None, "", ""
    judgement = Judgement(None)
    try:
        reply = parse_reply(completion.text, dialect=profile.dialect, ended=completion.ended)
        new, thinking = reply.action, reply.thinking
        judgement = judge(new, session, asked)
    except ActionParseError as wrong:
        error = wrong.message
    return ReplayedStep(
        step=asked.step,
        recorded=recorded,
        done=done,
        new=new,
        allowed=judgement.action,
        likeness=likeness(recorded, new, size=asked.size, readings=asked.readings),
        reply=completion.text,
        thinking=thinking,
        error=error,
        rules=tuple(verdict.policy for verdict in judgement.verdicts),
        messages=judgement.messages,
        seconds=seconds,
        first_token=completion.usage.first_token,
        before=step.record.timings.get("model", 0.0),
        tokens_in=completion.usage.tokens_in,
        tokens_out=completion.usage.tokens_out,
    )


def judge(proposal: Action, session: Session, asked: ModelRequest) -> Judgement:
    """Return the gate's result for a proposal, from its knowledge at that time.

    No current screen is read: there is none.
    """
    gate = asked.gate
    usual = PolicyName.REPLY if gate.enabled else PolicyName.CAREFUL
    situation = Situation(
        profile=app_profile(gate.app) if gate.enabled else None,
        window=asked.window,
        size=asked.size,
        gate=gate.model_copy(deep=True),
        readings=asked.readings,
        chat=asked.chat,
        delivered=[*gate.delivered, *(reply.text for reply in session.replies[: asked.replies])],
        lang=session.lang,
        apps=session.apps,
        open_rows=gate.enabled and not session.dry_run,
        unread_below=asked.unread_below,
    )
    return review(proposal, situation, policies_of(PolicyName(session.policy or usual)))


def _action(data: object) -> Action | None:
    try:
        return _ACTION.validate_python(data) if data else None
    except ValidationError:  # another release's
        return None


# How alike two actions are --------------------------------------------------------------------------------------------


class ActionLikeness(StrEnum):
    """The result of a comparison of two actions."""

    SAME = "same"
    NEAR = "near"  # equivalent: a tap close by or in the same element, other words for the same thing
    DIFFERENT = "different"
    INVALID = "invalid"  # no action can be read from the new reply


def likeness(
    recorded: Action | None, new: Action | None, *, size: tuple[int, int], readings: Sequence[Reading] = ()
) -> ActionLikeness:
    """Compare one model's action with another's on the same screen.

    size: of the screen, in pixels.
    readings: the texts on it, with boxes in its pixels.
    """
    if new is None:
        return ActionLikeness.INVALID
    if recorded is None or recorded.kind != new.kind:
        return ActionLikeness.DIFFERENT
    if recorded == new:
        return ActionLikeness.SAME
    return ActionLikeness.NEAR if _near(recorded, new, size, readings) else ActionLikeness.DIFFERENT


def _near(one: Action, other: Action, size: tuple[int, int], readings: Sequence[Reading]) -> bool:
    here, there = _place(one), _place(other)
    if here is not None and there is not None:
        a, b = Point.from_relative(here, size), Point.from_relative(there, size)
        return _close(a, b, size) or _same_element(a, b, readings)
    if isinstance(one, Swipe) and isinstance(other, Swipe):
        return _direction(one, size) == _direction(other, size)
    if isinstance(one, Finish) and isinstance(other, Finish):
        return one.success == other.success
    words = _words(one), _words(other)
    if None not in words:
        return words[0] == words[1]
    # The same thing in other words.
    return isinstance(one, GetKnowledgeData | Wait | Note | Interact | TakeOver)


def _place(action: Action) -> tuple[int, int] | None:
    return action.element if isinstance(action, Tap | DoubleTap | LongPress) else None


def _close(a: Point, b: Point, size: tuple[int, int]) -> bool:
    return math.hypot(a.x - b.x, a.y - b.y) <= NEAR * max(size)


def _same_element(a: Point, b: Point, readings: Sequence[Reading]) -> bool:
    """Tell whether the smallest element around one point is that around the other."""
    one, other = _element(a, readings), _element(b, readings)
    return one is not None and one == other


def _element(point: Point, readings: Sequence[Reading]) -> Reading | None:
    around = [reading for reading in readings if reading.box.contains(point)]
    return min(around, key=lambda reading: reading.box.width * reading.box.height) if around else None


def _direction(swipe: Swipe, size: tuple[int, int]) -> tuple[bool, bool]:
    """Return whether the swipe is horizontal, and whether it goes forward."""
    start, end = Point.from_relative(swipe.start, size), Point.from_relative(swipe.end, size)
    across, down = end.x - start.x, end.y - start.y
    return (True, across > 0) if abs(across) > abs(down) else (False, down > 0)


def _words(action: Action) -> str | None:
    """Return the words that must be equal, without spaces and case; None if the action has none."""
    match action:
        case Type(text=words) | TypeName(text=words) | Launch(app=words):
            return "".join(words.split()).casefold()
    return None
