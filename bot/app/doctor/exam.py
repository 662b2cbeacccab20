"""The data that the checks share: the settings, and the results of earlier checks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr
from telegram import Bot

from agent_core.devices.adb.server import AdbServer
from agent_core.devices.adb.transport import ShellResult, Transport
from agent_core.devices.base import Device, Look
from agent_core.errors import ConfigError
from agent_core.model.client import ChatModel, ModelCheck
from agent_core.texts import Lang
from bot.app.doctor.report import DoctorVerdict
from bot.app.logs import mask
from bot.app.settings.layers import Settings
from bot.app.settings.values import password_of
from scheduler.runs.lease import lease_of
from storage.engine import Database
from storage.model_calls import Used

WHY = "doctor"  # in the lease's row, instead of a run's id
SHORTEST_SECRET = 6  # characters; a shorter value is a placeholder, and would be found in every text
PLACEHOLDERS = frozenset({"", "EMPTY"})

T = TypeVar("T")


async def soon(seconds: float) -> None:
    """Wait for a retry, but at most 0.2 s: the doctor retries as the product does, but does not wait as long."""
    await asyncio.sleep(min(seconds, 0.2))


@dataclass
class Exam:
    """One examination.

    serial: the phone from the command line, "" for the settings' one.

    A field is None if it has not been opened or found yet; a check that needs it runs after the one that sets it.
    """

    settings_or_error: Settings | ConfigError
    serial: str
    stack: AsyncExitStack
    lang: Lang = "zh"
    adb: AdbServer | None = None
    entry_state: str = ""
    device: Device | None = None
    transport: Transport | None = None
    look: Look | None = None
    known: Mapping[str, str] = field(default_factory=dict)  # serials of phones, by their identity
    has_database: bool = False  # with the tables of this release; without them nothing works on phones
    # Serial, app and version for which no person is asked before the first reply.
    learnt: frozenset[tuple[str, str, str]] = field(default_factory=frozenset)
    used_today: Used | None = None  # of models, if there are daily limits
    model: ChatModel | None = None
    model_check: ModelCheck | None = None
    bot: Bot | None = None

    @property
    def settings(self) -> Settings:
        if isinstance(self.settings_or_error, ConfigError):
            raise self.settings_or_error
        return self.settings_or_error

    @property
    def wanted(self) -> str:
        return self.serial or self.settings.device.serial

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[Device]:
        """Lease the phone under examination. Whatever acts on it is done inside this block.

        Raises LeaseLost if somebody else has the phone.
        """
        device = found(self.device)
        if not self.has_database:
            yield device
            return
        db, seconds = Database(self.settings.url), self.settings.queue.lost_after_seconds
        try:
            async with lease_of(db, device, owner=f"doctor-{os.getpid()}", why=WHY, seconds=seconds):
                yield device
        finally:
            await db.close()

    async def shell(self, line: str) -> ShellResult:
        """Run a line on the phone under examination."""
        return await found(self.transport).shell(line, seconds=4.0)

    def clean(self, text: str) -> str:
        """Return ``text`` without any secret of the settings."""
        if not isinstance(self.settings_or_error, ConfigError):
            for secret in secrets_of(self.settings_or_error):
                text = text.replace(secret, "***")
        return mask(text)


def found(value: T | None) -> T:
    """Return a value that an earlier check has set."""
    if value is None:
        raise LookupError("a check ran before the one that it needs")
    return value


def secrets_of(settings: Settings) -> list[str]:
    """Return every secret value, longest first: those of the settings' secret fields, and passwords inside
    addresses.
    """
    sections = (settings, *(getattr(settings, name) for name in type(settings).model_fields))
    values = set(settings.secrets())
    for section in sections:
        for name in getattr(type(section), "model_fields", ()):
            value = getattr(section, name)
            if isinstance(value, SecretStr):
                values.add(value.get_secret_value())
            elif isinstance(value, str) and "://" in value:
                values.update(_passwords(value))
    return sorted((v for v in values - PLACEHOLDERS if len(v) >= SHORTEST_SECRET), key=len, reverse=True)


def _passwords(address: str) -> set[str]:
    try:
        inside = urlsplit(address).password or ""
    except ValueError:
        inside = ""
    try:
        decoded = password_of(address) or ""
    except ValueError:
        decoded = ""
    return {inside, decoded}


Run = Callable[[Exam], Awaitable[DoctorVerdict]]
Mend = Callable[[Exam, DoctorVerdict], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    needs: checks that must be ok or a warning first.
    seconds: its time limit.
    mend: repairs the problem that the check found, as far as possible, and returns whether there was one to repair.
    """

    key: str
    run: Run
    needs: tuple[str, ...] = ()
    seconds: float = 5.0
    mend: Mend | None = None
