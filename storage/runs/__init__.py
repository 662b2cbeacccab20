"""Runs and their attempts.

A run is a row. An attempt is one try at it by a worker. ``attempt`` is the number of the current attempt, and
``attempt_due_at`` says when it is due (None: no attempt is to be started). Every change of state is one conditional
statement, so that only one of two concurrent callers succeeds; the other gets False or None.

``queued`` → ``running`` → ``waiting`` (for a person; the attempt is over) → ``running`` → ``succeeded | failed |
stopped``

A run that was put off, because something that it needs is away, is ``queued`` again until its next attempt is due.

``hold``: a person parked the run. No attempt is due until Resume; an attempt that is still active is to end.

Each change of the status is written to the event log in the same transaction, as an event ``status`` with ``status``,
``message``, ``attempt``, ``serial`` and ``hold``, so that a card that follows the log learns of the end exactly once.
If an attempt ended prematurely, the event also has ``put_back``, its error ("" if its process died). The tries are
counted by these.
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
