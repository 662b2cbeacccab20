"""The rule for giving up on a run whose attempts end prematurely, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.tables import events

MOST_TRIES = 5
STEPS = ("step", "reply", "sweep")  # events that show progress of a run

GaveUp = Callable[[Mapping[str, Any], str], str]
"""Makes the message for a run that was given up, from its options and the last error ("" if only its process died)."""


LeftAlone = Callable[[Mapping[str, Any]], str]
"""Makes the message for a run that ended with its process, from its options.

Its client waited for it, or it was part of a plan.
"""


def plain_words(_options: Mapping[str, Any], error: str) -> str:
    """Return the message of a given-up run in English; a default ``GaveUp``."""
    return f"Begun {MOST_TRIES} times without a step. {error}".strip()


def plainly_left(_options: Mapping[str, Any]) -> str:
    """Return the message of a run that ended with its process in English; a default ``LeftAlone``."""
    return "The server ended in the midst of it. Look at the phone before it is begun again."


async def errors_since_step(connection: AsyncConnection, run_id: str) -> list[str]:
    """Return the errors of the run's last attempts that ended prematurely, newest first.

    The list starts after the last step, and after the last time that the run waited or was put off.
    """
    told = (
        sa.select(events.c.kind, events.c.data)
        .where(events.c.run_id == run_id, events.c.kind.in_(("status", *STEPS)))
        .order_by(events.c.id.desc())
        .limit(3 * MOST_TRIES)
    )
    errors = []
    for kind, data in await connection.execute(told):
        if kind != "status" or (data["status"] in ("waiting", "queued") and "put_back" not in data):
            break
        if "put_back" in data:
            errors.append(str(data["put_back"]))
    return errors
