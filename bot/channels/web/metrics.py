"""``/metrics`` in Prometheus' text format.

Figures that several processes share are read from the database at the scrape; those that this one counts have the label
``host``. No label names a customer, a run or a phone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TypeVar

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bot.app.counters import BOUNDS, Counts
from bot.channels.web.problems import CHALLENGE
from bot.desk.keys import actor_of_key
from storage.engine import Database
from storage.gauges import GaugeReader, Gauges
from storage.model_calls import Used

FRESH_SECONDS = 5.0  # how old figures from the database may be
ANSWERS_FRESH_SECONDS = 60.0  # the same for figures that take reading a whole table
PATIENCE_SECONDS = 3.0  # for the database; then older figures are shown
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-IP")  # a proxy asks for somebody else

log = structlog.get_logger(__name__)

Key = TypeVar("Key", bound=tuple[str, ...])


@dataclass
class _Read:
    """Figures from the database, and when they were read (monotonic). ``down``: the last reading failed."""

    gauges: Gauges = field(default_factory=Gauges)
    census_at: float = float("-inf")
    answers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    answers_at: float = float("-inf")
    down: bool = False


class Metrics(Collector):
    """Collects the metrics.

    host: the name of this process.
    seconds: how long a host counts as alive without a heartbeat.
    fresh: False reads the database at each scrape.
    """

    def __init__(
        self, db: Database, counts: Counts, *, host: str, release: str = "", seconds: float = 30.0, fresh: bool = True
    ) -> None:
        self._db = db
        self._counts = counts
        self._host = host
        self._release = release
        self._gauges = GaugeReader(db, seconds=seconds)
        self._keeps = (FRESH_SECONDS, ANSWERS_FRESH_SECONDS) if fresh else (0.0, 0.0)
        self._read = _Read()
        self._reading: asyncio.Task[None] | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    async def text(self) -> bytes:
        """Return the page."""
        await self._refresh()
        return generate_latest(self._registry)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _refresh(self) -> None:
        if time.monotonic() - self._read.census_at < self._keeps[0]:
            return
        # An absent database takes long to answer, and one attempt is enough for all who ask.
        if self._reading is None and self._db.away_since is None:
            self._reading = asyncio.create_task(self._look(), name="metrics")
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=PATIENCE_SECONDS)
        if self._reading is not None or self._db.away_since is not None:
            self._read.down = True

    async def _look(self) -> None:
        try:
            now = time.monotonic()
            self._read.gauges = await self._gauges.take()
            self._read.census_at = now
            if now - self._read.answers_at >= self._keeps[1]:
                self._read.answers = await self._gauges.answers()
                self._read.answers_at = now
        except Exception as error:  # noqa: BLE001 - this process's own figures are still worth showing
            self._read.down = True  # it may answer, with errors
            log.warning("metrics_without_database", error=repr(error))
        else:
            self._read.down = False
        finally:
            self._reading = None

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for the registry."""
        yield from self._process()
        yield from self._counted()
        if self._read.census_at > float("-inf"):
            yield from self._shared()

    def _process(self) -> Iterator[Metric]:
        yield _gauge("phonedesk_build_info", "The release of this process; always 1.", {(self._host, self._release): 1},
                     "host", "release")  # fmt: skip
        away = self._db.away_since
        seconds = (self._db.now() - away).total_seconds() if away is not None else 0.0
        up = 0 if self._read.down or away is not None else 1
        yield _gauge("phonedesk_database_up", "Whether this process reaches the database.", {(self._host,): up}, "host")
        yield _gauge("phonedesk_database_away_seconds", "For how long it has not.", {(self._host,): seconds}, "host")

    def _counted(self) -> Iterator[Metric]:
        counts, host = self._counts, self._host
        yield _counter("phonedesk_steps", "Steps of runs.", {(host, how): n for how, n in counts.steps.items()},
                       "host", "result")  # fmt: skip
        family = HistogramMetricFamily(
            "phonedesk_step_seconds", "Seconds of a step's phases.", labels=["host", "phase"]
        )
        for phase, histogram in counts.seconds.items():
            reached, buckets = 0, []
            for bound, count in zip([*map(str, BOUNDS), "+Inf"], histogram.buckets, strict=True):
                reached += count
                buckets.append((bound, float(reached)))
            family.add_metric([host, phase], buckets, histogram.total)
        yield family
        errors = {(host, *key): n for key, n in counts.model_errors.items()}
        yield _counter("phonedesk_model_errors", "Calls of models that failed.", errors, "host", "model", "kind")
        stand_ins = {(host, *key): n for key, n in counts.stand_ins.items()}
        yield _counter("phonedesk_model_fallbacks", "Replies of models that stood in for another.", stand_ins,
                       "host", "model", "instead_of")  # fmt: skip
        failures = {(host, kind): n for kind, n in counts.failures.items()}
        yield _counter("phonedesk_run_failures", "Runs that failed by an error.", failures, "host", "kind")

    def _shared(self) -> Iterator[Metric]:
        gauges = self._read.gauges
        yield _gauge("phonedesk_runs", "Runs, by status.", _keys(gauges.runs), "status")
        yield _gauge("phonedesk_runs_in_line", "Runs that wait for a phone.", {(): gauges.in_line})
        yield _gauge("phonedesk_questions_open", "Questions that wait for a person.", _keys(gauges.questions), "kind")
        yield _gauge("phonedesk_phones", "Phones, as adb sees them.", _keys(gauges.phones), "state")
        yield _gauge("phonedesk_hosts", "Processes that work phones.", _keys(gauges.hosts), "state")
        yield _gauge("phonedesk_leases", "Phones that somebody has.", {(): gauges.leases})
        yield _gauge("phonedesk_outbox_pending", "Messages to send.", {(): gauges.outbox})
        yield _gauge("phonedesk_outbox_oldest_seconds", "How long the oldest has waited.", {(): gauges.oldest_out})
        yield _gauge("phonedesk_inbox_pending", "Updates of Telegram to deal with.", {(): gauges.inbox})
        yield _gauge(
            "phonedesk_schedule_ticks", "Ticks of the schedules that there are.", _keys(gauges.ticks), "result"
        )
        yield from _models(gauges.models)
        answers = {(origin or "none", state): n for (origin, state), n in self._read.answers.items()}
        yield _gauge(
            "phonedesk_answers", "Customers' questions, by what became of them.", answers, "provenance", "state"
        )


