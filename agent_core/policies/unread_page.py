"""A page that may be a chat and could not be read: the model leaves it, waits, or scrolls, and taps nothing there."""

from __future__ import annotations

from agent_core.actions.types import Action, Type, TypeName
from agent_core.geometry import Point
from agent_core.perception.popups import panel_of
from agent_core.policies.base import Situation, Verdict, allow, block, first_touch, touched


class UnreadPage:
    """Calls, settings, Send, a draft, the red mark of a text that failed may stand anywhere though nothing shows them.

    A swipe that scrolls clicks nothing above the place where the input may be. A dialog over the page that is read is
    no part of it.
    """

    name = "unread_page"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        below = situation.unread_below
        if below is None or not situation.in_app:
            return allow(proposal)
        place = first_touch(proposal)
        if place is None:
            return (
                block(situation.say("gate.unread_page")) if isinstance(proposal, Type | TypeName) else allow(proposal)
            )
        point = Point.from_relative(place, situation.size)
        scrolls = touched(proposal, situation.size) is None
        if point.y < below and (scrolls or _on_a_dialog(point, situation)):
            return allow(proposal)
        return block(situation.say("gate.unread_page"))


def _on_a_dialog(point: Point, situation: Situation) -> bool:
    """Return whether the point lies on a dialog over a dimmed page whose words were read."""
    panel = panel_of(situation.frame)
    if panel is None or not panel.contains(point):
        return False
    return any(panel.contains(one.box.center) for one in situation.readings if one.text.strip())
