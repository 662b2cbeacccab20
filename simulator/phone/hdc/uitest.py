"""``uitest`` and ``snapshot_display``: touches, keys, texts, the picture and the tree.

The checks are those of testfwk_arkxtest (``input/ui_input.cpp``, ``server/server_main.cpp``) and window_manager.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise

from PIL import Image

from simulator.phone.commands.base import Call
from simulator.phone.hdc import usage
from simulator.phone.hdc.layout import layout
from simulator.phone.phone import VirtualPhone
from simulator.phone.png import as_png
from simulator.phone.port import TreeFailure
from simulator.phone.widgets import TextField

LONG_CLICK_SECONDS = 1.5
DEFAULT_SPEED, MIN_SPEED, MAX_SPEED = 600, 200, 40_000
JPEG_QUALITY = 90
_KEYS = {
    "Back": "BACK", "Home": "HOME", "Power": "POWER", "1": "HOME", "2": "BACK", "18": "POWER", "2050": "SPACE",
    "2054": "ENTER", "2055": "DEL", "2070": "ESCAPE", "2119": "NUMPAD_ENTER", "2210": "APP_SWITCH",
}  # fmt: skip
_CTRL, _A, _V = "2072", "2017", "2038"


class Uitest:
    """The ``uitest`` program. It keeps a person's selection and clipboard, because Android's shell cannot."""

    def __init__(self, phone: VirtualPhone, api: int) -> None:
        self.phone, self.api = phone, api
        self.clipboard = ""
        self._selected: TextField | None = None

    async def uitest(self, call: Call) -> int:
        match call.shifted():
            case "uiInput":
                return await self._ui_input(call, call.arguments)
            case "dumpLayout":
                return await self._dump_layout(call)
            case "screenCap":
                return await self._screen_cap(call)
            case "--version":
                call.line("6.0.2.1")
                return 0
            case "help":
                call.line(usage.UITEST)
                return 0
            case _:
                call.line(usage.UITEST)
                return 1

    async def _ui_input(self, call: Call, arguments: list[str]) -> int:
        verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
        if verb == "help":
            call.line(usage.UI_INPUT)
            return 0
        if not rest:
            return _wrong(call, "Missing parameter. \n")
        match verb:
            case "click" | "doubleClick" | "longClick":
                return await self._click(call, verb, rest)
            case "swipe" | "drag" | "fling":
                return await self._swipe(call, rest)
            case "keyEvent":
                return await self._key(call, rest)
            case "inputText":
                if len(rest) not in (3, 4):
                    return _wrong(call, "The number of parameters is incorrect. \n")
                place = _places(rest[:2])
                if place is None:
                    return _wrong(call, usage.BAD_PLACE)
                await self.phone.tap(*place)
                return await self._text(call, rest[2])
            case "text" if self.api >= 18:
                if len(rest) not in (1, 2):
                    return _wrong(call, "The number of parameters is incorrect. \n")
                return await self._text(call, rest[0])
            case _:
                return _wrong(call, "Invalid parameters. \n")

    async def _click(self, call: Call, verb: str, rest: list[str]) -> int:
        if len(rest) not in (2, 3):
            return _wrong(call, "The number of parameters is incorrect. \n")
        place = _places(rest[:2])
        if place is None:
            return _wrong(call, usage.BAD_PLACE)
        self._selected = None
        if verb == "longClick":
            x, y = place
            await self.phone.swipe(x, y, x, y, LONG_CLICK_SECONDS)
        else:
            for _ in range(2 if verb == "doubleClick" else 1):
                await self.phone.tap(*place)
        return _done(call)

    async def _swipe(self, call: Call, rest: list[str]) -> int:
        if len(rest) < 4:
            return _wrong(call, "Missing parameter. \n")
        if len(rest) > 6:
            return _wrong(call, " Too many parameters. \n")
        places = _places(rest[:4])
        if places is None:
            return _wrong(call, usage.BAD_PLACE)
        speed = number(rest[4]) if len(rest) > 4 else DEFAULT_SPEED
        if not MIN_SPEED <= speed <= MAX_SPEED:
            call.line("The swipe velocity out of range, the default value will be used. \n")
            speed = DEFAULT_SPEED
        x1, y1, x2, y2 = places
        self._selected = None
        await self.phone.swipe(x1, y1, x2, y2, math.hypot(x2 - x1, y2 - y1) / speed)
        return _done(call)

    async def _key(self, call: Call, rest: list[str]) -> int:
        if rest[0] in ("Back", "Home", "Power"):
            if len(rest) > 2:
                return _wrong(call, " Too many parameters. \n")
        elif not number(rest[0]):
            return _wrong(call, "Invalid parameters. \n")
        elif len(rest) > 4:
            return _wrong(call, " Too many parameters. \n")
        if rest == [_CTRL, _A]:
            await self.phone.key("SELECT_ALL")
            self._selected = self.phone.focus
        elif rest == [_CTRL, _V]:
            await self._insert(self.clipboard)
        elif rest == ["2055"] and self._selected is not None and self._selected is self.phone.focus:
            await self.phone.key("DEL")
            self.phone.erase(None)
            self._selected = None
        else:
            await self.phone.key(_KEYS.get(rest[0], rest[0]))
        return _done(call)

    async def _text(self, call: Call, text: str) -> int:
        """Type up to 200 bytes of printable ASCII as key events; paste anything else by clipboard and Ctrl+V."""
        if len(text.encode()) > 200 or not re.fullmatch(r"[ -~]*", text):
            self.clipboard = text
        await self._insert(text)
        return _done(call)

    async def _insert(self, text: str) -> None:
        if self._selected is not None and self._selected is self.phone.focus:
            self.phone.erase(None)
        self._selected = None
        await self.phone.paste(text)

    async def _dump_layout(self, call: Call) -> int:
        path = option(call.arguments, "-p") or "/data/local/tmp/layout_1.json"
        try:
            nodes = await self.phone.tree()
        except TreeFailure as failure:
            call.line(f"DumpLayout failed:{failure}")
            return 1
        try:
            call.files.write(call.path(path), json.dumps(layout(nodes), ensure_ascii=False).encode(), mode=0o666)
        except OSError as error:
            call.line(f"DumpLayout failed:Error path:{path}{error.strerror}")
            return 1
        call.line(f"DumpLayout saved to:{path}")
        return 0

    async def _screen_cap(self, call: Call) -> int:
        path = option(call.arguments, "-p") or "/data/local/tmp/screenCap_1.png"
        picture = await self.phone.picture()
        try:
            call.files.write(call.path(path), await asyncio.to_thread(as_png, picture), mode=0o666)
        except OSError:
            call.line("ScreenCap failed: ")
            return 1
        call.line(f"ScreenCap saved to {path}")
        return 0

    async def snapshot_display(self, call: Call) -> int:
        path = option(call.arguments, "-f") or "/data/local/tmp/snapshot_1.jpeg"
        if not path.endswith(".jpeg"):
            call.line(f"error: fileName {path} invalid, suffix must be .jpeg")
            return 0
        picture = await self.phone.picture()
        width, height = picture.size
        call.line(f"process: display 0, file type: jpeg, width: {width}, height: {height}")
        try:
            call.files.write(call.path(path), await asyncio.to_thread(_as_jpeg, picture), mode=0o666)
        except OSError:
            call.line(f"\nerror: snapshot display 0, write to {path} as jpeg failed!")
            return 255
        call.line(f"\nsuccess: snapshot display 0 , write to {path} as jpeg, width: {width}, height: {height}")
        return 0


def option(arguments: Sequence[str], name: str) -> str | None:
    return next((value for option, value in pairwise(arguments) if option == name), None)


def number(text: str) -> int:
    """Return the number that a word begins with, else 0, as C's ``atoi`` does."""
    found = re.match(r"\s*[+-]?\d{1,9}", text, re.ASCII)
    return int(found[0]) if found else 0


def _as_jpeg(picture: Image.Image) -> bytes:
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=JPEG_QUALITY)
    return data.getvalue()


def _places(words: Sequence[str]) -> tuple[int, ...] | None:
    """Return coordinates; None if one is below 1, which uitest refuses."""
    numbers = tuple(map(number, words))
    return numbers if min(numbers) > 0 else None


def _done(call: Call) -> int:
    call.line("No Error")
    return 0


def _wrong(call: Call, words: str) -> int:
    call.line(f"{words}\n{usage.UI_INPUT}")
    return 1
