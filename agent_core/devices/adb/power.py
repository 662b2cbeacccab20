"""The screen: on, unlocked and kept on; and the PIN of the screen lock.

The PIN is typed when a run finds the phone locked, and the phone is locked again afterwards. After a few wrong PINs,
Android blocks its lock screen for longer and longer times. So a note is stored on the phone before a PIN is typed, and
no process types another one while it is there. It is removed when the PIN opened the phone, or when a person did:
Android has counted no wrong PIN since then. A shop's phone is thus never blocked by a wrong setting.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import structlog
from pydantic import SecretStr

from agent_core.devices.adb.parse import first_line, parse_size
from agent_core.devices.adb.transport import ShellResult, Transport, require
from agent_core.devices.base import Look
from agent_core.devices.shared_hold import SharedHold
from agent_core.devices.shell import AND, OR, PIPE, Raw, command_line
from agent_core.devices.waiting import Time, finish
from agent_core.errors import CommandFailed, DeviceError, ScreenOff

log = structlog.get_logger(__name__)

WAKE_SECONDS = 3.0
UNLOCK_SECONDS = 1.0
# In Android's global settings: the previous values, for the next start, and after a # the holder.
AWAKE_MARKER = "phonedesk_previous_awake"
# The screen stays on while it charges (by mains 1, USB 2, wireless 4), and for half an hour if it does not.
AWAKE = (("global", "stay_on_while_plugged_in", "7"), ("system", "screen_off_timeout", "1800000"))
# In Android's global settings: TYPED, or who unlocked the phone and is to lock it again.
LOCK_MARKER = "phonedesk_screen_lock"
TYPED = "typed"
UNLOCKED = "unlocked#"
PIN_SECONDS = 1.0  # until a phone has opened that needs no Enter after the last digit
ENTER_SECONDS = 3.0
# Checked in the same line as the action, because a person may unlock the phone at any moment. The first pattern is for
# Android 8 and newer; ``mDreamingLockscreen`` is for older ones, and stays true on some newer phones that are unlocked.
_KEYGUARD = ("dumpsys", "window", PIPE, "grep", "-E", r"(showing|mShowingLockscreen|mIsShowing)=true")
_LOCK_SCREEN = (
    "dumpsys",
    "window",
    PIPE,
    "grep",
    "-E",
    r"(showing|mIsShowing|mShowingLockscreen|mDreamingLockscreen)=true",
)
# A call or an alarm lies over the lock screen, which is then still there.
_COVERED = ("dumpsys", "window", PIPE, "grep", "-E", r"(occluded|mOccluded)=true")
_GET = ("settings", "get", "global", LOCK_MARKER)
_DELETE = ("settings", "delete", "global", LOCK_MARKER)


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
        found = await self._transport.shell(
            command_line(("settings", "get", "global", AWAKE_MARKER), *reads), safe=True
        )
        marker, *values = [line.strip() for line in found.out.splitlines()] + ["null"] * 3
        if not _is_marker(marker):  # else a run died here, and these values are its own
            marker = "/".join(value if value.isdecimal() else "null" for value in values[: len(AWAKE)])
        writes = [("settings", "put", space, name, value) for space, name, value in AWAKE]
        mark = ("settings", "put", "global", AWAKE_MARKER, f"{marker.partition('#')[0]}#{self._holder}")
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
        read = await self._transport.shell(command_line(("settings", "get", "global", AWAKE_MARKER)), safe=True)
        marker = read.out.strip()
        values, _, whose = marker.partition("#")
        if not _is_marker(marker) or holder not in ("", whose):
            return False
        commands = [
            ("settings", "delete", space, name) if value == "null" else ("settings", "put", space, name, value)
            for (space, name, _), value in zip(AWAKE, values.split("/"), strict=True)
        ]
        still = ("settings", "get", "global", AWAKE_MARKER, PIPE, "grep", "-x", "-F", marker, AND, Raw("{"), "true")
        unmark = ("settings", "delete", "global", AWAKE_MARKER)
        await self._transport.shell(command_line(still, *commands, unmark, (Raw("}"),)), safe=True)
        return True


def _is_marker(text: str) -> bool:
    return re.fullmatch(r"(?:\d+|null)/(?:\d+|null)(?:#\w+)?", text) is not None


class ScreenLock:
    """One phone's PIN. ``unlocked`` returns True if the phone is unlocked now, else None."""

    def __init__(self, transport: Transport, time: Time, unlocked: Callable[[], Awaitable[bool | None]]) -> None:
        self._transport, self._time, self._unlocked = transport, time, unlocked
        self._mine = f"{UNLOCKED}{secrets.token_hex(4)}"
        self._to_lock = False
        self.pin: SecretStr | None = None

    async def open(self) -> None:
        """Type the PIN into the field that the lock screen shows.

        Raises CommandFailed if there is no PIN, if it does not open the phone, if one did not before, or if a call or
        an alarm comes between.
        """
        if self.pin is None:
            raise CommandFailed(
                "The lock screen of the phone asks for a PIN, a pattern or a finger.",
                advice="Unlock it by hand, give its PIN in PHONEDESK_DEVICE__PINS, or take the screen lock off it.",
                key="pin_needed",
            )
        if (await self._marker()) == TYPED:
            raise CommandFailed(
                "The phone is locked, and the PIN of the settings did not open it before.",
                advice="Check PHONEDESK_DEVICE__PINS and unlock the phone once by hand: then it is typed again.",
                key="pin_not_typed",
            )
        await self._note(TYPED)
        await self._type(self.pin.get_secret_value())
        self._to_lock = True
        await self._note(self._mine)
        log.info("adb.unlocked", serial=self._transport.serial)

    async def _type(self, pin: str) -> None:
        # The error may hold the phone's words, or the command: none of it is passed on.
        failed = covered = False
        try:
            typed = await self._transport.shell(_on_lock_screen("input", "text", pin), shown="input text …")
            failed, covered = typed.code != 0, _is_covered(typed)
        except CommandFailed:
            failed = True
        if covered:
            await self._transport.shell(command_line(_DELETE), safe=True)  # nothing was typed
        elif not failed and await self._time.until(self._opened, PIN_SECONDS) is None:
            # Only on the lock screen: in a chat, Enter could send a draft, and in a call accept it.
            covered = _is_covered(await self._transport.shell(_on_lock_screen("input", "keyevent", "KEYCODE_ENTER")))
            failed = not covered and await self._time.until(self._opened, ENTER_SECONDS) is None
        if covered:
            raise CommandFailed(
                "A call or an alarm came over the lock screen, so the PIN was not typed, or not to its end.",
                advice="Try again once it is over, or unlock the phone by hand.",
                key="pin_covered",
            )
        if failed:
            raise CommandFailed(
                "The PIN of the settings does not open the phone. It is not typed again, so that the phone does not"
                " shut itself.",
                advice="Correct PHONEDESK_DEVICE__PINS and unlock the phone once by hand.",
                key="pin_wrong",
            )

    async def _opened(self) -> bool | None:
        """Return True if the lock screen is gone. Under a call it is not seen, but still there."""
        if await self._unlocked() is None:
            return None
        return None if (await self._transport.shell(command_line(_KEYGUARD), safe=True)).out.strip() else True

    async def seen_unlocked(self) -> None:
        """Note that the phone is open: if a PIN was wrong before, a person has opened it."""
        if self.pin is not None:
            still = (*_GET, PIPE, "grep", "-x", "-F", TYPED, AND)
            # Under a call or an alarm the phone may still be locked: then nobody has opened it.
            line = command_line((*_KEYGUARD, OR, Raw("{"), "true"), (*still, *_DELETE), (Raw("}"),))
            await self._transport.shell(line, safe=True)

    async def recover(self) -> None:
        """Take over from a run that unlocked the phone and died, or lost it to us, that it is locked afterwards."""
        if self.pin is not None and (await self._marker()).startswith(UNLOCKED):
            self._to_lock = True
            await self._note(self._mine)

    async def lock_again(self) -> None:
        """Switch the screen off if this object unlocked it, and nobody has taken the phone since."""
        if self._to_lock:
            self._to_lock = False
            await finish(self._lock())

    async def _lock(self) -> None:
        still = (*_GET, PIPE, "grep", "-x", "-F", self._mine, AND, Raw("{"), "true")
        line = command_line(still, ("input", "keyevent", "KEYCODE_SLEEP"), _DELETE, (Raw("}"),))
        try:
            with self._transport.tidying():
                await self._transport.shell(line, safe=True)
        except DeviceError as error:
            # The marker stays on the phone: the next run locks it.
            log.warning("adb.not_locked", serial=self._transport.serial, kind=error.kind, error=str(error))

    async def _marker(self) -> str:
        return (await self._transport.shell(command_line(_GET), safe=True)).out.strip()

    async def _note(self, value: str) -> None:
        """Write the marker. Raises CommandFailed if it is not there afterwards."""
        put = ("settings", "put", "global", LOCK_MARKER, value)
        result = await self._transport.shell(command_line(put, _GET), safe=True)
        if result.out.strip() != value:
            why = first_line(result.text)
            raise CommandFailed(
                f"The phone lets nothing be noted in its settings, so no PIN is typed: {why}",
                advice="Allow “USB debugging (security settings)” in its developer options, or unlock it by hand.",
                key="pin_unnoted",
                why=why,
            )


def _on_lock_screen(*command: str) -> str:
    """Return the line that runs ``command`` if the lock screen is in front. If something covers it, it says so."""
    return command_line((*_COVERED, OR, Raw("{"), *_LOCK_SCREEN, AND, *command), (Raw("}"),))


def _is_covered(result: ShellResult) -> bool:
    return "ccluded=true" in result.out
