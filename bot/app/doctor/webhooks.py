"""The checks of webhooks, outgoing and incoming. Nothing is sent."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from agent_core.errors import PhonedeskError
from agent_core.texts import Listed
from bot.app.doctor.exam import Exam
from bot.app.doctor.report import DoctorVerdict, failed, ok, skipped, warning
from bot.channels.chat.texts import texts
from bot.desk.webhook_client import TargetRules
from bot.desk.webhook_messages import PREFIX
from storage.engine import Database
from storage.incoming_webhooks import IncomingWebhooks
from storage.webhooks import DEAD, WebhookRow, Webhooks


async def outgoing(exam: Exam) -> DoctorVerdict:
    """Check each webhook's secret and address, and report deliveries that were given up. Only the name is resolved."""
    async with _database(exam) as db:
        hooks = await Webhooks(db).all() if db is not None else []
        counts = await Webhooks(db).counts() if db is not None else {}
    if not hooks:
        return skipped("none")
    if wrong := [hook for hook in hooks if not _is_secret(hook.secret)]:
        return failed("no_secret", names=_names(wrong), id=wrong[0].id)
    rules = TargetRules(exam.settings.webhooks.allow_private)
    found = await asyncio.gather(*(rules.target(hook.url) for hook in hooks), return_exceptions=True)
    for hook, error in zip(hooks, found, strict=True):
        if isinstance(error, PhonedeskError):
            said, *advice = texts(exam.lang).error(error).splitlines()
            return failed("refused", names=_names([hook]), why=said, advice=" ".join(advice))
        if isinstance(error, OSError):  # also TimeoutError
            return failed("unresolved", names=_names([hook]), id=hook.id)
        if isinstance(error, BaseException):
            raise error
    if disabled := [hook for hook in hooks if hook.disabled_at is not None]:
        return warning("disabled", names=_names(disabled), id=disabled[0].id)
    if dead := [hook for hook in hooks if counts.get((hook.id, DEAD))]:
        return warning("dead", count=sum(counts[hook.id, DEAD] for hook in dead), names=_names(dead), id=dead[0].id)
    return ok("good", names=_names(hooks))


async def incoming(exam: Exam) -> DoctorVerdict:
    """Check that each sender of messages to us has a secret."""
    async with _database(exam) as db:
        senders = await IncomingWebhooks(db).all() if db is not None else []
    if not senders:
        return skipped("none")
    if wrong := [sender.name for sender in senders if not _is_secret(sender.secret)]:
        return failed("no_secret", names=Listed(wrong), name=wrong[0])
    return ok("good", names=Listed(sender.name for sender in senders))


@asynccontextmanager
async def _database(exam: Exam) -> AsyncIterator[Database | None]:
    """Open the database for a check; None if it has no tables yet."""
    db = Database(exam.settings.url) if exam.has_database else None
    try:
        yield db
    finally:
        if db is not None:
            await db.close()


def _names(hooks: Sequence[WebhookRow]) -> Listed:
    """Name webhooks by number and host: the path of an address may be secret."""
    return Listed(f"{hook.id} ({urlsplit(hook.url).hostname})" for hook in hooks)


def _is_secret(secret: str) -> bool:
    try:
        return bool(base64.b64decode(secret.removeprefix(PREFIX), validate=True))
    except binascii.Error:
        return False