def _models(models: Mapping[str, Used]) -> Iterator[Metric]:
    calls = {(model,): used.calls for model, used in models.items()}
    yield _counter("phonedesk_model_calls", "Calls of models that gave a reply.", calls, "model")
    tokens = {(model, "in"): used.tokens_in for model, used in models.items()}
    tokens |= {(model, "out"): used.tokens_out for model, used in models.items()}
    tokens |= {(model, "cached"): used.tokens_cached for model, used in models.items()}
    yield _counter("phonedesk_model_tokens", "Tokens of models; cached ones are in, too.", tokens, "model", "direction")
    costs = {(model,): used.cost for model, used in models.items()}
    yield _counter("phonedesk_model_cost", "What they cost, by the prices of the settings.", costs, "model")


def _keys(counts: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(key,): count for key, count in counts.items()}


def _gauge(name: str, told: str, values: Mapping[Key, float], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, told, labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _counter(name: str, told: str, values: Mapping[Key, float], *labels: str) -> Metric:
    family = CounterMetricFamily(name, told, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def add_metrics(app: web.Application, metrics: Metrics, db: Database, host: str) -> None:
    """Serve ``GET /metrics``. On loopback anybody may read it; elsewhere, or through a proxy, an API key is needed."""

    async def page(request: web.Request) -> web.Response:
        if not (is_loopback(host) and not any(name in request.headers for name in FORWARDED)):
            actor = await actor_of_key(db, request.headers.get("Authorization", ""))
            if actor is None:
                return web.Response(status=401, text="An API key is needed.\n", headers=CHALLENGE)
        return web.Response(body=await metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.router.add_get("/metrics", page)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
