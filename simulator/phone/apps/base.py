"""The interface of an app of the virtual phone, and of the phone towards its apps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from datetime import datetime
from typing import Protocol

from simulator.phone.scenario import Faults
from simulator.phone.widgets import IMAGE, WIDTH, Canvas, Element, Handler, Rect, TextField, background, label
from simulator.phone.world import Message

STATUS_BAR = 90
TITLE_BAR = 232  # its bottom
GESTURE_BAR = 40
BUTTON_BAR = 126  # the three buttons of phones without gestures

INK = "#1a1a1a"
GREY = "#8c8c8c"
PALE = "#b2b2b2"
LINE = "#ececec"


class Host(Protocol):
    """The phone, as its apps see it."""

    faults: Faults
    settings: MutableMapping[tuple[str, str], str]  # (namespace, key) → value, to be read
    enter_sends: bool
    font_scale: float

    @property
    def height(self) -> int:
        """The height of the screen, in units."""

    @property
    def bottom(self) -> int:
        """The y at which the page ends: at the keyboard, or at the gesture bar."""

    @property
    def floor(self) -> int:
        """The y at which a page ends without a keyboard: at the gesture bar, or at the three buttons."""

    @property
    def focus(self) -> TextField | None: ...

    def now(self) -> datetime: ...

    def focus_on(self, field: TextField | None) -> None: ...

    def log(self, what: str, detail: str = "") -> None: ...

    def set_setting(self, namespace: str, key: str, value: str | None) -> None: ...

    def launch_app(self, package: str) -> bool: ...

    def go_home(self) -> None: ...

    def chat_opened(self, key: str) -> None: ...

    def text_leaves(self, key: str) -> None:
        """Report that a text of ours is about to leave for the contact."""

    def text_left(self, key: str, message: Message) -> None:
        """Report that a text of ours has left this phone."""

    def ai_asked(self, text: str) -> None: ...

    def pay_tapped(self, what: str) -> None: ...


class App(ABC):
    package: str
    label: str
    activity: str

    def __init__(self, host: Host) -> None:
        self.host = host

    @abstractmethod
    def elements(self) -> list[Element]:
        """Return the elements between the status bar and the page's end, from the bottom layer up."""

    def back(self) -> bool:
        """Go back one page. Return False at the app's first page."""
        return False

    def scroll(self, distance: int) -> None:  # noqa: B027 - most apps have nothing to scroll
        """Scroll after the finger moved down (positive) or up by so many units."""

    def swipe(self, right: int, down: int) -> None:
        """Handle a finger's move by so many units, to the right and down; most pages only scroll."""
        self.scroll(down)

    def reset(self) -> None:  # noqa: B027 - an app of one page is always there
        """Go back to the first page, as after the app was stopped."""

    def top_color(self) -> str:
        """Return the colour under the status bar."""
        return "#ffffff"

    def bottom_color(self) -> str:
        """Return the colour under the gesture bar."""
        return "#ffffff"

    def secret(self) -> bool:
        """Tell whether the page in front is protected (FLAG_SECURE): pictures show it black."""
        return False

    def current_activity(self) -> str:
        return self.activity


def page(host: Host, color: str) -> Element:
    return background((0, 0, WIDTH, host.height), color)


def title_bar(text: str, color: str = "#ffffff", *, back: Handler | None = None, ink: str = INK) -> list[Element]:
    """Return the bar of a plain page, with the back arrow if there is a way back."""
    found = [background((0, 0, WIDTH, TITLE_BAR), color)]
    if back:
        found.append(back_arrow(back, ink))
    found.append(label(150 if back else 48, 158, text, 50, ink, id="title", bold=True))
    return found


def back_arrow(tap: Handler, ink: str = INK) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.line([(70, 130), (42, 158), (70, 186)], ink, 6)

    return Element((0, 100, 120, 216), "", "ivTitleBtnLeft", tap, paint, description="返回", kind=IMAGE)


def row_line(left: int, y: int) -> Element:
    return background((left, y, WIDTH, y + 2), LINE)


def badge(center_x: int, center_y: int, count: int) -> Element:
    """Return the red mark with the number of unread messages."""
    text = str(count) if count < 100 else "99+"
    half = 20 + 11 * (len(text) - 1)
    box: Rect = (center_x - half, center_y - 20, center_x + half, center_y + 20)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#fa5151", 20)
        canvas.text(center_x, center_y, text, 28, "#ffffff", "middle")

    return Element(box, text, "unread", paint=paint)


BANNER = 88  # its height
NO_NETWORK = "当前网络不可用，请检查网络设置"


def banner(top: int) -> list[Element]:
    """Return the strip that says that there is no network; ``top`` is its upper edge."""

    def paint(canvas: Canvas) -> None:
        canvas.rect((0, top, WIDTH, top + BANNER), "#fdeceb")
        canvas.oval((32, top + 24, 72, top + 64), "#f25643")
        canvas.rect((50, top + 32, 54, top + 48), "#ffffff")
        canvas.rect((50, top + 52, 54, top + 56), "#ffffff")

    return [
        Element((0, top, WIDTH, top + BANNER), paint=paint, listed=False, blocks=True),
        label(96, top + BANNER // 2, NO_NETWORK, 36, "#7a5a58", id="network_tips"),
    ]


AVATARS = ("#5b8ff9", "#f6903d", "#61c4a1", "#9270ca", "#e8684a", "#3aa6c9", "#c2a83e")


def avatar(box: Rect, name: str, *, round_: bool = False, listed: bool = True, tap: Handler | None = None) -> Element:
    """Return a figure on a coloured square (or disc), the same colour for the same name, without letters to read."""
    color = AVATARS[sum(map(ord, name)) % len(AVATARS)]
    left, top, size = box[0], box[1], box[2] - box[0]
    middle = left + size // 2

    def paint(canvas: Canvas) -> None:
        if round_:
            canvas.oval(box, color)
        else:
            canvas.rect(box, color, size // 6)
        head, body = size * 17 // 100, size * 30 // 100
        canvas.oval((middle - head, top + size // 5, middle + head, top + size // 5 + 2 * head), "#f4f7fb")
        shoulders = (middle - body, top + size * 58 // 100, middle + body, top + size * 84 // 100)
        canvas.rect(shoulders, "#f4f7fb", size * 13 // 100)

    return Element(box, "", "avatar", tap, paint, description="头像", kind=IMAGE, listed=listed)


def clock_text(moment: datetime, now: datetime) -> str:
    """Return a time as chat apps write it: today the hour, then 昨天, the weekday, the date."""
    days = (now.date() - moment.date()).days
    hour = f"{moment:%H:%M}"
    if days <= 0:
        return hour
    if days == 1:
        return f"昨天 {hour}"
    if days < 7:
        return f"星期{'一二三四五六日'[moment.weekday()]} {hour}"
    return f"{moment.month}月{moment.day}日 {hour}"


def short_time(moment: datetime, now: datetime) -> str:
    """Return the same for a list, which has little room."""
    text = clock_text(moment, now)
    return text if " " not in text else text.split(" ")[0]
