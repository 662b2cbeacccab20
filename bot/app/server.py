"""The server of ``phonedesk serve``: the durable queue, the clock, the bot and the web server in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import DeviceEntry
from agent_core.errors import DeviceOffline
from bot.app.core import Core, open_core
from bot.app.health import Health
from bot.app.learning import CoreLearning
from bot.app.models import prices_of
from bot.app.plans.service import PlanService
from bot.app.reload import Reloader
from bot.app.server_names import web_names
from bot.app.settings.layers import Settings
from bot.app.shutdown import wait_no_longer
from bot.app.worker import Working, fleet_of, metrics_of, until_ended, working
from bot.channels.mcp.door import mcp_door
from bot.channels.telegram.adapter import WEBHOOK_PATH, TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.channels.web import layered_agent
from bot.channels.web.app import make_app, serving
from bot.channels.web.metrics import add_metrics
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.pairing import RequestLimit
from scheduler.clock import Clock
from scheduler.jobs.alerts import AlertTimes, AlertWatch
from scheduler.jobs.deadlines import QuestionWatch
from scheduler.jobs.digests import DigestWatch, digest_times
from scheduler.jobs.housekeeping import Housekeeping
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.host import ClockCheck
from scheduler.runs.service import RunService
from scheduler.times import parse_quiet, parse_zone
from scheduler.times.quiet import Quiet, quiet_of
from storage.inbox import InboxTable
from storage.outbox import OutboxTable
from storage.topics import TopicTable

log = structlog.get_logger(__name__)


@dataclass
class Server:
    """A server that is running. ``url`` is the web server's."""

    settings: Settings
    desk: Desk
    url: str
    telegram: TelegramAdapter | None
    work: Working | None  # None if only other machines have phones
    mcp_url: str = ""  # for MCP clients; "" if they are not served


@asynccontextmanager
async def server(settings: Settings, read: Callable[[], Settings] | None = None) -> AsyncIterator[Server]:
    """Start all parts in order, and stop them: first the intake (bot, web, clock), then the attempts, then the queue.

    read: reads the settings again, so that changes are taken over while the server runs. None: they stay as they are.
    """
    async with AsyncExitStack() as stack:
        core = await stack.enter_async_context(open_core(settings))
        work = await stack.enter_async_context(working(core, tells=True)) if settings.device.here else None
        if work is None:
            await _start_dispatcher(stack, core)
        service = RunService(core.db, worker=work.worker if work else None)
        planning = PlanService(core, work.worker, service) if work is not None else None
        if planning is not None:
            stack.push_async_callback(planning.close)
        clock = Clock(core.db, limited=core.limited, seconds=settings.queue.lost_after_seconds)
        await clock.start()
        stack.push_async_callback(clock.stop)
        watch = QuestionWatch(core.db)
        await watch.start()
        stack.push_async_callback(watch.stop)
        housekeeping = Housekeeping(
            core.db,
            keep=timedelta(days=settings.keep_days),
            keep_shown=timedelta(days=settings.trajectory.picture_days),
            zone=parse_zone(settings.timezone) if settings.timezone else None,
        )
        await housekeeping.start()
        stack.push_async_callback(housekeeping.stop)
        desk = Desk(
            DeskContext(
                core.db,
                service,
                core.phones if work is not None else _no_phones,
                core.device if work is not None else _no_phone,
                timezone=settings.timezone,
                serial=settings.device.serial,
                store=core.store,
                provider=settings.knowledge.provider,
                pace=RequestLimit(settings.telegram.per_minute),
                escalate_chat=settings.questions.escalate_chat,
                digest_at=(settings.digest.daily, settings.digest.weekly),
                alert_chat=settings.alerts.chat,
                lang=settings.lang,
                keep=timedelta(days=settings.keep_days),
                prices=prices_of(settings.price),
                picture=core.picture,
                page=core.page,
                names=settings.device.names,
                glance=core.glance if work is not None else _no_phones,
                fleet=fleet_of(core),
                host=work.host.name if work is not None else "",
                planning=planning,
                learning=CoreLearning(core) if work is not None else None,
            )
        )
        quiet = quiet_of(settings.quiet.hours, settings.timezone)
        core.followers.append(partial(_follow, desk, quiet, housekeeping))
        reloader = Reloader(core, read) if read is not None else None
        if reloader is not None:
            await reloader.start()
            stack.push_async_callback(reloader.stop)
        telegram = _telegram(settings, core, desk, quiet)

        async def ready() -> Mapping[str, bool]:
            parts = {"database": core.db.away_since is None}
            if work is not None:
                parts["queue"] = work.queue.running
            if telegram is not None:
                parts["telegram"] = telegram.ready.is_set()
            return parts

        app = make_app(ready, web_names(settings.web, settings.telegram), settings.lang)
        metrics = metrics_of(core)
        stack.push_async_callback(metrics.close)
        add_metrics(app, metrics, core.db, settings.web.host)
        layered_agent.add_routes(app, desk, core.db)
        if telegram is not None:
            telegram.add_routes(app)
        url = await stack.enter_async_context(serving(app, settings.web.host, settings.web.port))
        if telegram is not None:
            await _start_news(stack, settings, core, desk, quiet, reloader)
            await stack.enter_async_context(telegram)
        mcp_url = ""
        if settings.mcp.enabled:
            mcp_url = await stack.enter_async_context(mcp_door(core, work.worker if work is not None else None))
        stack.callback(wait_no_longer, core.db, settings.queue.drain_seconds)
        yield Server(settings, desk, url, telegram, work, mcp_url)


