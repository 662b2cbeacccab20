"""What is not certain about a page: as data, so that code compares it and people are told of it in their language."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from agent_core.texts import Lang, say


class DoubtKind(StrEnum):
    """The texts are those of ``doubt.<kind>``."""

    # the header
    TITLE = "title"  # read with too little confidence
    TITLE_MORE = "title_more"  # something that is no letter stands with the name
    TITLES_DIFFER = "titles_differ"  # between the tree and the picture
    HEADER = "header"  # several texts of the tree may be the name
    # the messages
    MESSAGE = "message"  # its side, kind or words
    NO_AVATAR = "no_avatar"  # nothing tells whose it is
    TWO_AVATARS = "two_avatars"
    OWN_GROUND = "own_ground"  # a part of it stands on a ground of its own
    UNREADABLE = "unreadable"
    DECORATED = "decorated"  # its bubble is
    MAYBE_PICTURE = "maybe_picture"  # its letters are not those of a message
    NODES = "nodes"  # the tree does not tell what it is
    MESSAGES_DIFFER = "messages_differ"  # between the tree and the picture
    # the page
    WALLPAPER = "wallpaper"  # a picture stands behind the messages
    LONE_AVATAR = "lone_avatar"  # without a message
    UNKNOWN_PART = "unknown_part"  # no message that is known
    ABOVE = "above"  # the upper part of what is asked is out of sight
    BELOW = "below"  # the newest message goes on out of sight
    TREE_EMPTY = "tree_empty"  # the picture shows messages, the tree none
    PICTURE_EMPTY = "picture_empty"  # the tree shows messages, the picture none
    NEWER = "newer"  # the picture shows one below the newest of the tree
    ELSEWHERE = "elsewhere"  # the newest one stands in another place in the picture
    NO_INK_TITLE = "no_ink_title"  # nothing is written where the tree has it
    NO_INK_MESSAGE = "no_ink_message"
    # the input
    INPUT = "input"  # read with too little confidence
    INPUTS_DIFFER = "inputs_differ"  # between the tree and the picture
    # a model's transcription
    MODEL_INPUT = "model_input"  # it cannot be read
    MODEL_MESSAGES = "model_messages"
    MODEL_OTHERS = "model_others"  # its messages are not those of the picture
    # what a person has said while the app was learnt
    SAID_WRONG = "said_wrong"  # this part of a page was read wrongly on this phone


@dataclass(frozen=True, slots=True)
class Doubt:
    """``text``: what was read, ``other``: what another source has instead; both may be a customer's words.

    ``confidence`` (0–1, None if it has none) changes from look to look, and tells no two doubts apart.
    """

    kind: DoubtKind
    text: str = ""
    other: str = ""
    confidence: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, kind: str, text: str = "") -> Doubt:
        """Return the doubt of this kind. Words that are no kind are about a part of the page that is not known."""
        try:
            return cls(DoubtKind(kind), text)
        except ValueError:
            return cls(DoubtKind.UNKNOWN_PART, kind)

    @property
    def key(self) -> str:
        """The doubt as a string, equal for equal ones."""
        return json.dumps([self.kind.value, self.text, self.other], ensure_ascii=False)

    def told(self, lang: Lang) -> str:
        """Say it to people."""
        if self.kind is DoubtKind.SAID_WRONG:
            return say(lang, "doubt.said_wrong", text=say(lang, f"wrong.{self.text}"))
        return say(lang, f"doubt.{self.kind.value}", text=self.text, other=self.other)


def told_all(doubts: tuple[Doubt, ...], lang: Lang) -> str:
    """Say several doubts in one line."""
    return say(lang, "doubt.between").join(dict.fromkeys(doubt.told(lang) for doubt in doubts))
