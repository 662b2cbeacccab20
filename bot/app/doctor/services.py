"""The checks of the services: the models, the knowledge base, alerts, and the bot at Telegram.

These checks only read.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from sqlalchemy.exc import SQLAlchemyError
from telegram import WebhookInfo
from telegram.error import TelegramError

from agent_core import extras
from agent_core.errors import (
    ConfigMissing,
    ModelAuth,
    ModelError,
    ModelFormat,
    ModelTimeout,
    ModelUnknown,
    ModelUnreachable,
)
from agent_core.model.client import ChatModel, ModelCheck
from agent_core.planner.planner import NAMES as PLANNER_NAMES
from agent_core.proxies import Route
from agent_core.texts import Listed
from bot.app.doctor.exam import PLACEHOLDERS, Exam, found
from bot.app.doctor.report import DoctorVerdict, failed, ok, skipped, warning
from bot.app.knowledge import former_file, knowledge_config
from bot.app.limits import limits_a_day, reached
from bot.app.models import FALLBACK_NAMES, chat_model, endpoint_profile, unpriced
from bot.app.notify import services_of
from bot.app.settings.layers import Settings
from bot.app.settings.sections import BOT_API, KnowledgeSettings, TelegramSettings
from bot.app.setup.presets import model_presets
from bot.channels.telegram.adapter import WEBHOOK_PATH
from bot.channels.telegram.request import Failure, bot_at, failure_of, introduce
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import sample_entries
from knowledge.factory import build, routes
from storage.engine import Database, database_url

MODEL_SECONDS = 10.0  # for each of the questions that a model is asked
KNOWLEDGE_SECONDS = 4.0
TELEGRAM_SECONDS = 4.0
QUERY = "几天能发货"  # harmless: what any customer might ask
NAMES_SHOWN = 5


# -- the model


async def model(exam: Exam) -> DoctorVerdict:
    settings = exam.settings.model
    without_key = settings.api_key.get_secret_value().strip() in PLACEHOLDERS
    if without_key and (key_at := _key_at(settings.base_url)):
        return failed("no_key_there", url=_address(settings.base_url), at=key_at)
    exam.model = chat_model(settings, exam.settings, timeout=MODEL_SECONDS, alone=False)  # a retry takes too long here
    exam.stack.push_async_callback(exam.model.close)
    started = time.monotonic()
    exam.model_check = await exam.model.check()
    route = exam.model.route
    if not exam.model_check.reachable:
        problem = found(exam.model_check.problem)
        values = {"url": _address(settings.base_url), "message": problem}
        if without_key and isinstance(problem, ModelAuth):
            return failed("no_key", **values).by(route)
        if problem.key == "model_no_version":
            return failed("no_version", **values, meant=problem.values["meant"]).by(route)
        if not isinstance(problem, ModelUnreachable | ModelTimeout):
            raise problem  # it answers: the problem is reported as a run would report it
        if route.proxy:
            return failed("not_reached_by_proxy", **values, **route.values).by(route)
        return failed("not_reached", **values).by(route)
    return ok("reached", url=_address(settings.base_url), seconds=f"{time.monotonic() - started:.1f}").by(route)


def _key_at(url: str) -> str:
    """Return the page that makes keys for a well-known hosted endpoint; "" for any other."""
    host = urlsplit(url).hostname
    return next((one.key_at for one in model_presets() if one.key_at and urlsplit(one.base_url).hostname == host), "")


def _address(url: str) -> str:
    """Return ``url`` without the parts that may be secret: user, password, query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def model_name(exam: Exam) -> DoctorVerdict:
    check, name = found(exam.model_check), exam.settings.model.name
    if check.name_known:
        return ok("listed", name=name)
    if not check.models:
        return ok("answers", name=name)
    values = {"name": name, "listed": Listed(check.models[:NAMES_SHOWN]), "first": check.models[0]}
    problem = await _text_problem(exam) if check.can_see is None else None
    if problem is None:
        return warning("not_listed", **values)
    if not isinstance(problem, ModelUnknown | ModelFormat):
        raise problem  # which says nothing about the name
    return failed("unknown", **values)


