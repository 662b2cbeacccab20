"""Whether a heartbeat is fresh, one rule for all rows that have one which others act upon."""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa


def fresh(
    heartbeat: sa.ColumnElement[datetime | None], now: datetime, ttl: timedelta, part: float = 1.0
) -> sa.ColumnElement[bool]:
    """``part``: of ``ttl``. One of the future is as good as none: the clock was put back since."""
    return sa.and_(heartbeat > now - ttl * part, heartbeat < now + ttl)
