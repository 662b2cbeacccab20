"""Cards in the store of the console's chats: plain JSON, with the files beside it, so that a list stays small."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from bot.channels.chat.cards import Button, Card, Line


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A file of a message. ``kind``: picture, or document to download. ``name``: "" for a picture."""

    kind: str
    name: str
    data: bytes


class StoredFile(BaseModel):
    """What is stored of a file beside a card: all but its bytes."""

    model_config = ConfigDict(frozen=True)

    kind: str
    name: str = ""


class StoredCard(BaseModel):
    """A card without its files and its secrets: the text of a secret line is "".

    live: the card of a run that is under way, which is drawn anew whenever somebody looks.
    hint: what an empty input for its answer shows, if the person's own words are asked for.
    """

    model_config = ConfigDict(frozen=True)

    title: str
    lines: tuple[Line, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[StoredFile, ...] = ()
    question: str = ""
    live: bool = False
    hint: str = ""

    @classmethod
    def of(cls, card: Card, *, live: bool = False, hint: str = "") -> StoredCard:
        """Return a card as it is stored."""
        files = tuple(StoredFile(kind=file.kind, name=file.name) for file in files_of(card))
        return cls(
            title=card.title,
            lines=tuple(replace(line, text="") if line.kind == "secret" else line for line in card.lines),
            buttons=card.buttons,
            files=files,
            question=card.question,
            live=live,
            hint=hint,
        )

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions of the buttons."""
        return tuple(button.action for row in self.buttons for button in row)

    def stored(self) -> Mapping[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)


def files_of(card: Card) -> list[ChatFile]:
    """Return the files of a card, in the order in which they are shown."""
    files = [ChatFile("picture", "", picture) for picture in (*card.album, *([card.picture] if card.picture else []))]
    if card.animation is not None:
        files.append(ChatFile("picture", "", card.animation.data))
    if card.document is not None:
        files.append(ChatFile("document", card.document.name, card.document.data))
    return files


def encoded(card: Card) -> Sequence[str]:
    """Return the files of a card as they are stored."""
    return [base64.b64encode(file.data).decode() for file in files_of(card)]


def type_of(data: bytes) -> str:
    """Return the content type of a picture, by its first bytes: nothing else is shown as one."""
    kinds = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"GIF8": "image/gif"}
    return next((kind for begin, kind in kinds.items() if data.startswith(begin)), "application/octet-stream")
