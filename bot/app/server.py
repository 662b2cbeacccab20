"""The server of ``phonedesk serve``: the durable queue, the clock, the bot and the web server in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from agent_core.devices.base import Device, DeviceEntry
from agent_core.errors import DeviceOffline
from bot.app.core import Core, open_core
from bot.app.health import Health
from bot.app.learning import CoreLearning
from bot.app.models import prices_of
from bot.app.notify import Notifier, services_of
from bot.app.phones import OwnPhones
from bot.app.plans.service import PlanService
from bot.app.reload import Reloader
from bot.app.server_names import CONSOLE, web_address, web_names
from bot.app.settings.layers import Settings
from bot.app.settings.origin import survey
from bot.app.shutdown import start_in, wait_no_longer
from bot.app.take_over import TakeOvers
from bot.app.worker import RunningWorker, fleet_of, metrics_of, running_worker, until_ended
from bot.channels.mcp.door import mcp_door
from bot.channels.web import layered_agent
from bot.channels.web.api.routes import add_api
from bot.channels.web.app import Probe, make_app, serving
from bot.channels.web.console.routes import add_console
from bot.channels.web.hooks import add_hooks
from bot.channels.web.metrics import add_metrics
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.live_screens import LiveScreens
from bot.desk.request_limits import RequestLimit
from bot.desk.webhook_client import TargetRules, WebhookClient
from bot.desk.webhooks import WebhookSender
from scheduler.clock import Clock
from scheduler.jobs.alerts import AlertTimes, AlertWatch
from scheduler.jobs.deadlines import QuestionWatch
from scheduler.jobs.digests import DigestChat, DigestWatch, digest_times
from scheduler.jobs.housekeeping import Housekeeping
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.host import ClockCheck
from scheduler.runs.service import RunService
from scheduler.times import parse_quiet, parse_zone
from scheduler.times.shop import Quiet, quiet_of
from storage.chats import TopicTable
from storage.messages import InboxTable, OutboxTable

if TYPE_CHECKING:
    from bot.channels.telegram.adapter import TelegramAdapter

log = structlog.get_logger(__name__)

SHOW_SECONDS = 3.0  # at the end, for chats that are behind


@dataclass
class Server:
    """A server that is running. ``url`` is the web server's."""

    settings: Settings
    desk: Desk
    url: str
    telegram: TelegramAdapter | None
    work: RunningWorker | None  # None if only other machines have phones
    mcp_url: str  # for MCP clients; "" if they are not served
    drain: Callable[[], Awaitable[None]]  # all work on phones ends, and is shown; a second call changes nothing


@asynccontextmanager
async def server(settings: Settings, read: Callable[[], Settings] | None = None) -> AsyncIterator[Server]:
    """Start all parts in order, and stop them: first the intake of Telegram and MCP, then plans and attempts, while
    chats still show what happens, then everything else. What comes by the web meanwhile waits for the next start.

    read: reads the settings again, so that changes are taken over while the server runs. None: they stay as they are.
    """
    async with AsyncExitStack() as stack:
        core = await stack.enter_async_context(open_core(settings))
        work = await stack.enter_async_context(running_worker(core, tells=True)) if settings.device.here else None
        ending = await stack.enter_async_context(AsyncExitStack())  # ends the work on phones
        if work is not None:
            ending.push_async_callback(work.drain)
        else:
            await _start_dispatcher(stack, core)
        service = RunService(core.db, worker=work.worker if work else None)
        planning = PlanService(core, work.worker, service) if work is not None else None
        if planning is not None:
            ending.push_async_callback(planning.close)
        housekeeping = await _start_by_the_clock(stack, core)
        take_overs = TakeOvers(core) if work is not None else None
        if take_overs is not None:
            ending.push_async_callback(take_overs.close)
        desk = _desk(core, service, work, planning, take_overs)
        stack.push_async_callback(desk.context.screens.close)
        quiet = quiet_of(settings.quiet.hours, settings.timezone)
        core.followers.append(partial(_follow, desk, quiet, housekeeping))
        reloader = Reloader(core, read) if read is not None else None
        if reloader is not None:
            await start_in(stack, reloader)
        telegram = _telegram(settings, core, desk, quiet)
        await _start_outgoing(stack, settings, core, desk)
        await _start_digests(stack, settings, core, desk, quiet)
        await _start_alerts(stack, settings, core, reloader)

        app = _web_app(stack, core, desk, _ready(core, work, telegram))
        if telegram is not None:
            telegram.add_routes(app)
        url = await stack.enter_async_context(serving(app, settings.web.host, settings.web.port))
        port = urlsplit(url).port or 0
        desk.context.console_url = web_address(settings.web, settings.telegram, port=port) + CONSOLE
        if telegram is not None:
            await stack.enter_async_context(telegram)
        mcp_url = ""
        if settings.mcp.enabled:
            mcp_url = await ending.enter_async_context(mcp_door(core, work.worker if work is not None else None))
        if telegram is not None:
            ending.push_async_callback(telegram.stop_intake)
        ending.callback(wait_no_longer, core.db, settings.queue.drain_seconds)
        draining = await stack.enter_async_context(AsyncExitStack())
        if telegram is not None:
            draining.push_async_callback(telegram.show_rest, SHOW_SECONDS)
        draining.push_async_callback(ending.aclose)
        yield Server(settings, desk, url, telegram, work, mcp_url, draining.aclose)


def _ready(core: Core, work: RunningWorker | None, telegram: TelegramAdapter | None) -> Probe:
    """Return the probe that tells which parts of the server are ready."""

    async def ready() -> Mapping[str, bool]:
        parts = {"database": core.db.away_since is None}
        if work is not None:
            parts["queue"] = work.queue.running
        if telegram is not None:
            parts["telegram"] = telegram.ready.is_set()
        return parts

    return ready


