"""What the desk returns of a period's figures, of a chat's subscriptions, and of alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bot.desk.actors import ChatRef

Period = Literal["today", "yesterday", "week", "month", "daily", "weekly"]
Lang = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Bar:
    """The questions of an hour or a day. ``at`` is its beginning, in the owner's zone."""

    at: datetime
    alone: int = 0
    by_person: int = 0
    left: int = 0  # without an answer

    @property
    def total(self) -> int:
        return self.alone + self.by_person + self.left


@dataclass(frozen=True, slots=True)
class Often:
    """A question that was asked ``count`` times, in the words of the newest."""

    example: str
    count: int


@dataclass(frozen=True, slots=True)
class ModelShare:
    """What one model did. ``cost`` is None where its price is not known."""

    name: str
    calls: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class DigestView:
    """What a time came to. Times are in the owner's zone; ``until`` is not inside.

    ``alone`` and ``by_person``: customers' questions that were answered; ``put_to_person``: what runs asked people, of
    every kind. ``median_seconds``: from reading a question to its answer, None where there is none. ``cost`` is None
    without prices. ``kept_since``: what the model used before is not known any more, None where all is.
    ``left``: how many are without an answer, ``unanswered`` the most frequent of them. ``unit``: what a bar stands for.
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
        """All questions of customers."""
        return self.answered + self.skipped + self.failed + self.unknown + self.under_way

    @property
    def answered(self) -> int:
        return self.alone + self.by_person

    @property
    def empty(self) -> bool:
        return not (self.asked or self.put_to_person or self.calls or self.not_found)


@dataclass(frozen=True, slots=True)
class DigestSetting:
    """What a chat gets by itself. ``daily_at``, ``weekly_at``: as the settings write them, "" where off."""

    daily: bool
    weekly: bool
    daily_at: str = ""
    weekly_at: str = ""


@dataclass(frozen=True, slots=True)
class AlertView:
    """``subject``: phone, model, knowledge, disk (nearly full), settings (not usable) or limit (of models, reached for
    today: ``why`` is which, ``figures`` its spent, limit and currency); ``name`` of the phone. ``since`` in the owner's
    zone.

    ``seconds``: how long it was down; None while it is.
    """

    subject: Literal["phone", "model", "knowledge", "disk", "settings", "limit"]
    since: datetime
    name: str = ""
    why: str = ""
    seconds: float | None = None
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Addressee:
    chat: ChatRef
    lang: Lang
