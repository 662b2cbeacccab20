"""A model's action is a proposal. Policies look at it, in order, before anything is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from agent_core.actions.types import Action, DoubleTap, LongPress, Swipe, Tap, Type, TypeName
from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame, Node, Window
from agent_core.geometry import SCALE, Box, Point
from agent_core.perception.compare import normalise
from agent_core.perception.lists import ChatRow
from agent_core.perception.readings import ChatScreen, Reading
from agent_core.session import GateState
from agent_core.texts import Lang, say


@dataclass(frozen=True, slots=True)
class Situation:
    """What the policies know: the screen that the proposal was made on, the screen now, and the state of the gate.

    ``profile`` is the app of a reply task, None in any other. ``apps`` are the names and packages that another task may
    use, () for all. ``frame`` was proposed on; ``now`` and ``window_now`` are of the moment before the act, None where
    nobody looked. ``lapsed``: what a person allowed on the screen that was proposed on is not what it shows now.
    ``nodes``: the tree of that screen, whatever it tells; None if there was none.
    """

    profile: AppProfile | None
    window: Window
    size: tuple[int, int]
    gate: GateState
    readings: Sequence[Reading] = ()
    chat: ChatScreen | None = None
    delivered: Sequence[str] = ()  # texts that were sent in this run
    lang: Lang = "zh"
    apps: Sequence[str] = ()
    frame: Frame | None = None
    now: Frame | None = None
    window_now: Window | None = None
    lapsed: bool = False
    rows: Sequence[ChatRow] = ()  # of the list of chats, or of a search
    row: ChatRow | None = None  # the contact's, if others have its name
    strangers: Sequence[ChatRow] = ()  # rows of the contact's name that are surely another one's
    open_rows: bool = False  # the reply flow tells by the ledger, too, whether anything is still to be answered
    unread_below: int | None = None  # a page that may be a chat could not be read: where its input may begin (pixels)
    nodes: Sequence[Node] | None = None

    @property
    def in_app(self) -> bool:
        """Is the app of this task in front, by its whole package name?"""
        return self.profile is not None and self.window.package in self.profile.packages

    @property
    def app_name(self) -> str:
        return self.profile.name if self.profile else ""

    def target(self, pair: tuple[int, int]) -> str:
        """The text under a point (0–1000), of the smallest reading around it; "" where none is known."""
        one = self._under(pair)
        return one.text if one else ""

    def _under(self, pair: tuple[int, int]) -> Reading | None:
        point = Point.from_relative(pair, self.size)
        margin = max(8, self.size[1] // 200)
        around = [
            r
            for r in self.readings
            if r.box.left - margin <= point.x < r.box.right + margin
            and r.box.top - margin <= point.y < r.box.bottom + margin
            and r.text
        ]
        return min(around, key=lambda r: r.box.width * r.box.height, default=None)

    def targets(self, action: Action) -> tuple[Reading, ...]:
        """What stands under what an action may click; () where it clicks nothing. A swipe along a row may click what
        its label stands anywhere in.
        """
        pair, touch = touched(action, self.size), as_touch(action, self.size)
        if pair is None:
            return ()
        if not isinstance(touch, Swipe):
            one = self._under(pair)
            return (one,) if one else ()
        start, end = Point.from_relative(touch.start, self.size), Point.from_relative(touch.end, self.size)
        reach = round(LABEL_REACH * max(self.size))
        band = Box(
            min(start.x, end.x) - reach,
            min(start.y, end.y) - reach,
            max(start.x, end.x) + reach,
            max(start.y, end.y) + reach,
        )
        return tuple(r for r in self.readings if r.text and r.box.intersects(band))

    def labels(self, action: Action) -> tuple[Reading, ...]:
        """What may name what an action clicks: what stands under it, and the label close below it. A picture names an
        icon there and nowhere else, or by a letter of its drawing.
        """
        pair = touched(action, self.size)
        if pair is None:
            return ()
        point, (width, height) = Point.from_relative(pair, self.size), self.size
        below = [
            r
            for r in self.readings
            if r.text and abs(r.box.center.x - point.x) <= width // 8 and 0 < r.box.top - point.y <= height // 12
        ]
        return (*self.targets(action), *sorted(below, key=lambda r: r.box.top)[:1])

    def say(self, key: str, **values: object) -> str:
        return say(self.lang, key, **values)


def bare(text: str) -> str:
    """Return one form for the words of a control, however they are written: no blanks, no width, no case."""
    return normalise(text).casefold()


class Decision(StrEnum):
    ALLOW = "allow"
    REWRITE = "rewrite"  # something else is done
    BLOCK = "block"  # nothing is done
    ASK = "ask"  # a person is asked first


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one policy says of a proposal. ``action`` is what takes its place, None where it is blocked.

    ``message`` goes into the next prompt. ``pending_question`` None leaves the gate's remembered question as it is.
    """

    decision: Decision
    action: Action | None = None
    message: str = ""
    pending_question: str | None = None
    policy: str = ""


