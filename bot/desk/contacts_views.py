"""What a channel can ask about the shop's contacts. See ``bot.desk.views``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.desk.actors import Actor


@dataclass(frozen=True, slots=True)
class ContactView:
    """A customer who is known beforehand. ``serial`` "" is any phone; ``number`` is the account's in the app."""

    app: str
    name: str
    serial: str = ""
    number: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""


class ContactsDesk(Protocol):
    async def contacts(self, actor: Actor, *, app: str = "", text: str = "", tag: str = "") -> Sequence[ContactView]:
        """By app and name. ``text``: words in name, number or note."""

    async def add_contact(self, actor: Actor, contact: ContactView) -> ContactView:
        """BadRequest where it is there already, or something in it cannot be right."""

    async def edit_contact(
        self,
        actor: Actor,
        name: str,
        *,
        app: str = "qq",
        serial: str = "",
        rename: str | None = None,
        number: str | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
    ) -> ContactView:
        """Change what is given of the contact with this name, app and phone."""

    async def remove_contact(self, actor: Actor, name: str, *, app: str = "qq", serial: str = "") -> ContactView: ...
