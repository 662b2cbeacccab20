"""The answer log: questions, their records, and the answers sent. It is for people; the ledger is for the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_core.ports import AnswerEvent, Record
from storage.events import append_event
from storage.ids import AlreadyMade, remember
from storage.leases import hold_turn
from storage.repository import Repository, page_of
from storage.runs.rows import FINAL
from storage.tables import answers, events, runs

PLANNED, TYPING, SENDING, SENT = "planned", "typing", "sending", "sent"
SKIPPED, FAILED, UNKNOWN = "skipped", "failed", "unknown"
STATES = (PLANNED, TYPING, SENDING, SENT, SKIPPED, FAILED, UNKNOWN)
UNDER_WAY = (PLANNED, TYPING, SENDING)
FORGOTTEN = timedelta(hours=1)  # an answer that is under way for longer is treated as unanswered
PERSON = "person"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An entry of the answer log.

    ``sent`` is the text chosen to be sent; ``state`` says whether it was. ``rating`` is 1 (thumbs up), -1 (thumbs down)
    or 0 (none), and ``rated_by`` our id of the person who gave it. Pictures may be deleted before their row.
    """

    id: int
    run_id: str
    serial: str
    app: str
    contact: str
    question: str
    query: str
    records: Sequence[Mapping[str, Any]]
    sent: str
    provenance: str
    record_id: str
    record_source: str
    score: float | None
    state: str
    person: str
    rating: int
    rated_by: str
    rated_at: datetime | None
    ledger_id: int | None
    before_picture_id: int | None
    after_picture_id: int | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """A filter of answers. Fields that are empty or None do not filter.

    text: words in the question or in the sent text.
    since, until: when the question was asked, ``until`` excluded; both aware.
    unanswered: skipped, failed, unknown, or under way for over an hour or in a run that is over.
    missed: the knowledge base had no answer (skipped, failed, or answered in a person's own words).
    serials: only these phones.
    """

    contact: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    state: str = ""
    rating: int | None = None
    provenance: str = ""
    unanswered: bool = False
    missed: bool = False
    app: str = ""
    serial: str = ""
    run_id: str = ""
    serials: tuple[str, ...] = ()

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        found = [
            answers.c[name] == value
            for name in ("contact", "state", "provenance", "app", "serial", "run_id")
            if (value := getattr(self, name))
        ]
        if self.serials:
            found.append(answers.c.serial.in_(self.serials))
        if self.text:
            places = (answers.c.question, answers.c.sent)
            found.append(sa.or_(*(place.icontains(self.text, autoescape=True) for place in places)))
        if self.since is not None:
            found.append(answers.c.created_at >= self.since)
        if self.until is not None:
            found.append(answers.c.created_at < self.until)
        if self.rating is not None:
            found.append(answers.c.rating == self.rating)
        if self.unanswered:
            over = answers.c.run_id.in_(sa.select(runs.c.id).where(runs.c.status.in_(FINAL)))
            forgotten = sa.and_(
                answers.c.state.in_(UNDER_WAY), sa.or_(answers.c.updated_at < sa.bindparam("forgotten"), over)
            )
            found.append(sa.or_(answers.c.state.in_((SKIPPED, FAILED, UNKNOWN)), forgotten))
        if self.missed:
            own_words = sa.and_(answers.c.provenance == PERSON, answers.c.record_id == "", answers.c.state == SENT)
            found.append(sa.or_(answers.c.state.in_((SKIPPED, FAILED)), own_words))
        return found


ALL = AnswerFilter()


@lru_cache(maxsize=64)  # see ``storage.history``
def _find(wanted: AnswerFilter, before_id: int | None, after_id: int | None, limit: int) -> sa.Select[Any]:
    return page_of(sa.select(answers).where(*wanted.conditions()), answers.c.id, before_id, after_id, limit)


@lru_cache(maxsize=64)
def _count(wanted: AnswerFilter) -> sa.Select[int]:
    return sa.select(sa.func.count()).select_from(answers).where(*wanted.conditions())


