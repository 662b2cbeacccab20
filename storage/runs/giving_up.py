"""How often a run is begun again that gets nowhere: its attempts end before their time, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.tables import events

MOST_TRIES = 5
STEPS = ("step", "reply", "sweep")  # events by which a run got on

GaveUp = Callable[[Mapping[str, Any], str], str]
"""What people are told of a run that was given up: its options, the last error ("" where only its process died)."""


LeftAlone = Callable[[Mapping[str, Any]], str]
"""What people are told of a run that ended with its process, by its options: one whose client waited for it, or a
part of a plan."""


def plain_words(_options: Mapping[str, Any], error: str) -> str:
    """A ``GaveUp`` that knows no language."""
    return f"Begun {MOST_TRIES} times without a step. {error}".strip()


def plainly_left(_options: Mapping[str, Any]) -> str:
    """A ``LeftAlone`` that knows no language."""
    return "The server ended in the midst of it. Look at the phone before it is begun again."


async def errors_since_step(connection: AsyncConnection, run_id: str) -> list[str]:
    """What its last attempts ended by before their time, the newest first; [] once it got on, or rested in between."""
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
