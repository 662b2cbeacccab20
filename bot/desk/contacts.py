"""Saved contacts: the customers that the shop knows.

The old state of a contact is kept in the audit log beside the command that changed it, from which ``undo`` takes it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from agent_core.apps.profile import profiles
from bot.desk.actors import Actor, BadRequest, NotFound, Role, not_one_of, nothing_to_undo
from bot.desk.context import DeskService, sees
from bot.desk.views import ContactView
from storage.contacts import ContactRow, Contacts, ContactThere, NewContact

EDIT, REMOVE, UNDO = "contacts edit", "contacts remove", "contacts undo"
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
        new = ContactView(
            app=app_key(contact.app),
            name=_name(contact.name),
            serial=await self._phone(contact.serial),
            number=_account(contact.number),
            tags=_tags(contact.tags),
            note=_note(contact.note),
        )
        return await self._added(new)

    async def _added(self, new: ContactView) -> ContactView:
        saved = NewContact(new.app, new.name, new.serial, new.number, new.tags, new.note)
        try:
            return _contact_view(await Contacts(self._db).add(saved))
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
        row = await self._found(name, app, serial)
        old = new = None
        if row is not None and actor.role.covers(Role.OWNER):
            old = _contact_view(row)
            new = replace(
                old,
                name=old.name if rename is None else _name(rename),
                number=old.number if number is None else _account(number),
                tags=old.tags if tags is None else _tags(tags),
                note=old.note if note is None else _note(note),
            )
        await self._change(actor, EDIT, ContactView(app, name, serial), old, new)
        if row is None or new is None:
            raise _unknown(name)
        return await self._set(row, new)

    async def _set(self, row: ContactRow, new: ContactView) -> ContactView:
        try:
            changed = await Contacts(self._db).edit(
                row.id, name=new.name, number=new.number, tags=new.tags, note=new.note
            )
        except ContactThere:
            raise _there(new.name) from None
        if changed is None:
            raise _unknown(row.name)
        return _contact_view(changed)

    async def remove(self, actor: Actor, name: str, *, app: str = "qq", serial: str = "") -> ContactView:
        """Remove a contact, and return it. Raises NotFound if there is none."""
        row = await self._found(name, app, serial)
        old = _contact_view(row) if row is not None else None
        await self._change(actor, REMOVE, ContactView(app, name, serial), old, None)
        if row is None or not await Contacts(self._db).remove(row.id):
            raise _unknown(name)
        return _contact_view(row)

    async def undo(self, actor: Actor, name: str, *, app: str = "qq", serial: str = "") -> ContactView:
        """Undo this person's newest edit or removal, and return the contact.

        name: the contact's name before it or after it.
        Raises BadRequest if that was of another contact, or if the contact was changed since.
        """
        await self._allow(actor, Role.OWNER, UNDO, app=app, name=name, serial=serial)
        wanted = (app_key(app), _name(name), await self._phone(serial))
        change = await self._newest_change(actor, EDIT, REMOVE)
        old, new = (_stored_view(change.get(key)) for key in ("before", "after"))
        if old is None or wanted not in [(one.app, one.name, one.serial) for one in (old, new) if one is not None]:
            raise nothing_to_undo()
        if new is None:
            return await self._added(old)
        now = await Contacts(self._db).get(new.app, new.name, new.serial)
        if now is None or _contact_view(now) != new:
            said = f"The contact {new.name} was changed since."
            raise BadRequest(
                said, advice="Look at it before you change it again.", key="contact_changed", name=new.name
            )
        return await self._set(now, old)

    async def _change(
        self, actor: Actor, command: str, named: ContactView, old: ContactView | None, new: ContactView | None
    ) -> None:
        """Check the right, and store the contact's old state in the audit log if it changes."""
        detail: dict[str, Any] = {"app": named.app, "name": named.name, "serial": named.serial}
        if old is not None and old != new:
            detail |= {"before": asdict(old), "after": asdict(new) if new is not None else None}
        await self._allow(actor, Role.OWNER, command, **detail)

    async def _found(self, name: str, app: str, serial: str) -> ContactRow | None:
        return await Contacts(self._db).get(app_key(app), _name(name), await self._phone(serial))

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


def _stored_view(stored: Mapping[str, Any] | None) -> ContactView | None:
    """Return a contact as the audit log has it."""
    return ContactView(**{**stored, "tags": tuple(stored["tags"])}) if stored else None
