"""``phonedesk serve``: the durable queue, the clock, the bot and the web server in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.session import FINAL, Session, Status
from agent_core.tasks import TaskRules
from bot.app import Core, open_core
from bot.desk.desk import HouseDesk
from bot.desk.house import House, Prices
from bot.desk.pairing import Pace
from bot.health import Health
from bot.settings import Settings
from bot.telegram.adapter import WEBHOOK_PATH, TelegramAdapter
from bot.telegram.options import TelegramOptions
from bot.web.app import make_app, serving
from scheduler.alerts import AlertTimes, AlertWatch
from scheduler.clock import Clock
from scheduler.dbos_queue import DbosQueue
from scheduler.deadlines import QuestionTimes, QuestionWatch
from scheduler.digests import DigestWatch, digest_times
from scheduler.housekeeping import Housekeeping
from scheduler.parking import ParkingModel, park
from scheduler.ports import StoredHuman, given_answer
from scheduler.quiet import quiet_of
from scheduler.runs import Reconciler, RunService
from scheduler.signals import Reason
from scheduler.worker import HeldLease, LegOutcome, Worker
from storage.events import Events
from storage.inbox import Inbox
from storage.outbox import Outbox
from storage.questions import Questions
from storage.runs import RunRow, Runs
from storage.topics import Topics

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 5.0  # legs at work may end by themselves for so long; then they are put back into the line


@dataclass
class Server:
    """What runs. ``url`` is the web server's, ``first_code`` pairs the first person (None: somebody is paired)."""

    settings: Settings
    desk: HouseDesk
    url: str
    first_code: str | None
    telegram: TelegramAdapter | None


