"""Typing through ``uitest uiInput``, because HarmonyOS has no keyboard that a computer could type with.

``uitest uiInput text TEXT`` (from API 18) types into the field that has the focus; ``inputText X Y TEXT``, which is
older, taps a place first, so it needs the field's. Both work alike (testfwk_arkxtest, ``core/ui_driver.cpp``): up to
200 plain ASCII characters go as key events; anything else is put on the phone's clipboard and pasted with Ctrl+V. So
every Unicode text can be typed, the clipboard of the phone's owner is overwritten, and the owner's keyboard stays.

A file on the phone names the process that types now, because there is no keyboard to take. Each line of shell that
types compares it first. So the phone ignores what a suspended process does too late.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from agent_core.devices.base import Key, Node
from agent_core.devices.hdc.transport import HdcTransport
from agent_core.devices.shared_hold import SharedHold
from agent_core.devices.shell import AND, QUIET, Raw, chunks
from agent_core.errors import CommandFailed, DeviceError, LeaseLost, TextInputFailed
from agent_core.geometry import Point

log = structlog.get_logger(__name__)

HOLDER_FILE = "/data/local/tmp/phonedesk-typing"
CHUNK_BYTES = 8_000  # of UTF-8 in one call
# uitest prints it after an injected event, and its usage after arguments that it does not understand
SUCCESS = "No Error"
# ohos.multimodalInput.keyCode
CTRL, KEY_A, ENTER, DELETE, MULTITASK = "2072", "2017", "2054", "2055", "2210"
KEYS = {
    Key.BACK: "Back",
    Key.HOME: "Home",
    Key.ENTER: ENTER,
    Key.APP_SWITCH: MULTITASK,
    Key.DELETE: DELETE,
}

Command = tuple[str | Raw, ...]


def ui_input(*arguments: str) -> tuple[str, ...]:
    """Return the command that injects one event."""
    return ("uitest", "uiInput", *arguments)


def refusal(output: str, count: int = 1) -> str | None:
    """Return uitest's words if it did not succeed; None if all ``count`` events were injected.

    Older versions print nothing after a success.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    other = [line for line in lines if line != SUCCESS]
    return None if lines.count(SUCCESS) >= count or not other else other[0][:300]


class HdcKeyboard:
    """The keyboard of one phone: it types into the focused field. ``hold`` may be nested and shared."""

    def __init__(
        self,
        transport: HdcTransport,
        tree: Callable[[], Awaitable[Sequence[Node]]],
        tap: Callable[[Point], Sequence[tuple[str, ...]]],
    ) -> None:
        """tree: reads the screen's nodes, for a phone that types at places only. tap: the commands of a tap."""
        self._transport, self._tree, self._tap = transport, tree, tap
        self._hold = SharedHold(self._take, self._give_back)
        self._holder = secrets.token_hex(8)
        self._at_places = False  # this phone's uitest knows no ``text``

    @property
    def held(self) -> bool:
        return self._hold.held

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[HdcKeyboard, None]:
        """Be the process that types, inside the block. The phone's keyboard is not changed."""
        async with self._hold.hold():
            yield self

    async def type(self, text: str) -> None:
        """Add ``text``; nothing is sent if it is empty."""
        for part in chunks(text.replace("\r\n", "\n").replace("\r", "\n"), CHUNK_BYTES):
            await self._type(part)

    async def confirm(self, *, arrived: bool) -> None:
        """Do nothing: HarmonyOS has one way to type, so there is nothing to learn."""

    async def clear(self) -> None:
        """Select all that is in the field (Ctrl+A) and delete it."""
        select, delete = ui_input("keyEvent", CTRL, KEY_A), ui_input("keyEvent", DELETE)
        why = await self._while_ours(select, delete)
        if why is not None:
            raise _not_typed(f"The text could not be emptied: {why}.", why)

    async def tap(self, point: Point) -> None:
        await self._act(*self._tap(point))

    async def key(self, key: Key) -> None:
        await self._act(ui_input("keyEvent", KEYS[Key(key)]))

    async def send_action(self) -> None:
        """Press Enter, which submits a field of one line. HarmonyOS tells no other way to a keyboard's own key."""
        await self._act(ui_input("keyEvent", ENTER))

    async def _type(self, text: str) -> None:
        if not self._at_places:
            why = await self._while_ours(ui_input("text", text))
            if why is None:
                return
            if not re.search("Invalid parameters|Missing parameter|number of parameters", why):
                raise _not_typed(f"The text was not typed: {why}.", why)
            self._at_places = True
        field = next((n for n in await self._tree() if n.focused and n.class_name == "EditText"), None)
        if field is None:
            why = "no field has the focus"
            raise _not_typed(f"The text was not typed: {why}.", why)
        place = field.box.center
        why = await self._while_ours(ui_input("inputText", str(max(1, place.x)), str(max(1, place.y)), text))
        if why is not None:
            raise _not_typed(f"The text was not typed: {why}.", why)

    async def _act(self, *commands: tuple[str, ...]) -> None:
        why = await self._while_ours(*commands)
        if why is not None:
            raise CommandFailed(f"The phone said: {why}", key="phone_said", why=why)

    async def _while_ours(self, *commands: tuple[str, ...]) -> str | None:
        """Run the commands if this process is the one that types. Return the phone's refusal; None if it ran them.

        Raises LeaseLost, without running them, if another process types now.
        """
        ours: Command = ("grep", "-x", "-F", self._holder, HOLDER_FILE, QUIET, AND, Raw("{"), "true")
        code, output = await self._transport.shell(ours, *commands, (Raw("}"),))
        _, found, words = output.partition(self._holder)
        if not found:
            raise LeaseLost("Somebody else has taken the keyboard of the phone, or put it back.", key="keyboard_taken")
        return refusal(words, len(commands)) or (None if code == 0 else f"exit code {code}")

    async def _take(self) -> None:
        write: Command = ("echo", self._holder, Raw(">"), HOLDER_FILE)
        code, output = await self._transport.shell(write, safe=True)
        if code != 0:
            why = output.strip()[:300]
            raise _not_typed(f"The text was not typed: {why}.", why)

    async def _give_back(self) -> None:
        try:
            with self._transport.tidying():
                ours: Command = ("grep", "-q", "-x", "-F", self._holder, HOLDER_FILE, QUIET, AND)
                await self._transport.shell((*ours, "rm", "-f", HOLDER_FILE), safe=True)
        except DeviceError as error:
            # Only a name stays on the phone: the next one who types writes their own over it.
            log.warning("hdc.typing_left", serial=self._transport.serial, kind=error.kind, error=str(error))


def _not_typed(message: str, why: str) -> TextInputFailed:
    return TextInputFailed(
        message,
        advice="Tap the field first; on a HarmonyOS phone only a field that has the focus takes a text.",
        key="text_not_typed_harmonyos",
        why=why,
    )
