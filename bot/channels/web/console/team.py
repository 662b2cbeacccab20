"""The pages for owners: people and keys, settings, and the audit log in words: who asked for what, and what changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_core.actions import write
from agent_core.apps.profile import profiles
from agent_core.errors import PhonedeskError
from agent_core.loop.questions import RECORD
from agent_core.texts import Listed, catalogue, cut
from bot.app.settings.names import SettingPath
from bot.app.settings.origin import ShownSetting, as_text
from bot.app.settings.texts import group_words, setting_words
from bot.channels.chat import schedules
from bot.channels.web.console.texts import ConsoleTexts
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role
from bot.desk.audit import AuditNames
from bot.desk.context import API, CONSOLE, FAILED, TELEGRAM
from bot.desk.team_views import AuditView

people, settings, audit = Pages("people"), Pages("settings"), Pages("audit")
AUDIT_PAGE = 50  # entries


@people.page("/people", "people.html")
async def list_people(visit: Visit) -> Shown:
    desk, words = visit.desk, visit.words
    keys = await desk.keys.all(visit.actor)
    return {
        "people": await desk.team.people(visit.actor),
        "invitations": await desk.team.invites(visit.actor),
        "keys": [(key, await desk.phones.names(key.serials or ())) for key in keys],
        "roles": [(role.value, words.get(f"role.{role.value}")) for role in Role],
        "listed": lambda items: Listed(items).joined(words.lang),
    }


@settings.page("/settings", "settings.html")
async def list_settings(visit: Visit) -> Shown:
    words = visit.words
    groups: dict[SettingPath, list[tuple[str, ShownSetting, str, list[str]]]] = {}
    for one in await visit.desk.team.settings(visit.actor):
        places = [words.get(f"config.from_{place.layer}", where=place.where) for place in one.places]
        row = (setting_words(one.name, words.lang), one, as_text(one.value), places)
        groups.setdefault(one.name.path[:-1], []).append(row)
    return {
        "groups": [(group_words(path, words.lang), ".".join(path), rows) for path, rows in groups.items()],
    }


@audit.page("/audit", "audit.html")
async def list_audit(visit: Visit) -> Shown:
    team = visit.desk.team
    rows = await team.audit(visit.actor, before=int(visit.cursor() or 0), limit=AUDIT_PAGE)
    names = await team.audit_names(rows)
    return {
        "rows": [audit_in_words(row, names, visit.words) for row in rows],
        "next": rows[-1].id if len(rows) == AUDIT_PAGE else "",
    }


# The audit log in words -----------------------------------------------------------------------------------------------

BEFORE, AFTER, WHY = "before", "after", "why"
# What an entry may be about: the first of these fields that it has is in its sentence.
SUBJECT_FIELDS = (
    *("name", "person", "schedule", "entry", "question", "answer", "run", "run_id", "webhook", "url"),
    *("task", "files", "words", "session", "invite", "serial"),
)
HIDDEN_FIELDS = {BEFORE, AFTER, WHY, FAILED, "decides"}  # they are told in another way, or tell people nothing
ROW_FIELDS = {"id", "created_at", "updated_at", "origin"}  # no person changes them
PHONE_FIELDS = {"serial", "serials", "phones"}
LIMIT_FIELDS = {"phones", "chats"}  # where none is named, there is no limit
LONGEST_VALUE = 200  # characters


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: the field, by its key and in words, its old value and its new one."""

    key: str
    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ShownAudit:
    """An entry of the audit log in words.

    channel: where it was asked for. failed: it was allowed, but failed.
    why: the reason if it was refused or failed; "" if it was neither, or if the reason is not known.
    said: further facts, each with its label. raw: what is stored, for engineers; "" if that is nothing.
    """

    row: AuditView
    who: str
    channel: str
    sentence: str
    failed: bool
    why: str
    said: Sequence[tuple[str, str]]
    changes: Sequence[Change]
    raw: str


def audit_in_words(row: AuditView, names: AuditNames, words: ConsoleTexts) -> ShownAudit:
    """Return an entry in words. ``names``: those of the things in it."""
    teller = _Teller(names, words)
    detail = teller.plain(row)
    subject = next((key for key in SUBJECT_FIELDS if detail.get(key) not in _NOTHING), "")
    if row.command == "act":
        about, subject = write.in_words(words.lang, {"text": "…", **detail}), ""  # what is typed is not stored
        detail = {"serial": detail.get("serial")}
    else:
        about = teller.value(subject, detail[subject]) if subject else ""
    what = words.operation(row.command)
    failure = row.detail.get(FAILED)
    done = row.allowed and failure is None
    changes = list(teller.changes(row.detail.get(BEFORE), row.detail.get(AFTER))) if done else []
    hidden = {subject, *HIDDEN_FIELDS, *(change.key for change in changes)}
    shown = [
        key for key, value in detail.items() if key not in hidden and (value not in _NOTHING or key in LIMIT_FIELDS)
    ]
    shown = [key for key in shown if detail[key] is not None]
    why = str(row.detail.get(WHY) or "")
    return ShownAudit(
        row=row,
        who=_who(row, words),
        channel=words.find_own(f"channel.{row.channel}", row.channel),
        sentence=words.own("audit.about", what=what, about=about) if about else what,
        failed=failure is not None,
        why=words.refusal(why) if why and not row.allowed else _failure_of(failure, words) if failure else "",
        said=[(teller.label(key), teller.value(key, detail[key])) for key in shown],
        changes=changes,
        raw=json.dumps(row.detail, ensure_ascii=False, default=str) if row.detail else "",
    )