def allow(action: Action) -> Verdict:
    return Verdict(Decision.ALLOW, action)


def block(message: str) -> Verdict:
    return Verdict(Decision.BLOCK, None, message)


def rewrite(action: Action, message: str, *, pending: str | None = None) -> Verdict:
    return Verdict(Decision.REWRITE, action, message, pending)


def ask(tap: Tap, message: str) -> Verdict:
    """A person is shown ``message``, then the model's own words, and decides before the tap is done."""
    return Verdict(Decision.ASK, tap, message)


class Policy(Protocol):
    @property
    def name(self) -> str: ...

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        """Allow, rewrite or block the proposal, or have a person asked."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all policies together make of a proposal. ``action`` None: nothing is done. ``verdicts``: who changed it."""

    action: Action | None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(verdict.message for verdict in self.verdicts if verdict.message)

    @property
    def to_ask(self) -> str:
        """What a person is asked about the action, in our own words; "" where no policy wants that."""
        return next((verdict.message for verdict in self.verdicts if verdict.decision is Decision.ASK), "")

    @property
    def pending_question(self) -> str | None:
        """The question that is to be remembered; None leaves it as it is."""
        return next((v.pending_question for v in reversed(self.verdicts) if v.pending_question is not None), None)


def review(proposal: Action, situation: Situation, policies: Sequence[Policy]) -> Judgement:
    """All policies in order, each on what the one before made of the proposal; a block ends it."""
    judgement = Judgement(proposal)
    for policy in policies:
        if judgement.action is None:
            break
        verdict = policy.review(judgement.action, situation)
        if verdict.decision is not Decision.ALLOW:
            named = replace(verdict, policy=policy.name)
            judgement = Judgement(verdict.action, (*judgement.verdicts, named))
    return judgement


SAME_TARGET = 30  # of 1000: taps that are no further apart mean the same thing
STILL = 0.03  # of the longer side: within it a finger that moves is still
SAME_ROW = 0.08  # of the longer side: a swipe that goes no further up or down may stay on one button: a click for it
LABEL_REACH = 0.04  # of the longer side: how far from such a swipe the label of that button may stand
HELD_SECONDS = 0.4  # from when on a touch is a long press


def as_touch(action: Action, size: tuple[int, int]) -> Action:
    """A swipe that does not move is, to the phone, a tap or a long press where it stands; the rest is as it is."""
    if not isinstance(action, Swipe) or _way(action, size) > STILL * max(size):
        return action
    if action.duration < HELD_SECONDS:
        return Tap(element=action.start)
    return LongPress(element=action.start, duration=action.duration)


def touched(action: Action, size: tuple[int, int]) -> tuple[int, int] | None:
    """The point (0–1000) where an action may click something: where it taps, and where a swipe begins that stays in its
    row. One that goes up or down is taken by the page, which scrolls.
    """
    touch = as_touch(action, size)
    if isinstance(touch, Tap | DoubleTap | LongPress):
        return touch.element
    return touch.start if isinstance(touch, Swipe) and _in_row(touch, size) else None


def first_touch(action: Action) -> tuple[int, int] | None:
    """The point (0–1000) where a finger would come down first."""
    if isinstance(action, Tap | DoubleTap | LongPress):
        return action.element
    return action.start if isinstance(action, Swipe) else None


def near(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two points (0–1000) mean the same target."""
    return all(abs(a - b) <= SAME_TARGET for a, b in zip(one, other, strict=True))


def _way(swipe: Swipe, size: tuple[int, int]) -> float:
    """How far it moves, in pixels."""
    start, end = Point.from_relative(swipe.start, size), Point.from_relative(swipe.end, size)
    return math.hypot(end.x - start.x, end.y - start.y)


def _in_row(swipe: Swipe, size: tuple[int, int]) -> bool:
    return abs(swipe.end[1] - swipe.start[1]) * size[1] <= SAME_ROW * max(size) * SCALE


def acts_on_screen(action: Action) -> bool:
    """Whether what the action does depends on what is in front."""
    return isinstance(action, Tap | DoubleTap | LongPress | Swipe | Type | TypeName)
