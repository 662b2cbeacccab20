"""The views of webhooks and their deliveries, and the events that they can be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

# The kinds of events that a webhook can be sent, those of ``EventView.kind``.
KINDS: tuple[str, ...] = (
    "started",
    "status",
    "step",
    "thinking",
    "note",
    "question",
    "answered",
    "closed",
    "reminder",
    "escalated",
    "resumed",
    "reply",
    "answer",
    "learnt",
    "outcome",
    "phone",
    "take_over",
    "sweep",
    "schedule",
    "alert",
    "digest",
    "paired",
    "message",
    "tool_call",
    "tool_result",
)


May = Literal["run", "answer"]  # the rights of an incoming webhook


@dataclass(frozen=True, slots=True)
class WebhookView:
    """A webhook. state: "failing" after a failed attempt, "disabled" after its receiver answered 410.

    waiting, dead: how many messages wait, and how many were given up. Times are in the owner's zone.
    """

    id: int
    url: str
    events: Sequence[str]
    state: Literal["active", "failing", "disabled"]
    waiting: int
    dead: int
    created_at: datetime
    old_secret_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A message to a webhook, and its last attempt. Times are in the owner's zone.

    status: of the HTTP answer; None if there was none. seconds: how long the attempt took.
    answer: the first 1 KB of the answer. error: why there was no answer, or why it was given up with another message.
    next_at: when it is sent again; None once it was delivered or given up, and while it waits for another one.
    waits_for: the id of the message that goes before it.
    """

    id: int
    message_id: str
    event: str
    state: Literal["pending", "delivered", "dead"]
    attempts: int
    status: int | None
    seconds: float | None
    error: str
    answer: str
    next_at: datetime | None
    waits_for: int | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class IncomingView:
    """An incoming webhook. phones: the only serials that it may use; empty for all. Times are in the owner's zone."""

    name: str
    may: May
    phones: Sequence[str]
    created_at: datetime
    old_secret_until: datetime | None = None
