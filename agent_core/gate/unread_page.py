"""A page that may be a chat and could not be read is nobody's to type in, nor is the place where its input may be."""

from __future__ import annotations

from agent_core.actions.types import Action, Type, TypeName
from agent_core.gate.base import Situation, Verdict, allow, block, first_touch
from agent_core.geometry import Point


class UnreadPage:
    """Send, a draft and the keyboard may stand there though nothing shows them; leaving and waiting are allowed."""

    name = "unread_page"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        below = situation.unread_below
        if below is None or not situation.in_app:
            return allow(proposal)
        place = first_touch(proposal)
        low = place is not None and Point.from_relative(place, situation.size).y >= below
        if low or isinstance(proposal, Type | TypeName):
            return block(situation.say("gate.unread_page"))
        return allow(proposal)