async def _no_phones() -> list[DeviceEntry]:
    return []


async def _no_phone(serial: str) -> AdbDevice:
    said = f"There is no phone {serial} here." if serial else "There is no phone here."
    raise DeviceOffline(
        said,
        advice="See /devices for the phones, and the machines that they are at.",
        key="phone_elsewhere",
        phone=serial,
    )


async def _start_dispatcher(stack: AsyncExitStack, core: Core) -> None:
    """Start the dispatcher of a server without phones: for what becomes due, and what queued runs tell of their phones.

    Raises ConfigInvalid if this machine's clock is wrong, because it would take working hosts for dead.
    """

    async def here() -> list[str]:
        return []

    seconds = core.settings.queue.lost_after_seconds
    if (wrong := await ClockCheck(core.db, seconds).wrong()) is not None:
        raise wrong
    dispatcher = Dispatcher(
        core.db, None, phones=here, fleet=fleet_of(core), lease_seconds=seconds, lang=core.settings.lang
    )
    await dispatcher.start()
    stack.push_async_callback(dispatcher.stop)


def _follow(desk: Desk, quiet: Quiet, housekeeping: Housekeeping, settings: Settings) -> None:
    """Give changed settings to the parts that use them."""
    quiet.hours = parse_quiet(settings.quiet.hours)
    housekeeping.keep = timedelta(days=settings.keep_days)
    housekeeping.keep_shown = timedelta(days=settings.trajectory.picture_days)
    context = desk.context
    context.pace.per_minute = settings.telegram.per_minute
    context.provider = settings.knowledge.provider
    context.escalate_chat = settings.questions.escalate_chat
    context.alert_chat = settings.alerts.chat
    context.keep = housekeeping.keep
    context.prices = prices_of(settings.price)
    context.names = settings.device.names


async def _start_news(
    stack: AsyncExitStack, settings: Settings, core: Core, desk: Desk, quiet: Quiet, reloader: Reloader | None
) -> None:
    """Start digests and alerts. Only with a bot: otherwise a bot that is added later would send all of them at once."""
    digests = DigestWatch(
        core.db,
        digest_times(settings.digest.daily, settings.digest.weekly),
        quiet.zone,
        quiet,
        chats=desk.digest.chats,
        is_empty=desk.digest.is_empty,
    )
    await digests.start()
    stack.push_async_callback(digests.stop)
    alerts = settings.alerts
    if not alerts.after_minutes:
        return
    health = Health(core)
    stack.push_async_callback(health.close)
    times = AlertTimes(timedelta(minutes=alerts.after_minutes), timedelta(minutes=alerts.poll_minutes))
    probes = health.probes if reloader is None else {**health.probes, "settings": reloader.probe}
    watch = AlertWatch(core.db, times, phones=health.phones, probes=probes)
    await watch.start()
    stack.push_async_callback(watch.stop)


def _telegram(settings: Settings, core: Core, desk: Desk, quiet: Quiet) -> TelegramAdapter | None:
    telegram = settings.telegram
    token = telegram.token.get_secret_value()
    if not token:
        return None
    api = telegram.api_base_url.rstrip("/")
    options = TelegramOptions(
        token,
        base_url=f"{api}/bot",
        base_file_url=f"{api}/file/bot",
        proxy=settings.telegram_proxy,
        quiet=quiet,
    )
    if telegram.mode == "webhook":
        url = telegram.webhook_url.rstrip("/")
        options = replace(options, webhook_url=url if url.endswith(WEBHOOK_PATH) else url + WEBHOOK_PATH)
        if secret := telegram.webhook_secret.get_secret_value():
            options = replace(options, webhook_secret=secret)
    options = replace(options, topics=telegram.topics)
    return TelegramAdapter(desk, InboxTable(core.db), OutboxTable(core.db), options, topics=TopicTable(core.db))


async def serve_until(
    settings: Settings,
    ended: asyncio.Event,
    say: Callable[[Server], Coroutine[Any, Any, None]],
    read: Callable[[], Settings] | None = None,
) -> None:
    """Serve until ``ended`` is set.

    say: called when everything is up; it may wait for what is not ready yet. read: see ``server``.
    """
    async with server(settings, read) as running:
        saying = asyncio.create_task(say(running), name="say-up")
        try:
            await until_ended(ended, running.work)
        finally:
            saying.cancel()
            with suppress(asyncio.CancelledError):
                await saying
