"""What a leg writes counts only while it is that leg's turn: one that lost its run writes nothing over the next."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_core.errors import LeaseLost
from storage.tables import runs


async def hold_turn(connection: AsyncConnection, run_id: str, leg: int | None) -> None:
    """Raise LeaseLost if it is not the turn of ``leg``: another leg has the run, or the run is over.

    Within the transaction the turn is not lost before its end. ``leg``: None for what is written by no leg.
    """
    if leg is None:
        return
    mine = sa.select(runs.c.id).where(runs.c.id == run_id, runs.c.leg == leg, runs.c.status == "running")
    if (await connection.execute(mine.with_for_update())).first() is None:
        raise LeaseLost(f"Leg {leg} of the run {run_id} is over.", key="leg_over")
