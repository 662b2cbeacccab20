"""Readings from a screen: single texts, the chat page as a whole, and doubts of it.

A doubt is data: code compares it, and people are told of it in their language.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from agent_core.geometry import Box, Point
from agent_core.texts import Lang, say


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


class DoubtKind(StrEnum):
    """The kinds of doubts; ``doubt.<kind>`` is the key of each one's text."""

    # the header
    TITLE = "title"  # read with too little confidence
    TITLE_MORE = "title_more"  # something that is not a letter is beside the name
    TITLES_DIFFER = "titles_differ"  # between the tree and the picture
    HEADER = "header"  # several texts of the tree may be the name
    # the messages
    MESSAGE = "message"  # its side, kind or words are uncertain
    NO_AVATAR = "no_avatar"  # nothing tells whose message it is
    TWO_AVATARS = "two_avatars"
    OWN_GROUND = "own_ground"  # a part of it has a background of its own
    UNREADABLE = "unreadable"
    DECORATED = "decorated"  # its bubble is decorated
    MAYBE_PICTURE = "maybe_picture"  # its letters do not look like those of a message
    NODES = "nodes"  # the tree does not tell what it is
    MESSAGES_DIFFER = "messages_differ"  # between the tree and the picture
    # the page
    WALLPAPER = "wallpaper"  # a picture is behind the messages
    LONE_AVATAR = "lone_avatar"  # without a message
    UNKNOWN_PART = "unknown_part"  # no known kind of message
    ABOVE = "above"  # the upper part of the question is out of sight
    BELOW = "below"  # the newest message continues out of sight
    TREE_EMPTY = "tree_empty"  # the picture shows messages, the tree none
    PICTURE_EMPTY = "picture_empty"  # the tree shows messages, the picture none
    NEWER = "newer"  # the picture shows a message below the newest of the tree
    ELSEWHERE = "elsewhere"  # the newest one is in another place in the picture
    NO_INK_TITLE = "no_ink_title"  # nothing is written in the place that the tree gives
    NO_INK_MESSAGE = "no_ink_message"
    # the input
    INPUT = "input"  # read with too little confidence
    INPUTS_DIFFER = "inputs_differ"  # between the tree and the picture
    # a model's transcription
    MODEL_INPUT = "model_input"  # it cannot be read
    MODEL_MESSAGES = "model_messages"
    MODEL_OTHERS = "model_others"  # its messages differ from those of the picture
    # what a person said while the app was learnt
    SAID_WRONG = "said_wrong"  # this part of a page was read wrongly on this phone


@dataclass(frozen=True, slots=True)
class Doubt:
    """One thing that is uncertain about a page.

    text, other: the text that was read, and another source's; both may be a customer's words.
    confidence: 0–1, or None if unknown. It changes from one observation to the next, so it does not count in
    comparisons.
    """

    kind: DoubtKind
    text: str = ""
    other: str = ""
    confidence: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, kind: str, text: str = "") -> Doubt:
        """Return the doubt of this kind. Words that name no kind become a doubt about an unknown part of the page."""
        try:
            return cls(DoubtKind(kind), text)
        except ValueError:
            return cls(DoubtKind.UNKNOWN_PART, kind)

    @property
    def key(self) -> str:
        """The doubt as a string that is equal for equal doubts."""
        return json.dumps([self.kind.value, self.text, self.other], ensure_ascii=False)

    def told(self, lang: Lang) -> str:
        """Return the doubt's text for people."""
        if self.kind is DoubtKind.SAID_WRONG:
            return say(lang, "doubt.said_wrong", text=say(lang, f"wrong.{self.text}"))
        return say(lang, f"doubt.{self.kind.value}", text=self.text, other=self.other)


def told_all(doubts: tuple[Doubt, ...], lang: Lang) -> str:
    """Return the texts of several doubts in one line, without repeats."""
    return say(lang, "doubt.between").join(dict.fromkeys(doubt.told(lang) for doubt in doubts))
