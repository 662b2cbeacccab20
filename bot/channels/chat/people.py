"""People in the chat, for owners: the list, invitations, roles, limits, and refused requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent_core.texts import Listed
from bot.channels.chat import commands
from bot.channels.chat.cards import Button, Card, Line, in_rows
from bot.channels.chat.personal import limit_lines, reach_lines
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.actors import BadRequest, ChatRef, Role
from bot.desk.team_views import InviteView, PersonView, RefusedView
from bot.desk.views import OWN_CHAT

SHOWN = 30
ROLES = {
    "viewer": Role.VIEWER, "只读": Role.VIEWER, "查看": Role.VIEWER,
    "operator": Role.OPERATOR, "操作员": Role.OPERATOR,
    "owner": Role.OWNER, "管理员": Role.OWNER,
}  # fmt: skip
_VERBS = {
    "list": "list", "列表": "list",
    "role": "role", "身份": "role", "角色": "role",
    "limit": "limit", "限制": "limit",
    "remove": "remove", "delete": "remove", "移除": "remove", "删除": "remove",
    "revoke": "revoke", "撤销": "revoke",
    "audit": "audit", "拒绝记录": "audit",
}  # fmt: skip
_PHONE_WORDS = {"phone", "phones", "手机"}
_NAME_WORDS = {"name", "called", "名字", "姓名"}
_CHAT_WORDS = {"chat", "chats", "聊天", "群"}
_PARTS = {"phones": _PHONE_WORDS, "chats": _CHAT_WORDS, "name": _NAME_WORDS}
_GROUPS = "telegram:"  # the beginning of the keys of groups, which only Telegram has
_ALL = {"all", "any", "全部", "所有"}
_HERE = {"here", "这里", "本群"}
_OWN = {"own", "private", "私聊"}
_TIME = re.compile(r"(\d{1,4})\s*(h|d|小时|天)", re.IGNORECASE)
_HOURS = {"h": 1, "小时": 1, "d": 24, "天": 24}


@dataclass(frozen=True, slots=True)
class PeopleCommand:
    """A request of ``/people``.

    who: a person or an invitation. phones, chats: as they were written; None if they were not named.
    """

    verb: str
    who: str = ""
    role: Role | None = None
    phones: tuple[str, ...] | None = None
    chats: tuple[str, ...] | None = None


def read_asking(rest: str) -> PeopleCommand | None:
    """Read ``role WHO ROLE``, ``limit WHO phone S… chat C…``, ``remove WHO``, ``revoke ID``, ``audit`` or ``WHO``.

    Returns None if something is missing.
    """
    word, _, after = rest.strip().partition(" ")
    verb = _VERBS.get(word.lower())
    after = after.strip()
    if verb is None:
        return PeopleCommand("show", commands.unquoted(rest)) if word else PeopleCommand("list")
    if verb in {"list", "audit"}:
        return PeopleCommand(verb)
    if verb == "role":
        name, _, role = after.rpartition(" ")
        meant = ROLES.get(role.lower())
        return PeopleCommand(verb, commands.unquoted(name), meant) if commands.unquoted(name) and meant else None
    if verb == "limit":
        return _read_limit(after)
    return PeopleCommand(verb, commands.unquoted(after)) if commands.unquoted(after) else None


def _read_limit(text: str) -> PeopleCommand | None:
    words = commands.words_of(text)
    name: list[str] = []
    given: dict[str, list[str]] = {}
    into = name
    for word in words:
        kind = "phones" if word.lower() in _PHONE_WORDS else "chats" if word.lower() in _CHAT_WORDS else ""
        if kind and name:
            into = given.setdefault(kind, [])
        else:
            into.append(word)
    who = commands.unquoted(" ".join(name))
    if not who or not given or not all(given.values()):
        return None
    phones, chats = (tuple(given[kind]) if kind in given else None for kind in ("phones", "chats"))
    return PeopleCommand("limit", who, phones=phones, chats=chats)


@dataclass(frozen=True, slots=True)
class Inviting:
    """A request of ``/invite``.

    name: the person to invite to the console, "" for somebody who pairs in Telegram.
    phones, chats: the new person's limits, as they were written.
    """

    role: Role = Role.OPERATOR
    hours: float = 24.0
    name: str = ""
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()


def read_invite(rest: str) -> Inviting | None:
    """Read ``[ROLE] [24h] [name N] [phone S…] [chat C…]`` in any order (``--phone S``, too).

    By default it is an operator for a day.

    Role and time may be anywhere, because no phone or chat has such a name. Returns None if it cannot be read.
    """
    said = Inviting()
    given: dict[str, list[str]] = {}
    into: list[str] | None = None
    for word in commands.words_of(rest):
        plain = word.lower().lstrip("-—") or word
        kind = next((kind for kind, words in _PARTS.items() if plain in words), "")
        time = _TIME.fullmatch(word)
        if kind:
            into = given.setdefault(kind, [])
        elif time:
            said = replace(said, hours=float(time[1]) * _HOURS[time[2].lower()])
        elif word.lower() in ROLES:
            said = replace(said, role=ROLES[word.lower()])
        elif into is not None:
            into.append(word)
        else:
            return None
    if not all(given.values()):
        return None
    phones, chats = tuple(given.get("phones", ())), tuple(given.get("chats", ()))
    return replace(said, name=" ".join(given.get("name", ())), phones=phones, chats=chats)


# Commands -------------------------------------------------------------------------------------------------------------


async def people(turn: Turn) -> Said:
    """Handle ``/people``."""
    words, team = turn.texts, turn.desk.team
    asking = read_asking(turn.rest)
    if asking is None:
        return turn.tell(words.get("people.usage"))
    match asking:
        case PeopleCommand("list"):
            return turn.say(await _list_card(turn))
        case PeopleCommand("audit"):
            return turn.say(_audit_card(words, await team.refused(turn.actor)))
        case PeopleCommand("role", who, Role() as role):
            done = await team.set_role(turn.actor, who, role)
            return turn.say(_person_card(words, done, turn, words.get("people.changed")))
        case PeopleCommand("limit", who):
            return await _limit(turn, asking)
        case PeopleCommand("remove", who):
            return turn.say(_sure_to_remove(words, await team.find(turn.actor, who)))
        case PeopleCommand("revoke", who):
            gone = await team.revoke(turn.actor, who)
            return turn.tell(words.get("people.revoked"), _invite_words(words, gone))
        case _:
            return turn.say(_person_card(words, await team.find(turn.actor, asking.who), turn))


async def _limit(turn: Turn, asking: PeopleCommand) -> Said:
    words, team = turn.texts, turn.desk.team
    person = await team.find(turn.actor, asking.who)
    if turn.chat.kind == "private" and any(word.lower() in _HERE for word in asking.chats or ()):
        return turn.tell(words.get("invite.which_chat"))  # it is the owner's own chat, which the person is not in
    phones = None if asking.phones is None else _all_or(asking.phones, {})
    places = dict.fromkeys(_HERE, turn.chat.key) | dict.fromkeys(_OWN, person.own_chat)
    chats = None if asking.chats is None else _all_or(asking.chats, places, _GROUPS)
    done = await team.limit(turn.actor, f"#{person.id}", phones=phones, chats=chats)
    return turn.say(_person_card(words, done, turn, words.get("people.changed")))


def _all_or(written: Sequence[str], known: Mapping[str, str], prefix: str = "") -> tuple[str, ...]:
    if any(word.lower() in _ALL for word in written):
        return ()
    return tuple(known.get(word.lower()) or (word if word.startswith(prefix) else prefix + word) for word in written)


async def invite(turn: Turn) -> Said:
    """Handle ``/invite``."""
    words = turn.texts
    asked = read_invite(turn.rest)
    if asked is None:
        return turn.tell(words.get("invite.usage"))
    here, private = any(word.lower() in _HERE for word in asked.chats), turn.chat.kind == "private"
    if not private and not here:
        return turn.tell(words.get("invite.private_only"))
    if private and here:  # it would be the owner's own chat, which nobody else is in
        return turn.tell(words.get("invite.which_chat"))
    places = dict.fromkeys(_HERE, turn.chat.key) | dict.fromkeys(_OWN, OWN_CHAT)
    phones = _all_or(asked.phones, {})
    chats = _all_or(asked.chats, places, _GROUPS)
    made = await turn.desk.team.invite(turn.actor, asked.role, asked.hours, name=asked.name, phones=phones, chats=chats)
    card = invite_card(words, made, turn.start_link)
    if private:
        return turn.say(card)
    own = ChatRef(turn.chat.channel, turn.actor.user_id)
    return Said((Outgoing(card, own), *turn.tell(words.get("invite.sent_in_private")).messages))


def invite_card(words: Texts, made: InviteView, start_link: str) -> Card:
    """Return the only card that shows an invitation's code. ``start_link``: the beginning of a link with the code."""
    how = [
        Line(f"{start_link}{made.code}" if start_link else "", words.get("invite.link")),
        Line(f"/start {made.code}", words.get("invite.text"), "secret"),
    ]
    if made.link:
        how = [Line(made.link, words.get("invite.link"), "secret")]
    lines = [
        Line(made.name, words.get("invite.name")),
        Line(words.get(f"role.{made.role.value}"), words.get("whoami.role")),
        *limit_lines(words, made.phone_names, _placed(words, made.chats)),
        Line(f"{made.expires_at:%m-%d %H:%M}", words.get("invite.until")),
        *how,
        Line(words.get("invite.hint")),
        *(reach_lines(words, made.link) if made.link else (Line(words.get("invite.console_hint")),)),
    ]
    revoke = Button(f"people:revoke:{made.id}", words.get("people.revoke"), "danger")
    return Card(words.get("invite.title"), tuple(line for line in lines if line.text), None, ((revoke,),))


