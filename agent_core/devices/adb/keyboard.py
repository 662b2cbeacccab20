"""Text through ADB Keyboard, an input method that types what broadcasts tell it.

Android's own ``input text`` takes ASCII only. The keyboard of the phone's owner is put back in every outcome; its name
is left in a setting of the phone meanwhile, so that after a crash another process can put it back. The setting says
who holds the keyboard, too: who lost the phone leaves it to the one who has it. It is asked in the same line of shell
that types: what a process that stood still does too late, the phone leaves undone.
"""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import structlog

from agent_core.devices.adb.parse import first_line, parse_input_method
from agent_core.devices.adb.transport import AND, PIPE, Raw, ShellResult, Transport, command_line, require
from agent_core.devices.adb.waiting import Time, finish
from agent_core.devices.base import Key
from agent_core.errors import DeviceError, LeaseLost, TextInputFailed
from agent_core.geometry import Point

log = structlog.get_logger(__name__)

PACKAGE = "com.android.adbkeyboard"
METHOD = f"{PACKAGE}/.AdbIME"
MARKER = "phonedesk_previous_ime"  # in Android's global settings: the owner's keyboard, #, who holds ours
CHUNK_BYTES = 12_000  # of UTF-8 in one broadcast; base64 makes 16,000 of it, adbd's limit is 65,535
SWITCH_SECONDS = 3.0
IME_ACTION_SEND = "4"  # android.view.inputmethod.EditorInfo
_METHOD_ID = re.compile(r"[A-Za-z][\w.]*/[\w.$]+", re.ASCII)
_READ_METHOD = ("settings", "get", "secure", "default_input_method")
_BINDING = r"mCurId=|mCurMethodId=|mHaveConnection=|mHasConnection=|mHasMainConnection="
_READ_MARKER = ("settings", "get", "global", MARKER)
_UNMARK = ("settings", "delete", "global", MARKER)
_STATE = (_READ_METHOD, ("dumpsys", "input_method", PIPE, "grep", "-E", _BINDING))
_SWITCHED = "phonedesk-switched"
_CHOSEN = "chosen"  # in the marker: our keyboard is the owner's own choice, there is none to put back


