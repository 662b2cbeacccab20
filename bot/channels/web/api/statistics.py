"""The figures of the last days over HTTP."""

from __future__ import annotations

from bot.channels.web.api.models import ApiStatistics, ApiStatisticsQuery
from bot.channels.web.api.operations import ApiCall, Operations

operations = Operations("statistics")


@operations.get("/statistics")
async def get_statistics(call: ApiCall, query: ApiStatisticsQuery) -> ApiStatistics:
    """Show the figures of each of the last days, and which failures there were."""
    return ApiStatistics.of(await call.desk.digest.days(call.actor, query.days))
