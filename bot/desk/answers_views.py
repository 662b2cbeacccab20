"""What the desk returns of the answer log, and the filter that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent_core.ports import Record


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One customer's question and what became of it. ``records``: what the knowledge base gave, best first.

    ``sent`` is what was chosen to be sent, ``state`` (as in the ledger) tells whether it was. ``person``: who wrote or
    chose it; ``rated_by``: who gave the thumb (1 up, -1 down, 0 none). Times are in the owner's zone. ``before`` and
    ``after``: whether there was a picture.

    ``standing``: what people read as its state. It is ``state``, except if nothing was sent and no run is at it now:
    ``asked`` (a person is to answer ``question_id``), ``queued`` (its run waits for its turn) or ``closed`` (its run
    has ended).
    """

    id: str
    run_id: str
    serial: str
    app: str
    contact: str
    question: str
    state: str
    asked_at: datetime
    changed_at: datetime
    query: str = ""
    records: tuple[Record, ...] = ()
    sent: str = ""
    provenance: str = ""
    record_id: str = ""
    record_source: str = ""
    score: float | None = None
    person: str = ""
    rating: int = 0
    rated_by: str = ""
    rated_at: datetime | None = None
    before: bool = False
    after: bool = False
    standing: str = ""
    question_id: str = ""

    @property
    def record_questions(self) -> list[str]:
        """The questions of the records that were sent, by which a person knows them."""
        ids = self.record_id.split(",")
        return [record.question for record in self.records if record.id in ids and record.question]


@dataclass(frozen=True, slots=True)
class AnswersAsked:
    """Which answers are asked for; what is not given matters not.

    ``words``: a contact by the whole name, else words of question or answer. ``since`` and ``until`` in the owner's
    zone: ``7d``, ``12h``, ``today``, ``week``, ``month``, ``2026-11-01`` or ``2026-11-01 18:30``; until a day is with
    that day. ``rating`` 1, -1 or 0. ``unanswered``: skipped, failed, unknown, or under way for over an hour.
    """

    words: str = ""
    contact: str = ""
    text: str = ""
    since: str = ""
    until: str = ""
    state: str = ""
    rating: int | None = None
    provenance: str = ""
    unanswered: bool = False
    app: str = ""
    serial: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class AnswersPage:
    """The newest first. ``total``: how many there are in all; ``older`` and ``newer``: whether there are some."""

    answers: tuple[AnswerView, ...] = ()
    total: int = 0
    older: bool = False
    newer: bool = False


@dataclass(frozen=True, slots=True)
class UnansweredView:
    """Questions that are one question, to which the knowledge base had no answer.

    ``answer_id`` and ``example`` are of the newest one. ``answer``: the newest words that a person sent for it, empty
    where nobody did. ``contacts``: who asked. ``entry``: the id of the shop's own entry that has this question by now,
    ``entry_question``: how that one asks it, ``entry_live``: not only waiting for approval.
    """

    answer_id: str
    example: str
    count: int
    newest: datetime
    contacts: tuple[str, ...] = ()
    answer: str = ""
    entry: str = ""
    entry_question: str = ""
    entry_live: bool = False
