"""Compares one model's action with another's on the same screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

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
from agent_core.geometry import Point
from agent_core.perception.readings import Reading

NEAR = 0.03  # of the screen's longer side


class PictureLikeness(StrEnum):
    SAME = "same"
    NEAR = "near"  # equivalent: a tap close by or in the same element, other words for the same thing
    DIFFERENT = "different"
    INVALID = "invalid"  # no action can be read from the new reply


def likeness(
    recorded: Action | None, new: Action | None, *, size: tuple[int, int], readings: Sequence[Reading] = ()
) -> PictureLikeness:
    """Compare two actions.

    size: of the screen, in pixels.
    readings: the texts on it, with boxes in its pixels.
    """
    if new is None:
        return PictureLikeness.INVALID
    if recorded is None or recorded.kind != new.kind:
        return PictureLikeness.DIFFERENT
    if recorded == new:
        return PictureLikeness.SAME
    return PictureLikeness.NEAR if _near(recorded, new, size, readings) else PictureLikeness.DIFFERENT


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
