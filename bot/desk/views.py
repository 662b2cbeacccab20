"""The views of what happens at the desk: runs, plans, sweeps, questions, answers, phones and contacts, as people see
them.

Times are aware datetimes. Pictures are encoded JPEG. Cards and the command line load this module when they start, so it
imports neither the database nor anything that reaches a phone or a model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from agent_core.ports import Record
from agent_core.session import KeptNote, LeftTo, Question, ReplyRecord, Spent, StepRecord
from agent_core.texts import Lang
from bot.desk.actors import ChatRef
from knowledge.entries import Entry


@dataclass(frozen=True, slots=True)
class PlanCallView:
    """A tool call of the planner. ``args``: the arguments by name. ``result``: its text, "" if there is none yet."""

    tool: str
    args: Mapping[str, str] = field(default_factory=dict)
    state: Literal["going", "done", "failed"] = "going"
    result: str = ""
    phone: str = ""  # the name of the phone that it is about


@dataclass(frozen=True, slots=True)
class PlanView:
    """The progress of a plan. ``said``: the planner's last words; "" once they are the plan's outcome."""

    calls: tuple[PlanCallView, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A request for a plan.

    session: the key of its conversation.
    serials: the phones that it may use, () for all.
    only: the phone that it is about, "" for any of these.
    key: the request's name, see ``Desk``.
    """

    task: str
    session: str
    lang: Lang = "zh"
    requested_by: str = ""
    chat: Mapping[str, Any] | None = None
    serials: tuple[str, ...] = ()
    only: str = ""
    key: str = ""


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


