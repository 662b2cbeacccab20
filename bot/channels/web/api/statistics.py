"""The figures of the last days over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AliasPath, Field

from bot.channels.web.api.operations import ApiCall, Operations, Shown, Wish

operations = Operations("statistics")


class ApiStatisticsQuery(Wish):
    days: Annotated[int, Field(ge=7, le=90, description="7, 30 or 90.")] = 7


class ApiDayFigures(Shown):
    """A day, from ``at`` on.

    alone, by_person: customers' questions that were answered without and by a person. left: those without an answer.
    median_seconds: from reading a question to its answer; null if none was answered.
    calls, tokens_in, tokens_out, cost: of models; the cost is null if no price is known.
    """

    at: datetime = Field(validation_alias=AliasPath("bar", "at"))
    alone: int = Field(validation_alias=AliasPath("bar", "alone"))
    by_person: int = Field(validation_alias=AliasPath("bar", "by_person"))
    left: int = Field(validation_alias=AliasPath("bar", "left"))
    median_seconds: float | None
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None


class ApiFailures(Shown):
    """How many runs failed with a kind of error; "" for none of its own."""

    kind: str
    count: int


class ApiStatistics(Shown):
    """The days, the oldest first, and the failures in all of them, the most frequent first.

    kept_since: what models used and what failed before this time is no longer known; null if all is.
    """

    days: list[ApiDayFigures]
    failures: list[ApiFailures]
    currency: str
    kept_since: datetime | None


@operations.get("/statistics")
async def get_statistics(call: ApiCall, query: ApiStatisticsQuery) -> ApiStatistics:
    """Show the figures of each of the last days, and which failures there were."""
    return ApiStatistics.of(await call.desk.digest.days(call.actor, query.days))
