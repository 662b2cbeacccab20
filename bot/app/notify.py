"""Alerts and digests to the services that Apprise knows: Bark, WeCom, Feishu and DingTalk robots, mail and others.

Each address of the settings is a consumer of the event log with its own position, so that each gets every message once,
also after a restart, and one that is down delays no other. A new address gets events from then on. The addresses hold
passwords and keys: they are never logged, shown, or stored (the position is kept under a hash).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog

from agent_core.errors import ConfigInvalid
from agent_core.extras import require
from agent_core.texts import Lang
from bot.channels.chat.cards import Card, colon_of, separator
from bot.channels.chat.command_names import in_terminal
from bot.channels.chat.digest import alert_card, digest_card
from bot.channels.chat.texts import texts
from bot.desk.desk import Desk
from bot.desk.digest import NOTIFY
from scheduler.jobs.periodic import Periodic, Work
from storage.engine import MISSED_SECONDS, Database
from storage.events import EventLogReader, EventRow, Events
from storage.repository import run_shielded

SECONDS = 20.0  # for one message to one service; the server's end may wait for it
PATIENCE = timedelta(days=1)  # then a message is given up
DELAYS = (10.0, 60.0, 300.0, 1800.0)  # until the next try; then the last one
KINDS = ("alert", "digest")
A_LOT = 100  # events

_STATUS = re.compile(r"\berror=(\d{3})\b")  # as Apprise logs the status of an answer
_UNREACHABLE = re.compile(r"connection error", re.IGNORECASE)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NotifyMessage:
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a message to one address.

    why: "" if the service took it, else ``timeout``, ``unreachable``, ``status`` (it answered with ``status``), or
        ``other`` if Apprise does not tell.
    """

    why: str
    status: int = 0


class NotifyService:
    """One address of the settings. ``number``: its place there, from 1, which messages to people name."""

    def __init__(self, number: int, url: str) -> None:
        """Raises ExtraMissing without the extra, and ConfigInvalid if Apprise does not understand the address."""
        require("notify")
        from apprise import Apprise

        for name in ("apprise", "urllib3"):  # their lines can hold an address's secrets
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.number = number
        self.consumer = f"notify:{hashlib.sha256(url.encode()).hexdigest()[:16]}"
        self._apprise = Apprise()
        if not self._apprise.add(url):
            raise ConfigInvalid(
                f"Address {number} of PHONEDESK_NOTIFY__URLS is none that Apprise knows.",
                advice="See https://github.com/caronc/apprise/wiki for the form that each service needs.",
                key="notify_address",
                number=number,
            )
        self.name = str(self._apprise[0].service_name)

    async def send(self, message: NotifyMessage) -> bool:
        """Send a message. Return whether the service took it."""
        with suppress(TimeoutError):
            return await self._sent(message)
        return False

    async def _sent(self, message: NotifyMessage) -> bool:
        """Send a message as ``send`` does. Raises TimeoutError if the service does not answer in time."""
        async with asyncio.timeout(SECONDS):
            return bool(await self._apprise.async_notify(title=message.title, body=message.body))

    async def try_out(self, message: NotifyMessage) -> Trial:
        """Send a message, and return what came of it. Not for two at once: the reason is only in Apprise's log.

        Its lines can hold an address's secrets, so only the kind of failure is read from them.
        """
        lines = _Lines()
        logger = logging.getLogger("apprise")
        before = logger.level, logger.propagate
        logger.addHandler(lines)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        try:
            if await self._sent(message):
                return Trial("")
        except TimeoutError:
            return Trial("timeout")
        finally:
            logger.removeHandler(lines)
            logger.level, logger.propagate = before
        told = "\n".join(lines.told)
        if status := _STATUS.search(told):
            return Trial("status", int(status[1]))
        return Trial("unreachable" if _UNREACHABLE.search(told) else "other")


class _Lines(logging.Handler):
    """A handler that keeps the lines of a log."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def services_of(urls: Sequence[str]) -> list[NotifyService]:
    """Return the services of these addresses. Raises what ``NotifyService`` raises."""
    return [NotifyService(number, url) for number, url in enumerate(urls, 1)]


class Notifier:
    """The sender of alerts and digests to services, from ``start`` to ``stop``."""

    def __init__(self, db: Database, desk: Desk, services: Sequence[NotifyService], lang: Lang) -> None:
        self._db = db
        self._desk = desk
        self._lang = lang
        self._log = Events(db)
        self._services = services
        self._tasks: list[Periodic] = []

    async def start(self) -> None:
        for service in self._services:
            position = await self._log.begin(service.consumer)
            task = Periodic(f"notify-{service.number}", self._turn_of(service, position), MISSED_SECONDS)
            self._tasks.append(task)
            await task.start()

    async def stop(self) -> None:
        await asyncio.gather(*(task.stop() for task in self._tasks))

    def _turn_of(self, service: NotifyService, position: int) -> Work:
        failures = 0
        reader = EventLogReader(self._db, position)

        async def turn() -> float:
            """Tell the service of the next events. Return the seconds until the next turn."""
            nonlocal failures
            rows = await reader.more()
            for row in rows:
                # Not cut by the server's end: a message on its way would be sent again after the next start.
                if row.kind in KINDS and not await run_shielded(self._told(service, row)):
                    failures += 1
                    return DELAYS[min(failures, len(DELAYS)) - 1]
                failures = 0
                reader.position = row.id
            if len(rows) >= A_LOT:  # so that a restart does not read them all again
                await self._log.advance(service.consumer, reader.position)
            return 0.0

        return turn

    async def _told(self, service: NotifyService, row: EventRow) -> bool:
        """Send an event to a service, and store that it was sent. Return False if it must be tried again."""
        message = await self._message(row)
        if message is not None and not await service.send(message):
            given_up = self._db.now() - row.created_at > PATIENCE
            log.warning("notify_failed", service=service.name, number=service.number, given_up=given_up)
            if not given_up:
                return False
        await self._log.advance(service.consumer, row.id)
        return True

    async def _message(self, row: EventRow) -> NotifyMessage | None:
        """Return the message for an event; None if it is a digest for a chat."""
        if row.kind == "alert":
            words = texts(self._lang)
            return message_of(alert_card(await self._desk.digest.alert(row.data), words))
        if (row.data.get("chat") or {}).get("channel") != NOTIFY:
            return None
        due = await self._desk.digest.due(row.data)
        return None if due is None else message_of(await digest_card(due[1], texts(due[0].lang)))


def message_of(card: Card) -> NotifyMessage:
    """Return a card as plain text. Commands of the chat are named as those of the terminal."""
    lines = []
    for line in card.lines:
        text = in_terminal(line.text) if line.kind == "plain" else line.text
        before = line.label + separator(line.label, colon_of(card.title, line.label)) if line.label else ""
        lines.append(before + text)
    return NotifyMessage(card.title, "\n".join(lines) or card.title)


def trial(lang: Lang) -> NotifyMessage:
    """Return a message to try a service out."""
    words = texts(lang)
    return NotifyMessage(words.get("notify.trial"), words.get("notify.trial_body"))
