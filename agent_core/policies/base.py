"""Policies review each action that a model proposes, in order, before anything is done."""

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
    """The facts for the policies: the screen that the proposal was made on, the screen now, and the state of the gate.

    profile: the app of a reply task; None in any other task.
    apps: names and packages of the apps that another task may use; () allows all.
    frame: the picture that the action was proposed on.
    now, window_now: the screen immediately before the action; None if it was not read again.
    lapsed: the screen no longer shows what a person allowed on ``frame``.
    nodes: the accessibility tree of ``frame``, however little it says; None if there was none.
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
    rows: Sequence[ChatRow] = ()  # of the chat list or of search results
    row: ChatRow | None = None  # the contact's row, if other rows have the same name
    strangers: Sequence[ChatRow] = ()  # rows with the contact's name that certainly belong to others
    open_rows: bool = False  # the reply flow decides by the ledger, too, whether anything is still to be answered
    # If a possible chat page could not be read: the y (pixels) at which its input may begin.
    unread_below: int | None = None
    nodes: Sequence[Node] | None = None

    @property
    def in_app(self) -> bool:
        """True if the task's app is in front, by its whole package name."""
        return self.profile is not None and self.window.package in self.profile.packages

    @property
    def app_name(self) -> str:
        return self.profile.name if self.profile else ""

    def target(self, pair: tuple[int, int]) -> str:
        """Return the text of the smallest reading around a point (0–1000), or "" if there is none."""
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
        """Return the readings under the point that ``action`` may click, or () if it clicks nothing.

        A swipe along a row may click a control whose label is anywhere along the way.
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
        """Return the readings that may name what ``action`` clicks: those under it and the closest label below it.

        The label is included because in a picture an icon has no other name, or only a letter that is part of its
        drawing.
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
    """Return the words of a control in one form, however they are written: without blanks, in one width and case."""
    return normalise(text).casefold()


class Decision(StrEnum):
    """The decision of a policy about a proposal."""

    ALLOW = "allow"
    REWRITE = "rewrite"  # another action is done instead
    BLOCK = "block"  # nothing is done
    ASK = "ask"  # a person is asked first


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one policy on a proposal.

    action: the action to do in its place; None if it is blocked.
    message: goes into the next prompt.
    pending_question: the question that the gate remembers from now on; None keeps the one it has.
    """

    decision: Decision
    action: Action | None = None
    message: str = ""
    pending_question: str | None = None
    policy: str = ""


def allow(action: Action) -> Verdict:
    """Return a verdict that lets ``action`` be done."""
    return Verdict(Decision.ALLOW, action)


def block(message: str) -> Verdict:
    """Return a verdict that does nothing and tells the model ``message``."""
    return Verdict(Decision.BLOCK, None, message)


def rewrite(action: Action, message: str, *, pending: str | None = None) -> Verdict:
    """Return a verdict that does ``action`` instead and tells the model ``message``. ``pending``: see ``Verdict``."""
    return Verdict(Decision.REWRITE, action, message, pending)


def ask(tap: Tap, message: str) -> Verdict:
    """Return a verdict that shows a person ``message`` and the model's own words; they decide about the tap."""
    return Verdict(Decision.ASK, tap, message)


class Policy(Protocol):
    """One rule of the gate."""

    @property
    def name(self) -> str: ...

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        """Return a verdict that allows, rewrites or blocks the proposal, or has a person asked."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of all policies together for a proposal.

    action: the action to do; None if nothing is done.
    verdicts: of the policies that changed the proposal.
    """

    action: Action | None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(verdict.message for verdict in self.verdicts if verdict.message)

    @property
    def to_ask(self) -> str:
        """The question about the action for a person, in our own words; "" if no policy asks."""
        return next((verdict.message for verdict in self.verdicts if verdict.decision is Decision.ASK), "")

    @property
    def pending_question(self) -> str | None:
        """The question that the gate remembers from now on; None keeps the one it has."""
        return next((v.pending_question for v in reversed(self.verdicts) if v.pending_question is not None), None)


def review(proposal: Action, situation: Situation, policies: Sequence[Policy]) -> Judgement:
    """Apply the policies in order, each to the result of the one before. A block ends the review."""
    judgement = Judgement(proposal)
    for policy in policies:
        if judgement.action is None:
            break
        verdict = policy.review(judgement.action, situation)
        if verdict.decision is not Decision.ALLOW:
            named = replace(verdict, policy=policy.name)
            judgement = Judgement(verdict.action, (*judgement.verdicts, named))
    return judgement


SAME_TARGET = 30  # of 1000: taps that are no further apart have the same target
STILL = 0.03  # of the longer side: a finger that moves no further counts as still
# Of the longer side: a swipe that moves no further up or down may stay on one button, which takes it as a click.
SAME_ROW = 0.08
LABEL_REACH = 0.04  # of the longer side: how far from such a swipe the button's label may stand
HELD_SECONDS = 0.4  # a touch is a long press from this length on


def as_touch(action: Action, size: tuple[int, int]) -> Action:
    """Return the tap or long press that a swipe without movement is to the phone. Return other actions unchanged."""
    if not isinstance(action, Swipe) or _way(action, size) > STILL * max(size):
        return action
    if action.duration < HELD_SECONDS:
        return Tap(element=action.start)
    return LongPress(element=action.start, duration=action.duration)


def touched(action: Action, size: tuple[int, int]) -> tuple[int, int] | None:
    """Return the point (0–1000) where ``action`` may click something, or None.

    That is the point of a tap, and the start of a swipe that stays in its row. A swipe up or down clicks nothing,
    because the page takes it and scrolls.
    """
    touch = as_touch(action, size)
    if isinstance(touch, Tap | DoubleTap | LongPress):
        return touch.element
    return touch.start if isinstance(touch, Swipe) and _in_row(touch, size) else None


def first_touch(action: Action) -> tuple[int, int] | None:
    """Return the first point (0–1000) that a finger touches, or None if the action is not a touch."""
    if isinstance(action, Tap | DoubleTap | LongPress):
        return action.element
    return action.start if isinstance(action, Swipe) else None


def near(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether two points (0–1000) have the same target."""
    return all(abs(a - b) <= SAME_TARGET for a, b in zip(one, other, strict=True))


def _way(swipe: Swipe, size: tuple[int, int]) -> float:
    """Return the length of ``swipe`` in pixels."""
    start, end = Point.from_relative(swipe.start, size), Point.from_relative(swipe.end, size)
    return math.hypot(end.x - start.x, end.y - start.y)


def _in_row(swipe: Swipe, size: tuple[int, int]) -> bool:
    return abs(swipe.end[1] - swipe.start[1]) * size[1] <= SAME_ROW * max(size) * SCALE


def acts_on_screen(action: Action) -> bool:
    """Tell whether the effect of ``action`` depends on what is in front."""
    return isinstance(action, Tap | DoubleTap | LongPress | Swipe | Type | TypeName)
