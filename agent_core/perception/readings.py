"""What was read from a screen: single texts, and the chat page as a whole."""

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
    """One text on the screen. ``confidence`` 0–1; ``clickable`` is known from the tree only."""

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
    CALL = "call"  # what the app says of a call
    OTHER = "other"  # a message of which no more is known; its text is what could be read on it


class SendState(StrEnum):
    """How a chat page shows what sends a text."""

    ON = "on"  # a button that can be tapped
    DIMMED = "dimmed"  # a button that does nothing yet: QQ's classic bar with an empty input
    ABSENT = "absent"  # no button: WeChat and QQ's plain bar show it only after typing
    KEYBOARD = "keyboard"  # no button, but a key of the keyboard says 发送


class BubbleState(StrEnum):
    OK = "ok"
    SENDING = "sending"  # a spinner stands beside it
    FAILED = "failed"  # a red mark stands beside it


@dataclass(frozen=True, slots=True)
class Bubble:
    side: Side
    text: str
    box: Box | None = None  # None where a model transcribed it
    kind: BubbleKind = BubbleKind.TEXT
    state: BubbleState = BubbleState.OK
    quoted: str = ""  # of a TEXT: what it quotes; often cut off with …
    seconds: int | None = None  # of a VOICE: how long it is; its text may be what the app has written down of it
    sure: bool = True  # False if its side, kind or words are in doubt
    doubt: str = field(default="", compare=False)  # a DoubtKind, if more is known than that it is not sure


@dataclass(frozen=True, slots=True)
class ChatScreen:
    """A chat page. ``bubbles`` from the top to the bottom, the newest last.

    ``sure`` is False where two sources disagreed or none was confident; then a person is asked before anything is sent.
    ``draft`` is what stands in the input: "" is known to be empty, None is not known.
    ``partial``: the one doubt is that the upper part of what is asked is out of sight. ``title_print`` tells titles
    apart that are read alike: a digest of the title's pixels, "" where it was not read from a picture. ``torn``: other
    messages stand in the picture than were read; no word of a person's makes up for what nobody has read.

    ``group``: a count of members stands behind the name. ``title_box`` and ``send_box`` are in pixels. ``send_state``
    tells how the page shows what sends; ``send_point`` is where to tap it, None if nothing can be tapped.
    ``keyboard_icon``: the input is a bar to hold and talk, and a tap here brings the text input back.
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
        """Whether the title was read from a picture, see ``compare.name``."""
        return self.source is not Source.TREE

    @property
    def newest(self) -> Bubble | None:
        return self.bubbles[-1] if self.bubbles else None

    @property
    def question(self) -> tuple[Bubble, ...]:
        """The cluster of the other side's newest messages since our last bubble."""
        cluster: list[Bubble] = []
        for bubble in reversed(self.bubbles):
            if bubble.side is Side.ME:
                break
            cluster.append(bubble)
        return tuple(reversed(cluster))
