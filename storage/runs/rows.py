"""The row of a run, and the data for a new run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from storage.tables import runs

QUEUED, RUNNING, WAITING = "queued", "running", "waiting"
SUCCEEDED, FAILED, STOPPED = "succeeded", "failed", "stopped"
LONGEST_PUT_OFF = timedelta(minutes=10)  # a time further ahead was written by a wrong clock
ACTIVE = (QUEUED, RUNNING, WAITING)
FINAL = (SUCCEEDED, FAILED, STOPPED)
PLAN, PLAN_PART = "plan", "part"  # the option ``kind`` of a plan (see ``storage.plans``) and of its runs

# Lists leave the session out, because it may be long.
LISTED = (*(column for column in runs.c if column.name != "session"), sa.null().label("session"))


@dataclass(frozen=True, slots=True)
class RunRow:
    """The row of a run.

    - ``serial``: the phone wanted or given, "" for any.
    - ``any_phone``: the run asked for no phone, and ``serial`` was chosen for it.
    - ``session``: JSON text as saved by the agent, None before that.
    - ``chat``: the place of the request (channel, chat, thread, message).
    - ``options``: max_steps, lang, dry_run …
    - ``host`` took attempt ``host_attempt``.
    - ``parent_id``: the sweep or plan that it belongs to. A sweep waits until all its runs are over, and ends with the
      last one; a plan ends by itself.
    """

    id: str
    task: str
    serial: str
    status: str
    priority: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    message: str
    session: str | None
    options: Mapping[str, Any]
    requested_by: str
    chat: Mapping[str, Any] | None
    schedule_id: int | None
    planned_at: datetime | None
    attempt: int
    attempt_due_at: datetime | None
    stop_requested: bool
    hold: bool
    stopped_by: str = ""
    parent_id: str = ""
    host: str = ""
    host_attempt: int = 0
    any_phone: bool = False

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def was_added_begun(self) -> bool:
        """True if it was added as ``NewRun.begun`` and is running: no host took it from the line."""
        return self.status == RUNNING and self.host_attempt == 0

    @property
    def again_at(self) -> datetime | None:
        """The time at which a run that was put off resumes; None for other runs."""
        return self.attempt_due_at if self.status == QUEUED and self.started_at is not None else None

    @property
    def wanted(self) -> str:
        """The phone that it must have, "" if any will do. A run that has begun stays on its phone."""
        return "" if self.any_phone and self.started_at is None else self.serial

    def taken_by(self) -> str:
        """Return the host that took the current attempt, or "" if none did."""
        return self.host if self.host_attempt == self.attempt else ""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be added.

    begun: its first attempt is already active in the process that adds it; no worker is to start it.
    parent_id: the sweep or plan that it belongs to.
    """

    task: str
    serial: str = ""
    priority: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    requested_by: str = ""
    chat: Mapping[str, Any] | None = None
    schedule_id: int | None = None
    planned_at: datetime | None = None
    begun: bool = False
    parent_id: str = ""
