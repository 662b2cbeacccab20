"""A message in the outbox as it will be sent, as plain JSON data."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from bot.channels.chat.cards import ReplayOrder


def _read(value: object) -> object:
    return base64.b64decode(value) if isinstance(value, str) else value


Data = Annotated[
    bytes, BeforeValidator(_read), PlainSerializer(lambda data: base64.b64encode(data).decode(), when_used="json")
]


class OutgoingButton(BaseModel):
    model_config = ConfigDict(frozen=True)

    label: str
    data: str
    style: str = ""


# Only words.
_BARE: dict[str, Any] = {
    "caption": "", "keyboard": [], "picture": None, "document": None, "animation": None, "album": [], "whole": [],
    "force_reply": "",
}  # fmt: skip


class Topic(BaseModel):
    """The phone that a message is about: in a forum the message goes to its topic.

    receipt: plain text for a requester in another place.
    """

    model_config = ConfigDict(frozen=True)

    serial: str
    name: str = ""
    receipt: str = ""


class OutgoingMessage(BaseModel):
    """A message to send.

    text, caption: the same card as HTML, cut for either use.
    document: sent as a new message: none is edited for it, and it has no picture. The same holds for ``animation`` (a
    GIF) and ``album`` (2 to 10 pictures, no keyboard).
    film: the message is sent as the replay that is made of it: ready-made it would be megabytes in the store.
    whole: if ``text`` or ``caption`` had to be cut, everything, as texts of messages.
    force_reply: the hint in the input that is opened for the answer of the person named in the text.
    edit: the number of our message to change.
    edit_picture: that message has a picture.
    question: the id of the question that it asks; if that is over, it is not sent.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    caption: str
    keyboard: list[list[OutgoingButton]] = []
    picture: Data | None = None
    document: Data | None = None
    document_name: str = ""
    animation: Data | None = None
    animation_name: str = ""
    album: list[Data] = []
    film: ReplayOrder | None = None
    whole: list[str] = []
    topic: Topic | None = None
    force_reply: str = ""
    thread_id: int | None = None
    reply_to: int | None = None
    group: bool = False
    edit: int | None = None
    edit_picture: bool = False
    silent: bool = False  # a new message makes no sound
    question: str = ""

    @property
    def stands_alone(self) -> bool:
        """True if it is sent as a new message, even if it was to replace one."""
        return self.document is not None or self.animation is not None or bool(self.album)

    def words_alone(self) -> OutgoingMessage | None:
        """Return the message without picture, replay or file; None if it has none, or no words."""
        heavy = self.picture is not None or self.stands_alone or self.film is not None
        if not heavy or not self.text.strip():
            return None
        nothing: dict[str, Any] = {"picture": None, "document": None, "animation": None, "album": [], "film": None}
        return self.model_copy(update=nothing)

    def messages(self) -> list[OutgoingMessage]:
        """Return the messages to send if nothing is edited: itself, after those that hold the text cut from it."""
        if not self.whole:
            return [self]
        captioned = self.picture is not None or self.stands_alone
        before, last = (self.whole, self.text) if captioned else (self.whole[:-1], self.whole[-1])
        topic = self.topic.model_copy(update={"receipt": ""}) if self.topic is not None else None
        bare = {**_BARE, "topic": topic}
        parts = [self.model_copy(update={**bare, "text": text}) for text in before]
        return [*parts, self.model_copy(update={"text": last, "whole": []})]

    def payload(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)