# Buttons --------------------------------------------------------------------------------------------------------------


async def tapped(turn: Turn, value: str) -> Said:
    """Handle ``list``, ``audit``, ``revoke:ID``, ``role:N:ROLE``, and show, sure, owner, gone, undo with ``:N``."""
    words, team, actor = turn.texts, turn.desk.team, turn.actor
    verb, _, what = value.partition(":")
    number, _, role = what.partition(":")
    match verb:
        case "list":
            return turn.change(await _list_card(turn))
        case "audit":
            return turn.change(_audit_card(words, await team.refused(actor)))
        case "show":
            return turn.change(_person_card(words, await team.find(actor, f"#{number}"), turn))
        case "role" if role in ROLES:
            done = await team.set_role(actor, f"#{number}", ROLES[role])
            return turn.change(_person_card(words, done, turn), toast=words.get("people.changed"))
        case "sure":
            return turn.change(_sure_to_remove(words, await team.find(actor, f"#{number}")))
        case "owner":
            return turn.change(_sure_of_owner(words, await team.find(actor, f"#{number}")))
        case "gone":
            gone = await team.remove(actor, f"#{number}")
            return turn.change(_gone_card(words, gone), toast=words.get("people.removed", name=gone.name))
        case "undo":
            back = await team.undo_remove(actor, number)
            return turn.change(_person_card(words, back, turn), toast=words.get("people.back"))
        case "revoke":
            invite = await team.revoke(actor, what)
            done_card = Card(words.get("people.revoked"), (Line(_invite_words(words, invite)),))
            return turn.change(done_card, toast=words.get("people.revoked"))
    raise BadRequest("This button is of another release.", advice="Send /people again.", key="old_button")


