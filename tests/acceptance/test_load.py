"""The HTTP API with many programs at once, in short; the long form is ``python -m tests.acceptance.api_load``."""

from __future__ import annotations

import statistics

from tests.acceptance.api_load import loaded, own_server


async def test_two_hundred_streams_and_fifty_requests_a_second_beside_a_run() -> None:
    async with own_server(listed=0) as (url, key):
        load = await loaded(url, key, streams=200, rate=50, seconds=4, runs=True)
    assert load.failed == {}
    assert len(load.seconds) > 150
    assert len(load.runs) >= 1
    assert len(load.late) >= 200 * 5, "every stream hears of the run: taken, begun, its steps, its end"
    # 7 ms and 70 ms on a machine at rest
    assert statistics.median(load.seconds) < 1
    assert statistics.median(load.late) < 2
