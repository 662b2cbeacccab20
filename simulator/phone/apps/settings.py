"""The settings: a list, and the developer options with the switches that matter to a computer at the cable."""

from __future__ import annotations

from collections.abc import Callable

from simulator.phone.apps.base import GREY, INK, TITLE_BAR, App, Host, page, row_line, title_bar
from simulator.phone.widgets import GROUP, WIDTH, Canvas, Element, Rect, label

_ROWS = (
    "WLAN",
    "蓝牙",
    "移动网络",
    "显示与亮度",
    "声音与振动",
    "通知",
    "应用管理",
    "电池",
    "安全与隐私",
    "开发者选项",
    "关于手机",
)
_ROW = 150


class Settings(App):
    package = "com.android.settings"
    label = "设置"
    activity = ".Settings"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.page = ""

    def elements(self) -> list[Element]:
        if not self.page:
            found = [page(self.host, "#ffffff"), *title_bar("设置")]
            for index, name in enumerate(_ROWS):
                found += self._row(index, name, "", self._opener(name))
            return found
        found = [page(self.host, "#ffffff"), *title_bar(self.page, back=self._leave)]
        if self.page == "开发者选项":
            allowed = not self.host.faults.input_denied and not self.host.faults.ime_refused
            found += self._row(0, "USB调试", "已开启", None)
            found += self._row(1, "USB调试（安全设置）", "已开启" if allowed else "已关闭", self._toggle)
        else:
            found.append(label(WIDTH // 2, 700, "暂无内容", 40, GREY, anchor="middle"))
        return found

    def _row(self, index: int, name: str, value: str, tap: Callable[[], None] | None) -> list[Element]:
        top = TITLE_BAR + index * _ROW
        box: Rect = (0, top, WIDTH, top + _ROW)
        middle = top + _ROW // 2

        def arrow(canvas: Canvas) -> None:
            canvas.line([(1020, middle - 16), (1036, middle), (1020, middle + 16)], "#c0c0c0", 4)

        found = [
            Element(box, "", "row", tap, arrow, kind=GROUP),
            label(48, middle, name, 46, INK, id="row_title"),
            row_line(48, top + _ROW - 2),
        ]
        if value:
            found.append(label(990, middle, value, 38, GREY, anchor="right", id="summary"))
        return found

    def _opener(self, name: str) -> Callable[[], None]:
        def open_it() -> None:
            self.page = name

        return open_it

    def _leave(self) -> None:
        self.page = ""

    def _toggle(self) -> None:
        """Allow or refuse simulated input and a change of keyboard, as makers tie both to this switch."""
        refused = not (self.host.faults.input_denied or self.host.faults.ime_refused)
        self.host.faults.input_denied = self.host.faults.ime_refused = refused

    def back(self) -> bool:
        inside = bool(self.page)
        self.page = ""
        return inside

    def reset(self) -> None:
        self.page = ""
