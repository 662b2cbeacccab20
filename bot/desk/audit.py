"""The audit log for people: its entries, and the names of what they hold by id, such as a run, an entry or a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from bot.desk.phonebook import PhoneBook
from bot.desk.team_views import AuditView, RefusedView
from knowledge.embedded import EmbeddedKnowledge
from storage.answers import Answers
from storage.engine import Database
from storage.people import AuditRow, People
from storage.questions import Questions
from storage.runs import Runs
from storage.schedules import Schedules
from storage.webhooks import Webhooks

Find = Callable[[str], Awaitable[str]]


def audit_view(row: AuditRow, names: Mapping[str, str], zone: ZoneInfo) -> AuditView:
    """Return an entry with the name of who asked. ``names``: of people and programs, by id."""
    at, who = row.at.astimezone(zone), names.get(row.actor, row.actor)
    return AuditView(row.id, at, who, row.channel, row.command, row.detail, row.allowed, row.actor in names)


def refused_view(row: AuditRow, names: Mapping[str, str], zone: ZoneInfo) -> RefusedView:
    """Return a refusal with who was refused and why."""
    said = str(row.detail.get("name") or "")
    who = names.get(row.actor) or (f"{row.actor} ({said})" if said else row.actor)
    if row.command == "pair":
        why = "rate" if row.detail.get("limited") else "code"
    else:
        why = str(row.detail.get("why") or "role")
    return RefusedView(row.at.astimezone(zone), who, row.command, why)


@dataclass(frozen=True, slots=True)
class AuditNames:
    """The names of the things in some entries of the audit log.

    things: by the key in ``AuditView.detail`` and the id there. phones: of all phones.
    """

    things: Mapping[tuple[str, str], str]
    phones: PhoneBook

    def of(self, key: str, thing: object) -> str:
        """Return the name of the thing with this id under ``key``; the id if it has no name, or is not there now."""
        return self.things.get((key, str(thing))) or str(thing)


async def audit_names(
    db: Database, store: EmbeddedKnowledge | None, book: PhoneBook, rows: Iterable[AuditView]
) -> AuditNames:
    """Look up the names of the things in these entries. Each is looked up once."""
    finds = _finds(db, store)
    wanted = {(key, str(row.detail[key])) for row in rows for key in finds if row.detail.get(key)}
    return AuditNames({(key, thing): await finds[key](thing) for key, thing in sorted(wanted)}, book)


def _finds(db: Database, store: EmbeddedKnowledge | None) -> Mapping[str, Find]:
    """Return how to find the name of a thing, "" for none, by the key in the detail."""

    async def run(thing: str) -> str:
        row = await Runs(db).get(thing)
        return row.task if row is not None else ""

    async def question(thing: str) -> str:
        row = await Questions(db).get(thing)
        payload: Mapping[str, Any] = row.payload if row is not None else {}
        return str(payload.get("text") or (payload.get("data") or {}).get("contact") or "")

    async def schedule(thing: str) -> str:
        row = await Schedules(db).get(int(thing), removed=True) if _is_number(thing) else None
        return row.task if row is not None else ""

    async def entry(thing: str) -> str:
        row = await store.get(thing) if store is not None else None
        return row.question if row is not None else ""

    async def answer(thing: str) -> str:
        row = await Answers(db).get(int(thing)) if _is_number(thing) else None
        return row.question if row is not None else ""

    async def webhook(thing: str) -> str:
        row = await Webhooks(db).get(int(thing)) if _is_number(thing) else None
        return row.url if row is not None else ""

    async def person(thing: str) -> str:
        number = thing.strip().lstrip("#＃")
        row = await People(db).get(int(number)) if number != thing and _is_number(number) else None
        return row.name if row is not None else ""

    return {
        "run": run,
        "run_id": run,
        "session": run,  # as MCP names a run
        "question": question,
        "schedule": schedule,
        "entry": entry,
        "answer": answer,
        "webhook": webhook,
        "person": person,
    }


def _is_number(thing: str) -> bool:
    return thing.isascii() and thing.isdecimal() and len(thing) < 10
