"""The home screen: a clock and the icons of what is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.phone.apps.base import App, Host
from simulator.phone.widgets import IMAGE, WIDTH, Canvas, Element, Rect, background

_COLORS = {"QQ": "#1e9fff", "微信": "#07c160", "支付宝": "#1677ff", "设置": "#8a919c"}
_ICON = 168


class Launcher(App):
    package = "com.android.launcher3"
    label = "桌面"
    activity = ".uioverrides.QuickstepLauncher"

    def __init__(self, host: Host, apps: Sequence[tuple[str, str]]) -> None:
        """``apps``: package and label, in the order of their icons."""
        super().__init__(host)
        self._apps = apps

    def top_color(self) -> str:
        return "#27476b"

    def bottom_color(self) -> str:
        return "#27476b"

    def elements(self) -> list[Element]:
        found = [Element((0, 0, WIDTH, self.host.height), paint=self._wallpaper, listed=False)]
        found.append(self._clock())
        row = self.host.height - 560
        for index, (package, name) in enumerate(self._apps):
            found.append(self._icon(package, name, index % 4, row + index // 4 * 280))
        found.append(
            background((WIDTH // 2 - 30, self.host.height - 190, WIDTH // 2 + 30, self.host.height - 180), "#7f9cbd", 5)
        )
        return found

    def _wallpaper(self, canvas: Canvas) -> None:
        height = self.host.height
        canvas.rect((0, 0, WIDTH, height), "#27476b")
        canvas.polygon(
            [(0, height * 5 // 8), (420, height * 9 // 20), (WIDTH, height * 7 // 10), (WIDTH, height), (0, height)],
            "#2f5680",
        )
        canvas.polygon(
            [(0, height * 3 // 4), (700, height * 3 // 5), (WIDTH, height * 2 // 3), (WIDTH, height), (0, height)],
            "#386694",
        )

    def _clock(self) -> Element:
        now = self.host.now()
        text = f"{now:%H:%M}"

        def paint(canvas: Canvas) -> None:
            canvas.text(WIDTH // 2, 420, text, 190, "#ffffff", "middle")
            day = f"{now.month}月{now.day}日 星期{'一二三四五六日'[now.weekday()]}"
            canvas.text(WIDTH // 2, 570, day, 46, "#dbe6f2", "middle")

        return Element((240, 310, 840, 620), text, "clock", paint=paint)

    def _icon(self, package: str, name: str, column: int, top: int) -> Element:
        cell = WIDTH // 4
        left = column * cell + (cell - _ICON) // 2
        box: Rect = (left - 30, top - 10, left + _ICON + 30, top + _ICON + 76)

        def paint(canvas: Canvas) -> None:
            canvas.rect((left, top, left + _ICON, top + _ICON), _COLORS.get(name, "#8a919c"), 42)
            glyph = name if name.isascii() else name[0]
            canvas.text(left + _ICON / 2, top + _ICON / 2, glyph, 76, "#ffffff", "middle", bold=True)
            canvas.text(left + _ICON / 2, top + _ICON + 42, name, 36, "#ffffff", "middle")

        return Element(box, name, "icon", self._opener(package), paint, description=name, kind=IMAGE)

    def _opener(self, package: str) -> Callable[[], None]:
        def open_it() -> None:
            self.host.launch_app(package)

        return open_it
