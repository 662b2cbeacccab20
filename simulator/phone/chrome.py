"""The parts that the system draws around and over the apps: status bar, gesture bar, lock screen, shade, dialog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from agent_core.devices.base import Notification
from agent_core.texts.layout import ellipsize, wrap
from simulator.phone.apps.base import BUTTON_BAR, GREY, INK, STATUS_BAR
from simulator.phone.widgets import BUTTON, IMAGE, WIDTH, Canvas, Element, Handler, Rect, background, label

SYSTEM_UI = "com.android.systemui"
SHADE_ROW = 190
UPDATE_TITLE = "发现新版本"  # of an app's own update dialog


def ink_on(color: str) -> str:
    """Return the colour of the system's marks over this one."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#1a1a1a" if red * 3 + green * 6 + blue > 1400 else "#ffffff"


def status_bar(now: datetime, battery: int, color: str, waiting: int, operator: str = "") -> Element:
    """Return clock at the left, signal and battery at the right, a dot if notifications wait. ``color`` lies under it.

    ``operator`` is the mobile operator's name, which takes the clock's place.
    """
    ink = ink_on(color)

    def paint(canvas: Canvas) -> None:
        canvas.text(40 if operator else 56, 48, f"{operator} {now:%H:%M}".strip(), 42 if operator else 38, ink)
        if waiting and not operator:
            canvas.oval((172, 40, 188, 56), ink)
        for index, bar in enumerate((10, 17, 24, 31)):
            canvas.rect((800 + index * 12, 64 - bar, 808 + index * 12, 64), ink, 2)
        canvas.polygon([(862, 42), (884, 64), (906, 42)], ink)
        canvas.arc((858, 30, 910, 82), 222, 318, ink, 5)
        canvas.rect((934, 34, 1000, 64), ink, 8)
        canvas.rect((1001, 43, 1006, 55), ink, 2)
        canvas.rect((938, 38, 996, 60), color, 5)
        canvas.rect((941, 41, 941 + 52 * battery // 100, 57), ink, 3)

    return Element((0, 0, WIDTH, STATUS_BAR), paint=paint, listed=False)


def gesture_bar(height: int, color: str = "#1a1a1a") -> Element:
    return background((390, height - 22, 690, height - 13), color, 4)


def buttons(height: int, color: str, press: Callable[[str], None]) -> list[Element]:
    """Return the three buttons at the lower edge: recent apps, home, back."""
    y, ink = height - BUTTON_BAR // 2, "#7a7a7a"

    def paint(canvas: Canvas) -> None:
        canvas.rect((0, height - BUTTON_BAR, WIDTH, height), color)
        canvas.rect((288, y - 20, 328, y + 20), ink, 6)
        canvas.ring((515, y - 25, 565, y + 25), ink, color, 5)
        canvas.oval((526, y - 14, 554, y + 14), ink)
        canvas.polygon([(778, y - 22), (778, y + 22), (746, y)], ink)

    found = [Element((0, height - BUTTON_BAR, WIDTH, height), paint=paint, listed=False, blocks=True)]
    for x, key in ((308, "APP_SWITCH"), (540, "HOME"), (762, "BACK")):
        box: Rect = (x - 110, height - BUTTON_BAR, x + 110, height)
        found.append(Element(box, tap=partial(press, key), listed=False))
    return found


def floating_window(height: int, tap: Handler) -> Element:
    """Return a small window of another app over the page, with an active call."""
    top = height * 62 // 100
    box: Rect = (850, top, 1056, top + 230)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#d9dbe0", 28)
        canvas.rect((box[0] + 2, top + 2, box[2] - 2, box[3] - 2), "#ffffff", 27)
        canvas.polygon(
            [(900, top + 84), (924, top + 84), (950, top + 56), (950, top + 132), (924, top + 104)], "#3aa0f0"
        )
        canvas.arc((940, top + 66, 984, top + 122), -55, 55, "#3aa0f0", 6)
        canvas.text((box[0] + box[2]) / 2, top + 182, "通话 03:26", 32, INK, "middle")

    return Element(box, "", "", tap, paint, listed=False)


def lock_screen(height: int, now: datetime) -> list[Element]:
    def paint(canvas: Canvas) -> None:
        canvas.rect((0, 0, WIDTH, height), "#1d2b3f")
        canvas.polygon([(0, height * 3 // 4), (WIDTH, height // 2), (WIDTH, height), (0, height)], "#26384f")

    day = f"{now.month}月{now.day}日 星期{'一二三四五六日'[now.weekday()]}"
    return [
        Element((0, 0, WIDTH, height), paint=paint, listed=False, blocks=True),
        label(WIDTH // 2, 480, f"{now:%H:%M}", 200, "#ffffff", anchor="middle", id="keyguard_clock"),
        label(WIDTH // 2, 640, day, 48, "#dbe6f2", anchor="middle"),
        label(WIDTH // 2, height - 160, "向上滑动解锁", 42, "#dbe6f2", anchor="middle", id="keyguard_indication_text"),
    ]


def pin_screen(height: int, typed: int, *, shut: bool) -> list[Element]:
    """Return the lock screen that asks for a PIN: a dot for each digit that was typed."""

    def paint(canvas: Canvas) -> None:
        canvas.rect((0, 0, WIDTH, height), "#1d2b3f")
        for index in range(typed):
            x = WIDTH // 2 + (2 * index - typed + 1) * 30
            canvas.oval((x - 12, 788, x + 12, 812), "#ffffff")

    said = "请在30秒后重试" if shut else "输入PIN码"
    found = [
        Element((0, 0, WIDTH, height), paint=paint, listed=False, blocks=True),
        label(WIDTH // 2, 640, said, 48, "#dbe6f2", anchor="middle", id="keyguard_message_area"),
    ]
    for index, key in enumerate("123456789 0"):
        x, y = 240 + index % 3 * 300, 1050 + index // 3 * 220
        found.append(label(x, y, key, 90, "#ffffff", anchor="middle", listed=False))
    return found


def shade(
    height: int, notes: Sequence[Notification], open_note: Callable[[Notification], None], close: Handler
) -> list[Element]:
    """Return the notification shade over the whole screen."""
    found = [
        Element((0, 0, WIDTH, height), paint=lambda canvas: canvas.dim(0.72), listed=False, tap=close),
        label(56, 170, "通知", 52, "#ffffff", id="title"),
    ]
    for index, note in enumerate(notes[: (height - 400) // SHADE_ROW]):
        found += _note(note, 240 + index * SHADE_ROW, open_note)
    if not notes:
        found.append(label(WIDTH // 2, 360, "没有通知", 42, "#dfe3e8", anchor="middle"))
    return found


def _note(note: Notification, top: int, open_note: Callable[[Notification], None]) -> list[Element]:
    box: Rect = (32, top, WIDTH - 32, top + SHADE_ROW - 20)

    def open_it() -> None:
        open_note(note)

    return [
        Element(box, "", "notification", open_it, lambda canvas: canvas.rect(box, "#ffffff", 30)),
        label(72, top + 54, ellipsize(note.title, 42, 900), 42, INK, id="notification_title"),
        label(72, top + 114, ellipsize(note.text, 38, 900), 38, GREY, id="notification_text"),
    ]


def dialog(height: int, text: str, close: Handler, accept: Handler) -> list[Element]:
    """Return a dialog over the page: a text, a button that nobody should press, 关闭, and an X."""
    lines = wrap(text, 44, 700)[:8]
    top = height // 2 - 260
    box: Rect = (130, top, 950, top + 330 + 64 * len(lines))
    buttons = box[3] - 120

    def paint(canvas: Canvas) -> None:
        canvas.dim(0.5)
        canvas.rect(box, "#ffffff", 36)
        canvas.text(540, top + 80, "提示", 50, INK, "middle", bold=True)
        canvas.rect((130, buttons, 950, buttons + 2), "#e6e6e6")
        canvas.rect((539, buttons, 541, box[3]), "#e6e6e6")
        canvas.line([(884, top + 36), (912, top + 64)], GREY, 5)
        canvas.line([(912, top + 36), (884, top + 64)], GREY, 5)

    found = [Element((0, 0, WIDTH, height), paint=paint, listed=False, blocks=True)]
    found += [
        label(540, top + 170 + 64 * index, line, 44, "#404040", anchor="middle", listed=False)
        for index, line in enumerate(lines)
    ]
    found.append(Element((190, top + 130, 890, buttons - 20), text, "dialog_text"))
    found.append(_dialog_button((130, buttons, 539, box[3]), "关闭", GREY, close, "dialog_close"))
    found.append(_dialog_button((541, buttons, 950, box[3]), "立即更新", "#0099ff", accept, "dialog_accept"))
    found.append(Element((858, top + 14, 938, top + 90), "", "dialog_x", close, description="关闭", kind=IMAGE))
    return found


def update_dialog(height: int, form: str, close: Handler, accept: Handler) -> list[Element]:
    """Return an app's own update dialog.

    form: "buttons" has two of them; "picture" has one and, above the text, a picture that closes the dialog.
    """
    top = height // 2 - 420
    box: Rect = (140, top, 940, top + 840)
    wide = form == "picture"

    def paint(canvas: Canvas) -> None:
        canvas.dim(0.5)
        canvas.rect(box, "#ffffff", 40)
        canvas.blend((box[0], top, box[2], top + 300), "#4aa8ff", "#a8d8ff", 40)
        canvas.oval((460, top + 70, 620, top + 230), "#ffffff")
        canvas.polygon([(540, top + 100), (490, top + 160), (590, top + 160)], "#2f8cf0")
        canvas.rect((522, top + 155, 558, top + 205), "#2f8cf0")

    def cross(canvas: Canvas) -> None:
        canvas.oval((846, top + 24, 906, top + 84), "#e6f2ff")
        canvas.line([(864, top + 42), (888, top + 66)], GREY, 5)
        canvas.line([(888, top + 42), (864, top + 66)], GREY, 5)

    found = [Element((0, 0, WIDTH, height), paint=paint, listed=False, blocks=True)]
    if wide:
        found.append(Element((826, top + 4, 926, top + 104), "", "dialog_x", close, cross, "关闭", IMAGE))
    found += [
        label(540, top + 370, UPDATE_TITLE, 52, INK, anchor="middle", bold=True, id="dialogTitle"),
        label(540, top + 460, "1. 优化聊天体验", 42, "#5a5a5a", anchor="middle", id="dialogText"),
        label(540, top + 530, "2. 修复已知问题", 42, "#5a5a5a", anchor="middle"),
    ]
    if wide:
        found.append(_update_button((200, top + 650, 880, top + 750), "马上升级", accept, lit=True))
    else:
        found.append(_update_button((180, top + 650, 530, top + 750), "稍后处理", close, lit=False))
        found.append(_update_button((550, top + 650, 900, top + 750), "立即升级", accept, lit=True))
    return found


def _update_button(box: Rect, text: str, tap: Handler, *, lit: bool) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#0099ff" if lit else "#f0f1f4", 50)
        canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, text, 44, "#ffffff" if lit else INK, "middle")

    return Element(box, text, "dialogRightBtn" if lit else "dialogLeftBtn", tap, paint, kind=BUTTON)


def _dialog_button(box: Rect, text: str, color: str, tap: Handler, name: str) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, text, 44, color, "middle")

    return Element(box, text, name, tap, paint, kind=BUTTON)
