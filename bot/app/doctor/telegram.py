"""The checks of the bot at Telegram. They only read; the webhook stays as it is."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from telegram import WebhookInfo
from telegram.error import TelegramError

from agent_core.proxies import Route
from bot.app.doctor.exam import Exam, found
from bot.app.doctor.report import DoctorVerdict, failed, ok, skipped, warning
from bot.app.settings.sections import BOT_API, TelegramSettings
from bot.channels.telegram.adapter import WEBHOOK_PATH
from bot.channels.telegram.request import Failure, bot_at, failure_of, introduce

SECONDS = 4.0


async def token(exam: Exam) -> DoctorVerdict:
    settings = exam.settings.telegram
    secret = settings.token.get_secret_value().strip()
    if not secret:
        return skipped("none")
    proxy = exam.settings.telegram_proxy
    route = proxy.route(settings.api_base_url)
    bot = await exam.stack.enter_async_context(bot_at(secret, settings.api_base_url, proxy, SECONDS))
    try:
        await introduce(bot)
    except TelegramError as error:
        return _failure(failure_of(error), settings, route)
    exam.bot = bot
    return ok("good", name=bot.username).by(route)


def _failure(why: Failure, settings: TelegramSettings, route: Route) -> DoctorVerdict:
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


async def webhook(exam: Exam) -> DoctorVerdict:
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
