"""From elements to the views of a client: the picture, the tree, and both in their faulty forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from PIL import Image

from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.texts.layout import handwriting
from simulator.phone.widgets import WIDTH, Canvas, Element

ROOT_CLASS = "android.widget.FrameLayout"


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything on the screen, bottom layer first. If ``overlay`` is not empty, it is the only active window."""

    page: Sequence[Element]
    system: Sequence[Element] = ()  # status bar, keyboard: over the page, never in the tree
    overlay: Sequence[Element] = ()
    package: str = ""  # of the active window
    hand: bool = False  # everything is in the hand-written font

    def all(self) -> list[Element]:
        return [*self.page, *self.system, *self.overlay]


def paint(scene: Scene, size: tuple[int, int]) -> Image.Image:
    """Return the screen as an RGB picture of ``size`` pixels."""
    image = Image.new("RGB", size, "white")
    canvas = Canvas(image)
    with handwriting(scene.hand):
        for element in scene.all():
            if element.paint and element.visible():
                element.paint(canvas)
    return image


def nodes(scene: Scene, size: tuple[int, int], *, texts: bool = True) -> list[Node]:
    """Return the tree of the active window: its root, then everything in it that has a node."""
    scale = size[0] / WIDTH
    found = [root(scene, size)]
    for element in scene.overlay or scene.page:
        box = element.visible()
        if not element.listed or box is None:
            continue
        prefix = f"{scene.package}:id/" if element.id else ""
        found.append(
            Node(
                box=Box(*(round(edge * scale) for edge in box)),
                text=element.text if texts else "",
                description=element.description if texts else "",
                resource_id=prefix + element.id,
                class_name=element.kind,
                package=scene.package,
                clickable=element.tap is not None,
                focused=element.focused,
            )
        )
    return found


def hidden(scene: Scene) -> list[Node]:
    """Return the tree that ordinary accessibility services see of an app that hides from them: one node without a
    place.
    """
    return [Node(box=Box(0, 0, 0, 0), class_name=ROOT_CLASS, package=scene.package)]


def root(scene: Scene, size: tuple[int, int]) -> Node:
    return Node(box=Box(0, 0, *size), class_name=ROOT_CLASS, package=scene.package)


@dataclass(slots=True)
class Display:
    """The scene and the picture of the newest version, kept so that an unchanged screen is not drawn again."""

    size: tuple[int, int]
    compose: Callable[[], Scene]
    transition: int = 0  # pictures that still differ before the screen is still
    _key: tuple[object, ...] = ()
    _scene: Scene | None = None
    _older: Scene | None = None
    _image: Image.Image | None = None
    _image_key: tuple[object, ...] = ()
    _from: Image.Image | None = field(default=None, repr=False)

    def scene(self, key: tuple[object, ...]) -> Scene:
        """Return the scene of this ``key``, which holds everything that the screen depends on."""
        if self._scene is None or key != self._key:
            before, self._scene, self._key = self._scene, self.compose(), key
            # The same page a minute later is not an older one: the clock is not in the tree.
            if before is not None and nodes(before, self.size) != nodes(self._scene, self.size):
                self._older = before
        return self._scene

    def older(self, key: tuple[object, ...]) -> Scene:
        """Return the newest scene with another tree than that of ``key``; that one itself if there was none before."""
        scene = self.scene(key)
        return self._older or scene

    def begin_transition(self, pictures: int) -> None:
        self._from = self._image
        self.transition = pictures

    def step(self) -> None:
        """Advance the animation, because a client has looked."""
        self.transition = max(0, self.transition - 1)

    def picture(self, key: tuple[object, ...]) -> Image.Image:
        """Return the picture of this key. It is the same object as long as nothing changes: do not draw on it."""
        scene = self.scene(key)
        if self._image is None or key != self._image_key:
            self._image, self._image_key = paint(scene, self.size), key
        if not self.transition:
            return self._image
        self.step()
        return self._between(self._image)

    def _between(self, image: Image.Image) -> Image.Image:
        """Return a page that slides in from the right, each picture further."""
        width, height = self.size
        shift = width * (self.transition + 1) // (self.transition + 3)
        moving = (self._from or Image.new("RGB", self.size, "white")).copy()
        moving.paste(image.crop((0, 0, width - shift, height)), (shift, 0))
        return moving
