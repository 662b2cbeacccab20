"""Typing on an Android phone, by the first way that works on it.

Android's own ``input text`` takes ASCII only, so there are three ways (``typing_ways``): ADB Keyboard, an input method
that types the text of broadcasts, a program that pastes (``paste``), and ``input text``.

A setting of the phone holds the process that types now, and the owner's keyboard. If ADB Keyboard is used, the owner's
is put back in every outcome, by another process after a crash. The setting is checked in the same line of shell that
types: if a suspended process acts too late, the phone does nothing.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import structlog

from agent_core.devices.adb.brands import Brand, advice, input_denied
from agent_core.devices.adb.parse import denies_input, denies_settings, first_line, parse_input_method
from agent_core.devices.adb.paste import CHUNK_BYTES as PASTE_BYTES
from agent_core.devices.adb.paste import INSTALLED, PASTE_SECONDS, install, paste, remote_path, taken
from agent_core.devices.adb.paste import check as check_paste
from agent_core.devices.adb.transport import ShellResult, Transport, require
from agent_core.devices.adb.typing_ways import FILE, TypingMemory, TypingWay
from agent_core.devices.base import Key
from agent_core.devices.shared_hold import SharedHold
from agent_core.devices.shell import AND, OR, PIPE, QUIET, Raw, chunks, command_line
from agent_core.devices.waiting import Time, finish
from agent_core.errors import CommandFailed, DeviceError, TextInputFailed
from agent_core.geometry import Point

log = structlog.get_logger(__name__)

PACKAGE = "com.android.adbkeyboard"
METHOD = f"{PACKAGE}/.AdbIME"
MARKER = "phonedesk_previous_ime"  # in Android's global settings: the owner's keyboard, #, who holds ours
CHUNK_BYTES = 12_000  # of UTF-8 in one broadcast; base64 makes 16,000 of it, adbd's limit is 65,535
SWITCH_SECONDS = 3.0
CTRL_LEFT, KEY_A = "113", "29"  # android.view.KeyEvent
IME_ACTION_SEND = "4"  # android.view.inputmethod.EditorInfo
_METHOD_ID = re.compile(r"[A-Za-z][\w.]*/[\w.$]+", re.ASCII)
_READ_METHOD = ("settings", "get", "secure", "default_input_method")
_BINDING = r"mCurId=|mCurMethodId=|mHaveConnection=|mHasConnection=|mHasMainConnection="
_READ_MARKER = ("settings", "get", "global", MARKER)
_UNMARK = ("settings", "delete", "global", MARKER)
_STATE = (_READ_METHOD, ("dumpsys", "input_method", PIPE, "grep", "-E", _BINDING))
_SWITCHED = "phonedesk-switched"
_NEXT = "phonedesk-next"
_TAKE_LINE = command_line(
    _READ_METHOD,
    _READ_MARKER,
    ("date", "+%s"),
    ("cat", FILE, QUIET, OR, "echo"),
    ("ls", remote_path(), QUIET),
    ("echo", _NEXT),
    ("ime", "list", "-a", "-s"),
)
_CHOSEN = "chosen"  # in the marker: our keyboard is the owner's own choice, there is none to put back


class Keyboard:
    """The keyboard of one phone: it types into the focused field.

    ``hold`` may be nested and shared: the first takes the keyboard, the last gives it back.
    """

    def __init__(self, transport: Transport, time: Time) -> None:
        self._transport, self._time = transport, time
        self._hold = SharedHold(self._take, self._give_back)
        self._holder = secrets.token_hex(4)
        self._previous: str | None = None  # the owner's; None if ADB Keyboard is their own choice
        self._marked = False
        self._guarded = False  # the phone keeps the marker; some makers let nobody write there
        self._switched = False  # ADB Keyboard may be in the place of the owner's
        self._ways: list[TypingWay] = []  # the first is tried next
        self._ready: set[TypingWay] = set()
        self._typed_by: TypingWay | None = None  # the way of the newest text, until it is known whether that arrived
        self._memory, self._now = TypingMemory(), 0
        self._unlisted = ""  # the phone's words if it does not even tell its keyboards

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[Keyboard, None]:
        """Be the process that types, inside the block. The owner's keyboard is put back afterwards."""
        async with self._hold.hold():
            yield self

    @property
    def way(self) -> TypingWay:
        """The way in which the next text is typed, if it works. Valid only while the keyboard is held."""
        return self._ways[0]

    async def restore(self) -> str | None:
        """Put back the keyboard that a dead run left behind. Return its id; None if there was nothing to do."""
        return await self._hold.unless_held(self._restore)

    async def _restore(self) -> str | None:
        result = await self._transport.shell(command_line(_READ_METHOD, _READ_MARKER), safe=True)
        current, marker = _two_lines(result.out)
        previous = _previous(marker)
        if previous and current == METHOD:
            await self._put_back(previous, marker)
            return previous
        if previous or "#" in marker:  # the holder, which may only be suspended, loses the keyboard
            await self._transport.shell(command_line(_UNMARK), safe=True)
        return None

    # -- typing

    async def type(self, text: str) -> None:
        """Add ``text``; nothing is sent if it is empty.

        If one way certainly typed nothing, the next is taken. TextInputFailed if none is left, or if a part may have
        been typed already.
        """
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        refusals: dict[TypingWay, TextInputFailed] = {}
        for way in [way for way in self._ways if text and way.can_type(text)]:
            begun = False
            try:
                await self._make_ready(way)
                for part in chunks(text, PASTE_BYTES if way is TypingWay.PASTE else CHUNK_BYTES):
                    await self._type_by(way, part)
                    begun = True
            except TextInputFailed as error:
                await self._note(way, worked=False)
                error.may_repeat = error.may_repeat and not begun
                if not error.may_repeat:
                    raise
                refusals[way] = error
            else:
                self._typed_by = way
                return
        if refusals and self._unlisted:
            raise _refused(self._unlisted, await self._transport.brand())
        if refusals:  # ADB Keyboard's own refusal names the maker's setting
            raise refusals.get(TypingWay.KEYBOARD) or refusals.popitem()[1]

    async def confirm(self, *, arrived: bool) -> None:
        """Note whether the text typed last is on the screen. If not, another way types the next one."""
        way, self._typed_by = self._typed_by, None
        if way is not None and (self._memory.worked is not way or not arrived):
            await self._note(way, worked=arrived)

    async def clear(self) -> None:
        """Empty the focused field. If ADB Keyboard is too old to do it, press keys instead."""
        if not self._by_keyboard:
            await self._clear_selected()
            return
        try:
            await self._broadcast("ADB_CLEAR_TEXT")
        except TextInputFailed:
            await self.clear_by_keys()

    async def _clear_selected(self) -> None:
        """Select everything and delete it.

        Before Android 13, which knows no key combinations, delete by single keys.
        """
        delete = ("input", "keyevent", "KEYCODE_DEL")
        result = await self._while_ours("input", "keycombination", CTRL_LEFT, KEY_A, AND, *delete)
        if "nknown command" in result.text:
            await self.clear_by_keys(1000)
        else:
            _must(result, "could not be emptied")

    async def clear_by_keys(self, count: int = 200) -> None:
        """Move to the end of the field and press Delete ``count`` times (at most 2,000), in one call."""
        count = max(1, min(count, 2000))
        keys = ["KEYCODE_MOVE_END", *["KEYCODE_DEL"] * count]
        _must(await self._while_ours("input", "keyevent", *keys, seconds=30), "could not be emptied")

    async def tap(self, point: Point) -> None:
        require(await self._while_ours("input", "tap", str(point.x), str(point.y)))

    async def key(self, key: Key) -> None:
        require(await self._while_ours("input", "keyevent", f"KEYCODE_{Key(key).value}"))

    async def send_action(self) -> None:
        """Trigger the send action of the field as the keyboard's own send key does.

        Without ADB Keyboard, press Enter, which does the same in a field that has such a key.
        """
        if self._by_keyboard:
            await self._broadcast("ADB_EDITOR_CODE", "--ei", "code", IME_ACTION_SEND)
        else:
            await self.key(Key.ENTER)

    @property
    def _by_keyboard(self) -> bool:
        """True if ADB Keyboard types now."""
        return self._ways[0] is TypingWay.KEYBOARD and TypingWay.KEYBOARD in self._ready

    async def _type_by(self, way: TypingWay, text: str) -> None:
        match way:
            case TypingWay.KEYBOARD:
                encoded = base64.b64encode(text.encode()).decode()
                await self._broadcast("ADB_INPUT_B64", "--es", "msg", encoded)
            case TypingWay.PASTE:
                marker = self._marker()
                still_ours = (*_READ_MARKER, PIPE, "grep", "-q", "-x", "-F", marker) if self._guarded else ()
                result = await self._while_ours(*paste(text, still_ours), seconds=PASTE_SECONDS)
                if denies_input(result.text):
                    raise input_denied(await self._transport.brand())
                check_paste(result)
            case TypingWay.ASCII:
                # "%s" is a blank for `input`, so its two characters go in two calls.
                pieces = [piece for piece in re.split(r"(?<=%)(?=s)", text) if piece]
                calls = [part for piece in pieces for part in (AND, "input", "text", piece)]
                result = await self._while_ours(*calls[1:], seconds=60)
                if denies_input(result.text):
                    raise input_denied(await self._transport.brand())
                _must(result, "was not typed")

    async def _broadcast(self, action: str, *extras: str) -> None:
        # Newer Androids drop the broadcast if the receiver is not named.
        _must(await self._while_ours("am", "broadcast", "-a", action, "-p", PACKAGE, *extras), "was not typed")

    async def _while_ours(self, *command: str | Raw, seconds: float = 15.0) -> ShellResult:
        """Run the command if the phone's marker is ours. Raises LeaseLost, without running it, if it is not.

        command: its parts must be joined by AND, or the guard would not hold for all of it.
        """
        if not self._guarded:
            return await self._transport.shell(command_line(command), seconds=seconds)
        marker = self._marker()
        result = await self._transport.shell(command_line((*_if(marker), *command)), seconds=seconds)
        words = result.out.partition(marker)
        if not words[1]:
            raise taken()
        return ShellResult(result.code, words[2].lstrip("\n"), result.err)

    async def _note(self, way: TypingWay, *, worked: bool) -> None:
        """Store on the phone whether a way worked; one that failed is tried last from now on."""
        self._memory.note(way, worked=worked, now=self._now)
        if not worked:
            self._ways = [other for other in self._ways if other is not way] + [way]
            log.info("adb.typing_failed", serial=self._transport.serial, way=way, next=self._ways[0])
        # If the program failed, its file may be broken: the next use pushes it again.
        removal = [("rm", "-f", remote_path())] if way is TypingWay.PASTE and not worked else []
        self._ready -= {way} if removal else set()
        try:
            line = command_line(("echo", self._memory.written(), Raw(">"), FILE), *removal)
            await self._transport.shell(line, safe=True)
        except CommandFailed as error:
            log.warning("adb.typing_forgotten", serial=self._transport.serial, error=str(error))

    # -- taking and giving back

    async def _take(self) -> None:
        result = await self._transport.shell(_TAKE_LINE, safe=True)
        current, marker, now, rest = [*(line.strip() for line in result.out.split("\n", 3)), "", "", "", ""][:4]
        known, _, methods = rest.partition(_NEXT)
        self._memory = TypingMemory.read(known.partition("\n")[0])
        self._now = int(now) if now.isdecimal() else 0
        self._ways = self._memory.order(installed=METHOD in methods.split(), now=self._now)
        self._unlisted = first_line(result.err + methods) if denies_settings(result.err + methods) else ""
        self._ready = {TypingWay.ASCII} | ({TypingWay.PASTE} if remote_path() in known else set())
        if current == METHOD:
            # Left by a run that died, or the owner's own choice; then there is nothing to give back.
            self._previous = _previous(marker) or None
            self._switched = self._previous is not None
        else:
            self._previous, self._switched = current if _METHOD_ID.fullmatch(current) else "", False
        self._marked = True
        await self._start(current)

    async def _start(self, current: str) -> None:
        """Mark the phone as ours and make the first way ready, in one call; if it fails, the next ones."""
        way = self._ways[0]
        line = command_line(self._mark(), _READ_MARKER, ("echo", _NEXT), *self._preparation(way, current))
        # Not cut in two: a change that is still under way on the phone would come after it was undone.
        result = await finish(self._transport.shell(line, safe=True))
        words, _, rest = result.out.partition(f"{_NEXT}\n")
        self._guarded = self._marker() in words
        try:
            await self._check_ready(way, rest, result.err)
        except TextInputFailed as error:
            log.info("adb.typing_not_ready", serial=self._transport.serial, way=way, error=str(error))
            await self._note(way, worked=False)

    def _preparation(self, way: TypingWay, current: str = "") -> tuple[Sequence[str | Raw], ...]:
        """Return the commands that make a way ready; () if there is nothing to do."""
        if way is TypingWay.PASTE and way not in self._ready:
            return (install(),)
        if way is not TypingWay.KEYBOARD:
            return ()
        if current == METHOD:
            return (("echo", _SWITCHED, "0"), *_STATE)
        self._switched = self._previous is not None
        # Setting the same method twice changes nothing, so it may be tried again.
        change = ("ime", "enable", METHOD, AND, "ime", "set", METHOD)
        return (change, ("echo", _SWITCHED, Raw("$?")), *_STATE)

    async def _make_ready(self, way: TypingWay) -> None:
        """Prepare a way to type.

        Raises TextInputFailed if it is not available, LeaseLost if another owner has the phone.
        """
        if way in self._ready:
            return
        result = await finish(self._prepare(way))
        await self._check_ready(way, result.out, result.err)

    async def _prepare(self, way: TypingWay) -> ShellResult:
        first, *others = self._preparation(way)
        guard = _if(self._marker()) if self._guarded else ()
        result = await self._transport.shell(command_line((*guard, *first), *others), safe=True)
        if self._guarded and self._marker() not in result.out:
            raise taken()
        return result

    async def _check_ready(self, way: TypingWay, out: str, err: str) -> None:
        if way is TypingWay.PASTE and way not in self._ready and INSTALLED not in out:
            why = first_line(err) or first_line(out) or "it gave no reason"
            error = TextInputFailed(f"The text could not be pasted: {why}.", key="text_not_pasted", why=why)
            error.may_repeat = True
            raise error
        if way is TypingWay.KEYBOARD:
            await self._check_switched(out, err)
        self._ready.add(way)

    async def _check_switched(self, out: str, err: str) -> None:
        words, _, rest = out.partition(_SWITCHED)
        code, _, state = rest.strip(" ").partition("\n")
        if code.strip() != "0" or "cannot be selected" in words + err:
            told = first_line(err + words) or "it gave no reason"
            if denies_settings(words + err):
                raise _refused(told, await self._transport.brand())
            raise _nothing_typed(f"The phone refused to change its keyboard: {told}.")
        if not _current(state) and await self._time.until(self._is_current, SWITCH_SECONDS) is None:
            raise _nothing_typed("The phone did not change to ADB Keyboard in time.")

    def _marker(self) -> str:
        return f"{_CHOSEN if self._previous is None else self._previous or 'none'}#{self._holder}"

    def _mark(self) -> tuple[str, ...]:
        return ("settings", "put", "global", MARKER, self._marker())

    async def _is_current(self) -> bool | None:
        return _current((await self._transport.shell(command_line(*_STATE), safe=True)).out) or None

    async def _give_back(self) -> None:
        if not self._marked:
            return
        previous, marker, switched = self._previous, self._marker(), self._switched
        self._previous, self._marked, self._switched = None, False, False
        try:
            with self._transport.tidying():
                if previous is None or not switched:
                    await self._transport.shell(command_line((*_if(marker), *_UNMARK)), safe=True)
                else:
                    await self._put_back(previous, marker)
        except DeviceError as error:
            # The marker stays on the phone: the next start puts it back.
            log.warning("adb.keyboard_left", serial=self._transport.serial, kind=error.kind, error=str(error))

    async def _put_back(self, previous: str, marker: str) -> None:
        """Put back the keyboard ``previous``.

        marker: if the phone has another marker by now, another owner holds the keyboard or has already put it back, and
        nothing is done.
        """
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
                # No keyboard may be chosen here, not even ours: a reset would disable those that the owner enabled.
                await self._transport.shell(command_line(_UNMARK), safe=True)
                return
            log.warning("adb.keyboard_gone", serial=self._transport.serial, method=previous)
        # There was none, or it was uninstalled meanwhile: Android chooses.
        result = await self._transport.shell(command_line((*if_ours, "ime", "reset", AND, *_UNMARK)), safe=True)
        if marker in result.out:
            _must(result, "could not be put back")


