"""Says what is uncertain about a page, as data: code compares it, and people are told of it in their language."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from agent_core.texts import Lang, say


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
