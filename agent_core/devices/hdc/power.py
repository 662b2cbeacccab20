"""Turning the screen on, unlocking it, and keeping it on during a run.

``power-shell timeout -o`` overrides how long the screen stays on, and ``-r`` ends that (powermgr_power_manager). The
owner's own value stays beside it, so there is nothing to remember.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import structlog

from agent_core.devices.base import Look
from agent_core.devices.hdc.transport import HdcTransport
from agent_core.devices.shared_hold import SharedHold
from agent_core.devices.waiting import Time
from agent_core.errors import CommandFailed, DeviceError, ScreenOff

log = structlog.get_logger(__name__)

WAKE_SECONDS = 3.0
UNLOCK_SECONDS = 1.0
AWAKE_MILLISECONDS = "1800000"
RESTORE = ("power-shell", "timeout", "-r")


class HdcPower:
    """One phone's screen. ``hold`` may be nested and shared."""

    def __init__(
        self,
        transport: HdcTransport,
        time: Time,
        look: Callable[[], Awaitable[Look]],
        swipe_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._transport, self._time, self._look, self._swipe_up = transport, time, look, swipe_up
        self._hold = SharedHold(self._stay_awake, self._give_back)

    async def wake(self) -> None:
        look = await self._look()
        if not look.screen.awake:
            await self._transport.shell(("power-shell", "wakeup"), safe=True)
            woken = await self._time.until(self._awake, WAKE_SECONDS)
            if woken is None:
                raise ScreenOff("The screen stays off.", key="screen_stays_off")
            look = woken
        if look.screen.locked:
            await self._swipe_up()
            if await self._time.until(self._unlocked, UNLOCK_SECONDS) is None:
                raise CommandFailed(
                    "The lock screen of the phone asks for a PIN, a pattern or a finger.",
                    advice="Unlock it by hand, or take the screen lock off this phone.",
                    key="locked_phone",
                )

    async def _awake(self) -> Look | None:
        look = await self._look()
        return look if look.screen.awake else None

    async def _unlocked(self) -> bool | None:
        return None if (await self._look()).screen.locked else True

    @property
    def held(self) -> bool:
        return self._hold.held

    def hold(self) -> AbstractAsyncContextManager[None]:
        """Keep the screen on inside the block. Blocks may be nested and shared."""
        return self._hold.hold()

    async def _stay_awake(self) -> None:
        await self._transport.shell(("power-shell", "timeout", "-o", AWAKE_MILLISECONDS), safe=True)

    async def _give_back(self) -> None:
        try:
            with self._transport.tidying():
                await self._transport.shell(RESTORE, safe=True)
        except DeviceError as error:
            # The next start restores it.
            log.warning("hdc.awake_left", serial=self._transport.serial, kind=error.kind, error=str(error))
