"""The views of a period's figures, of a chat's subscriptions, and of alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from agent_core.texts import Lang
from bot.desk.actors import ChatRef

Period = Literal["today", "yesterday", "week", "month", "daily", "weekly"]


@dataclass(frozen=True, slots=True)
class Bar:
    """The number of questions in an hour or a day. ``at`` is its beginning, in the owner's zone."""

    at: datetime
    alone: int = 0
    by_person: int = 0
    left: int = 0  # without an answer

    @property
    def total(self) -> int:
        """The number of all questions."""
        return self.alone + self.by_person + self.left


@dataclass(frozen=True, slots=True)
class Often:
    """A question that was asked ``count`` times. ``example`` is the newest wording."""

    example: str
    count: int


@dataclass(frozen=True, slots=True)
class ModelShare:
    """The work of one model. ``cost`` is None if its price is not known."""

    name: str
    calls: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class DigestView:
    """The figures of a period. Times are in the owner's zone; ``until`` is exclusive.

    alone, by_person: how many customers' questions were answered without and by a person.
    put_to_person: how many questions of every kind runs asked people.
    median_seconds: from reading a question to its answer; None if none was answered.
    cost: None if no price is known.
    kept_since: the model usage before this time is no longer known; None if all of it is.
    left: how many questions have no answer. unanswered: the most frequent of them.
    unit: the time that a bar covers.
    """

    period: Period
    since: datetime
    until: datetime
    alone: int = 0
    by_person: int = 0
    skipped: int = 0
    failed: int = 0
    unknown: int = 0
    under_way: int = 0
    put_to_person: int = 0
    median_seconds: float | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    currency: str = ""
    kept_since: datetime | None = None
    often: tuple[Often, ...] = ()
    left: int = 0
    unanswered: tuple[Often, ...] = ()
    bars: tuple[Bar, ...] = ()
    unit: Literal["hour", "day"] = "hour"
    sweeps: int = 0
    swept_contacts: int = 0  # looked at, once a sweep
    not_found: tuple[str, ...] = ()  # contacts that sweeps were to answer and that nobody knows
    idle_sweeps: int = 0  # which found nobody to answer, and so asked no model
    models: tuple[ModelShare, ...] = ()  # those whose names are known, the busiest first

    @property
    def asked(self) -> int:
        """The number of customers' questions."""
        return self.answered + self.skipped + self.failed + self.unknown + self.under_way

    @property
    def answered(self) -> int:
        """The number of questions that were answered."""
        return self.alone + self.by_person

    @property
    def empty(self) -> bool:
        """True if there is nothing to report: no questions, no calls of a model, and no contact that was not found."""
        return not (self.asked or self.put_to_person or self.calls or self.not_found)


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The figures of a day.

    bar: the customers' questions. median_seconds: from reading one to its answer; None if none was answered.
    cost: None if no price is known.
    """

    bar: Bar
    median_seconds: float | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """How many runs failed with a kind of error, see ``agent_core.errors``. ``kind`` "": with none of its own."""

    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class StatisticsView:
    """The figures of days, the oldest first, and the failures in all of them, the most frequent first.

    kept_since: the model usage and the failures before this time are no longer known; None if all are.
    """

    days: tuple[DayFigures, ...]
    failures: tuple[FailedRuns, ...] = ()
    currency: str = ""
    kept_since: datetime | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.failures and not any(day.bar.total or day.calls or day.cost for day in self.days)


@dataclass(frozen=True, slots=True)
class DigestSetting:
    """The digests of a chat. ``daily_at``, ``weekly_at``: as the settings write them, "" if they are off."""

    daily: bool
    weekly: bool
    daily_at: str = ""
    weekly_at: str = ""


AlertSubject = Literal["webhook", "phone", "battery", "heat", "model", "knowledge", "disk", "settings", "limit"]


@dataclass(frozen=True, slots=True)
class AlertView:
    """An alert: something is down, or works again.

    subject: phone, battery (low), heat, model, knowledge, disk (nearly full), settings (not usable) or limit (of
        models, reached for today: ``why`` is which one, ``figures`` has spent, limit and currency), or webhook (a
        message was given up).
    name: of the phone, or the number of the webhook. since: in the owner's zone.
    seconds: how long it was down; None while it is.
    """

    subject: AlertSubject
    since: datetime
    name: str = ""
    why: str = ""
    seconds: float | None = None
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Addressee:
    """A chat that gets a message, and its language."""

    chat: ChatRef
    lang: Lang
