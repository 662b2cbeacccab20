"""Saved contacts: the customers that the shop knows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from agent_core.apps.profile import profiles
from bot.desk.actors import Actor, BadRequest, NotFound, Role, not_one_of
from bot.desk.context import DeskService, sees
from bot.desk.views import ContactView
from storage.contacts import ContactRow, Contacts, ContactThere, NewContact

MAX_NAME, MAX_TAG, MAX_NOTE = 60, 30, 500
_NUMBER = re.compile(r"[0-9]{1,20}")


class DeskContacts(DeskService):
    """The service for saved contacts. Operators may read them, and owners may change them."""

    async def find(self, actor: Actor, *, app: str = "", text: str = "", tag: str = "") -> Sequence[ContactView]:
        """Return the contacts in the order of app and name. ``text``: words in the name, number or note."""
        await self._allow(actor, Role.OPERATOR, "contacts list")
        rows = await Contacts(self._db).all(app=app_key(app) if app else "", text=text.strip(), tag=tag.strip())
        return [_contact_view(row) for row in rows if not row.serial or sees(actor, row.serial)]

    async def add(self, actor: Actor, contact: ContactView) -> ContactView:
        """Save a contact, and return it. Raises BadRequest if it exists already or a field is not valid."""
        await self._allow(actor, Role.OWNER, "contacts add", app=contact.app, name=contact.name, serial=contact.serial)
        new = NewContact(
            app=app_key(contact.app),
            name=_name(contact.name),
            serial=await self._phone(contact.serial),
            number=_account(contact.number),
            tags=_tags(contact.tags),
            note=_note(contact.note),
        )
        try:
            return _contact_view(await Contacts(self._db).add(new))
        except ContactThere:
            raise _there(new.name) from None

    async def edit(
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
        """Change the fields that are not None of the contact with this name, app and phone, and return it.

        Raises NotFound if there is none, and BadRequest if a field is not valid or the new name is taken.
        """
        row = await self._contact(actor, "edit", name, app, serial)
        try:
            changed = await Contacts(self._db).edit(
                row.id,
                name=None if rename is None else _name(rename),
                number=None if number is None else _account(number),
                tags=None if tags is None else _tags(tags),
                note=None if note is None else _note(note),
            )
        except ContactThere:
            raise _there(rename or name) from None
        if changed is None:
            raise _unknown(name)
        return _contact_view(changed)

    async def remove(self, actor: Actor, name: str, *, app: str = "qq", serial: str = "") -> ContactView:
        """Remove a contact, and return it. Raises NotFound if there is none."""
        row = await self._contact(actor, "remove", name, app, serial)
        if not await Contacts(self._db).remove(row.id):
            raise _unknown(name)
        return _contact_view(row)

    async def _contact(self, actor: Actor, what: str, name: str, app: str, serial: str) -> ContactRow:
        await self._allow(actor, Role.OWNER, f"contacts {what}", app=app, name=name, serial=serial)
        row = await Contacts(self._db).get(app_key(app), _name(name), await self._phone(serial))
        if row is None:
            raise _unknown(name)
        return row

    async def _phone(self, written: str) -> str:
        """Return the serial of the phone that is meant; "" for any."""
        return (await self._book()).serial(written.strip()) if written.strip() else ""


def _unknown(name: str) -> NotFound:
    advice = "See the list of contacts; those of one phone name it."
    return NotFound(f"There is no contact {name}.", advice=advice, key="no_contact", name=name)


def _there(name: str) -> BadRequest:
    said = f"The contact {name} is there already."
    return BadRequest(said, advice="Edit it, or remove it first.", key="contact_there", name=name)


def app_key(words: str) -> str:
    """Return the key of the app with this key, name or alias."""
    wanted = words.strip().lower()
    for profile in profiles():
        if wanted in {profile.key, profile.name.lower(), *(alias.lower() for alias in profile.aliases)}:
            return profile.key
    raise not_one_of(f"There is no app {words}.", words, (profile.key for profile in profiles()))


def _name(words: str) -> str:
    """Return the name without blanks around it. Raises BadRequest if it is empty, too long or not one line."""
    name = words.strip()
    if not name or len(name) > MAX_NAME or any(unicodedata.category(char) == "Cc" for char in name):
        advice = f"One line of 1 to {MAX_NAME} characters."
        raise BadRequest("This is no contact's name.", advice=advice, key="bad_name", most=MAX_NAME)
    return name


def _account(words: str) -> str:
    number = unicodedata.normalize("NFKC", words).strip()
    if number and not _NUMBER.fullmatch(number):
        raise BadRequest(
            f"This is no number: {words}.", advice="Digits only, at most 20.", key="bad_number", said=words
        )
    return number


def _tags(words: Sequence[str]) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(tag.strip() for tag in words if tag.strip()))
    if any(len(tag) > MAX_TAG or "\n" in tag for tag in tags):
        advice = f"One line of at most {MAX_TAG} characters."
        raise BadRequest("This is no tag.", advice=advice, key="bad_tag", most=MAX_TAG)
    return tags


def _note(words: str) -> str:
    note = words.strip()
    if len(note) > MAX_NOTE:
        advice = f"At most {MAX_NOTE} characters."
        raise BadRequest("The note is too long.", advice=advice, key="long_note", most=MAX_NOTE)
    return note


def _contact_view(row: ContactRow) -> ContactView:
    return ContactView(row.app, row.name, row.serial, row.number, tuple(row.tags), row.note)
