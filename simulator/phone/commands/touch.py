"""``input``: taps, swipes, keys and text, with its traps."""

from __future__ import annotations

import re

from simulator.phone.commands.base import Call, CommandFailure, JavaFailure, command

_SOURCES = frozenset(
    {"touchscreen", "touchpad", "touchnavigation", "mouse", "keyboard", "stylus", "dpad", "gamepad", "joystick"}
)
DEFAULT_SWIPE_SECONDS = 0.3
DEFAULT_DRAG_SECONDS = 1.0
KEY_NAMES = {
    3: "HOME", 4: "BACK", 5: "CALL", 6: "ENDCALL", 19: "DPAD_UP", 20: "DPAD_DOWN", 21: "DPAD_LEFT", 22: "DPAD_RIGHT",
    23: "DPAD_CENTER", 24: "VOLUME_UP", 25: "VOLUME_DOWN", 26: "POWER", 27: "CAMERA", 61: "TAB", 62: "SPACE",
    66: "ENTER", 67: "DEL", 82: "MENU", 84: "SEARCH", 92: "PAGE_UP", 93: "PAGE_DOWN", 111: "ESCAPE", 112: "FORWARD_DEL",
    113: "CTRL_LEFT", 122: "MOVE_HOME", 123: "MOVE_END", 164: "VOLUME_MUTE", 187: "APP_SWITCH", 223: "SLEEP",
    224: "WAKEUP", 277: "CUT", 278: "COPY", 279: "PASTE",
}  # fmt: skip
KEY_NAMES |= {7 + digit: str(digit) for digit in range(10)}
KEY_NAMES |= {29 + place: letter for place, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
_NUMBERS = {name: code for code, name in KEY_NAMES.items()}
_USAGE = """Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]
The commands and default sources are:
      text <string> (Default: keyboard)
      keyevent [--longpress|--duration <duration>|--doubletap] <key code number or name> ... (Default: keyboard)
      tap <x> <y> (Default: touchscreen)
      swipe <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)
      draganddrop <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)
"""


@command("input")
async def input_(call: Call) -> int:
    arguments = call.arguments
    while arguments and (arguments[0] in _SOURCES or arguments[0] == "-d"):
        del arguments[: 2 if arguments[0] == "-d" else 1]
    verb = call.shifted()
    if verb is None:
        call.err(_USAGE)
        return 255
    if verb == "tap":
        x, y = _numbers(call, 2)
        await call.phone.tap(x, y)
    elif verb in {"swipe", "draganddrop"}:
        x1, y1, x2, y2 = _numbers(call, 4)
        default = DEFAULT_SWIPE_SECONDS if verb == "swipe" else DEFAULT_DRAG_SECONDS
        seconds = _number(arguments[4]) / 1000 if len(arguments) > 4 else default
        await call.phone.swipe(x1, y1, x2, y2, max(0.0, seconds))
    elif verb == "keyevent":
        await _keys(call)
    elif verb == "keycombination" and _knows_combinations(call):
        names = [KEY_NAMES.get(int(key[:9]), key) if key.isdecimal() else key for key in arguments]
        if len(names) < 2:
            raise JavaFailure("java.lang.IllegalArgumentException", "keycombination requires at least 2 keycodes")
        await call.phone.key_combination(names)
    elif verb == "text":
        await _text(call)
    else:
        call.err(f"Error: Unknown command: {verb}\n{_USAGE}")
        return 255
    return 0


def _knows_combinations(call: Call) -> bool:
    """Whether the phone has Android 13 or newer."""
    sdk = call.phone.properties.get("ro.build.version.sdk", "")
    return sdk.isdecimal() and int(sdk) >= 33


def _number(text: str) -> float:
    if not re.fullmatch(r"[+-]?\d{1,9}(\.\d{0,9})?", text, re.ASCII):
        raise JavaFailure("java.lang.NumberFormatException", f'For input string: "{text}"')
    return float(text)


def _numbers(call: Call, count: int) -> list[float]:
    if len(call.arguments) < count:
        raise JavaFailure("java.lang.IllegalArgumentException", "Argument expected after the command")
    return [_number(text) for text in call.arguments[:count]]


async def _keys(call: Call) -> None:
    keys = [argument for argument in call.arguments if not argument.startswith("--")]
    if not keys:
        raise JavaFailure("java.lang.IllegalArgumentException", 'Argument expected after "keyevent"')
    for key in keys:
        name = key.removeprefix("KEYCODE_")
        if key.isascii() and key.isdecimal():
            await call.phone.key(KEY_NAMES.get(int(key[:9]), key))
        elif name in _NUMBERS:
            await call.phone.key(name)
        else:
            raise CommandFailure(f"Error: Invalid keycode: {key}", 255)


async def _text(call: Call) -> None:
    """Only the first argument is typed; anything but ASCII throws; ``%s`` is a blank."""
    if not call.arguments:
        raise JavaFailure("java.lang.IllegalArgumentException", 'Argument expected after "text"')
    text = call.arguments[0]
    if not text.isascii():
        raise JavaFailure("java.lang.NullPointerException", "Attempt to get length of null array")
    await call.phone.text(text.replace("%s", " "))
