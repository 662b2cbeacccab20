"""Gives commands that use the database the desk, with the owner at this machine as its user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core.errors import DeviceOffline
from bot.channels.chat.texts import Lang
from bot.channels.cli.commands.common import run_async, settings_from
from bot.desk.actors import Actor, Role

if TYPE_CHECKING:
    from agent_core.devices.base import DeviceEntry
    from bot.desk.desk import Desk

T = TypeVar("T")


def with_desk(call: Callable[[Desk, Actor], Awaitable[T]]) -> tuple[T, Lang]:
    """Run ``call`` as the owner at this machine; a server on the same database notices changes by itself."""
    from bot.app.database import open_database
    from bot.app.knowledge import own_entries
    from bot.app.server_names import CONSOLE, web_address
    from bot.desk.context import DeskContext
    from bot.desk.desk import Desk
    from bot.desk.webhook_client import TargetRules, WebhookClient
    from scheduler.runs.host import Fleet
    from scheduler.runs.service import RunService

    settings = settings_from()

    async def no_phones() -> list[DeviceEntry]:
        return []

    async def no_phone(serial: str) -> Any:
        raise DeviceOffline("This command reaches no phone.", key="no_phone_here")

    async def called() -> T:
        db = await open_database(settings)
        store = own_entries(settings, db)  # opened by the first call that needs it
        try:
            context = DeskContext(
                db,
                RunService(db),
                no_phones,
                no_phone,
                settings.timezone,
                settings.device.serial,
                store=store,
                provider=settings.knowledge.provider,
                names=settings.device.names,
                webhook_client=WebhookClient(TargetRules(settings.webhooks.allow_private), settings.webhook_proxy),
                fleet=Fleet(db, settings.queue.lost_after_seconds),
                console_url=web_address(settings.web, settings.telegram) + CONSOLE,
            )
            me = Actor("terminal", "terminal", "terminal", "terminal", settings.lang, Role.OWNER)
            return await call(Desk(context), me)
        finally:
            await store.close()
            await db.close()

    return run_async(called), settings.lang


def who_of(written: str) -> str:
    """Accept a person's number without the sign in front, because the shell would take that for a comment."""
    return f"#{written}" if written.isdecimal() else written


async def phones_are_worked(desk: Desk) -> bool:
    """Tell whether a process works phones on this database (``serve``, or ``worker``), so that runs are started."""
    return await desk.context.whole_fleet.is_worked()


async def clock_runs(desk: Desk) -> bool:
    """Tell whether a process on this database starts due schedules: ``serve``, with or without phones."""
    from storage.leases import Clocks

    return await Clocks(desk.context.db, seconds=desk.context.whole_fleet.seconds).any_alive()
