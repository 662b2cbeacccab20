"""An app that shows its name and nothing else: one of the many on a phone that no task is about."""

from __future__ import annotations

from simulator.phone.apps.base import INK, App, Host, page, title_bar
from simulator.phone.widgets import WIDTH, Element, label


class PlainApp(App):
    activity = ".MainActivity"

    def __init__(self, host: Host, package: str, name: str) -> None:
        super().__init__(host)
        self.package, self.label = package, name

    def elements(self) -> list[Element]:
        welcome = label(WIDTH // 2, 700, "欢迎使用", 46, INK, anchor="middle")
        return [page(self.host, "#ffffff"), *title_bar(self.label), welcome]
