"""An iPhone's screen: its picture, in pixels, and its tree.

WDA counts in points; a picture has ``scale`` pixels to a point (``/wda/screen``). Pictures and places are oriented as
the app in front is.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence

from agent_core.devices.base import Frame, Node
from agent_core.devices.pictures import decoded, digest, is_black
from agent_core.devices.wda import source
from agent_core.devices.wda.client import WdaClient, number, text
from agent_core.errors import CommandFailed, ScreenshotFailed, TreeUnavailable

TREE_SECONDS = 5.0  # a page of a chat app takes WDA 1 to 3 s
STATUS_BAR = 0.065  # of the height; beside the camera it is higher than Android's


class Display:
    """One phone's screen. Constant facts are asked for once: its scale, and that its pictures fit its windows."""

    def __init__(self, client: WdaClient, clock: Callable[[], float]) -> None:
        self._client, self._clock = client, clock
        self._scale = 0.0
        self._size: tuple[int, int] | None = None  # of the newest picture that fits the window
        self._last: tuple[str, Frame, bool] | None = None

    async def picture(self) -> tuple[Frame, bool]:
        """Return the picture, and whether it is black. ScreenshotFailed if no whole one came."""
        asked = self._clock()
        data = await self._client.read("/screenshot")
        if not isinstance(data, str):
            raise ScreenshotFailed("The phone gave no picture: no text.", key="no_screenshot", why="no text")
        if self._last is not None and self._last[0] == data:
            _, before, black = self._last  # the very same text: nothing to decode
            frame = Frame(before.image, before.digest, asked)
        else:
            frame, black = await asyncio.to_thread(_decoded, data, asked)
        self._last = (data, frame, black)
        return frame, black

    def forget(self) -> None:
        """Release the picture that is kept for comparing."""
        self._last = None

    async def check_fits(self, size: tuple[int, int]) -> None:
        """Raise ScreenshotFailed if a picture of ``size`` is not the window's at the phone's scale: taps would miss.

        The window is asked for again when pictures have another size.
        """
        if size == self._size:
            return
        window, scale = await self._window(), await self.scale()
        if any(abs(one - other) > scale for one, other in zip(size, window, strict=True)):
            raise ScreenshotFailed(
                f"The picture of {size[0]}×{size[1]} pixels is not that of the window of {window[0]}×{window[1]}.",
                advice="Close apps that share the screen, and turn the phone upright.",
                key="wda_size",
                picture=f"{size[0]}×{size[1]}",
                window=f"{window[0]}×{window[1]}",
            )
        self._size = size

    async def scale(self) -> float:
        """Return the pixels to a point."""
        if not self._scale:
            scale = number(await self._client.read("/wda/screen"), "scale")
            if scale is None or not 0 < scale <= 8:
                raise CommandFailed("The phone did not tell its scale.", key="no_screen_size", why="scale")
            self._scale = scale
        return self._scale

    async def size(self) -> tuple[int, int]:
        """Return the size of the screen in pixels, as it was turned when the newest picture was taken."""
        return self._size or await self._window()

    async def _window(self) -> tuple[int, int]:
        told, scale = await self._client.read("/window/size"), await self.scale()
        width, height = number(told, "width"), number(told, "height")
        if not width or not height:
            why = "/window/size"
            raise CommandFailed("The phone did not tell the size of its screen.", key="no_screen_size", why=why)
        return round(width * scale), round(height * scale)

    async def tree(self) -> Sequence[Node]:
        try:
            async with asyncio.timeout(TREE_SECONDS):
                found = await self._client.read(source.PATH, seconds=TREE_SECONDS)
                front = await self._client.read("/wda/activeAppInfo")
                size, scale = await self.size(), await self.scale()
        except (TimeoutError, CommandFailed) as error:
            why = error.message if isinstance(error, CommandFailed) else f"it took over {TREE_SECONDS:g} s"
            said = f"The accessibility tree could not be read: {why}"
            raise TreeUnavailable(said, key="tree_unread", why=why) from error
        return await asyncio.to_thread(source.nodes, found, scale, size, text(front, "bundleId"))


def _decoded(data: str, asked: float) -> tuple[Frame, bool]:
    """Return the picture in a base64 text, and whether it is black. ScreenshotFailed if it is not whole."""
    try:
        picture = base64.b64decode(data, validate=False)
    except ValueError as error:
        raise ScreenshotFailed(f"The picture did not come whole: {error}.", key="half_screenshot", why=error) from error
    image = decoded(picture, ["PNG", "JPEG"])
    return Frame(image, digest(image, STATUS_BAR), asked), is_black(image)
