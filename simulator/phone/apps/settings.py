"""The settings: a list of pages, with the switches that Android keeps among its settings.

USB调试（安全设置） is not a setting: it allows or refuses simulated input and changed settings, as makers tie both to
it.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.phone.apps.base import GREY, INK, TITLE_BAR, App, Host, page, row_line, title_bar
from simulator.phone.widgets import GROUP, WIDTH, Canvas, Element, Rect, label

# The pages, and on each the switches: name, and namespace and key of the setting that is 0 or not.
_SWITCHES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "WLAN": (("WLAN", "global", "wifi_on"),),
    "蓝牙": (("蓝牙", "global", "bluetooth_on"),),
    "移动网络": (("移动数据", "global", "mobile_data"), ("飞行模式", "global", "airplane_mode_on")),
    "显示与亮度": (
        ("自动调节亮度", "system", "screen_brightness_mode"),
        ("自动旋转", "system", "accelerometer_rotation"),
    ),
    "声音与振动": (("勿扰模式", "global", "zen_mode"), ("触摸时振动", "system", "haptic_feedback_enabled")),
    "通知": (),
    "应用管理": (),
    "电池": (("省电模式", "global", "low_power"),),
    "安全与隐私": (),
    "开发者选项": (("USB调试", "global", "adb_enabled"), ("充电时屏幕不休眠", "global", "stay_on_while_plugged_in")),
    "关于手机": (),
}
_SAFE = "USB调试（安全设置）"
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
            for index, name in enumerate(_SWITCHES):
                found += self._row(index, name, None, self._opener(name))
            return found
        found = [page(self.host, "#ffffff"), *title_bar(self.page, back=self._leave)]
        rows: list[tuple[str, bool, Callable[[], None]]] = [
            (name, self._is_on(namespace, key), self._switcher(namespace, key))
            for name, namespace, key in _SWITCHES[self.page]
        ]
        if self.page == "开发者选项":
            rows.insert(1, (_SAFE, not self._refuses(), self._toggle))
        for index, (name, on, tap) in enumerate(rows):
            found += self._row(index, name, on, tap)
        if not rows:
            found.append(label(WIDTH // 2, 700, "暂无内容", 40, GREY, anchor="middle"))
        return found

    def _row(self, index: int, name: str, on: bool | None, tap: Callable[[], None]) -> list[Element]:
        """Return a row with a switch that is ``on`` or off, or with an arrow if that is None."""
        top = TITLE_BAR + index * _ROW
        box: Rect = (0, top, WIDTH, top + _ROW)
        middle = top + _ROW // 2

        def arrow(canvas: Canvas) -> None:
            canvas.line([(1020, middle - 16), (1036, middle), (1020, middle + 16)], "#c0c0c0", 4)

        def switch(canvas: Canvas) -> None:
            canvas.rect((930, middle - 32, 1040, middle + 32), "#1677ff" if on else "#d0d3d8", 32)
            left = 982 if on else 936
            canvas.oval((left, middle - 26, left + 52, middle + 26), "#ffffff")

        found = [
            Element(box, "", "row", tap, arrow if on is None else switch, kind=GROUP),
            label(48, middle, name, 46, INK, id="row_title"),
            row_line(48, top + _ROW - 2),
        ]
        if on is not None:
            found.append(label(900, middle, "已开启" if on else "已关闭", 38, GREY, anchor="right", id="summary"))
        return found

    def _opener(self, name: str) -> Callable[[], None]:
        def open_it() -> None:
            self.page = name

        return open_it

    def _is_on(self, namespace: str, key: str) -> bool:
        return self.host.settings.get((namespace, key), "0") != "0"

    def _switcher(self, namespace: str, key: str) -> Callable[[], None]:
        def switch() -> None:
            self.host.set_setting(namespace, key, "0" if self._is_on(namespace, key) else "1")

        return switch

    def _leave(self) -> None:
        self.page = ""

    def _toggle(self) -> None:
        faults, refused = self.host.faults, not self._refuses()
        faults.input_denied = faults.settings_denied = refused
        faults.ime_refused = "set" if refused else ""

    def _refuses(self) -> bool:
        faults = self.host.faults
        return faults.input_denied or bool(faults.ime_refused) or faults.settings_denied

    def back(self) -> bool:
        inside = bool(self.page)
        self.page = ""
        return inside

    def reset(self) -> None:
        self.page = ""
