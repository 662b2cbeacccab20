"""Limits of model calls by minute and day, counted in the database over all processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from agent_core.errors import ModelError, ModelLimit
from agent_core.model.base import Usage
from agent_core.model.usage import Meter, account, money
from agent_core.retry import Sleep
from bot.app.counters import Counts
from bot.app.models import prices_of, unpriced
from bot.app.settings.layers import Settings
from bot.app.settings.sections import LimitSettings
from storage.engine import Database
from storage.model_calls import UsageTotals, Used
from storage.outages import Outages

MOST_MINUTES = 10  # how long a call waits for a minute below the limit
SUBJECT = "limit"  # of the alert

log = structlog.get_logger(__name__)


def limits_a_day(limits: LimitSettings) -> bool:
    """Tell whether there is any limit by day."""
    return bool(limits.day_calls or limits.day_tokens or limits.day_cost)


def reached(limits: LimitSettings, used: Used, currency: str) -> ModelLimit | None:
    """Return the error to raise if one of the day's limits is reached, else None."""
    every: tuple[tuple[str, float, float, Callable[[float], str]], ...] = (
        ("day_calls", used.calls, limits.day_calls, _count),
        ("day_tokens", used.tokens, limits.day_tokens, _count),
        ("day_cost", used.cost, limits.day_cost, money),
    )
    for key, spent, limit, shown in every:
        if limit and spent >= limit:
            values = {"spent": shown(spent), "limit": shown(limit), "currency": currency}
            said = f"Today's limit of {key.removeprefix('day_')} for models is reached: {spent:g} of {limit:g}."
            advice = f"Raise PHONEDESK_LIMITS__{key.upper()}, or wait until tomorrow."
            return ModelLimit(said, advice=advice, key=key, **values)
    return None


class StoredMeter(Meter):
    """A meter that counts calls for the run and the day, and enforces the settings' limits. The day is the owner's.

    A call is refused, or waits, before it is made. Calls under way are not cut off, so a limit can be exceeded by as
    many calls as are made at once. Reading a picture is counted but never refused, because it may be the check whether
    an answer has arrived; so are calls of a run that owes a customer the rest of an answer. Failed calls are counted in
    ``counts``.
    """

    def __init__(
        self, db: Database, settings: Settings, counts: Counts | None = None, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        super().__init__()
        self._counts = counts or Counts()
        self._db = db
        self._totals = UsageTotals(db)
        self._outages = Outages(db)
        self._sleep = sleep
        self.follow(settings)

    def follow(self, settings: Settings) -> None:
        """Use the limits and prices of these settings from now on."""
        self.prices = prices_of(settings.price)
        self._limits = settings.limits
        self._zone = ZoneInfo(settings.timezone)
        if names := unpriced(settings):
            log.warning("price_missing", models=names, limits="by cost do not count their calls")

    @property
    def today(self) -> date:
        """The day in the owner's zone."""
        return self._db.now().astimezone(self._zone).date()

    async def check(self) -> None:
        """Raise ModelLimit if today's limit is reached. The owner is informed once a day."""
        if not limits_a_day(self._limits):
            return
        day = self.today
        error = reached(self._limits, await self._totals.of_day(day), self.prices.currency)
        if error is not None:
            if await self._outages.once(SUBJECT, day.isoformat(), {"why": error.key, **error.values}):
                log.warning("model_limit_reached", which=error.key, **error.values)
            raise error

    async def admit(self, model: str) -> None:
        """Wait until a call may be made. Raises ModelLimit if today's limit is reached or no minute is free in time."""
        run = account()
        if run is not None and run.owes():
            return
        await self.check()
        limits = self._limits
        if not (limits.minute_calls or limits.minute_cost):
            return
        for _ in range(MOST_MINUTES + 1):
            now, minute = self._db.now(), self._minute()
            if await self._totals.take(minute, calls=limits.minute_calls, cost=limits.minute_cost):
                return
            wait = (minute + timedelta(minutes=1) - now).total_seconds()
            log.info("model_call_waits", model=model, seconds=round(wait, 1))
            await self._sleep(wait)
        raise ModelLimit(
            f"No call of {model} was free for {MOST_MINUTES} minutes.",
            advice="Raise PHONEDESK_LIMITS__MINUTE_CALLS or PHONEDESK_LIMITS__MINUTE_COST.",
            key="minute",
            minutes=MOST_MINUTES,
        )

    async def count(self, model: str, usage: Usage) -> None:
        """Count a call for the run, the day and, if its cost is limited, the minute."""
        cost = self.prices.of(model, usage)
        self._charge(usage, cost)
        used = Used(1, usage.tokens_in, usage.tokens_out, usage.tokens_cached, cost or 0.0)
        minute = self._minute() if self._limits.minute_cost else None
        await self._totals.add(self.today, model, used, minute=minute)

    def failed(self, model: str, error: ModelError) -> None:
        """Count a try of a call that failed."""
        self._counts.failed(model, error)

    def stood_in(self, model: str, instead_of: str) -> None:
        """Count a reply of a fallback."""
        self._counts.stood_in(model, instead_of)

    def _minute(self) -> datetime:
        return self._db.now().replace(second=0, microsecond=0)


def _count(number: float) -> str:
    return f"{int(number):,}"


class Counted(Meter):
    """A meter that counts with another one and refuses nothing: for checks whether a model works at all."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter.prices)
        self._meter = meter

    async def count(self, model: str, usage: Usage) -> None:
        """Count a call with the other meter."""
        await self._meter.count(model, usage)

    def failed(self, model: str, error: ModelError) -> None:
        """Count a failed try with the other meter."""
        self._meter.failed(model, error)
