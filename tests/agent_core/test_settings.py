from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_core.settings import AgentSettings, new_session


def test_the_day_of_a_run_is_the_owners() -> None:
    # 25 hours lie between the two: it is never the same day in both, wherever this machine is.
    east, west = (
        new_session("看看天气", "S1", AgentSettings(timezone=zone))
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago")
    )
    now = datetime.now(UTC)
    assert east.date in {(now + timedelta(hours=14, minutes=minutes)).date().isoformat() for minutes in (-1, 0)}
    assert west.date in {(now - timedelta(hours=11, minutes=minutes)).date().isoformat() for minutes in (0, 1)}
    assert east.date != west.date