def _current(state: str) -> bool:
    """Tell whether ADB Keyboard is chosen and bound, so that it hears broadcasts.

    state: the output of ``_STATE``.
    """
    setting, _, dump = state.partition("\n")
    if setting.strip() != METHOD:
        return False
    method, bound = parse_input_method(dump)
    return method is None or (method == METHOD and bound)


def _if(marker: str) -> tuple[str | Raw, ...]:
    """Return the guard for a line of shell: the commands after it run only if the phone's marker is this one.

    The guard then prints the marker.
    """
    return (*_READ_MARKER, PIPE, "grep", "-x", "-F", marker, AND)


def _previous(marker: str) -> str:
    """Return the owner's keyboard that a marker names; "" if it names none."""
    method = marker.partition("#")[0]
    return method if _METHOD_ID.fullmatch(method) else ""


def _two_lines(text: str) -> tuple[str, str]:
    lines = [line.strip() for line in text.splitlines()] + ["", ""]
    return lines[0], lines[1]


def _nothing_typed(message: str) -> TextInputFailed:
    """Return the error for a keyboard that was not available this time."""
    error = TextInputFailed(message, key="nothing_typed")
    error.may_repeat = True
    return error


def _refused(why: str, brand: Brand) -> TextInputFailed:
    """Return the error for a phone that does not let its keyboard be changed over adb."""
    how = advice(brand, "input")
    said = f"The phone refused to change its keyboard: {why.rstrip('.')}."
    error = TextInputFailed(said, advice=how, key="keyboard_refused", how=how)
    error.may_repeat = True
    return error


def _must(result: ShellResult, what: str) -> None:
    if result.code != 0 or "Exception" in result.text:
        why = first_line(result.text) or f"exit code {result.code}"
        raise TextInputFailed(f"The text {what}: {why}.", key="text_not_typed", why=why)
