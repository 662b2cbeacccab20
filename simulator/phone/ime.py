"""The keyboards: their drawing, and ADB Keyboard's treatment of broadcasts, with all its traps.

A broadcast is never answered, whether anybody listened or not. ADB Keyboard listens only while it is the current input
method; if the phone asks for it, only to broadcasts that name its package; and its text goes into the focused field or
nowhere.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from simulator.phone.widgets import WIDTH, Canvas, Element, Rect, TextField, background

SOGOU = "com.sohu.inputmethod.sogou/.SogouIME"
ADB = "com.android.adbkeyboard/.AdbIME"
ADB_PACKAGE = "com.android.adbkeyboard"

SOGOU_HEIGHT = 840
ADB_HEIGHT = 110
SOGOU_COLOR = "#d7dbe1"
ADB_COLOR = "#30343a"

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_LIT = ("发送", "搜索")  # action keys that are drawn in blue
_EDITOR_ACTIONS = {"2", "3", "4", "6"}  # go, search, send, done


class Typist(Protocol):
    """The target of the keyboard's typing: the phone."""

    @property
    def focus(self) -> TextField | None: ...

    def insert(self, text: str) -> None:
        """Type into the focused field, if there is one."""

    def erase(self, count: int | None) -> None:
        """Take ``count`` characters off the focused field's end; None takes all."""

    def press(self, name: str) -> None:
        """Press a key of the keyboard: ENTER, DEL, BACK …"""


def height_of(method: str) -> int:
    """Return how much of the screen the keyboard covers, in units."""
    return ADB_HEIGHT if method == ADB else SOGOU_HEIGHT


def editor_action(field: TextField) -> Callable[[], None] | None:
    """Return the function of the keyboard's action key in this field; None if Enter makes new lines."""
    return field.action if field.enter_acts or not field.multiline else None


def hear(typist: Typist, action: str, extras: Mapping[str, str]) -> None:
    """Do what ADB Keyboard does with a broadcast that it has received."""
    field = typist.focus
    if field is None:
        return
    message = extras.get("msg", "")
    match action:
        case "ADB_INPUT_TEXT":
            typist.insert(message)
        case "ADB_INPUT_B64":
            typist.insert(_decoded(message))
        case "ADB_INPUT_CHARS":
            typist.insert(_characters(extras.get("chars", "")))
        case "ADB_CLEAR_TEXT":
            typist.erase(None)
        case "ADB_INPUT_CODE":
            typist.press({"66": "ENTER", "67": "DEL", "4": "BACK"}.get(extras.get("code", ""), ""))
        case "ADB_EDITOR_CODE":
            handler = editor_action(field)
            if handler and extras.get("code") in _EDITOR_ACTIONS:
                handler()
        case _:
            pass


def _decoded(message: str) -> str:
    try:
        return base64.b64decode(message, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""  # the keyboard's own log says so, and nobody reads it


def _characters(chars: str) -> str:
    try:
        return "".join(chr(int(number)) for number in chars.split(",") if number.strip())
    except (ValueError, OverflowError):
        return ""


def adb_keyboard(height: int) -> list[Element]:
    """Return the bar of ADB Keyboard at the bottom of a screen of ``height`` units."""
    top = height - ADB_HEIGHT
    return [
        background((0, top, WIDTH, height), ADB_COLOR),
        Element(
            (0, top, WIDTH, height),
            "ADB Keyboard {ON}",
            paint=lambda canvas: canvas.text(40, top + 42, "ADB Keyboard {ON}", 40, "#ffffff"),
            listed=False,
            blocks=True,
        ),
    ]


def sogou_keyboard(height: int, typist: Typist, stuck: bool) -> list[Element]:
    """Return a keyboard with letters, as wide as the screen."""
    top = height - SOGOU_HEIGHT
    action = typist.focus.action_key if typist.focus else "换行"
    keys = _keys(top, action)
    board: Rect = (0, top, WIDTH, height)

    def paint(canvas: Canvas) -> None:
        canvas.stamp(f"sogou {action}", board, lambda: _board(canvas, board, keys))

    found = [Element(board, paint=paint, listed=False, blocks=True)]
    found += [Element(key.box, key.text, tap=_handler(key.does, typist, stuck), listed=False) for key in keys]
    return found


@dataclass(frozen=True, slots=True)
class _Key:
    box: Rect
    text: str
    does: str = ""  # one character is typed, a longer word is a key that is pressed
    dark: bool = True


@lru_cache(8)
def _keys(top: int, action: str) -> tuple[_Key, ...]:
    found: list[_Key] = []
    y = top + 124
    for row, letters in enumerate(_ROWS):
        left = (WIDTH - len(letters) * 106) // 2
        for index, letter in enumerate(letters):
            x = left + index * 106
            found.append(_Key((x + 6, y, x + 100, y + 134), letter, letter, dark=False))
        if row == 2:
            found.append(_Key((12, y, left - 12, y + 134), "⇧"))
            found.append(_Key((WIDTH - left + 12, y, WIDTH - 12, y + 134), "删除", "DEL"))
        y += 156
    for left, right, text, does in (
        (12, 150, "符", ""),
        (162, 300, "123", ""),
        (312, 740, "空格", " "),
        (752, 890, "中/英", ""),
        (902, WIDTH - 12, action, "ENTER"),
    ):
        found.append(_Key((left, y, right, y + 134), text, does, dark=does != " "))
    return tuple(found)


def _handler(does: str, typist: Typist, stuck: bool) -> Callable[[], None]:
    def act() -> None:
        if stuck or not does:
            return
        if len(does) == 1:
            typist.insert(does)
        else:
            typist.press(does)

    return act


def _board(canvas: Canvas, box: Rect, keys: tuple[_Key, ...]) -> None:
    top = box[1]
    canvas.rect(box, SOGOU_COLOR)
    canvas.rect((0, top, WIDTH, top + 104), "#f3f4f6")
    for index, text in enumerate(("搜狗输入法", "拼音", "手写", "语音")):
        canvas.text(40 + index * 240 + (60 if index else 0), top + 52, text, 36, "#6b7078")
    canvas.line([(1010, top + 42), (1028, top + 60), (1046, top + 42)], "#6b7078", 5)
    for key in keys:
        left, up, right, down = key.box
        canvas.rect((left, up + 3, right, down + 3), "#a9aeb6", 14)
        lit = key.text in _LIT
        canvas.rect(key.box, "#2f7cf6" if lit else "#bcc2cb" if key.dark else "#ffffff", 14)
        size = 50 if len(key.text) == 1 else 38
        canvas.text((left + right) / 2, (up + down) / 2, key.text, size, "#ffffff" if lit else "#1a1a1a", "middle")
