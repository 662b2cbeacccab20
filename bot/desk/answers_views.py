"""The views of the answer log, and its filter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent_core.ports import Record


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A customer's question and its outcome. Times are in the owner's zone.

    records: the findings of the knowledge base, best first.
    sent: the text that was chosen to be sent. state: whether it was sent, as in the ledger.
    person: who wrote or chose the text. rated_by: who gave the rating (1 up, -1 down, 0 none).
    before, after: whether there is a picture of the screen.
    standing: the state that people are shown. It is ``state``, except if nothing was sent and no run works on it now:
        then ``asked`` (a person is to answer ``question_id``), ``queued`` (its run waits for its turn) or ``closed``
        (its run has ended).
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
        """The questions of the records that were sent; people know the records by them."""
        ids = self.record_id.split(",")
        return [record.question for record in self.records if record.id in ids and record.question]


@dataclass(frozen=True, slots=True)
class AnswersAsked:
    """A filter of the answer log. A field that is not given filters nothing.

    words: a contact by the whole name, else words of question or answer.
    since, until: ``7d``, ``12h``, ``today``, ``week``, ``month``, ``2026-11-01`` or ``2026-11-01 18:30``, in the
        owner's zone. ``until`` a day includes that day.
    rating: 1, -1 or 0.
    unanswered: skipped, failed, unknown, or under way for over an hour or in a run that is over.
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
    """A page of answers, the newest first. ``total``: all that match. ``older``, ``newer``: whether there are more."""

    answers: tuple[AnswerView, ...] = ()
    total: int = 0
    older: bool = False
    newer: bool = False


@dataclass(frozen=True, slots=True)
class UnansweredView:
    """A group of equal questions to which the knowledge base had no answer.

    answer_id, example: the id and text of the newest one.
    answer: the newest text that was sent for it, "" if none was. contacts: who asked.
    entry: the id of the shop's own entry that has this question by now. entry_question: the question of that entry.
    entry_live: whether the entry is live; otherwise it waits for approval.
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