async def _start_by_the_clock(stack: AsyncExitStack, core: Core) -> Housekeeping:
    """Start the periodic work: schedules, unanswered questions, and the deletion of old rows."""
    settings = core.settings
    await start_in(stack, Clock(core.db, limited=core.limited, seconds=settings.queue.lost_after_seconds))
    await start_in(stack, QuestionWatch(core.db))
    housekeeping = Housekeeping(
        core.db,
        keep=timedelta(days=settings.keep_days),
        keep_shown=timedelta(days=settings.trajectory.picture_days),
        zone=parse_zone(settings.timezone) if settings.timezone else None,
    )
    await start_in(stack, housekeeping)
    return housekeeping


def _desk(
    core: Core,
    service: RunService,
    work: RunningWorker | None,
    planning: PlanService | None,
    take_overs: TakeOvers | None,
) -> Desk:
    """Return the desk of this process. It knows no phones if the process works none."""
    settings = core.settings
    return Desk(
        DeskContext(
            core.db,
            service,
            core.attached.phones if work is not None else _no_phones,
            core.attached.device if work is not None else _no_phone,
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
            screens=LiveScreens(core.screen),
            page=core.page,
            names=settings.device.names,
            tags=settings.device.tags,
            glance=core.attached.glance if work is not None else _no_phones,
            fleet=fleet_of(core),
            host=work.host.name if work is not None else "",
            planning=planning,
            learning=CoreLearning(core) if work is not None else None,
            own_phones=OwnPhones(core) if work is not None else None,
            take_overs=take_overs,
            settings=lambda: survey(core.settings),
            webhook_client=WebhookClient(TargetRules(settings.webhooks.allow_private), settings.webhook_proxy),
        )
    )


def _web_app(stack: AsyncExitStack, core: Core, desk: Desk, ready: Probe) -> web.Application:
    """Return the routes of the web server, without Telegram's webhook."""
    settings = core.settings
    names = web_names(settings.web, settings.telegram)
    app = make_app(ready, names, settings.lang)
    metrics = metrics_of(core)
    stack.push_async_callback(metrics.close)
    add_metrics(app, metrics, core.db, settings.web.host)
    layered_agent.add_routes(app, desk, core.db)
    add_api(app, desk, core.db, names)
    add_console(app, desk, names, settings.lang)
    add_hooks(app, desk)
    return app


async def _no_phones() -> list[DeviceEntry]:
    return []


async def _no_phone(serial: str) -> Device:
    said = f"There is no phone {serial} here." if serial else "There is no phone here."
    raise DeviceOffline(
        said,
        advice="See /devices for the phones, and the machines that they are at.",
        key="phone_elsewhere",
        phone=serial,
    )


async def _start_dispatcher(stack: AsyncExitStack, core: Core) -> None:
    """Start the dispatcher of a server without phones: for due work, and for events about the phones of queued runs.

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
    await start_in(stack, dispatcher)


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
    context.tags = settings.device.tags
    context.webhook_client.rules = TargetRules(settings.webhooks.allow_private)


async def _start_outgoing(stack: AsyncExitStack, settings: Settings, core: Core, desk: Desk) -> None:
    """Start those who tell webhooks and other services of events, before there are any."""
    await start_in(stack, Notifier(core.db, desk, services_of(settings.notify.addresses), settings.lang))
    await start_in(stack, WebhookSender(core.db, desk.webhooks))


async def _start_digests(stack: AsyncExitStack, settings: Settings, core: Core, desk: Desk, quiet: Quiet) -> None:
    """Start digests, for chats only with a bot: otherwise one that is added later would send all of them at once."""

    async def chats() -> Sequence[DigestChat]:
        of_chats = await desk.digest.chats() if settings.telegram.token.get_secret_value() else []
        return [*of_chats, *(await desk.digest.service_chats() if settings.notify.addresses else [])]

    digests = DigestWatch(
        core.db,
        digest_times(settings.digest.daily, settings.digest.weekly),
        quiet.zone,
        quiet,
        chats=chats,
        is_empty=desk.digest.is_empty,
    )
    await start_in(stack, digests)


async def _start_alerts(stack: AsyncExitStack, settings: Settings, core: Core, reloader: Reloader | None) -> None:
    """Start alerts, also without a bot: webhooks get them, and owners who come later do not get old ones."""
    alerts = settings.alerts
    if not alerts.after_minutes:
        return
    health = Health(core)
    stack.push_async_callback(health.close)
    times = AlertTimes(timedelta(minutes=alerts.after_minutes), timedelta(minutes=alerts.poll_minutes))
    probes = health.probes if reloader is None else {**health.probes, "settings": reloader.probe}
    watch = AlertWatch(core.db, times, phones=health.phones, probes=probes, batteries=health.batteries)
    await start_in(stack, watch)


def _telegram(settings: Settings, core: Core, desk: Desk, quiet: Quiet) -> TelegramAdapter | None:
    telegram = settings.telegram
    token = telegram.token.get_secret_value()
    if not token:
        return None
    from bot.channels.telegram.adapter import WEBHOOK_PATH, TelegramAdapter  # 17 MiB, of no use without a token
    from bot.channels.telegram.options import TelegramOptions

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
    read: Callable[[], Settings],
) -> None:
    """Serve until ``ended`` is set.

    say: called when everything is up; it may wait for parts that are not ready yet. read: see ``server``.
    """
    async with server(settings, read) as running:
        saying = asyncio.create_task(say(running), name="say-up")
        try:
            await until_ended(ended, running.work)
            await running.drain()
        finally:
            saying.cancel()
            with suppress(asyncio.CancelledError):
                await saying