class Legs:
    """Does a leg of a run: session in, agent on the phone, session out."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._runs = Runs(core.db)
        self._events = Events(core.db)

    async def work(self, run_id: str, leg: int, lease: HeldLease) -> LegOutcome:
        row = await self._runs.get(run_id)
        if row is None:
            return LegOutcome("stopped")
        try:
            return await self._work(row, lease)
        except LeaseLost:
            raise  # the leg is put back: the run is not over
        except PhonedeskError as error:
            # Before the agent had the phone; what happens later is the outcome that it tells itself.
            if lease.stop.reason is None:  # else the leg is put back, or stopped
                told = {"status": "failed", "message": str(error), "error_kind": error.kind}
                await self._events.append(run_id, "outcome", told)
            raise

    async def _work(self, row: RunRow, lease: HeldLease) -> LegOutcome:
        core = self._core
        device = await core.device(lease.serial)
        try:
            settings = core.agent_settings(lang=row.options.get("lang"), max_steps=row.options.get("max_steps"))
            stop = lease.stop
            human = StoredHuman(
                core.db, hold_seconds=core.settings.run.hold_seconds, times=question_times(core.settings), stop=stop
            )
            agent = core.agent(
                device, settings, human=human, lease=lease, guard=stop, model=ParkingModel(core.model, stop)
            )
            if row.session is None:
                session = await core.session(
                    row.task, lease.serial, settings, run_id=row.id, rules=TaskRules.of(row.options)
                )
            else:
                session = await self._taken_up(row.session)
            try:
                await agent.go_on(session)
            except asyncio.CancelledError:
                if stop.reason not in (Reason.STOP, Reason.HOLD):
                    raise
                if session.status in FINAL:
                    await agent.go_on(session)  # it was over in this very moment: only told how
                elif stop.reason is Reason.STOP:
                    await agent.end_stopped()
            if session.status not in FINAL:
                async with stop.shielded():  # the run rests in any case: nothing is left here that Hold could cut
                    if await park(device, lease, session):
                        await core.runs().save(session)
        finally:
            await device.close()
        log.info("run_rests", run_id=session.run_id, status=session.status.value, replies=len(session.replies))
        return _outcome(session)

    async def _taken_up(self, saved: str) -> Session:
        """The session as it was saved, with the answer that has come meanwhile."""
        session = Session.model_validate_json(saved)
        if session.question is not None and session.answered is None:
            session.answered = given_answer(await Questions(self._core.db).get(session.question.id))
        return session


def _outcome(session: Session) -> LegOutcome:
    match session.status:
        case Status.SUCCEEDED:
            return LegOutcome("succeeded", session.message)
        case Status.STOPPED:
            return LegOutcome("stopped", session.message)
        case Status.WAITING | Status.RUNNING:
            return LegOutcome("waiting", session.message)
        case Status.FAILED:
            return LegOutcome("failed", session.message)


@asynccontextmanager
async def server(settings: Settings) -> AsyncIterator[Server]:
    """Everything up, in order; and down again: intake first (bot, web, clock), then the legs, then the queue."""
    async with AsyncExitStack() as stack:
        core = await stack.enter_async_context(open_core(settings))
        legs = Legs(core)
        executor = settings.queue.executor_id
        worker = Worker(core.db, legs.work, owner=executor)
        queue = DbosQueue(settings.queue_url, executor_id=executor, lock_path=settings.data_dir / f"{executor}.lock")
        queue.claim()  # no other process is this executor: the phones of its former life are ours
        stack.push_async_callback(queue.stop)
        freed = await worker.take_back()
        if freed:
            log.warning("leases_taken_back", serials=freed)

        reconciler = Reconciler(core.db, queue, worker=worker, phones=lambda: usable_phones(core))
        service = RunService(core.db, worker=worker)
        await queue.start(worker.run_leg)
        stack.push_async_callback(worker.drain, DRAIN_SECONDS)
        await reconciler.start()
        stack.push_async_callback(reconciler.stop)
        clock = Clock(core.db)
        await clock.start()
        stack.push_async_callback(clock.stop)
        watch = QuestionWatch(core.db)
        await watch.start()
        stack.push_async_callback(watch.stop)
        housekeeping = Housekeeping(core.db, keep=timedelta(days=settings.keep_days))
        await housekeeping.start()
        stack.push_async_callback(housekeeping.stop)
        desk = HouseDesk(
            House(
                core.db,
                service,
                core.phones,
                core.device,
                timezone=settings.timezone,
                serial=settings.device.serial,
                store=core.store,
                provider=settings.knowledge.provider,
                pace=Pace(settings.telegram.per_minute),
                escalate_chat=settings.questions.escalate_chat,
                digest_at=(settings.digest.daily, settings.digest.weekly),
                alert_chat=settings.alerts.chat,
                lang=settings.lang,
                keep=timedelta(days=settings.keep_days),
                prices=prices(settings),
                picture=core.picture,
            )
        )
        telegram = _telegram(settings, core, desk)

        async def ready() -> Mapping[str, bool]:
            parts = {"queue": queue.running}
            if telegram is not None:
                parts["telegram"] = telegram.ready.is_set()
            return parts

        app = make_app(ready)
        if telegram is not None:
            telegram.add_routes(app)
        url = await stack.enter_async_context(serving(app, settings.web.host, settings.web.port))
        if telegram is not None:
            await _start_news(stack, settings, core, desk)
            await stack.enter_async_context(telegram)
        yield Server(settings, desk, url, await desk.first_code() if telegram else None, telegram)


def question_times(settings: Settings) -> QuestionTimes:
    """When what happens to a question that nobody answers."""
    wanted = settings.questions
    return QuestionTimes(wanted.deadline_minutes, wanted.remind_minutes, wanted.escalate_minutes)


def prices(settings: Settings) -> Prices | None:
    """None where none are set."""
    price = settings.price
    if price.tokens_in is None and price.tokens_out is None:
        return None
    return Prices(price.tokens_in or 0.0, price.tokens_out or 0.0, price.currency)


async def _start_news(stack: AsyncExitStack, settings: Settings, core: Core, desk: HouseDesk) -> None:
    """Digests and alerts: only with a bot, or one that comes later would tell of everything since."""
    quiet = quiet_of(settings.quiet.hours, settings.timezone)
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
    watch = AlertWatch(core.db, times, phones=health.phones, probes=health.probes)
    await watch.start()
    stack.push_async_callback(watch.stop)


async def usable_phones(core: Core) -> list[str]:
    """The serials of the phones that a run can be given now."""
    try:
        return [entry.serial for entry in await core.phones() if entry.state == "device"]
    except PhonedeskError as error:  # no adb: the runs that wait are to end saying so, not to wait for ever
        log.warning("phones_not_listed", error=str(error))
        return []


def _telegram(settings: Settings, core: Core, desk: HouseDesk) -> TelegramAdapter | None:
    telegram = settings.telegram
    token = telegram.token.get_secret_value()
    if not token:
        return None
    api = telegram.api_base_url.rstrip("/")
    quiet = quiet_of(settings.quiet.hours, settings.timezone)
    options = TelegramOptions(token, base_url=f"{api}/bot", base_file_url=f"{api}/file/bot", quiet=quiet)
    if telegram.mode == "webhook":
        url = telegram.webhook_url.rstrip("/")
        options = replace(options, webhook_url=url if url.endswith(WEBHOOK_PATH) else url + WEBHOOK_PATH)
        if secret := telegram.webhook_secret.get_secret_value():
            options = replace(options, webhook_secret=secret)
    options = replace(options, topics=telegram.topics)
    return TelegramAdapter(desk, Inbox(core.db), Outbox(core.db), options, topics=Topics(core.db))


async def serve_until(settings: Settings, ended: asyncio.Event, say: Callable[[Server], None]) -> None:
    """Serve until ``ended`` is set; ``say`` is told when everything is up."""
    async with server(settings) as running:
        say(running)
        await ended.wait()
