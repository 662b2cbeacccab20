"""People's roles, limits, invitations and removals, and the list of refusals.

A removal stores the person's row in the audit log, from which ``undo_remove`` restores it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent_core.texts import Listed
from bot.desk.actors import Actor, BadRequest, NotFound, Role, not_one_of, nothing_to_undo
from bot.desk.audit import AuditNames, audit_names, audit_view, refused_view
from bot.desk.context import TELEGRAM, DeskService, chat_ref, own_chats
from bot.desk.keys import program_names
from bot.desk.people import actor_of, add_code, plain_name
from bot.desk.phonebook import PhoneBook
from bot.desk.team_views import AuditView, InviteView, PersonView, RefusedView
from bot.desk.views import OWN_CHAT
from storage.chats import Chats
from storage.console_sessions import ConsoleSessions
from storage.events import Events
from storage.people import CodeRow, People, PersonRow
from storage.questions import OPEN, Questions
from storage.runs import Runs

if TYPE_CHECKING:  # it reads files and the environment
    from bot.app.settings.origin import ShownSetting

REMOVE, UNDO = "people remove", "people undo"
MOST_HOURS = 30 * 24
MOST_LIMITS = 50
MOST_OPEN = 100_000  # questions
MOST_NAMED = 10  # in one message
LAST_OWNER = "This is the last owner."
_CHAT = re.compile(r"[a-z]+:-?\d{1,20}")
_CHAT_OR_OWN = re.compile(rf"{_CHAT.pattern}|{OWN_CHAT}")


class DeskTeam(DeskService):
    """The service for people and their rights. All but ``speak`` and ``stream`` is for owners.

    ``who`` names a person by ``#id``, or by a name that only one person has.
    """

    async def people(self, actor: Actor) -> Sequence[PersonView]:
        """Return everybody who is paired."""
        await self._allow(actor, Role.OWNER, "people list")
        return await self._views(await People(self._db).all())

    async def find(self, actor: Actor, who: str) -> PersonView:
        """Return one person. Raises NotFound if there is none, and BadRequest if several have this name."""
        await self._allow(actor, Role.OWNER, "people show", person=who)
        return await self._view(await self._person(who))

    # Invitations ------------------------------------------------------------------------------------------------------

    async def invite(
        self,
        actor: Actor,
        role: Role,
        hours: float = 24,
        *,
        name: str = "",
        phones: Sequence[str] = (),
        chats: Sequence[str] = (),
    ) -> InviteView:
        """Make an invitation, and return it with its code, which can be used once.

        name: who is invited to the console, by a link; "" for somebody who pairs in Telegram.
        hours: how long the code can be used, at most 30 days.
        phones, chats: the person's limits from the first moment. Phones are serials, or names of phones.
        Raises BadRequest if the hours are out of range or an owner is given limits, and NotFound for a phone or chat
        that was never seen.
        """
        name = plain_name(name)
        limits: dict[str, Any] = {key: list(value) for key, value in (("phones", phones), ("chats", chats)) if value}
        called: dict[str, Any] = {"name": name} if name else {}
        await self._allow(actor, Role.OWNER, "people invite", role=role.value, hours=f"{hours:g}", **called, **limits)
        if limits and role is Role.OWNER:
            said = "An owner is never limited."
            raise BadRequest(said, advice="Invite as operator or viewer.", key="owner_unlimited")
        serials, places = await self._phones(phones), await self._chats(actor, chats, _CHAT_OR_OWN)
        if not 0 < hours <= MOST_HOURS:
            said, advice = f"This is no time for a code: {hours:g} h.", f"At most {MOST_HOURS} hours."
            raise BadRequest(said, advice=advice, key="bad_hours", most=MOST_HOURS)
        lifetime = timedelta(hours=hours)
        code, row = await add_code(
            self._db, role, created_by=actor.id, lifetime=lifetime, phones=serials or (), chats=places or (), name=name
        )
        made = self._invite_view(row, {actor.id: actor.name}, await self._book())
        return replace(made, code=code, link=self.context.log_in_link(code) if name else "")

    async def invites(self, actor: Actor) -> Sequence[InviteView]:
        """Return the open invitations, the newest first."""
        await self._allow(actor, Role.OWNER, "people invites")
        names, book = await self._names(), await self._book()
        return [self._invite_view(row, names, book) for row in await People(self._db).codes()]

    async def revoke(self, actor: Actor, invite_id: str) -> InviteView:
        """Revoke an open invitation, and return it. Raises NotFound if it is not open."""
        wanted = invite_id.strip().lstrip("#").lower()
        await self._allow(actor, Role.OWNER, "people revoke", invite=wanted)
        row = next((row for row in await People(self._db).codes() if row.id == wanted), None)
        if row is None or not await People(self._db).drop_code(wanted):
            said, advice = f"There is no open invitation {wanted}.", "It may be used, or its time over."
            raise NotFound(said, advice=advice, key="no_invite", name=wanted)
        return self._invite_view(row, await self._names(), await self._book())

    # Roles and limits -------------------------------------------------------------------------------------------------

    async def set_role(self, actor: Actor, who: str, role: Role) -> PersonView:
        """Give a person another role, and return them. Their sessions in the console end.

        Somebody who stops being an owner loses their open invitations.

        Raises BadRequest for the last owner.
        """
        known = await self._person_or_none(who)
        was: dict[str, Any] = _differs({"role": known.role}, {"role": role.value}) if known else {}
        await self._allow(actor, Role.OWNER, "people role", person=who, role=role.value, **was)
        row = known or await self._person(who)  # raises the problem with the name
        try:
            await People(self._db).update(row.id, role=role.value)
        except LookupError:
            raise BadRequest(LAST_OWNER, advice="Make somebody else an owner first.", key="last_owner") from None
        if role is not Role.OWNER:
            await People(self._db).drop_codes(str(row.id))
        if role != row.role:
            await ConsoleSessions(self._db).end_of(str(row.id))
        return await self._view(await self._person(f"#{row.id}"))

    async def limit(
        self, actor: Actor, who: str, *, phones: Sequence[str] | None = None, chats: Sequence[str] | None = None
    ) -> PersonView:
        """Limit a person to these phones and chats, and return them.

        phones, chats: as in ``invite``; empty lifts a limit, None leaves it as it is.
        Raises BadRequest for an owner, who is never limited.
        """
        known = await self._person_or_none(who)
        asked: dict[str, Any] = {"phones": _plain(phones), "chats": _plain(chats)}
        old = {"phones": list(known.serials or ()), "chats": list(known.chats or ())} if known else {}
        was = _differs(old, {name: value for name, value in asked.items() if value is not None}) if known else {}
        await self._allow(actor, Role.OWNER, "people limit", person=who, **asked, **was)
        row = known or await self._person(who)  # raises the problem with the name
        if row.role == Role.OWNER:
            said = "An owner is never limited."
            raise BadRequest(said, advice="Give the person another role first.", key="owner_unlimited")
        serials, places = await self._phones(phones), await self._chats(actor, chats, _CHAT)
        await People(self._db).limit(row.id, serials=serials, chats=places)
        await self._hand_on(row)
        return await self._view(await self._person(f"#{row.id}"))

    async def remove(self, actor: Actor, who: str) -> PersonView:
        """Remove a person, and return them. Their runs and schedules continue. Raises BadRequest for the last owner."""
        row = await self._person_or_none(who)
        await self._allow(actor, Role.OWNER, REMOVE, person=who, before=_stored(row) if row else None)
        row = row or await self._person(who)  # raises the problem with the name
        view = await self._view(row)
        try:
            gone = await People(self._db).remove(row.id)
        except LookupError:
            raise BadRequest(LAST_OWNER, advice="Make somebody else an owner first.", key="last_owner") from None
        if not gone:
            raise _nobody(who)
        await People(self._db).drop_codes(str(row.id))
        await ConsoleSessions(self._db).end_of(str(row.id))
        await self._hand_on(row)
        return view

    async def _hand_on(self, person: PersonRow) -> None:
        """Have open questions that this person may no longer see shown to those who may see them now."""
        for question in await Questions(self._db).find(state=OPEN, limit=MOST_OPEN):
            run = await Runs(self._db).get(question.run_id)
            asked_in = chat_ref(run.chat) if run is not None else None
            if run is None or asked_in is None or asked_in.key not in own_chats(person):
                continue
            if await self.chat_of(run) != asked_in:
                await Events(self._db).append(run.id, "reminder", {"question": question.id, "number": 0})

    async def undo_remove(self, actor: Actor, person_id: str) -> PersonView:
        """Undo this owner's newest removal, and return the person. Raises BadRequest if that was of another person."""
        wanted = person_id.strip().lstrip("#")
        await self._allow(actor, Role.OWNER, UNDO, person=wanted)
        stored = (await self._newest_change(actor, REMOVE)).get("before", {})
        if not stored or str(stored["id"]) != wanted:
            raise nothing_to_undo()
        before = _person_row(stored)
        if not await People(self._db).restore(before):
            raise BadRequest(f"{before.name} is in again.", advice="See /people.", key="in_again", name=before.name)
        return await self._view(before)

    # Refusals and people's own settings -------------------------------------------------------------------------------

    async def refused(self, actor: Actor, limit: int = 20) -> Sequence[RefusedView]:
        """Return the refused requests, the newest first."""
        await self._allow(actor, Role.OWNER, "people audit")
        names = await self._names()
        return [refused_view(row, names, self._zone) for row in await self._audit.refused(limit)]

    async def audit(self, actor: Actor, *, before: int = 0, limit: int = 20) -> Sequence[AuditView]:
        """Return the log of actions and refusals, the newest first.

        ``before``: the id of an entry; 0 for the newest.
        """
        await self._allow(actor, Role.OWNER, "audit")
        names = await self._names() | await program_names(self._db)
        rows = await self._audit.last(limit, before=before)
        return [audit_view(row, names, self._zone) for row in rows]

    async def audit_names(self, rows: Iterable[AuditView]) -> AuditNames:
        """Return the names of what these entries of the audit log hold by id."""
        return await audit_names(self._db, self.context.store, await self._book(), rows)

    async def settings(self, actor: Actor) -> Sequence[ShownSetting]:
        """Return the settings with their sources; secrets are hidden. Empty if this process does not know them."""
        await self._allow(actor, Role.OWNER, "settings list")
        return self.context.settings() if self.context.settings is not None else ()

    async def speak(self, actor: Actor, lang: str) -> Actor:
        """Set a person's language, also in the console, and return the changed actor.

        Raises BadRequest for any but zh and en.
        """
        await self._allow(actor, Role.VIEWER, "settings", lang=lang)
        if lang not in ("zh", "en"):
            raise not_one_of(f"This language is not spoken here: {lang}.", lang, ("zh", "en"))
        row = await self._row_of(actor)
        await People(self._db).update(row.id, lang=lang)
        await ConsoleSessions(self._db).speak_of(str(row.id), lang)
        return replace(actor, lang=actor_of(replace(row, lang=lang)).lang)

    async def stream(self, actor: Actor, wanted: bool) -> Actor:
        """Set whether a person wants to see the model's thinking while it thinks, and return the changed actor."""
        await self._allow(actor, Role.VIEWER, "settings", streams=wanted)
        row = await self._row_of(actor)
        await People(self._db).update(row.id, streams=wanted)
        return replace(actor, streams=wanted)

    async def _row_of(self, actor: Actor) -> PersonRow:
        """Return the person's row. Raises BadRequest for an actor without one, such as the terminal."""
        row = await self._person_of(actor.id)
        if row is None:
            advice = "The terminal's language is PHONEDESK_LANG."
            raise BadRequest("Nobody who is paired asks.", advice=advice, key="unpaired")
        return row

    async def _person(self, who: str) -> PersonRow:
        row = await self._person_or_none(who)
        if row is not None:
            return row
        if len(await self._meant(who)) > 1:
            advice = "Name one by the number: #3. See the list."
            raise BadRequest(f"Several people are called {who}.", advice=advice, key="several_people", name=who)
        raise _nobody(who)

    async def _person_or_none(self, who: str) -> PersonRow | None:
        found = await self._meant(who)
        return found[0] if len(found) == 1 else None

    async def _meant(self, who: str) -> list[PersonRow]:
        who = who.strip()
        everybody = await People(self._db).all()
        number = who.removeprefix("#").removeprefix("＃")
        if number != who:
            return [row for row in everybody if str(row.id) == number]
        return [row for row in everybody if row.name.casefold() == who.casefold()]

    async def _view(self, row: PersonRow) -> PersonView:
        return (await self._views([row]))[0]

    async def _views(self, rows: Sequence[PersonRow]) -> list[PersonView]:
        seen = await self._audit.seen([str(row.id) for row in rows])
        zone, book = self._zone, await self._book()
        views = []
        for row in rows:
            actor, last = actor_of(row), seen.get(str(row.id))
            views.append(
                PersonView(
                    id=actor.id,
                    name=actor.name,
                    role=actor.role,
                    lang=actor.lang,
                    user_id=str(row.telegram_id or ""),
                    since=row.paired_at.astimezone(zone),
                    seen=last.astimezone(zone) if last else None,
                    phones=actor.phones,
                    chats=actor.chats,
                    phone_names=book.list(actor.phones),
                )
            )
        return views

    async def _phones(self, written: Sequence[str] | None) -> list[str] | None:
        """Return the serials of these phones. Raises NotFound, with the known phones, for an unknown one."""
        if written is None:
            return None
        written = [name for name in written if name.strip()]  # an empty one lifts the limit
        book = await self._book()
        known = book.known
        if any(book.serial(name) not in known for name in written):  # a phone that was never used may be attached
            book = await self._book(await self.context.entries())
            known = book.known
        for name in written:
            if book.serial(name) not in known:
                shown = Listed(book.list(known)[:MOST_NAMED]) or "-"
                said, advice = f"No phone {name} was ever here.", f"Known: {shown}."
                raise NotFound(said, advice=advice, key="unknown_phone", name=name, known=shown)
        return _listed([book.serial(name) for name in written], "phone")

    async def _chats(self, actor: Actor, written: Sequence[str] | None, form: re.Pattern[str]) -> list[str] | None:
        """Return the keys of these chats. Raises NotFound for a chat in which the bot has never said anything."""
        places = _listed(written, "chat", form)
        own = {key for person in await People(self._db).all() for key in own_chats(person)}
        known = {*own, OWN_CHAT, *(f"{TELEGRAM}:{chat_id}" for chat_id in await Chats(self._db).known(TELEGRAM))}
        known |= {actor.chat.key} if actor.chat is not None else set()
        for place in places or ():
            if place not in known:
                groups = sorted(chat.partition(":")[2] for chat in known - own - {OWN_CHAT})
                shown = Listed(groups[:MOST_NAMED]) or "-"
                name = place.partition(":")[2]
                said, advice = f"The bot is in no chat {name}.", f"Known: {shown}."
                raise NotFound(said, advice=advice, key="unknown_chat", name=name, known=shown)
        return places

    def _invite_view(self, row: CodeRow, names: Mapping[str, str], book: PhoneBook) -> InviteView:
        return InviteView(
            id=row.id,
            name=row.name,
            role=Role(row.role),
            by=names.get(row.created_by, row.created_by),
            created_at=row.created_at.astimezone(self._zone),
            expires_at=row.expires_at.astimezone(self._zone),
            phones=tuple(row.serials or ()),
            chats=tuple(row.chats or ()),
            phone_names=book.list(row.serials or ()),
        )


