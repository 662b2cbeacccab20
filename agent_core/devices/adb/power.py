"""The screen: on, unlocked, and kept on."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import structlog

from agent_core.devices.adb.parse import first_line, parse_size
from agent_core.devices.adb.screen_lock import ScreenLock
from agent_core.devices.adb.transport import Transport, require
from agent_core.devices.base import Look
from agent_core.devices.shared_hold import SharedHold
from agent_core.devices.shell import AND, PIPE, Raw, command_line
from agent_core.devices.waiting import Time
from agent_core.errors import DeviceError, ScreenOff

log = structlog.get_logger(__name__)

WAKE_SECONDS = 3.0
UNLOCK_SECONDS = 1.0
# In Android's global settings: the previous values, for the next start, and after a # the holder.
MARKER = "phonedesk_previous_awake"
# The screen stays on while it charges (by mains 1, USB 2, wireless 4), and for half an hour if it does not.
AWAKE = (("global", "stay_on_while_plugged_in", "7"), ("system", "screen_off_timeout", "1800000"))


class Power:
    """One phone's screen. ``hold`` may be nested and shared."""

    def __init__(self, transport: Transport, time: Time, look: Callable[[], Awaitable[Look]]) -> None:
        self._transport, self._time, self._look = transport, time, look
        self._hold = SharedHold(self._stay_awake, self._give_back)
        self._kept = False  # it was held at least once: a run worked here, not a single action
        self._holder = secrets.token_hex(4)
        self.screen_lock = ScreenLock(transport, time, self._unlocked)

    # -- on and unlocked

    async def wake(self) -> None:
        look = await self._look()
        if not look.screen.awake:
            require(await self._transport.shell(command_line(("input", "keyevent", "KEYCODE_WAKEUP"))))
            woken = await self._time.until(self._awake, WAKE_SECONDS)
            if woken is None:
                raise ScreenOff("The screen stays off.", key="screen_stays_off")
            look = woken
        if not look.screen.locked:
            await self.screen_lock.seen_unlocked()
        elif not (await self._dismissed() or await self._swiped_away()):
            await self.screen_lock.open()

    async def _awake(self) -> Look | None:
        look = await self._look()
        return look if look.screen.awake else None

    async def _unlocked(self) -> bool | None:
        return None if (await self._look()).screen.locked else True

    async def _dismissed(self) -> bool:
        await self._transport.shell(command_line(("wm", "dismiss-keyguard")))
        return await self._time.until(self._unlocked, UNLOCK_SECONDS) is not None

    async def _swiped_away(self) -> bool:
        size = parse_size((await self._transport.shell(command_line(("wm", "size")), safe=True)).out)
        if size is None:
            return False
        x, bottom, top = (str(value) for value in (size[0] // 2, size[1] * 4 // 5, size[1] // 5))
        require(await self._transport.shell(command_line(("input", "swipe", x, bottom, x, top, "300"))))
        return await self._time.until(self._unlocked, UNLOCK_SECONDS) is not None

    # -- kept on

    def hold(self) -> AbstractAsyncContextManager[None]:
        """Keep the screen on inside the block. The previous settings are put back afterwards, in every outcome."""
        return self._hold.hold()

    async def restore(self) -> bool:
        """Put back the settings that a dead run changed. Return whether there were any."""
        return await self._hold.unless_held(self._put_back) or False

    async def lock_again(self) -> None:
        """Lock the phone if this object unlocked it for a run. After a single action, its own time-out locks it."""
        if self._kept:
            await self.screen_lock.lock_again()

    async def _stay_awake(self) -> None:
        self._kept = True
        reads = [("settings", "get", space, name) for space, name, _ in AWAKE]
        found = await self._transport.shell(command_line(("settings", "get", "global", MARKER), *reads), safe=True)
        marker, *values = [line.strip() for line in found.out.splitlines()] + ["null"] * 3
        if not _is_marker(marker):  # else a run died here, and these values are its own
            marker = "/".join(value if value.isdecimal() else "null" for value in values[: len(AWAKE)])
        writes = [("settings", "put", space, name, value) for space, name, value in AWAKE]
        mark = ("settings", "put", "global", MARKER, f"{marker.partition('#')[0]}#{self._holder}")
        changed = await self._transport.shell(command_line(mark, *writes), safe=True)
        if changed.code != 0 or "Exception" in changed.text:
            # Some makers refuse it; the run can go on, and says so itself if the screen goes off.
            log.warning("adb.not_kept_awake", serial=self._transport.serial, words=first_line(changed.text))

    async def _give_back(self) -> None:
        try:
            with self._transport.tidying():
                await self._put_back(self._holder)
        except DeviceError as error:
            # The marker stays on the phone: the next start puts it back.
            log.warning("adb.awake_left", serial=self._transport.serial, kind=error.kind, error=str(error))

    async def _put_back(self, holder: str = "") -> bool:
        """Put back the previous settings. Return whether there were any.

        holder: put back only the settings that this holder left, not those of another owner who has the phone now; "":
        those of any holder.
        """
        read = await self._transport.shell(command_line(("settings", "get", "global", MARKER)), safe=True)
        marker = read.out.strip()
        values, _, whose = marker.partition("#")
        if not _is_marker(marker) or holder not in ("", whose):
            return False
        commands = [
            ("settings", "delete", space, name) if value == "null" else ("settings", "put", space, name, value)
            for (space, name, _), value in zip(AWAKE, values.split("/"), strict=True)
        ]
        still = ("settings", "get", "global", MARKER, PIPE, "grep", "-x", "-F", marker, AND, Raw("{"), "true")
        unmark = ("settings", "delete", "global", MARKER)
        await self._transport.shell(command_line(still, *commands, unmark, (Raw("}"),)), safe=True)
        return True


def _is_marker(text: str) -> bool:
    return re.fullmatch(r"(?:\d+|null)/(?:\d+|null)(?:#\w+)?", text) is not None
