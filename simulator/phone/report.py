"""The record of what really happened in a virtual phone, as plain JSON data."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from simulator.phone.world import Message, MessageState

ACTIONS_KEPT = 2000
By = Literal["client", "person", "app"]  # who did it: over adb, with a finger, or the app by itself


class MessageReport(TypedDict):
    side: str  # me or them
    text: str
    kind: str
    state: str  # ok, sending or failed
    time: str  # ISO 8601 with the zone
    from_here: bool  # typed and sent on this phone


class TapReport(TypedDict):
    x: float  # pixels
    y: float
    on: str  # the text, description or id of the element that was hit; "" for none
    package: str


class TypedReport(TypedDict):
    field: str  # the contact, "search", "ai" or "other"
    text: str


class ActionReport(TypedDict):
    what: str
    detail: str
    by: By
    time: str


class WindowReport(TypedDict):
    package: str | None
    activity: str | None
    kind: str


class Report(TypedDict):
    """Contacts are named as in the scenario: ``11``, ``wechat:11``."""

    sent: dict[str, list[str]]  # texts that left from here, in order; only contacts with some
    opened: list[str]  # packages in the order in which they came to the front
    chats_opened: list[str]
    taps: list[TapReport]
    typed: list[TypedReport]
    actions: list[ActionReport]
    drafts: dict[str, str]  # only those that are not empty
    chats: dict[str, list[MessageReport]]
    unread: dict[str, int]
    pay_taps: list[str]
    ai_asked: list[str]
    window: WindowReport
    input_method: str
    keyboard_shown: bool
    awake: bool
    locked: bool
    tree_mode: str
    faults: dict[str, bool | int | float | str]
    pictures: int  # how many were asked for
    trees: int


@dataclass(slots=True)
class Recorder:
    """The part of a report that is recorded while it happens; the rest is read from the phone."""

    sent: dict[str, list[str]] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    chats_opened: list[str] = field(default_factory=list)
    taps: deque[TapReport] = field(default_factory=lambda: deque(maxlen=ACTIONS_KEPT))
    typed: deque[TypedReport] = field(default_factory=lambda: deque(maxlen=ACTIONS_KEPT))
    actions: deque[ActionReport] = field(default_factory=lambda: deque(maxlen=ACTIONS_KEPT))
    pay_taps: list[str] = field(default_factory=list)
    ai_asked: list[str] = field(default_factory=list)
    pictures: int = 0
    trees: int = 0


def message_report(message: Message) -> MessageReport:
    return {
        "side": message.side.value,
        "text": message.text,
        "kind": message.kind.value,
        "state": message.state.value,
        "time": message.time.isoformat(),
        "from_here": message.from_here and message.state is MessageState.OK,
    }
