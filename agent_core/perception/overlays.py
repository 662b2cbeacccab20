"""Whether something lies over an app of which its tree does not tell: a notification that slides in from the top."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from agent_core.devices.base import Node
from agent_core.geometry import Box

STATUS_BAR = 0.04  # of the screen's height: clock and signs, in no app's tree
SMALL = 0.25  # of the strip's area: what is larger holds other things, and tells nothing of them
MARGIN = 6  # pixels around what the tree tells of, which letters and shadows may fill
TOLERANCE = 24  # levels of a channel: soft shadows and thin lines are nothing
FEW = 0.002  # of the strip's pixels


def strange(image: Image.Image, nodes: Sequence[Node], strip: Box) -> bool:
    """Whether anything is drawn in ``strip`` (at the top of the RGB ``image``) beside what ``nodes`` tell of.

    A row of pixels in which the tree tells of nothing has one colour; a card over the app breaks that.
    """
    import numpy as np  # it comes with the extra [ocr], without which nobody asks

    top = strip.top + round(STATUS_BAR * image.height)
    pixels = np.asarray(image.crop((strip.left, top, strip.right, strip.bottom)), dtype=np.int16)
    told = np.zeros(pixels.shape[:2], dtype=bool)
    most = SMALL * strip.width * strip.height
    for node in nodes:
        box = node.box
        if box.intersects(strip) and box.width * min(box.bottom, strip.bottom) - box.width * max(box.top, 0) <= most:
            left, upper = max(0, box.left - MARGIN), max(0, box.top - MARGIN - top)
            told[upper : max(0, box.bottom + MARGIN - top), left : box.right + MARGIN] = True
    # Of each row the colour at its edges: no card reaches that far.
    other = np.abs(pixels - pixels[:, :1, :]).max(axis=2) > TOLERANCE
    return bool((other & ~told).mean() > FEW)
