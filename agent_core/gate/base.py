"""A model's action is a proposal. Policies look at it, in order, before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent_core.actions.types import Action, DoubleTap, LongPress, Tap
from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Window
from agent_core.geometry import Point
from agent_core.screen.readings import ChatScreen, Reading
from agent_core.session import GateState
from agent_core.texts import Lang, say


@dataclass(frozen=True, slots=True)
class Situation:
    """What the policies know: the screen that the proposal was made on, and the state of the gate."""

    profile: AppProfile
    window: Window
    size: tuple[int, int]
    gate: GateState
    readings: Sequence[Reading] = ()
    chat: ChatScreen | None = None
    delivered: Sequence[str] = ()  # texts that were sent in this run
    lang: Lang = "zh"

    @property
    def in_app(self) -> bool:
        """Is the app of this task in front, by its whole package name?"""
        return self.window.package in self.profile.packages

    def target(self, pair: tuple[int, int]) -> str:
        """The text under a point (0–1000), of the smallest reading around it; "" where none is known."""
        point = Point.from_relative(pair, self.size)
        margin = max(8, self.size[1] // 200)
        around = [
            r
            for r in self.readings
            if r.box.left - margin <= point.x < r.box.right + margin
            and r.box.top - margin <= point.y < r.box.bottom + margin
            and r.text
        ]
        return min(around, key=lambda r: r.box.width * r.box.height).text if around else ""

    def say(self, key: str, **values: object) -> str:
        return say(self.lang, key, **values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a proposal. ``action`` None: blocked, nothing is done. ``messages`` go into the next prompt.

    ``pending_question`` None leaves the gate's remembered question as it is.
    """

    action: Action | None
    messages: tuple[str, ...] = ()
    pending_question: str | None = None
    policies: tuple[str, ...] = ()  # which policies changed it, for the step's row

    def block(self, policy: str, message: str) -> Verdict:
        return replace(self, action=None, messages=(*self.messages, message), policies=(*self.policies, policy))

    def rewrite(self, policy: str, action: Action, message: str, *, pending: str | None = None) -> Verdict:
        return replace(
            self,
            action=action,
            messages=(*self.messages, message),
            pending_question=self.pending_question if pending is None else pending,
            policies=(*self.policies, policy),
        )


class Policy(Protocol):
    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        """Look at ``verdict.action`` (never None here) and pass on, rewrite or block it."""


def review(proposal: Action, situation: Situation, policies: Sequence[Policy]) -> Verdict:
    """The verdict of all policies in order, each on what the one before made of the proposal; a block ends it."""
    verdict = Verdict(proposal)
    for policy in policies:
        verdict = policy.review(verdict, situation)
        if verdict.action is None:
            break
    return verdict


def touched(action: Action) -> tuple[int, int] | None:
    """The point (0–1000) that an action touches, if it is of the tapping kind."""
    return action.element if isinstance(action, Tap | DoubleTap | LongPress) else None
