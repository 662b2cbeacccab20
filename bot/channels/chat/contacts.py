"""Contacts in the chat: list, add and remove them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.apps.profile import name_of
from bot.channels.chat.cards import Card, Line
from bot.channels.chat.commands import unquoted
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.views import ContactView

SHOWN = 30
NOBODY = ContactView("qq", "")
_VERBS = {
    "add": "add", "添加": "add", "新增": "add",
    "remove": "remove", "delete": "remove", "删除": "remove",
    "list": "list", "列表": "list",
}  # fmt: skip
_QUOTED = re.compile(r"[\"“「『']([^\"”」』']+)[\"”」』']\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"\d{4,20}")


@dataclass(frozen=True, slots=True)
class ContactsCommand:
    """A request of ``/contacts``.

    verb: list, add or remove. words: to search for, for list. contact: the one to add or remove.
    """

    verb: str
    words: str = ""
    contact: ContactView = NOBODY


def read_asking(rest: str) -> ContactsCommand | None:
    """Read ``add NAME [NUMBER] [#TAG …] [NOTE]``, ``remove NAME``, or words. Returns None if the name is missing."""
    word, _, after = rest.strip().partition(" ")
    verb = _VERBS.get(word.lower())
    if verb is None or verb == "list":
        return ContactsCommand("list", (after if verb else rest).strip())
    after = after.strip()
    if verb == "remove":
        return ContactsCommand(verb, contact=ContactView("qq", unquoted(after))) if unquoted(after) else None
    quoted = _QUOTED.fullmatch(after)
    name, more = (quoted[1].strip(), quoted[2]) if quoted else (after.partition(" ")[0], after.partition(" ")[2])
    number, tags, note = "", [], []
    for part in more.split():
        if part.startswith(("#", "＃")) and len(part) > 1:
            tags.append(part[1:])
        elif _NUMBER.fullmatch(part) and not number:
            number = part
        else:
            note.append(part)
    return (
        ContactsCommand(verb, contact=ContactView("qq", name, "", number, tuple(tags), " ".join(note)))
        if name
        else None
    )


async def contacts(turn: Turn) -> Said:
    """Handle ``/contacts``."""
    words = turn.texts
    asking = read_asking(turn.rest)
    if asking is None:
        return turn.tell(words.get("contacts.usage"))
    if asking.verb == "list":
        found = await turn.desk.contacts.find(turn.actor, text=asking.words)
        names = await turn.desk.phones.names([contact.serial for contact in found])
        return turn.say(_list_card(words, list(zip(found, names, strict=True)), asking.words))
    if asking.verb == "add":
        done = await turn.desk.contacts.add(turn.actor, asking.contact)
    else:
        done = await turn.desk.contacts.remove(turn.actor, asking.contact.name)
    (phone,) = await turn.desk.phones.names([done.serial])
    key = "contacts.added" if asking.verb == "add" else "contacts.removed"
    return turn.say(Card(words.get(key, name=done.name), contact_lines(done, phone, words)))


def contact_lines(contact: ContactView, phone: str, words: Texts) -> tuple[Line, ...]:
    """Return the fields of a contact that are set. ``phone``: the name of its phone, "" for any."""
    lines = [
        Line(name_of(contact.app, words.lang), words.get("contacts.app")),
        Line(contact.number, words.get("contacts.number"), "code"),
        Line(phone or words.get("contacts.any_phone"), words.get("contacts.serial")),
        Line(" ".join(f"#{tag}" for tag in contact.tags), words.get("contacts.tags")),
        Line(contact.note, words.get("contacts.note")),
    ]
    return tuple(line for line in lines if line.text)


def _list_card(words: Texts, found: Sequence[tuple[ContactView, str]], searched: str) -> Card:
    """Return the card of contacts, each with the name of its phone."""
    if not found:
        return Card(
            words.get("contacts.none_found" if searched else "contacts.empty"), (Line(words.get("contacts.usage")),)
        )
    lines = []
    for contact, phone in found[:SHOWN]:
        tags = " ".join(f"#{tag}" for tag in contact.tags)
        parts = (name_of(contact.app, words.lang), contact.number, phone, tags, contact.note)
        lines.append(Line(" · ".join(part for part in parts if part), contact.name))
    if len(found) > SHOWN:
        lines.append(Line(words.get("contacts.more", count=len(found) - SHOWN)))
    return Card(words.get("contacts.title"), tuple(lines))


SUBJECT = Subject(commands={"contacts": contacts})
