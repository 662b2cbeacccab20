"""Touches by fingers: the events of the touch panel, read while a watch is open.

The kernel reports them through ``getevent`` (Android's toolbox; the shell's user may read ``/dev/input``). Events that
``input`` injects arise above the kernel and never come here. Each watch has one stream; while nobody touches the phone,
nothing is sent and nothing runs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import structlog

from agent_core.devices.adb.parse import first_line
from agent_core.devices.adb.transport import Transport
from agent_core.devices.base import TouchWatch
from agent_core.devices.shell import command_line
from agent_core.errors import DeviceError, DeviceOffline

log = structlog.get_logger(__name__)

_DEVICE = re.compile(r"^add device \d+: (/dev/input/event\d+)\s*$", re.MULTILINE)
# ``[device: ]type code value`` in hexadecimal: a place, a finger that comes (it goes with ffffffff), or BTN_TOUCH down.
_TOUCH = re.compile(
    rb"^(?:(?P<device>/dev/input/event\d+): )?"
    rb"(?:0003 (?:0035|0036) [0-9a-f]{8}|0003 0039 (?!ffffffff)[0-9a-f]{8}|0001 014a 00000001)\s*$"
)
_EVENT = re.compile(rb"^(?:/dev/input/event\d+: )?[0-9a-f]{4} [0-9a-f]{4} [0-9a-f]{8}\s*$")


def parse_panels(text: str) -> tuple[str, ...]:
    """Return the devices in the output of ``getevent -lp`` that report places on a screen."""
    pieces = _DEVICE.split(text)  # the text before the first, then name and description in turns
    described = zip(pieces[1::2], pieces[2::2], strict=True)
    return tuple(name for name, description in described if "ABS_MT_POSITION_X" in description)


class Touches:
    """One phone's touch panels. They are looked for once; a phone that refuses is not asked again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._panels: tuple[str, ...] | None = None
        self._refused = False

    @asynccontextmanager
    async def watch(self, watch: TouchWatch) -> AsyncGenerator[TouchWatch, None]:
        """Watch for touches inside the block. If the phone does not report them, log that once and never report any."""
        async with AsyncExitStack() as stack:
            following: asyncio.Task[None] | None = None
            try:
                panels = await self._find()
                if panels:
                    # The tool takes one device, or all of them.
                    line = command_line(("exec", "getevent", "-q", *(panels if len(panels) == 1 else ())))
                    pieces = await stack.enter_async_context(self._transport.stream(line))
                    following = asyncio.create_task(self._follow(pieces, panels, watch))
            except DeviceError as error:
                self._refuse(str(error), for_good=not isinstance(error, DeviceOffline))
            try:
                yield watch
            finally:
                if following is not None:
                    following.cancel()
                    await asyncio.wait({following})

    async def _find(self) -> tuple[str, ...]:
        if self._refused:
            return ()
        if self._panels is None:
            result = await self._transport.shell(command_line(("getevent", "-lp")), safe=True)
            panels = parse_panels(result.out.replace("\r\n", "\n"))
            if not panels:
                self._refuse(first_line(result.err) or first_line(result.out) or "no touch panel is named")
                return ()
            self._panels = panels
        return self._panels

    async def _follow(self, pieces: AsyncGenerator[bytes, None], panels: tuple[str, ...], watch: TouchWatch) -> None:
        names = {panel.encode() for panel in panels}
        rest = b""
        words = "the stream of events ended"
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    *lines, rest = (rest + piece).split(b"\n")
                    rest = rest[-200:]  # no line of the tool is longer
                    for line in lines:
                        if watch.touched:
                            break  # enough is known; the rest is only read and dropped
                        found = _TOUCH.match(line)
                        if found is not None and found["device"] in {None, *names}:
                            watch.touched = True
                        elif line.strip() and not _EVENT.match(line):
                            words = line.decode("utf-8", "replace").strip()
        except DeviceOffline:
            # The phone or the server went away; the next watch tries again.
            self._refuse(words, for_good=False)
        else:
            self._refuse(words)

    def _refuse(self, words: str, *, for_good: bool = True) -> None:
        if not self._refused:
            log.warning("adb.touches_unseen", serial=self._transport.serial, words=words[:200])
        self._refused = self._refused or for_good
