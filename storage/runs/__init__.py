"""Runs and their attempts.

A run is a row; an attempt is one go at it by a worker. ``attempt`` is the number of the current attempt,
``attempt_due_at`` says that it is to be started (None: nothing is to be started). Every change of state is one
conditional statement, so that of two who try only one succeeds; the other is told by False or None.

``queued`` → ``running`` → ``waiting`` (for a person; the attempt is over) → ``running`` → ``succeeded | failed |
stopped``

A run that was put off, because what it needs is away, is ``queued`` again until its next attempt is due.

``hold``: a person parked the run. No attempt of it is due until Resume; while one is at work still, it is to end.

Each change of the status is told in the event log in the same transaction, as an event ``status`` with ``status``,
``message``, ``attempt``, ``serial`` and ``hold``: a card that follows the log learns of the end exactly once. An
attempt that ended before its time is told with ``put_back``, its error ("" where its process died): by these the tries
are counted.
"""

from storage.runs.repository import Runs
from storage.runs.rows import (
    ACTIVE,
    FAILED,
    FINAL,
    PLAN,
    PLAN_PART,
    QUEUED,
    RUNNING,
    STOPPED,
    SUCCEEDED,
    WAITING,
    NewRun,
    RunRow,
)

__all__ = [
    "ACTIVE",
    "FAILED",
    "FINAL",
    "PLAN",
    "PLAN_PART",
    "QUEUED",
    "RUNNING",
    "STOPPED",
    "SUCCEEDED",
    "WAITING",
    "NewRun",
    "RunRow",
    "Runs",
]