async def model_vision(exam: Exam) -> DoctorVerdict:
    check = found(exam.model_check)
    if not exam.settings.model.vision:
        if problem := await _text_problem(exam):
            raise problem  # reported as a run would report it
        return skipped("off")
    if check.can_see:
        return ok("sees")
    if check.can_see is None and (problem := await _text_problem(exam)):
        raise problem
    return _blind(exam, check)


def _blind(exam: Exam, check: ModelCheck) -> DoctorVerdict:
    """Return the verdict on a model that sees no pictures: texts are enough if the screen's elements are in the
    prompt.
    """
    by_texts = exam.settings.observe.elements
    return warning("blind", message=check.problem) if by_texts else failed("blind_alone", message=check.problem)


async def _text_problem(exam: Exam) -> ModelError | None:
    return await _problem(found(exam.model))


async def _problem(model: ChatModel) -> ModelError | None:
    """Return the error if the model does not answer a question without a picture; None if it does."""
    try:
        await model.complete([{"role": "user", "content": "Answer with OK."}])
    except ModelError as error:
        return error
    return None


async def fallbacks(exam: Exam) -> DoctorVerdict:
    """Check all fallback models at once: each is asked one question."""
    wanted = exam.settings.model.fallbacks
    if not wanted:
        return skipped("none")
    models = [
        chat_model(endpoint, exam.settings, timeout=MODEL_SECONDS, alone=False, names=FALLBACK_NAMES)
        for endpoint in wanted
    ]
    for one in models:
        exam.stack.push_async_callback(one.close)
    problems = await asyncio.gather(*map(_problem, models))
    if silent := {one.name: why for one, why in zip(wanted, problems, strict=True) if why is not None}:
        return warning("silent", message=silent)
    blind = [one.name for one in wanted if not endpoint_profile(one).vision]
    if blind and not exam.settings.observe.elements:
        return warning("blind_alone", names=Listed(blind))
    return ok("answer", names=Listed(one.name for one in wanted))


async def planner(exam: Exam) -> DoctorVerdict:
    wanted = exam.settings.planner
    if not wanted.base_url.strip():
        return skipped("none")
    if not extras.installed("planner"):
        return warning("missing", command=extras.install_command("planner"))
    key = wanted.api_key.get_secret_value()
    timeout = min(wanted.timeout_seconds, MODEL_SECONDS)
    proxy = exam.settings.model_proxy
    one = ChatModel(wanted.base_url, wanted.name, key, timeout=timeout, vision=False, proxy=proxy, names=PLANNER_NAMES)
    exam.stack.push_async_callback(one.close)
    if problem := await _problem(one):
        return warning("silent", message=problem)
    return ok("answers", name=wanted.name)


async def prices(exam: Exam) -> DoctorVerdict:
    """Check that prices are known: a limit by cost cannot hold back a model of unknown price."""
    names = unpriced(exam.settings)
    if names:
        return warning("missing", names=Listed(names))
    limits = exam.settings.limits
    if limits.day_cost or limits.minute_cost or exam.settings.run.max_cost:
        return ok("known")
    return skipped("none")


async def limits(exam: Exam) -> DoctorVerdict:
    """Check the daily limits: once one is reached, every run fails until midnight."""
    wanted = exam.settings.limits
    if not limits_a_day(wanted):
        return skipped("none")
    error = reached(wanted, exam.used_today, exam.settings.price.currency) if exam.used_today else None
    if error is None:
        return ok("left")
    return failed("reached", name=f"PHONEDESK_LIMITS__{error.key.upper()}", **error.values)


# -- the knowledge base


async def knowledge(exam: Exam) -> DoctorVerdict:
    """Check each remote provider separately, because the others must not hide one that fails."""
    settings = exam.settings.knowledge
    config = knowledge_config(exam.settings)
    remote = [name for name in settings.providers if name != "embedded"]
    if not remote:
        return await _embedded(exam.settings)
    count = 0
    for name in remote:
        own = config.own[name]
        patient = replace(own, timeout=min(own.timeout or config.timeout, KNOWLEDGE_SECONDS))
        try:
            base = build(replace(config, provider=name, own={**config.own, name: patient}))
        except ConfigMissing as error:
            return failed("incomplete", provider=name, advice=error)
        try:
            count += len(await base.retrieve(QUERY))  # the kind of a KnowledgeError names the problem
        finally:
            await base.close()
    return ok("answers", names=Listed(remote), count=count).by(*routes(config))


