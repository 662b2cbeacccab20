"""What a reply task may touch: its own app and nothing that pays, deletes, adds, calls or grants."""

from __future__ import annotations

import re

from agent_core.actions.types import (
    Back,
    DoubleTap,
    Home,
    Launch,
    LongPress,
    PressKey,
    Swipe,
    Tap,
    Type,
    TypeName,
)
from agent_core.gate.base import Situation, Verdict, touched
from agent_core.geometry import Point
from agent_core.screen.readings import Bubble, BubbleKind

_LINK = re.compile(r"[a-z][a-z0-9+.-]*://|\bwww\.|\.(?:com|cn|net|org|cc|top|xyz)\b|\d{7,}", re.IGNORECASE)
_DOORS = {BubbleKind.RED_PACKET, BubbleKind.OTHER}  # a tap on these opens something: a packet, a card, a mini-program


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", text).casefold()


class OneApp:
    """Only the task's app is opened and touched; elsewhere the way back to it is the only way."""

    name = "one_app"

    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        action, profile = verdict.action, situation.profile
        if isinstance(action, Launch):
            allowed = {_bare(n) for n in (profile.name, *profile.aliases, *profile.packages)}
            if _bare(action.app) not in allowed:
                return verdict.block(self.name, situation.say("gate.other_app", app=action.app, allowed=profile.name))
            return verdict
        if situation.in_app or isinstance(action, Back | Home):
            return verdict
        if isinstance(action, Tap) and _bare(situation.target(action.element)) == _bare(profile.name):
            return verdict  # the app's icon on the launcher
        if isinstance(action, Tap | DoubleTap | LongPress | Type | TypeName | PressKey | Swipe):
            return verdict.block(self.name, situation.say("gate.tap_outside", app=profile.name))
        return verdict


class NothingRisky:
    """No tap on what pays, deletes, adds, calls, installs or grants rights, nor on a link or a number in a message."""

    name = "nothing_risky"

    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        action = verdict.action
        if isinstance(action, LongPress | DoubleTap):
            return verdict.block(self.name, situation.say("gate.long_press_blocked"))
        pair = touched(action) if action is not None else None
        if pair is None:
            return verdict
        target = situation.target(pair)
        # Whole words of a button only: a customer who writes about a refund is no button.
        if any(word in target and len(target) <= len(word) + 4 for word in situation.profile.risky):
            return verdict.block(self.name, situation.say("gate.risky_blocked", target=target))
        said = self._message_at(Point.from_relative(pair, situation.size), situation)
        if said is not None and (said.kind in _DOORS or _LINK.search(said.text)):
            return verdict.block(self.name, situation.say("gate.link_blocked", target=said.text[:40]))
        return verdict

    @staticmethod
    def _message_at(point: Point, situation: Situation) -> Bubble | None:
        bubbles = situation.chat.bubbles if situation.chat else ()
        return next((b for b in bubbles if b.box is not None and b.box.contains(point)), None)


class DeliveryAlone:
    """Send, Enter, stickers, quick replies and pasting belong to delivery, and all else at a chat's input."""

    name = "delivery_alone"

    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        action = verdict.action
        if isinstance(action, PressKey) and action.key == "enter":
            return verdict.block(self.name, situation.say("gate.enter_blocked"))
        pair = touched(action) if action is not None else None
        if pair is not None and situation.in_app:
            target = situation.target(pair)
            field = situation.chat.input_box if situation.chat else None
            if field is not None and Point.from_relative(pair, situation.size).y >= field.top:
                # Send, icons without a word, the keys of a keyboard: nothing there is for the model.
                return verdict.block(self.name, situation.say("gate.input_bar", target=target))
            if _bare(target) in {_bare(t) for t in situation.profile.delivery_only}:
                return verdict.block(self.name, situation.say("gate.delivery_only", target=target))
        return verdict
