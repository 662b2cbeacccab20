"""The context of the tools: the core, the rights of the desk, the models, and the holders of the phones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

import structlog

from agent_core.devices.base import Device
from agent_core.errors import LeaseLost, ModelNames
from agent_core.model.base import Model
from agent_core.model.client import ChatModel
from agent_core.perception.marks import to_jpeg
from bot.app.core import Core
from bot.app.settings.layers import Settings
from bot.app.settings.sections import McpSettings
from bot.channels.mcp.asking import Terminal
from bot.channels.mcp.stopping import Calls, Stopper
from bot.desk.context import DeskContext
from bot.desk.keys import DeskPrograms
from bot.desk.live_screens import LiveScreens
from bot.desk.phones import DeskPhones
from bot.desk.request_limits import RequestLimit
from scheduler.runs.host import Fleet
from scheduler.runs.lease import HeldLease, lease_of
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker
from storage.leases import Leases
from storage.runs import Runs

log = structlog.get_logger(__name__)


class PhoneBusy(LeaseLost):
    """Somebody else has the phone now."""

    default_advice = "Ask again later, or use another phone."


@dataclass(frozen=True)
class ToolContext:
    """The parts that the tools share.

    own_helper: the model that describes screens, if it is not the one that operates the phone.
    at_work: the runs of this process's calls; a worker of this process takes none of them for dead.
    """

    core: Core
    rights: DeskPrograms
    phones: DeskPhones
    own_helper: Model | None
    terminal: Terminal = field(default_factory=Terminal)
    calls: Calls = field(default_factory=Calls)
    at_work: set[str] = field(default_factory=set)

    @property
    def settings(self) -> McpSettings:
        return self.core.settings.mcp

    @property
    def helper(self) -> Model:
        """The model that describes screens and answers in a user's place."""
        return self.own_helper or self.core.model  # it may be replaced when the settings change

    @property
    def lease_seconds(self) -> float:
        """The seconds for which a phone is kept for a holder without heartbeats. Other servers use the same value."""
        return self.core.settings.queue.lost_after_seconds

    @asynccontextmanager
    async def phone(self, serial: str) -> AsyncIterator[Device]:
        """Give the phone, without a lease."""
        device = await self.core.attached.device(serial)
        try:
            yield device
        finally:
            await device.close()

    @asynccontextmanager
    async def held(self, device: Device, why: str, stopper: Stopper) -> AsyncIterator[HeldLease]:
        """Hold the phone's lease; a stop of the call takes effect inside.

        Raises PhoneBusy at once if another has the phone, LeaseLost if it is lost on the way.
        """
        await self.check_free(device.serial)
        begun = False
        try:
            async with lease_of(
                self.core.db, device, owner=f"mcp-{os.getpid()}", why=why, seconds=self.lease_seconds
            ) as lease:
                begun = True
                stopper.heard_by(lease.stop)
                try:
                    yield lease
                finally:
                    stopper.heard_by(None)
        except LeaseLost as error:
            if begun:
                raise
            raise PhoneBusy(error.message) from None

    @contextmanager
    def working(self, run_id: str) -> Iterator[None]:
        """Mark the run as one that a call of this process carries out, inside the block."""
        self.at_work.add(run_id)
        try:
            yield
        finally:
            self.at_work.discard(run_id)

    async def check_free(self, serial: str) -> None:
        """Raise PhoneBusy, which names the phone's user, if it is not free."""
        held = await Leases(self.core.db, seconds=self.lease_seconds).held()
        lease = next((lease for lease in held if lease.serial == serial), None)
        if lease is None:
            return
        run = await Runs(self.core.db).get(lease.run_id)
        what = f"the run {run.id} is at work on it" if run else "another client is acting on it"
        if lease.person is not None:
            what = "a person has taken it over in the console"
        raise PhoneBusy(f"The phone {serial} is busy: {what}.")

    async def shot(self, device: Device) -> bytes | None:
        """Return the current screen, with secrets covered as the settings say; None if there is none."""
        try:
            picture = await self.core.picture(device)
            return await asyncio.to_thread(to_jpeg, picture)
        except Exception as error:  # noqa: BLE001 - the task is done, and its client must hear of it
            log.warning("mcp_no_last_screen", serial=device.serial, error=repr(error))
            return None


@asynccontextmanager
async def open_context(core: Core, beside: Worker | None = None) -> AsyncIterator[ToolContext]:
    """Open the context; at the end every running call is stopped, and its phone left clean.

    beside: the worker of this process, which works the same phones.
    """
    settings = core.settings
    pace = RequestLimit(settings.telegram.per_minute)

    def follow(new: Settings) -> None:
        pace.per_minute = new.telegram.per_minute

    context = DeskContext(
        core.db,
        RunService(core.db),
        core.attached.phones,
        core.attached.device,
        settings.timezone,
        settings.device.serial,
        screens=LiveScreens(core.screen),
        names=settings.device.names,
        glance=core.attached.glance,
        pace=pace,
        fleet=Fleet(core.db, settings.queue.lost_after_seconds),
        host=beside.owner if beside is not None else "",
    )
    own = settings.mcp.helper
    helper = None
    if own.base_url:
        key = own.api_key.get_secret_value()
        helper = ChatModel(
            own.base_url,
            own.name,
            key,
            timeout=own.timeout_seconds,
            meter=core.meter,
            proxy=settings.model_proxy,
            names=ModelNames.of("MCP__HELPER"),
        )
    # How often a program looks is its own business, as are single acts; only the tasks that it gives us are counted.
    phones = DeskPhones(replace(context, pace=RequestLimit()))
    at_work = beside.at_work_beside if beside is not None else set()
    tools = ToolContext(core, DeskPrograms(context), phones, helper, at_work=at_work)
    core.followers.append(follow)
    try:
        yield tools
    finally:
        core.followers.remove(follow)
        await tools.calls.stop()
        if helper is not None:
            await helper.close()
