"""A browser: an address bar, a page for every address, and a page for a missing network. Nothing leaves the phone.

A page is made from its address: its heading is the host, and it has links to pages below it. A text that is not an
address is searched for. The fault ``banner`` is a network that is away.
"""

from __future__ import annotations

import re

from simulator.phone.apps.base import GREY, INK, NO_NETWORK, App, Host, back_arrow, page
from simulator.phone.apps.fields import text_box
from simulator.phone.widgets import BUTTON, WIDTH, Canvas, Element, Handler, Rect, TextField, background, label

_BAR = 250  # its bottom
_ADDRESS = re.compile(r"(?:https?://)?(?P<host>[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?P<path>/\S*)?", re.ASCII)
_SEARCH = "https://search.example/?q="
_LINKS = ("商品", "帮助中心", "联系我们")


class Browser(App):
    package = "com.android.browser"
    label = "浏览器"
    activity = ".BrowserActivity"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.history: list[str] = []  # addresses, the newest last
        self.address = TextField(action=self._go, enter_acts=True, action_key="前往")

    def elements(self) -> list[Element]:
        url = self.history[-1] if self.history else ""
        found = [page(self.host, "#ffffff"), background((0, 0, WIDTH, _BAR), "#f1f3f4")]
        if url:
            found.append(back_arrow(self._leave))
        box = (140, 110, 930, 220)
        found.append(text_box(self.host, self.address, box, 42, 60, id_="url", radius=55, hint="搜索或输入网址"))
        found.append(self._button((940, 110, 1060, 220), "刷新", "reload", self._reload))
        if not url:
            return [*found, label(WIDTH // 2, 700, "新标签页", 50, GREY, anchor="middle")]
        if self.host.faults.banner:
            found.append(label(WIDTH // 2, 700, "网页无法打开", 60, INK, anchor="middle", id="error"))
            found.append(label(WIDTH // 2, 800, NO_NETWORK, 40, GREY, anchor="middle"))
            return [*found, self._button((340, 900, 740, 1020), "重新加载", "retry", self._reload)]
        return found + self._page(url)

    def _page(self, url: str) -> list[Element]:
        searched = url.removeprefix(_SEARCH) if url.startswith(_SEARCH) else ""
        address = _ADDRESS.match(url)
        host = address["host"] if address else url
        found = [label(48, 380, f"“{searched}”的搜索结果" if searched else host, 64, INK, bold=True, id="heading")]
        found.append(label(48, 480, f"这是 {url[:60]} 的网页。", 40, GREY))
        for index, name in enumerate(_LINKS):
            target = f"https://{host}/{index + 1}"
            found.append(self._link(name, 620 + index * 120, target))
        return found

    def _link(self, name: str, y: int, target: str) -> Element:
        return label(48, y, name, 48, "#1a73e8", id="link", tap=lambda: self.open(target))

    def _button(self, box: Rect, name: str, id_: str, tap: Handler) -> Element:
        def paint(canvas: Canvas) -> None:
            canvas.rect(box, "#e0e3e7", 50)
            canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, name, 38, INK, "middle")

        return Element(box, name, id_, tap, paint, kind=BUTTON)

    def open(self, url: str) -> None:
        """Show the page of an address, or search for any other text."""
        url = url.strip()
        if not url:
            return
        address = _ADDRESS.fullmatch(url)
        if not url.startswith(("http://", "https://")):
            url = f"https://{url}" if address else _SEARCH + url
        self.history.append(url)
        self.address.text = url
        self.host.focus_on(None)
        self.host.log("page_opened", url[:500])

    def _go(self) -> None:
        self.open(self.address.text)

    def _reload(self) -> None:
        if self.history:
            self.host.log("page_opened", self.history[-1][:500])

    def _leave(self) -> None:
        self.history.pop()
        self.address.text = self.history[-1] if self.history else ""
        self.host.focus_on(None)

    def back(self) -> bool:
        if not self.history:
            return False
        self._leave()
        return True

    def reset(self) -> None:
        self.history.clear()
        self.address.text = ""

    def top_color(self) -> str:
        return "#f1f3f4"
