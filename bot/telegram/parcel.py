"""What waits in the outbox: a message as it will be sent, as plain JSON data."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer


def _read(value: object) -> object:
    return base64.b64decode(value) if isinstance(value, str) else value


Data = Annotated[
    bytes, BeforeValidator(_read), PlainSerializer(lambda data: base64.b64encode(data).decode(), when_used="json")
]


class Key(BaseModel):
    model_config = ConfigDict(frozen=True)

    label: str
    data: str
    style: str = ""


class Film(BaseModel):
    """A replay that is made when its parcel is sent: in the store it would be megabytes."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    kind: Literal["gif", "album", "sheet"] = "gif"
    lang: Literal["zh", "en"] = "zh"


class Parcel(BaseModel):
    """``text`` and ``caption`` are the same card as HTML, cut for the one use and for the other.

    ``edit``: the number of our message to be changed, ``edit_picture``: it carries a picture. A ``document`` is a
    message of its own: none is edited for it, and there is no picture beside it. So is an ``animation`` (a GIF), and an
    ``album`` of 2 to 10 pictures, which has no keyboard. A parcel with a ``film`` is sent as what is made of that.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    caption: str
    keyboard: list[list[Key]] = []
    picture: Data | None = None
    document: Data | None = None
    document_name: str = ""
    animation: Data | None = None
    animation_name: str = ""
    album: list[Data] = []
    film: Film | None = None
    thread_id: int | None = None
    reply_to: int | None = None
    group: bool = False
    edit: int | None = None
    edit_picture: bool = False

    @property
    def stands_alone(self) -> bool:
        """It is sent as a message of its own, whatever it was to take the place of."""
        return self.document is not None or self.animation is not None or bool(self.album)

    def payload(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)
