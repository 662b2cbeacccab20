"""QR codes: as a picture for a chat, and as lines of half blocks for a terminal."""

from __future__ import annotations

import io

import segno

BORDER = 3  # modules of white around the code, without which scanners miss it
SCALE = 12  # pixels of a module in the picture
_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}  # upper, lower: is dark


def qr_picture(text: str) -> bytes:
    """Return the code of a text as a PNG."""
    data = io.BytesIO()
    segno.make_qr(text).save(data, kind="png", scale=SCALE, border=BORDER)
    return data.getvalue()


def qr_lines(text: str) -> list[str]:
    """Return the code of a text as lines, to be written black on white. A line is two rows of modules high."""
    rows = [[bool(dark) for dark in row] for row in segno.make_qr(text).matrix_iter(border=BORDER)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return ["".join(_HALVES[both] for both in zip(upper, lower, strict=True)) for upper, lower in pairs]