async def _embedded(settings: Settings) -> DoctorVerdict:
    """Check the entries of the own store. A missing store is not made here: the first start does that."""
    if await asyncio.to_thread((file := former_file(settings)).is_file):
        return warning("former_file", file=file)
    url = database_url(settings.url)
    if url.get_backend_name() == "sqlite" and not await asyncio.to_thread(Path(url.database or "").is_file):
        return _nothing_yet(settings.knowledge)
    async with AsyncExitStack() as stack:
        db = Database(url)
        stack.push_async_callback(db.close)
        with suppress(SQLAlchemyError, OSError):  # the store says it below, with advice
            if not await db.revision():
                return _nothing_yet(settings.knowledge)
        base = EmbeddedKnowledge(db)
        await base.retrieve(QUERY)
        count, live = await base.count(), await base.list(live=True)
    pending = count - len(live)
    if not count:
        return _nothing_yet(settings.knowledge)
    if live and set(live) <= set(sample_entries()):
        return warning("sample_only", count=len(live))
    if not live:
        return warning("none_live", pending=pending)
    return ok("entries_and_pending", count=len(live), pending=pending) if pending else ok("entries", count=count)


def _nothing_yet(settings: KnowledgeSettings) -> DoctorVerdict:
    return warning("sample", count=len(sample_entries())) if settings.sample else warning("empty")


async def notify(exam: Exam) -> DoctorVerdict:
    """Check whether the addresses of alerts and digests are understood. Nothing is sent to them."""
    addresses = exam.settings.notify.addresses
    if not addresses:
        return skipped("none")
    if not extras.installed("notify"):
        return failed("missing", command=extras.install_command("notify"))
    return ok("known", names=Listed(service.name for service in services_of(addresses)))


# -- the bot at Telegram. The webhook there stays as it is


async def telegram_token(exam: Exam) -> DoctorVerdict:
    settings = exam.settings.telegram
    secret = settings.token.get_secret_value().strip()
    if not secret:
        return skipped("none")
    proxy = exam.settings.telegram_proxy
    route = proxy.route(settings.api_base_url)
    bot = await exam.stack.enter_async_context(bot_at(secret, settings.api_base_url, proxy, TELEGRAM_SECONDS))
    try:
        await introduce(bot)
    except TelegramError as error:
        return _telegram_failure(failure_of(error), settings, route)
    exam.bot = bot
    return ok("good", name=bot.username).by(route)


def _telegram_failure(why: Failure, settings: TelegramSettings, route: Route) -> DoctorVerdict:
    url = settings.api_base_url
    if why == "refused":
        return failed("refused")
    if why == "no_api":
        return failed("no_api", url=url).by(route)
    if route.proxy:
        case = "other_server_by_proxy" if settings.is_other_server else "not_reached_by_proxy"
        return failed(case, url=url, **route.values).by(route)
    if settings.is_other_server:
        return failed("other_server", url=url, usual=BOT_API).by(route)
    return failed("not_reached", url=url) if why == "not_reached" else failed("silent", url=url)


async def telegram_webhook(exam: Exam) -> DoctorVerdict:
    settings = exam.settings.telegram
    try:
        info = await found(exam.bot).get_webhook_info()
    except TelegramError as error:
        return failed("not_told", error=error)
    if settings.mode == "polling":
        if info.url:
            return warning("polling_with_webhook", url=info.url)
        return ok("polling", pending=info.pending_update_count)
    ours = {settings.webhook_url, settings.webhook_url.rstrip("/") + WEBHOOK_PATH}
    if not info.url:
        return warning("not_set", url=settings.webhook_url)
    if info.url not in ours:
        return warning("other", url=info.url, ours=settings.webhook_url)
    return _deliveries(info, ZoneInfo(exam.settings.timezone))


def _deliveries(info: WebhookInfo, zone: ZoneInfo) -> DoctorVerdict:
    values = {"url": info.url, "pending": info.pending_update_count}
    if not info.last_error_message:
        return ok("good", **values)
    at = f"{info.last_error_date.astimezone(zone):%Y-%m-%d %H:%M}" if info.last_error_date else "?"
    trouble = {"error": info.last_error_message, "at": at, **values}
    # The last error stays at Telegram after all is well again; updates that wait tell whether it is.
    return failed("failing", **trouble) if info.pending_update_count else warning("failed_before", **trouble)