class Keyboard:
    """One phone's keyboard. ``hold`` may be nested and shared: the first takes it, the last gives it back."""

    def __init__(self, transport: Transport, time: Time) -> None:
        self._transport, self._time = transport, time
        self._lock = asyncio.Lock()
        self._holders = 0
        self._holder = secrets.token_hex(4)
        self._previous: str | None = None  # the owner's; None where ours is their own choice
        self._marked = False
        self._guarded = False  # the phone keeps the marker; some makers let nobody write there

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[Keyboard, None]:
        """Our keyboard inside, the owner's afterwards. TextInputFailed where it cannot be had."""
        counted = False
        try:
            async with self._lock:
                self._holders += 1
                counted = True
                if self._holders == 1:
                    await self._take()
            yield self
        finally:
            # Whether it was taken wholly or in part: what was begun is undone.
            if counted:
                await finish(self._release())

    async def restore(self) -> str | None:
        """Put back the keyboard that a dead run left behind; its id, or None where there was nothing to do."""
        async with self._lock:
            if self._holders:
                return None
            result = await self._transport.shell(command_line(_READ_METHOD, _READ_MARKER), safe=True)
            current, marker = _two_lines(result.out)
            previous = _previous(marker)
            if not previous:
                if "#" in marker:  # whoever held it, and may only stand still, holds it no more
                    await self._transport.shell(command_line(_UNMARK), safe=True)
                return None
            if current == METHOD:
                await self._put_back(previous, marker)
                return previous
            await self._transport.shell(command_line(_UNMARK), safe=True)
            return None

    # -- typing

    async def type(self, text: str) -> None:
        """Add ``text``; nothing is sent where it is empty."""
        for part in chunks(text.replace("\r\n", "\n").replace("\r", "\n")):
            encoded = base64.b64encode(part.encode()).decode()
            await self._broadcast("ADB_INPUT_B64", "--es", "msg", encoded)

    async def clear(self) -> None:
        """Empty the focused field; by keys where ADB Keyboard is too old to do it."""
        try:
            await self._broadcast("ADB_CLEAR_TEXT")
        except TextInputFailed:
            await self.clear_by_keys()

    async def clear_by_keys(self, count: int = 200) -> None:
        """To the end of the field and ``count`` (at most 2,000) times Delete, in one call."""
        count = max(1, min(count, 2000))
        keys = ["KEYCODE_MOVE_END", *["KEYCODE_DEL"] * count]
        _must(await self._while_ours("input", "keyevent", *keys, seconds=30), "could not be emptied")

    async def tap(self, point: Point) -> None:
        require(await self._while_ours("input", "tap", str(point.x), str(point.y)))

    async def key(self, key: Key) -> None:
        require(await self._while_ours("input", "keyevent", f"KEYCODE_{Key(key).value}"))

    async def send_action(self) -> None:
        await self._broadcast("ADB_EDITOR_CODE", "--ei", "code", IME_ACTION_SEND)

    async def _broadcast(self, action: str, *extras: str) -> None:
        # Newer Androids drop the broadcast where the receiver is not named.
        _must(await self._while_ours("am", "broadcast", "-a", action, "-p", PACKAGE, *extras), "was not typed")

    async def _while_ours(self, *command: str, seconds: float = 15.0) -> ShellResult:
        """Run it where the marker is ours; LeaseLost, and it is not run, where it is not."""
        if not self._guarded:
            return await self._transport.shell(command_line(command), seconds=seconds)
        marker = self._marker()
        result = await self._transport.shell(command_line((*_if(marker), *command)), seconds=seconds)
        words = result.out.partition(marker)
        if not words[1]:
            raise LeaseLost("Somebody else has taken the keyboard of the phone, or put it back.", key="keyboard_taken")
        return ShellResult(result.code, words[2].lstrip("\n"), result.err)

    # -- taking and giving back

    async def _take(self) -> None:
        result = await self._transport.shell(
            command_line(
                _READ_METHOD,
                _READ_MARKER,
                ("ime", "list", "-a", "-s"),
            ),
            safe=True,
        )
        lines = [line.strip() for line in result.out.splitlines()]
        current, marker = _two_lines(result.out)
        if METHOD not in lines[2:]:
            raise TextInputFailed("ADB Keyboard is not installed on the phone.", key="no_keyboard")
        if current == METHOD:
            # Left by a run that died, or the owner's own choice; then there is nothing to give back.
            self._previous, self._marked = _previous(marker) or None, True
            line = command_line(self._mark(), _READ_MARKER, ("echo", _SWITCHED), *_STATE)
            words, _, state = (await self._transport.shell(line, safe=True)).out.partition(f"{_SWITCHED}\n")
            self._guarded = self._marker() in words
            if _current(state):
                return
        else:
            self._previous, self._marked = current if _METHOD_ID.fullmatch(current) else "", True
            # Not cut in two: a change that is still under way on the phone would come after it was undone.
            if await finish(self._switch()):
                return
        if await self._time.until(self._is_current, SWITCH_SECONDS) is None:
            raise _nothing_typed("The phone did not change to ADB Keyboard in time.")

    def _marker(self) -> str:
        return f"{_CHOSEN if self._previous is None else self._previous or 'none'}#{self._holder}"

    def _mark(self) -> tuple[str, ...]:
        return ("settings", "put", "global", MARKER, self._marker())

    async def _switch(self) -> bool:
        """Choose ADB Keyboard; whether it is current already."""
        mark = self._mark()
        change = ("ime", "enable", METHOD, AND, "ime", "set", METHOD)
        # Setting the same method twice changes nothing, so it may be tried again.
        line = command_line(mark, _READ_MARKER, change, ("echo", _SWITCHED, Raw("$?")), *_STATE)
        result = await self._transport.shell(line, safe=True)
        words, _, rest = result.out.partition(_SWITCHED)
        self._guarded = self._marker() in words
        words = words.partition("\n")[2]
        code, _, state = rest.strip(" ").partition("\n")
        if code.strip() != "0" or "cannot be selected" in words + result.err:
            told = first_line(result.err + words) or "it gave no reason"
            raise _nothing_typed(f"The phone refused to change its keyboard: {told}.")
        return _current(state)

    async def _is_current(self) -> bool | None:
        return _current((await self._transport.shell(command_line(*_STATE), safe=True)).out) or None

    async def _release(self) -> None:
        async with self._lock:
            self._holders -= 1
            if self._holders or not self._marked:
                return
            previous, marker = self._previous, self._marker()
            self._previous, self._marked = None, False
            try:
                with self._transport.tidying():
                    if previous is None:
                        await self._transport.shell(command_line((*_if(marker), *_UNMARK)), safe=True)
                    else:
                        await self._put_back(previous, marker)
            except DeviceError as error:
                # The marker stays on the phone: the next start puts it back.
                log.warning("adb.keyboard_left", serial=self._transport.serial, kind=error.kind, error=str(error))

    async def _put_back(self, previous: str, marker: str) -> None:
        """``marker``: where it is another by now, somebody else holds the keyboard, or has put it back already."""
        if_ours = _if(marker)
        if _METHOD_ID.fullmatch(previous):
            line = command_line((*if_ours, "ime", "set", previous, AND, *_UNMARK))
            result = await self._transport.shell(line, safe=True)
            if marker not in result.out:
                log.warning("adb.keyboard_not_ours", serial=self._transport.serial)
                return
            if result.code == 0 and "cannot be selected" not in result.text:
                return
            now = await self._transport.shell(command_line(_READ_METHOD), safe=True)
            if now.out.strip() == previous:
                # No keyboard may be chosen here, ours neither: a reset would take away those that the owner enabled.
                await self._transport.shell(command_line(_UNMARK), safe=True)
                return
            log.warning("adb.keyboard_gone", serial=self._transport.serial, method=previous)
        # There was none, or it was uninstalled meanwhile: Android chooses.
        result = await self._transport.shell(command_line((*if_ours, "ime", "reset", AND, *_UNMARK)), safe=True)
        if marker in result.out:
            _must(result, "could not be put back")


