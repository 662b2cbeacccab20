"""The answer log: find and rate answers, and list the questions that the knowledge base could not answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agent_core.ports import Record
from agent_core.reply.sureness.plain import stripped
from bot.desk.actors import AccessDenied, Actor, BadRequest, NotFound, Role, not_one_of
from bot.desk.context import DeskService, sees
from bot.desk.views import AnswersAsked, AnswersPage, AnswerView, UnansweredView
from storage.answers import PLANNED, SENT, STATES, TYPING, AnswerFilter, AnswerRow, Answers
from storage.events import Events
from storage.questions import OPEN, Questions
from storage.runs import QUEUED, WAITING, RunRow, Runs

GROUPED = 5000  # how many of the newest questions are grouped
UNANSWERED_SINCE = "30d"
PROVENANCES = ("knowledge", "composed", "person")
UNSENT = (PLANNED, TYPING)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,4})\s*([mhdw])", re.ASCII)
_WORDS = {"today": 0, "yesterday": 1, "week": 7, "month": 30}


def moment(text: str, now: datetime, zone: ZoneInfo, *, end: bool = False) -> datetime:
    """Return the time that ``7d`` (m, h, d, w ago), ``today``, ``week``, a day, or a day and a time mean in ``zone``.

    end: a day means its end, not its beginning.
    ``week`` and ``month`` are the last 7 and 30 days. Raises BadRequest if the text is none of these.
    """
    words = text.strip().lower()
    local = now.astimezone(zone)
    if found := _AGO.fullmatch(words):
        return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    if words in _WORDS:
        day = local.date() - timedelta(days=_WORDS[words])
    else:
        written = _written(text.strip())
        if len(words) > len("2026-11-01"):
            return written if written.tzinfo else written.replace(tzinfo=zone)
        day = written.date()
    return datetime.combine(day + timedelta(days=1) if end else day, time.min, tzinfo=zone)


def _written(text: str) -> datetime:
    with suppress(ValueError):
        written = datetime.fromisoformat(text)
        if 2000 <= written.year < 2200:
            return written
    advice = "Write 7d, 12h, today, 2026-11-01 or 2026-11-01 18:30."
    raise BadRequest(f"This is no time: {text}.", advice=advice, key="bad_time", said=text)


class DeskAnswers(DeskService):
    """The service for the answer log. A viewer may read it, and an operator may rate answers."""

    async def find(
        self, actor: Actor, asked: AnswersAsked, *, before: str = "", after: str = "", limit: int = 10
    ) -> AnswersPage:
        """Return a page of the answer log, the newest first.

        before, after: the id of an answer, to get the page of older or newer ones.
        Raises BadRequest if a time or a state cannot be read.
        """
        await self._allow(actor, Role.VIEWER, "answers")
        log = Answers(self._db)
        if asked.serial and not sees(actor, asked.serial):
            return AnswersPage()
        async with self._db.one_view():
            wanted = replace(await self._filter(asked), serials=actor.phones)
            before_id = _number(before) if before else None
            after_id = _number(after) if after else None
            rows = await log.find(wanted, before_id=before_id, after_id=after_id, limit=limit + 1)
            more = len(rows) > limit
            rows = rows[1:] if more and after else rows[:limit]
            return AnswersPage(
                tuple(await self._views(rows)),
                await log.count(wanted),
                older=more if not after else True,
                newer=more if after else bool(before),
            )

    async def get(self, actor: Actor, answer_id: str) -> AnswerView:
        """Return one answer. Raises NotFound if there is none."""
        row = await self._answer_or_none(answer_id)
        await self._allow(actor, Role.VIEWER, "answers open", phone=row.serial if row else None, answer=answer_id)
        (view,) = await self._views([_there(row, answer_id)])
        return view

    async def pictures(self, actor: Actor, answer_id: str) -> tuple[bytes | None, bytes | None]:
        """Return the screens before and after the answer, as JPEG; None for one that is not kept.

        Raises NotFound if there is no such answer.
        """
        found = await self._answer_or_none(answer_id)
        phone = found.serial if found else None
        await self._allow(actor, Role.VIEWER, "answers pictures", phone=phone, answer=answer_id)
        row = _there(found, answer_id)
        return await self._picture(row.before_picture_id), await self._picture(row.after_picture_id)

    async def rate(
        self, actor: Actor, answer_id: str, rating: int, *, toggle: bool = True, key: str = ""
    ) -> AnswerView:
        """Rate an answer, and return it.

        rating: 1, -1, or 0 for none.
        toggle: giving the same rating again removes it.
        key: the request's name, see ``Desk``.
        Raises NotFound if there is no such answer, BadRequest for another rating, and AccessDenied if somebody else
        has rated the answer and the actor is not an owner.
        """
        found = await self._answer_or_none(answer_id)
        phone = found.serial if found else None
        await self._allow(actor, Role.OPERATOR, "answers rate", phone=phone, answer=answer_id, rating=rating)
        if rating not in (-1, 0, 1):
            said = f"This is no rating: {rating}."
            raise BadRequest(said, advice="Rate with 1, -1, or 0 for none.", key="bad_rating")
        row = _there(found, answer_id)
        others = row.rating != 0 and row.rated_by != actor.id
        if others and not actor.role.covers(Role.OWNER):
            said = "Somebody else has rated this answer."
            raise AccessDenied(said, advice="An owner can change it.", key="rated_before")
        await Answers(self._db).rate(row.id, rating, by=actor.id, toggle=toggle, key=key)
        (view,) = await self._views([_there(await Answers(self._db).get(row.id), answer_id)])
        return view

    async def unanswered(self, actor: Actor, since: str = "") -> Sequence[UnansweredView]:
        """Return the questions that the knowledge base had no answer to, the most frequent first.

        since: as in ``AnswersAsked``; 30 days if it is empty.
        """
        await self._allow(actor, Role.VIEWER, "answers unanswered")
        wanted = AnswerFilter(missed=True, since=self._moment(since or UNANSWERED_SINCE), serials=actor.phones)
        groups: dict[str, list[AnswerRow]] = {}
        for row in await Answers(self._db).find(wanted, limit=GROUPED):
            groups.setdefault(stripped(row.question) or row.question.strip(), []).append(row)
        # The sort is stable: among questions that were asked equally often, the one asked last comes first.
        return [await self._group(rows) for rows in sorted(groups.values(), key=len, reverse=True)]

    async def sent_in(self, run_id: str) -> tuple[AnswerView, ...]:
        """Return the answers that a run has sent, the oldest first. Checks no rights."""
        rows = await Answers(self._db).find(AnswerFilter(run_id=run_id, state=SENT))
        return tuple(reversed(await self._views(rows)))

    async def _group(self, rows: Sequence[AnswerRow]) -> UnansweredView:
        entry = await self.context.store.means(rows[0].question) if self.context.store is not None else None
        return UnansweredView(
            answer_id=str(rows[0].id),
            example=rows[0].question,
            count=len(rows),
            newest=rows[0].created_at.astimezone(self._zone),
            contacts=tuple(dict.fromkeys(row.contact for row in rows)),
            answer=next((row.sent for row in rows if row.state == SENT), ""),
            entry=entry.id if entry else "",
            entry_question=entry.question if entry else "",
            entry_live=entry is not None and entry.live,
        )

    async def _filter(self, asked: AnswersAsked) -> AnswerFilter:
        if asked.state and asked.state not in STATES:
            raise not_one_of(f"This is no state: {asked.state}.", asked.state, STATES)
        if asked.provenance and asked.provenance not in PROVENANCES:
            raise not_one_of(f"No answer comes from {asked.provenance}.", asked.provenance, PROVENANCES)
        by_name = bool(asked.words) and await Answers(self._db).is_contact(asked.words)
        return AnswerFilter(
            contact=asked.contact or (asked.words if by_name else ""),
            text=asked.text or ("" if by_name else asked.words),
            since=self._moment(asked.since) if asked.since else None,
            until=self._moment(asked.until, end=True) if asked.until else None,
            state=asked.state,
            rating=asked.rating,
            provenance=asked.provenance,
            unanswered=asked.unanswered,
            app=asked.app,
            serial=asked.serial,
            run_id=asked.run_id,
        )

    async def _answer_or_none(self, answer_id: str) -> AnswerRow | None:
        number = _number(answer_id)
        return None if number is None else await Answers(self._db).get(number)

    async def _picture(self, picture_id: int | None) -> bytes | None:
        return None if picture_id is None else await Events(self._db).picture(picture_id)

    def _moment(self, text: str, *, end: bool = False) -> datetime:
        return moment(text, self._db.now(), self._zone, end=end)

    async def _views(self, rows: Sequence[AnswerRow]) -> list[AnswerView]:
        names = await self._names() if rows else {}
        unsent = {row.run_id for row in rows if row.state in UNSENT}
        runs = {run.id: run for run in await Runs(self._db).some(sorted(unsent))}
        views = []
        for row in rows:
            view = self._view(row, names)
            views.append(await self._with_standing(view, runs.get(row.run_id)) if row.state in UNSENT else view)
        return views

    async def _with_standing(self, view: AnswerView, run: RunRow | None) -> AnswerView:
        """Return an answer that was not sent, with its standing. ``run`` is None if the run was deleted."""
        if run is None or run.final:
            return replace(view, standing="closed")
        for question in await Questions(self._db).find(run_id=run.id, state=OPEN):
            if (question.payload.get("data", {}).get("contact") or view.contact) == view.contact:
                return replace(view, standing="asked", question_id=question.id)
        is_queued = run.status in (QUEUED, WAITING) and run.attempt_due_at is not None
        return replace(view, standing="queued") if is_queued else view

    def _view(self, row: AnswerRow, names: Mapping[str, str]) -> AnswerView:
        return AnswerView(
            id=str(row.id),
            run_id=row.run_id,
            serial=row.serial,
            app=row.app,
            contact=row.contact,
            question=row.question,
            state=row.state,
            standing=row.state,
            asked_at=row.created_at.astimezone(self._zone),
            changed_at=row.updated_at.astimezone(self._zone),
            query=row.query,
            records=tuple(_record(record) for record in row.records),
            sent=row.sent,
            provenance=row.provenance,
            record_id=row.record_id,
            record_source=row.record_source,
            score=row.score,
            person=row.person,
            rating=row.rating,
            rated_by=names.get(row.rated_by, row.rated_by),
            rated_at=row.rated_at.astimezone(self._zone) if row.rated_at else None,
            before=row.before_picture_id is not None,
            after=row.after_picture_id is not None,
        )


def _there(row: AnswerRow | None, answer_id: str) -> AnswerRow:
    if row is None:
        said = f"There is no answer {answer_id}."
        raise NotFound(said, advice="See the list of answers.", key="no_answer", number=answer_id)
    return row


def _record(data: Mapping[str, Any]) -> Record:
    """Return a record from its stored form. An older release may have stored fewer fields."""
    return Record(
        id=str(data.get("id") or ""),
        text=str(data.get("text") or ""),
        question=str(data.get("question") or ""),
        score=data.get("score"),
        sure=bool(data.get("sure")),
        source=str(data.get("source") or ""),
    )


def _number(answer_id: str) -> int | None:
    number = answer_id.strip().lstrip("#")
    return int(number) if number.isdecimal() and len(number) < 16 else None