class RunStatus(StrEnum):
    """A run's status for people."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a person; a run that waits for its phone is queued
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def final(self) -> bool:
        """True if the run has ended."""
        return self in {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.STOPPED}


SweptState = Literal[
    "waiting", "answering", "answered", "skipped", "nothing", "asked", "elsewhere", "failed", "stopped", "quiet"
]


@dataclass(frozen=True, slots=True)
class SweptView:
    """A contact of a sweep. ``texts``: the texts that have reached them.

    The state ``quiet`` means that they were left out because the quiet hours have begun, ``elsewhere`` that an older
    run has their question and continues by itself.
    """

    contact: str
    state: SweptState
    texts: tuple[str, ...] = ()
    message: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class SweepView:
    """The progress of a sweep.

    looked: how many contacts it has checked; None before it has checked any. details: the contacts left out, and why.
    silent: nobody is informed of it, because it began by itself and nothing happened.
    reply_to: the contact if it carries out a schedule that answers one contact; "" if it was ordered as a sweep.
    """

    looked: int | None = None
    contacts: tuple[SweptView, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    silent: bool = False
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class BusyView:
    """What has the phone for which a run waits.

    kind: a ``run`` at work, a run that ``asks`` and waits for a person's answer, a ``person`` who has taken the phone
        over, or something ``other``, such as a program or the doctor. The other fields but ``by`` are of a run.
    by: the person's name, or who started the run.
    """

    kind: Literal["run", "asks", "person", "other"]
    number: int = 0
    task: str = ""
    steps: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as a person sees it, made from its rows.

    steps: how many are done. last_step: the newest of them; its ``action`` is the one done after the gate.
    position: the place in the phone's queue, 1 for the next, 0 if the run is not queued.
    away: why the phone that a queued run waits for cannot be used. "none": it may have any phone, and there is none.
        "host": its host ``away_host`` has not reported since ``away_since``.
    away_until: how long the run waits for the phone. Like ``away_since``, it is in the owner's zone.
    """

    id: str
    task: str
    status: RunStatus
    lang: Lang = "zh"
    serial: str = ""
    phone: str = ""  # the phone's name for a person
    chat: ChatRef | None = None
    by: str = ""  # who started it
    schedule_id: str = ""  # of the schedule that started it, or its sweep
    steps: int = 0
    max_steps: int = 100
    last_step: StepRecord | None = None
    message: str = ""
    error_kind: str = ""  # of the error that ended or postponed it, see agent_core.errors
    left_to: LeftTo = ""  # see ``left_now``
    again_at: datetime | None = None  # a postponed run is queued and continues then (in the owner's zone)
    spent: Spent = field(default_factory=Spent)
    replies: tuple[ReplyRecord, ...] = ()
    notes: tuple[KeptNote, ...] = ()  # the model's notes from pages, and its summaries
    answers: tuple[AnswerView, ...] = ()  # the sent answers, from the log, the oldest first; people can rate them
    position: int = 0
    busy_with: BusyView | None = None  # what the phone does meanwhile, if it is one that this run waits for
    stopped_by: str = ""  # who was the first to stop it
    unanswered: str = ""  # the contact whose question is open because the run was stopped
    held: bool = False  # by a person, until Resume; a running one is about to be held
    away: Literal["", "offline", "unauthorized", "none", "host", "nobody"] = ""
    away_until: datetime | None = None
    away_host: str = ""
    away_since: datetime | None = None
    parent: str = ""  # the sweep or plan that it belongs to, whose card shows it
    sweep: SweepView | None = None  # None if it is not a sweep
    plan: PlanView | None = None  # None if it is not a plan
    in_plan: bool = False  # ``parent`` is a plan
    watch: bool = False  # a watch has started it, so nobody waits for its card
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question that a run has asked people. Times are in the owner's zone.

    then: a text key under ``then``, for what happens at the deadline.
    answer: the choice's value or the words. by: a person's name. Both are "" while it is open and if nobody answered.
    serial: the phone that it is about. held: its run is on hold, so an answer takes effect after Resume.
    learnt: the knowledge entry that was made from its answer, while that waits for approval.
    """

    id: str
    run_id: str
    question: Question
    chat: ChatRef | None = None
    lang: Lang = "zh"
    deadline: datetime | None = None
    then: Literal["", "skip", "leave", "deny", "no", "stop", "told", "wait"] = ""
    open: bool = True
    answer: str = ""
    by: str = ""
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    serial: str = ""
    held: bool = False
    learnt: Entry | None = None


@dataclass(frozen=True, slots=True)
class PhoneView:
    """A phone and its present state."""

    serial: str
    name: str
    state: Literal["free", "busy", "offline", "unauthorized", "away"]  # away: its host is not heard
    run_id: str = ""  # of the run that has it; "" if none has it, or something else has
    host: str = ""  # the machine that it is at, "" for this one
    since: datetime | None = None  # since when it is away, in the owner's zone
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PhoneKept:
    """A phone's new entry in the settings file.

    hidden: the environment has another one, which wins.
    again: the setting that connects a phone again that was disconnected, "" if none does.
    """

    serial: str
    file: str
    hidden: bool = False
    again: str = ""


@dataclass(frozen=True, slots=True)
class ContactView:
    """A saved contact. ``serial``: "" for any phone. ``number``: of the account in the app."""

    app: str
    name: str
    serial: str = ""
    number: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class StatusView:
    """The state of the desk. ``runs``: running, waiting and queued ones, the oldest first."""

    phones: tuple[PhoneView, ...] = ()
    runs: tuple[RunView, ...] = ()
    questions: tuple[QuestionView, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of an answer. ``by``, ``answer``: of the answer that counts; if late, it is another person's."""

    state: Literal["accepted", "late", "unknown"]
    by: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class EventView:
    """One row of the event log. ``kind`` and ``data`` are those of ``agent_core.ports.Event``."""

    id: int
    run_id: str
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    picture_id: int | None = None  # see ``Desk.event_picture``
    created_at: datetime | None = None

    @property
    def pictured(self) -> bool:
        return self.picture_id is not None


EventBatches = AsyncGenerator[Sequence[EventView], None]  # events as they come, several at once


OWN_CHAT = "own"  # in an invitation: the private chat of the person who uses it