def chunks(text: str, size: int = CHUNK_BYTES) -> Iterator[str]:
    """``text`` in parts of at most ``size`` bytes of UTF-8, cut between characters; none of an empty text."""
    start = used = 0
    for index, character in enumerate(text):
        width = len(character.encode("utf-8", "surrogatepass"))
        if used + width > size:
            yield text[start:index]
            start, used = index, 0
        used += width
    if start < len(text):
        yield text[start:]


def _current(state: str) -> bool:
    """Whether ADB Keyboard is chosen and bound, so that it hears broadcasts; ``state`` is what ``_STATE`` prints."""
    setting, _, dump = state.partition("\n")
    if setting.strip() != METHOD:
        return False
    method, bound = parse_input_method(dump)
    return method is None or (method == METHOD and bound)


def _if(marker: str) -> tuple[str | Raw, ...]:
    """What follows in the line is run where the phone's marker is this one; it is printed then."""
    return (*_READ_MARKER, PIPE, "grep", "-x", "-F", marker, AND)


def _previous(marker: str) -> str:
    """The owner's keyboard that a marker tells of; "" for none."""
    method = marker.partition("#")[0]
    return method if _METHOD_ID.fullmatch(method) else ""


def _two_lines(text: str) -> tuple[str, str]:
    lines = [line.strip() for line in text.splitlines()] + ["", ""]
    return lines[0], lines[1]


def _nothing_typed(message: str) -> TextInputFailed:
    """The keyboard could not be had this time."""
    error = TextInputFailed(message, key="nothing_typed")
    error.may_repeat = True
    return error


def _must(result: ShellResult, what: str) -> None:
    if result.code != 0 or "Exception" in result.text:
        why = first_line(result.text) or f"exit code {result.code}"
        raise TextInputFailed(f"The text {what}: {why}.", key="text_not_typed", why=why)
