"""Draws a kit as the picture of a screen."""

from __future__ import annotations

from PIL import Image, ImageDraw

from agent_core.kits.kit import Kit
from agent_core.texts.layout import font

_MIDDLE = 0.38  # of the font's size: half the height of a Chinese character above the baseline


def draw_kit(kit: Kit) -> Image.Image:
    """Return the kit's page as an RGB picture of its size."""
    image = Image.new("RGB", kit.size)
    draw = ImageDraw.Draw(image)
    top = 0
    for band in kit.ground:
        left = 0
        for width, color in band.runs:
            draw.rectangle((left, top, left + width - 1, top + band.rows - 1), fill=kit.colors[color])
            left += width
        top += band.rows
    for part in kit.texts:
        place = (part.left, part.middle + round(part.size * _MIDDLE))
        draw.text(place, part.text, font=font(part.size), fill=part.color, anchor="ls")
    return image