# Cards ----------------------------------------------------------------------------------------------------------------


async def _list_card(turn: Turn) -> Card:
    words, team = turn.texts, turn.desk.team
    found, invites = await team.people(turn.actor), await team.invites(turn.actor)
    lines = [Line(in_short(words, person), f"#{person.id} {person.name}") for person in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(Line(words.get("people.more", count=len(found) - SHOWN)))
    lines += [Line(_invite_words(words, invite), words.get("people.invited")) for invite in invites[:SHOWN]]
    lines.append(Line(words.get("people.hint")))
    buttons = [Button(f"people:show:{person.id}", f"#{person.id} {person.name}"[:30]) for person in found[:SHOWN]]
    revoke = [
        (Button(f"people:revoke:{invite.id}", f"{words.get('people.revoke')} {invite.id}", "danger"),)
        for invite in invites[:5]
    ]
    return Card(
        words.get("people.title"),
        tuple(lines),
        None,
        (*in_rows(buttons, 2), *revoke, (Button("people:audit", words.get("people.audit")),)),
    )


def in_short(words: Texts, person: PersonView) -> str:
    """Return a person in one line."""
    parts = [words.get(f"role.{person.role.value}"), person.lang]
    parts += [words.get("people.only_phones", phones=Listed(person.phone_names))] if person.phones else []
    parts += [words.get("people.only_chats", count=len(person.chats))] if person.chats else []
    if person.seen:
        parts.append(words.get("people.seen_at", time=f"{person.seen:%m-%d %H:%M}"))
    return " · ".join(parts)


def person_lines(words: Texts, person: PersonView) -> tuple[Line, ...]:
    """Return all about a person."""
    never = words.get("people.never")
    return (
        Line(words.get(f"role.{person.role.value}"), words.get("whoami.role")),
        Line(person.user_id or words.get("people.no_telegram"), words.get("whoami.user"), "code"),
        Line(person.lang, words.get("whoami.lang")),
        Line(f"{person.since:%Y-%m-%d %H:%M}", words.get("people.since")),
        Line(f"{person.seen:%Y-%m-%d %H:%M}" if person.seen else never, words.get("people.seen")),
        *limit_lines(words, person.phone_names, person.chats),
    )


def _person_card(words: Texts, person: PersonView, turn: Turn, said: str = "") -> Card:
    lines = [*([Line(said)] if said else []), *person_lines(words, person)]
    if person.role is not Role.OWNER:
        lines.append(Line(words.get("people.limit_hint", id=person.id)))
    roles = tuple(
        Button(
            f"people:owner:{person.id}" if role is Role.OWNER else f"people:role:{person.id}:{role.value}",
            f"→ {words.get(f'role.{role.value}')}",
        )
        for role in Role
        if role is not person.role
    )
    last = (
        Button(f"people:sure:{person.id}", words.get("people.remove"), "danger"),
        Button("people:list", words.get("people.all")),
    )
    own = person.id == turn.actor.id  # people lower their own role by a command only
    return Card(f"#{person.id} {person.name}", tuple(lines), None, (last[1:],) if own else (roles, last))


def _sure_to_remove(words: Texts, person: PersonView) -> Card:
    row = (
        Button(f"people:gone:{person.id}", words.get("people.remove"), "danger"),
        Button(f"people:show:{person.id}", words.get("people.keep")),
    )
    title = words.get("people.remove_sure", name=person.name)
    return Card(title, (*person_lines(words, person), Line(words.get("people.remove_means"))), None, (row,))


def _sure_of_owner(words: Texts, person: PersonView) -> Card:
    row = (
        Button(f"people:role:{person.id}:owner", words.get("people.make_owner"), "danger"),
        Button(f"people:show:{person.id}", words.get("people.keep")),
    )
    return Card(
        words.get("people.owner_sure", name=person.name), (Line(words.get("people.owner_means")),), None, (row,)
    )


def _gone_card(words: Texts, person: PersonView) -> Card:
    row = (Button(f"people:undo:{person.id}", words.get("people.undo")),)
    return Card(words.get("people.removed", name=person.name), (Line(words.get("people.undo_means")),), None, (row,))


def _placed(words: Texts, chats: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f":{words.get('invite.own_chat')}" if chat == OWN_CHAT else chat for chat in chats)


def _invite_words(words: Texts, invite: InviteView) -> str:
    role = words.get(f"role.{invite.role.value}")
    role += f" · {words.get('people.only_phones', phones=Listed(invite.phone_names))}" if invite.phones else ""
    role += f" · {words.get('people.only_chats', count=len(invite.chats))}" if invite.chats else ""
    return words.get(
        "people.invite_line", id=invite.id, role=role, by=invite.by, time=f"{invite.expires_at:%m-%d %H:%M}"
    ) + (f" · {invite.name}" if invite.name else "")


def _audit_card(words: Texts, refused: Sequence[RefusedView]) -> Card:
    lines = [
        Line(f"{words.operation(row.command)} · {words.refusal(row.why)}", f"{row.at:%m-%d %H:%M} {row.who}")
        for row in refused
    ]
    back = (Button("people:list", words.get("people.all")),)
    return Card(words.get("people.audit"), tuple(lines) or (Line(words.get("people.audit_empty")),), None, (back,))


SUBJECT = Subject(commands={"people": people, "invite": invite}, buttons={"people": tapped})