def _nobody(who: str) -> NotFound:
    advice = "See the list of people; #3 is the one with that number."
    return NotFound(f"Nobody here is called {who}.", advice=advice, key="nobody", name=who)


def _differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the audit log keeps of a change: the fields that differ, before and after it."""
    others = [name for name in new if old[name] != new[name]]
    sides = {"before": {name: old[name] for name in others}, "after": {name: new[name] for name in others}}
    return sides if others else {}


def _plain(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _listed(values: Sequence[str] | None, what: str, form: re.Pattern[str] | None = None) -> list[str] | None:
    if values is None:
        return None
    listed = list(dict.fromkeys(value.strip() for value in values if value.strip()))
    if len(listed) > MOST_LIMITS or not all(form is None or form.fullmatch(value) for value in listed):
        advice = f"Up to {MOST_LIMITS}, as the lists show them."
        raise BadRequest(f"This names no {what}.", advice=advice, key=f"bad_{what}", most=MOST_LIMITS)
    return listed


def _stored(row: PersonRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "telegram_id": row.telegram_id,
        "role": row.role,
        "name": row.name,
        "lang": row.lang,
        "chats": list(row.chats or ()),
        "serials": list(row.serials or ()),
        "paired_at": row.paired_at.isoformat(),
        "streams": row.streams,
    }


def _person_row(data: Mapping[str, Any]) -> PersonRow:
    return PersonRow(**{**data, "paired_at": datetime.fromisoformat(str(data["paired_at"]))})