class Answers(Repository):
    """The table of the answer log."""

    async def tell(
        self,
        run_id: str,
        told: AnswerEvent,
        *,
        picture: bytes | None = None,
        attempt: int | None = None,
    ) -> AnswerRow:
        """Append the run's ``answer`` event and update the row of this question, in one transaction.

        Fields that this event leaves empty keep their earlier values, and an answer that was sent stays sent. The same
        event again changes nothing.

        picture: a JPEG, stored as the one before sending if the state is planned, else as the one after.
        attempt: the attempt that writes. Raises LeaseLost if its turn is over.
        """
        async with self._db.write(durable=True) as connection:
            await hold_turn(connection, run_id, attempt)
            event_id = await append_event(connection, self._db, run_id, "answer", told.data(), picture=picture)
            found = await connection.execute(sa.select(events.c.picture_id).where(events.c.id == event_id))
            row = await self._tell(connection, run_id, told, found.scalar_one())
        self._notify("events")
        return row

    async def _tell(
        self, connection: AsyncConnection, run_id: str, told: AnswerEvent, picture_id: int | None
    ) -> AnswerRow:
        now = self._db.now()
        before, after = (picture_id, None) if told.state == PLANNED else (None, picture_id)
        serial = (await connection.execute(sa.select(runs.c.serial).where(runs.c.id == run_id))).scalar_one_or_none()
        values = {**told.data(), "run_id": run_id, "serial": serial or "", "records": _plain(told.records)}
        values |= {"before_picture_id": before, "after_picture_id": after, "created_at": now, "updated_at": now}
        add = self._db.insert(answers).values(**values).on_conflict_do_nothing(index_elements=["ledger_id"])
        await connection.execute(add)
        known = sa.select(answers).where(answers.c.ledger_id == told.ledger_id).with_for_update()
        row = AnswerRow(**(await connection.execute(known)).mappings().one())
        merged = _merged(row, run_id, told, before, after)
        if merged == row:
            return row
        merged = replace(merged, updated_at=now)
        changes = {name: getattr(merged, name) for name in AnswerRow.__slots__ if name != "id"}
        changes["records"] = list(merged.records)
        await connection.execute(sa.update(answers).where(answers.c.id == row.id).values(**changes))
        return merged

    async def rate(self, answer_id: int, rating: int, *, by: str, toggle: bool = False, key: str = "") -> bool:
        """Set the rating: 1, -1, or 0 for none. Return False if there is no such answer.

        by: our id of the person who rates.
        toggle: remove the rating if it is the present one already.
        key: an idempotency key. A second call with the same key changes nothing.
        """
        if rating not in (-1, 0, 1):
            raise ValueError(f"A rating is -1, 0 or 1, not {rating}.")
        new = sa.case((answers.c.rating == rating, 0), else_=rating) if toggle else sa.literal(rating)
        none = new == 0
        values = {
            "rating": new,
            "rated_by": sa.case((none, ""), else_=by),
            "rated_at": sa.case((none, sa.null()), else_=sa.literal(self._db.now(), answers.c.rated_at.type)),
        }
        try:
            async with self._db.write(durable=True) as connection:
                await remember(connection, self._db, key, str(answer_id))
                done = await connection.execute(sa.update(answers).where(answers.c.id == answer_id).values(**values))
                return done.rowcount == 1
        except AlreadyMade:
            return True

    async def get(self, answer_id: int) -> AnswerRow | None:
        return await self._only(AnswerRow, sa.select(answers).where(answers.c.id == answer_id))

    async def find(
        self,
        wanted: AnswerFilter = ALL,
        *,
        before_id: int | None = None,
        after_id: int | None = None,
        limit: int = 50,
    ) -> list[AnswerRow]:
        """Return answers, newest first.

        ``before_id``: only older ones; ``after_id``: the ``limit`` that follow this one.
        """
        statement = _find(wanted, before_id, after_id, limit)
        rows = await self._rows(AnswerRow, statement, self._times())
        return rows if after_id is None else rows[::-1]

    async def count(self, wanted: AnswerFilter = ALL) -> int:
        async with self._db.read() as connection:
            return (await connection.execute(_count(wanted), self._times())).scalar_one()

    def _times(self) -> Mapping[str, datetime]:
        """Return the values of the times in a filter. A statement without them ignores them."""
        return {"forgotten": self._db.now() - FORGOTTEN}

    async def is_contact(self, name: str) -> bool:
        """Tell whether the log has an entry of a contact with exactly this name."""
        return await self._value(sa.select(answers.c.id).where(answers.c.contact == name).limit(1)) is not None


def _plain(records: Sequence[Record] | None) -> list[dict[str, Any]]:
    return [asdict(record) for record in records or ()]


def _merged(row: AnswerRow, run_id: str, told: AnswerEvent, before: int | None, after: int | None) -> AnswerRow:
    """Return the row updated by the event.

    The chosen answer changes as a whole: a person's text does not keep an earlier answer's record. Of the pictures
    before sending the first is kept, of those after it the last, which shows the present state.
    """
    if row.state == SENT:
        if told.state != SENT:
            return row  # a late event: a sent text cannot be recalled
        run_id = row.run_id  # the run that sent it
    merged = replace(
        row,
        run_id=run_id,
        question=told.question or row.question,
        query=told.query or row.query,
        records=row.records if told.records is None else _plain(told.records),
        state=told.state.value,
        person=told.person or row.person,
        before_picture_id=before if row.before_picture_id is None else row.before_picture_id,
        after_picture_id=after if after and (row.after_picture_id is None or told.state != row.state)
        else row.after_picture_id,
    )  # fmt: skip
    if not told.sent and not told.provenance:
        return merged
    return replace(
        merged,
        sent=told.sent,
        provenance=told.provenance,
        record_id=told.record_id,
        record_source=told.record_source,
        score=told.score,
        person=told.person,
    )
