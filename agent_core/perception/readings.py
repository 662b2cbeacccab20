"""Readings from a screen: single texts, and the chat page as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent_core.geometry import Box, Point
from agent_core.perception.doubts import Doubt


class Source(StrEnum):
    TREE = "tree"
    OCR = "ocr"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Reading:
    """One text on the screen. ``confidence`` is 0–1; ``clickable`` is known from the tree only."""

    text: str
    box: Box
    source: Source
    confidence: float = 1.0
    clickable: bool = False
    role: str = ""  # "button", "input", "text" …, from the tree


class Side(StrEnum):
    ME = "me"
    THEM = "them"


class BubbleKind(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    VOICE = "voice"
    STICKER = "sticker"
    RED_PACKET = "red_packet"
    VIDEO = "video"
    FILE = "file"  # its text is the name
    LOCATION = "location"  # its text is the place
    CARD = "card"  # a link or a mini-program; its text is the title
    CALL = "call"  # the app's line about a call
    OTHER = "other"  # a message of unknown kind; its text is what could be read on it


class SendState(StrEnum):
    """The state of the control that sends a text, on a chat page."""

    ON = "on"  # a button that can be tapped
    DIMMED = "dimmed"  # a button that does nothing yet: QQ's classic bar with an empty input
    ABSENT = "absent"  # no button: WeChat and QQ's plain bar show it only after typing
    KEYBOARD = "keyboard"  # no button, but a key of the keyboard says 发送


class BubbleState(StrEnum):
    OK = "ok"
    SENDING = "sending"  # a spinner is beside it
    FAILED = "failed"  # a red mark is beside it


@dataclass(frozen=True, slots=True)
class Bubble:
    side: Side
    text: str
    box: Box | None = None  # None if a model transcribed it
    kind: BubbleKind = BubbleKind.TEXT
    state: BubbleState = BubbleState.OK
    quoted: str = ""  # of a TEXT: its quotation; often cut off with …
    seconds: int | None = None  # of a VOICE: its length; its text may be the app's transcription
    sure: bool = True  # False if its side, kind or words are in doubt
    doubt: str = field(default="", compare=False)  # a DoubtKind, if more is known than that it is unsure


@dataclass(frozen=True, slots=True)
class ChatScreen:
    """A chat page; boxes in pixels.

    bubbles: from top to bottom, the newest last.
    draft: the text in the input; "" is known to be empty, None is unknown.
    sure: False if two sources disagreed or none was confident; then a person is asked before anything is sent.
    partial: the only doubt is that the upper part of the question is out of sight.
    title_print: a digest of the title's pixels, which tells titles apart that read the same; "" if it was not read from
    a picture.
    torn: the picture has other messages than were read; nothing that a person says makes up for what nobody has read.
    group: a member count follows the name.
    send_state: how the page shows what sends.
    send_point: where to tap to send; None if nothing can be tapped.
    keyboard_icon: the input is a hold-to-talk bar, and a tap here brings the text input back.
    """

    title: str
    bubbles: tuple[Bubble, ...]
    draft: str | None
    source: Source
    sure: bool = True
    doubts: tuple[Doubt, ...] = ()  # why it is not sure
    input_box: Box | None = None
    send_point: Point | None = None
    partial: bool = False
    title_print: str = ""
    torn: bool = False
    title_sure: bool = True
    title_box: Box | None = None
    group: bool = False
    draft_sure: bool = True
    send_box: Box | None = None
    send_state: SendState = SendState.ON
    keyboard_icon: Point | None = None

    @property
    def drawn(self) -> bool:
        """True if the title was read from a picture, see ``compare.name``."""
        return self.source is not Source.TREE

    @property
    def newest(self) -> Bubble | None:
        return self.bubbles[-1] if self.bubbles else None

    @property
    def question(self) -> tuple[Bubble, ...]:
        """The other side's newest messages since our last bubble."""
        cluster: list[Bubble] = []
        for bubble in reversed(self.bubbles):
            if bubble.side is Side.ME:
                break
            cluster.append(bubble)
        return tuple(reversed(cluster))
