"""A phone that shows one page from a screen kit: nothing moves, taps are logged."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Node
from agent_core.kits.kit import Kit, draw_kit
from simulator.phone import display
from simulator.phone.apps.base import App, Host
from simulator.phone.phone import VirtualPhone
from simulator.phone.port import InstalledApp
from simulator.phone.scenario import PhonePart, Scenario
from simulator.phone.widgets import WIDTH, Canvas, Element


class KitPage(App):
    """The page. Its elements are the kit's lines and nodes, so that the log of taps can name what was hit."""

    def __init__(self, host: Host, kit: Kit) -> None:
        super().__init__(host)
        app = profile(kit.app)
        self.package, self.label, self.activity = app.packages[0], app.name, kit.activity
        self._kit = kit
        self._image: Image.Image | None = None

    def elements(self) -> list[Element]:
        width, height = self._kit.size
        scale = WIDTH / width

        def units(left: int, top: int, right: int, bottom: int) -> tuple[int, int, int, int]:
            return (round(left * scale), round(top * scale), round(right * scale), round(bottom * scale))

        found = [Element(units(0, 0, width, height), paint=self._paint, listed=False)]
        found += [
            Element(units(*node.box), node.text, node.id, description=node.description, kind=node.kind)
            for node in self._kit.nodes or ()
        ]
        for part in self._kit.texts:
            half, wide = part.size // 2, round(part.size * len(part.text))
            box = units(part.left, part.middle - half, part.left + wide, part.middle + half)
            found.append(Element(box, part.text, listed=False))
        return found

    def _paint(self, canvas: Canvas) -> None:
        if self._image is None:
            self._image = draw_kit(self._kit)
        canvas.image.paste(self._image, (0, 0))


class KitPhone(VirtualPhone):
    """The page is in front and has its own status bar in it; keys leave it as it is."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        super().__init__(Scenario(phone=PhonePart().model_copy(update={"size": kit.size})))

    def _init_apps(self) -> None:
        self._chat_apps = {}
        page = KitPage(self, self._kit)
        self._home = self._front = page
        self._apps: dict[str, App] = {page.package: page}
        self.apps = {page.package: InstalledApp(page.package, page.label, page.activity, self._kit.version)}

    def _layers(self) -> display.Scene:
        return display.Scene(self._front.elements(), package=self._front.package)

    async def tree(self) -> Sequence[Node]:
        found = self._kit.tree(self._front.package)
        return await super().tree() if found is None else found