def _failure_of(failure: Mapping[str, Any], words: ConsoleTexts) -> str:
    """Return what happened and what to do, as the person who asked was told."""
    error = PhonedeskError(failure["message"], key=failure["key"], **failure["values"])
    error.kind = failure["kind"]  # type: ignore[misc] # of its class, whose words an error without a key has
    return words.error(error).replace("\n", " ")


_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _who(row: AuditView, words: ConsoleTexts) -> str:
    """Return who asked: a name, or who they were if nobody is known by their id now."""
    kind, _, number = row.who.partition(":")
    if row.known or words.person(row.who) != row.who:
        return words.person(row.who)
    if _is_stranger(row):
        return words.own("audit.stranger", name=row.detail.get("name") or "—", id=number)
    if kind == API or (kind in ("key", "webhook") and not number):
        return words.own("audit.program")
    if kind in ("key", "webhook"):
        return words.own("audit.program_gone", id=number)
    if kind == CONSOLE:
        return words.own("audit.somebody")
    return words.own("audit.person_gone", id=row.who) if row.who.isdecimal() else row.who


def _is_stranger(row: AuditView) -> bool:
    return not row.known and row.who.startswith(f"{TELEGRAM}:")


class _Teller:
    """Values and fields of an entry in words."""

    def __init__(self, names: AuditNames, words: ConsoleTexts) -> None:
        self._names = names
        self._words = words
        self._apps = {app.key: app.name_in(words.lang) for app in profiles()}
        self._forms: Mapping[str, Callable[[str], str]] = {
            "choice": self._choice,
            "app": lambda key: self._apps.get(key, key),
            "role": lambda role: words.find(f"role.{role}", role),
            "expression": lambda expression: schedules.in_words(expression, words),
            "period": lambda period: words.find(f"digest.period_{period}", period),
            "may": lambda may: words.find(f"webhooks.may_{may}", may),
            "lang": lambda lang: words.find_own(f"audit.lang_{lang}", lang),
            "policy": lambda policy: words.find_own(f"audit.policy_{policy}", policy),
            "missed": lambda choice: words.find_own(f"audit.missed_{choice}", choice),
            "overlap": lambda choice: words.find_own(f"audit.overlap_{choice}", choice),
            "rating": lambda rating: words.find_own(f"audit.rating_{rating.replace('-', 'minus_')}", rating),
        }

    def _choice(self, choice: str) -> str:
        number = choice.removeprefix(RECORD)
        if number != choice and number.isdecimal():
            return self._words.get("question.candidate", number=int(number) + 1)
        return catalogue(self._words.lang).get(f"card.{choice}", choice)

    def label(self, key: str) -> str:
        """Return a field in words; its name if it has none, as in an entry of another release."""
        return self._words.find_own(f"detail.{key}", key)

    def plain(self, row: AuditView) -> dict[str, Any]:
        """Return the detail with the name of an entry or a person that is no longer there."""
        detail, before = dict(row.detail), row.detail.get(BEFORE)
        if _is_stranger(row):
            detail.pop("name", None)  # it is said who they are
        if isinstance(before, Mapping):
            for key, field in (("entry", "question"), ("person", "name")):
                if key in detail and self._names.of(key, detail[key]) == str(detail[key]):
                    detail[key] = before.get(field) or detail[key]
        return detail

    def value(self, key: str, value: object) -> str:
        """Return a value in words, as a person would say it. ``key``: its field."""
        if key in LIMIT_FIELDS and value == []:
            said = self._words.own("audit.all")
        elif isinstance(value, bool):
            said = self._words.own("audit.yes" if value else "audit.no")
        elif isinstance(value, Mapping):
            said = Listed(f"{self.label(name)} {self.value(name, one)}" for name, one in value.items()).joined(
                self._words.lang
            )
        elif isinstance(value, list | tuple):
            said = Listed(self.value(key, one) for one in value).joined(self._words.lang)
        elif key in PHONE_FIELDS:
            said = self._names.phones.name(str(value))
        elif key in self._forms:
            said = self._forms[key](str(value))
        else:
            said = self._names.of(key, value)
        return cut(said, LONGEST_VALUE)

    def changes(self, before: object, after: object) -> Iterator[Change]:
        """Yield the fields that differ. What was removed, or has no old state, has none."""
        if not isinstance(before, Mapping) or not isinstance(after, Mapping):
            return
        old, new = fields_of(before), fields_of(after)
        for key in dict.fromkeys((*old, *new)):
            if key not in ROW_FIELDS and old.get(key) != new.get(key):
                said = [self._changed(key, side.get(key)) for side in (old, new)]
                yield Change(key, self.label(key), *said)

    def _changed(self, key: str, value: object) -> str:
        if value in _NOTHING and key not in LIMIT_FIELDS:
            return self._words.own("audit.nothing")
        return self.value(key, value)


def fields_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored fields with those of a task's options beside them."""
    flat = {key: value for key, value in stored.items() if key != "options"}
    options = stored.get("options")
    return flat | {key: value for key, value in options.items() if key != "kind"} if options else flat
