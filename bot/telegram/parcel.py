"""What waits in the outbox: a message as it will be sent, as plain JSON data."""

from __future__ import annotations

import base64
from typing import Annotated, Any

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


class Parcel(BaseModel):
    """``text`` and ``caption`` are the same card as HTML, cut for the one use and for the other.

    ``edit``: the number of our message to be changed, ``edit_picture``: it carries a picture. A ``document`` is a
    message of its own: none is edited for it, and there is no picture beside it.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    caption: str
    keyboard: list[list[Key]] = []
    picture: Data | None = None
    document: Data | None = None
    document_name: str = ""
    thread_id: int | None = None
    reply_to: int | None = None
    group: bool = False
    edit: int | None = None
    edit_picture: bool = False

    def payload(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)
