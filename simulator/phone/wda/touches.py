"""Fingers of W3C pointer actions on the virtual iPhone, with iOS's own gestures at the edges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from simulator.phone.phone import VirtualPhone
from simulator.phone.wda.screen import Screen

EDGE = 20.0  # points from an edge in which iOS's own gestures begin
RESTED = 0.5  # seconds at the end of a swipe up: the app switcher instead of the home screen
_STILL = 8.0  # points within which a finger does not move


class _Item(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Move(_Item):
    type: Literal["pointerMove"]
    duration: Annotated[int, Field(ge=0)]
    x: float
    y: float


class Button(_Item):
    type: Literal["pointerDown", "pointerUp"]
    button: Literal[0]


class Pause(_Item):
    type: Literal["pause"]
    duration: Annotated[int, Field(ge=0)]


class _Parameters(_Item):
    pointerType: Literal["touch"]  # noqa: N815 - W3C's name


class Finger(_Item):
    type: Literal["pointer"]
    id: Annotated[str, Field(min_length=1)]
    parameters: _Parameters
    actions: Annotated[list[Annotated[Move | Button | Pause, Field(discriminator="type")]], Field(min_length=1)]


class BadTouchError(Exception):
    """The actions are not a touch. The message says why."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """One finger from down to up, in points and seconds. ``rest``: how long it stayed at its end."""

    start: tuple[float, float]
    end: tuple[float, float]
    seconds: float
    rest: float

    @property
    def moved(self) -> bool:
        return math.dist(self.start, self.end) >= _STILL


def strokes(items: Sequence[Move | Button | Pause], screen: Screen) -> Iterator[Stroke]:
    """Yield the strokes of a finger's actions.

    Raises BadTouchError if a place is off the screen, or a finger goes down twice, up twice or stays down.
    """
    place: tuple[float, float] | None = None
    start: tuple[float, float] | None = None
    seconds = rest = 0.0
    _, _, width, height = screen.window
    for item in items:
        if isinstance(item, Move):
            place, rest = (item.x, item.y), 0.0
            if not (0 <= item.x < width and 0 <= item.y < height):
                raise BadTouchError(f"({item.x}, {item.y}) is outside of the screen of {width} x {height} points")
            seconds += item.duration / 1000
        elif isinstance(item, Pause):
            rest += item.duration / 1000
        elif place is None:
            raise BadTouchError(f"The '{item.type}' action item must be preceded by pointerMove item")
        elif item.type == "pointerDown":
            if start is not None:
                raise BadTouchError("the finger is down already")
            start, seconds, rest = place, 0.0, 0.0
        else:
            if start is None:
                raise BadTouchError("Pointer Up must not be the first action")
            yield Stroke(start, place, seconds, rest)
            start = None
    if start is not None:
        raise BadTouchError("the finger is never lifted")


async def carry_out(stroke: Stroke, phone: VirtualPhone, screen: Screen) -> None:
    _, _, width, height = screen.window
    right, up = stroke.end[0] - stroke.start[0], stroke.start[1] - stroke.end[1]
    start, end = screen.pixels(*stroke.start), screen.pixels(*stroke.end)
    if stroke.start[0] <= EDGE and right >= width / 3 and abs(up) < right:
        await phone.swipe_back()
    elif stroke.start[1] >= height - EDGE and up >= height / 5 and not phone.faults.locked:
        await phone.key("APP_SWITCH" if stroke.rest >= RESTED else "HOME")
    elif stroke.moved:
        await phone.swipe(*start, *end, stroke.seconds)
    elif stroke.rest < 0.4:
        await phone.tap(*start)
    else:
        await phone.swipe(*start, *start, stroke.rest)
