"""The home screen: a clock, the dock, pages of icons beside it, and the list of all apps above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.phone.apps.base import App, Host
from simulator.phone.widgets import IMAGE, WIDTH, Canvas, Element, Rect, background, label

_COLORS = {"QQ": "#1e9fff", "微信": "#07c160", "支付宝": "#1677ff", "设置": "#8a919c", "浏览器": "#f2a33a"}
_ICON = 168
_COLUMNS = 4
_ROW = 280
_FIRST_ROW = 300
_ON_A_PAGE = 20
_SWIPED = 200  # units that a finger must move to turn a page, or to open the list


class Launcher(App):
    package = "com.android.launcher3"
    label = "桌面"
    activity = ".uioverrides.QuickstepLauncher"

    def __init__(
        self, host: Host, dock: Sequence[App], on_pages: Sequence[App] = (), in_list: Sequence[App] = ()
    ) -> None:
        """``dock`` is on every page, ``on_pages`` are right of the first page, ``in_list`` only in the list."""
        super().__init__(host)
        self._dock = dock
        self._pages = [on_pages[first : first + _ON_A_PAGE] for first in range(0, len(on_pages), _ON_A_PAGE)]
        self._all = sorted((*dock, *on_pages, *in_list), key=lambda app: app.label)
        self._page = 0
        self._scrolled: int | None = None  # units that the list is scrolled by; None while it is closed

    def top_color(self) -> str:
        return "#27476b"

    def bottom_color(self) -> str:
        return "#27476b"

    def elements(self) -> list[Element]:
        found = [Element((0, 0, WIDTH, self.host.height), paint=self._wallpaper, listed=False)]
        if self._scrolled is not None:
            return found + self._list(self._scrolled)
        found += self._grid(self._pages[self._page - 1], _FIRST_ROW) if self._page else [self._clock()]
        rows = -(-len(self._dock) // _COLUMNS)
        found += self._grid(self._dock, self.host.height - 280 - rows * _ROW)
        found.append(
            background((WIDTH // 2 - 30, self.host.height - 190, WIDTH // 2 + 30, self.host.height - 180), "#7f9cbd", 5)
        )
        return found

    def back(self) -> bool:
        self.reset()
        return True

    def reset(self) -> None:
        self._page, self._scrolled = 0, None

    def swipe(self, right: int, down: int) -> None:
        if abs(right) > abs(down):
            if self._scrolled is None and abs(right) > _SWIPED:
                self._page = min(max(self._page + (1 if right < 0 else -1), 0), len(self._pages))
        elif self._scrolled is not None:
            longest = max(0, -(-len(self._all) // _COLUMNS) * _ROW - (self._list_end() - _FIRST_ROW))
            self._scrolled = min(max(self._scrolled - down, 0), longest)
        elif down < -_SWIPED:
            self._scrolled = 0

    def _list_end(self) -> int:
        return self.host.height - 200

    def _list(self, scrolled: int) -> list[Element]:
        area: Rect = (0, _FIRST_ROW - 20, WIDTH, self._list_end())
        icons = self._grid(self._all, _FIRST_ROW - scrolled)
        for icon in icons:
            icon.clip = area
        seen = [icon for icon in icons if icon.box[1] >= area[1] and icon.box[3] <= area[3]]
        return [label(72, 200, "搜索应用", 42, "#dbe6f2", id="search_box"), *seen]

    def _grid(self, apps: Sequence[App], top: int) -> list[Element]:
        return [
            self._icon(app.package, app.label, index % _COLUMNS, top + index // _COLUMNS * _ROW)
            for index, app in enumerate(apps)
        ]

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
        cell = WIDTH // _COLUMNS
        left = column * cell + (cell - _ICON) // 2
        box: Rect = (left - 30, top - 10, left + _ICON + 30, top + _ICON + 76)

        def paint(canvas: Canvas) -> None:
            canvas.rect((left, top, left + _ICON, top + _ICON), _COLORS.get(name, "#8a919c"), 42)
            glyph = name if name.isascii() and len(name) < 4 else name[0]
            canvas.text(left + _ICON / 2, top + _ICON / 2, glyph, 76, "#ffffff", "middle", bold=True)
            canvas.text(left + _ICON / 2, top + _ICON + 42, name, 36, "#ffffff", "middle")

        return Element(box, name, "icon", self._opener(package), paint, description=name, kind=IMAGE)

    def _opener(self, package: str) -> Callable[[], None]:
        def open_it() -> None:
            self.host.launch_app(package)

        return open_it
