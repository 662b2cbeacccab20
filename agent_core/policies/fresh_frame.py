"""An act runs only where window and target region still match the picture that it was proposed on."""

from __future__ import annotations

from PIL import ImageChops

from agent_core.actions.types import Action
from agent_core.devices.base import Frame
from agent_core.geometry import Box, Point
from agent_core.policies.base import Situation, Verdict, acts_on_screen, allow, block, touched


class FreshFrame:
    """Rows of a chat list move between look and tap: a tap on a place that has changed since is blocked, and all that
    touches or types where another window has come to the front. In a task that is no reply the window alone counts, for
    a button there may pulse for ever, and, for a tap that a person allowed, what stands around it."""

    name = "fresh_frame"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        pair = touched(proposal, situation.size)
        if not acts_on_screen(proposal) or situation.frame is None or situation.now is None:
            return allow(proposal)
        moved = situation.window_now is not None and situation.window_now != situation.window
        if situation.profile is None:
            pair = None
        if moved or situation.lapsed or (pair is not None and not _same_place(pair, situation.frame, situation.now)):
            return block(situation.say("gate.screen_moved"))
        return allow(proposal)


def _same_place(pair: tuple[int, int], proposed_on: Frame, now: Frame) -> bool:
    """Whether the place that is going to be touched is, pixel by pixel, as the model saw it."""
    if now.digest == proposed_on.digest:
        return True
    if now.size != proposed_on.size:
        return False
    width, height = now.size
    point = Point.from_relative(pair, now.size)
    reach = height // 40
    box = Box(
        max(0, point.x - 4 * reach),
        max(0, point.y - reach),
        min(width, point.x + 4 * reach),
        min(height, point.y + reach),
    ).as_tuple()
    return ImageChops.difference(now.image.crop(box), proposed_on.image.crop(box)).getbbox() is None
