"""What an attempt writes counts only while it is that attempt's turn: one that lost its run writes nothing over the
next.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_core.errors import LeaseLost
from storage.tables import runs


async def hold_turn(connection: AsyncConnection, run_id: str, attempt: int | None) -> None:
    """Raise LeaseLost if it is not the turn of ``attempt``: another attempt has the run, or the run is over.

    Within the transaction the turn is not lost before its end. ``attempt``: None for what is written by no attempt.
    """
    if attempt is None:
        return
    mine = sa.select(runs.c.id).where(runs.c.id == run_id, runs.c.attempt == attempt, runs.c.status == "running")
    if (await connection.execute(mine.with_for_update())).first() is None:
        raise LeaseLost(f"Attempt {attempt} of the run {run_id} is over.", key="attempt_over")
