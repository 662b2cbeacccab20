"""Makes a moving picture, an album or a sheet from a run's pictures, each with its words below, within the limits of a
channel.

All of it is work for a thread: a film of 60 pictures takes seconds.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PIL import Image, ImageDraw

from agent_core.texts.layout import ellipsize, font, is_emoji, is_joiner, text_width, wrap
from bot.desk.history_views import spread

Kind = Literal["gif", "album", "sheet"]

MOST_FRAMES = 60
MOST_BYTES = 8_000_000
MOST_IN_ALBUM = 10
MOST_PHOTO_BYTES = 9_500_000
WIDTHS = (432, 360, 300, 240)  # pixels, the first that fits
FEWEST = 8  # frames: a film with fewer says less than an album
ALBUM_WIDTH = 720
SHEET_WIDTH = 240  # of one picture
MOST_SIDES = 9000  # pixels of a sheet, width and height together
MILLISECONDS, LAST_MILLISECONDS = 1400, 3500
_SAMPLES, _SAMPLE = 12, (108, 240)  # pictures that the colours are taken from, and their size
_MARKS = ("#ff2d55", "#ffffff", "#16202c", "#c3ccd6", "#000000")  # colours that must not change

_STRIP, _TITLE, _WORDS, _EMPTY = "#16202c", "#ffffff", "#c3ccd6", "#000000"
_LINES = 3  # of the model's thinking
_MOST = 400  # characters that are used: no more can be seen
MOST_PIXELS = 40_000_000
NARROWEST = 240  # pixels: a narrower one has no room for words


@dataclass(frozen=True, slots=True)
class StepPicture:
    """A picture of a step, with its words.

    picture: an encoded picture.
    title: one line.
    words: a few lines.
    label: names it in a list ("3").
    """

    picture: bytes
    title: str
    words: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class ReplayMedia:
    """The media that was made.

    kind: gif: one moving file; album: 2 to 10 JPEGs; sheet: one JPEG; picture: one JPEG of a single shot.
    size: pixels of (each of) the files.
    left_out: the labels of the shots that are not in it.
    """

    kind: Literal["gif", "album", "sheet", "picture"]
    files: tuple[bytes, ...]
    size: tuple[int, int]
    frames: int
    left_out: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The size in bytes."""
        return sum(map(len, self.files))


def make_media(
    shots: Sequence[StepPicture], kind: Kind = "gif", *, most_frames: int = MOST_FRAMES, most_bytes: int = MOST_BYTES
) -> ReplayMedia | None:
    """Make the wanted kind, or the nearest that is possible; None if no shot can be opened.

    A film that is too large gets smaller, then loses frames; then it becomes an album, or with over ten pictures a
    sheet.
    """
    seen = [shot for shot in shots if opened(shot.picture) is not None]
    if not seen:
        return None
    if len(seen) == 1:
        return _album(seen, shots, "picture")
    if kind == "gif":
        film = _gif(seen, shots, most_frames, most_bytes)
        if film is not None:
            return film
    if kind == "sheet" or (kind == "gif" and len(seen) > MOST_IN_ALBUM):
        return _sheet(_some(seen, most_frames), shots)
    return _album(_some(seen, MOST_IN_ALBUM), shots, "album")


def _some(shots: Sequence[StepPicture], most: int) -> list[StepPicture]:
    return [shots[place] for place in spread(len(shots), most)]


def _left_out(kept: Sequence[StepPicture], shots: Sequence[StepPicture]) -> tuple[str, ...]:
    there = {id(shot) for shot in kept}
    return tuple(shot.label for shot in shots if id(shot) not in there and shot.label)


def _drawn(shot: StepPicture, place: Layout) -> Image.Image:
    image = opened(shot.picture, place.size)
    return framed(image or Image.new("RGB", (1, 1)), shot, place)


# A moving picture -----------------------------------------------------------------------------------------------------


def _gif(
    seen: Sequence[StepPicture], shots: Sequence[StepPicture], most_frames: int, most_bytes: int
) -> ReplayMedia | None:
    """Return the largest GIF that fits; None if none does even at the smallest size with few frames."""
    colours = _colours(seen)
    kept = _some(seen, most_frames)
    size = 0  # bytes at ``width``
    width = WIDTHS[0]
    for wanted in WIDTHS:
        if size * (wanted / width) ** 2 > most_bytes and wanted != WIDTHS[-1]:
            continue  # it would be too large again
        place, data = _moving(kept, colours, wanted)
        size, width = len(data), wanted
        if size <= most_bytes:
            return ReplayMedia("gif", (data,), place.size, len(kept), _left_out(kept, shots))
    while len(kept) > FEWEST:
        fitting = int(len(kept) * 0.9 * most_bytes / size)
        kept = _some(kept, max(FEWEST, min(len(kept) - 1, fitting)))
        place, data = _moving(kept, colours, width)
        size = len(data)
        if size <= most_bytes:
            return ReplayMedia("gif", (data,), place.size, len(kept), _left_out(kept, shots))
    return None


def _moving(kept: Sequence[StepPicture], colours: Image.Image, width: int) -> tuple[Layout, bytes]:
    place = layout([shot.picture for shot in kept], width=width)
    frames = (
        _drawn(shot, place).quantize(palette=colours, dither=Image.Dither.NONE) for shot in kept
    )  # one by one: a minute of pictures is not held in memory
    out = io.BytesIO()
    next(frames).save(
        out,
        "GIF",
        save_all=True,
        append_images=frames,
        duration=[MILLISECONDS] * (len(kept) - 1) + [LAST_MILLISECONDS],
        loop=0,
    )
    return place, out.getvalue()


def _colours(seen: Sequence[StepPicture]) -> Image.Image:
    """Return the colours of the whole film: with one table for all frames, unchanged parts take no room."""
    samples = _some(seen, _SAMPLES)
    width, height = _SAMPLE
    sheet = Image.new("RGB", (width * len(samples), height + 40))
    for number, shot in enumerate(samples):
        image = opened(shot.picture, _SAMPLE)
        if image is not None:
            sheet.paste(image.resize(_SAMPLE, Image.Resampling.NEAREST), (number * width, 0))
    draw = ImageDraw.Draw(sheet)
    band = sheet.width // len(_MARKS)
    for number, colour in enumerate(_MARKS):
        draw.rectangle((number * band, height, (number + 1) * band, height + 40), fill=colour)
    return sheet.quantize(255, method=Image.Quantize.MEDIANCUT)


# Pictures without movement --------------------------------------------------------------------------------------------


def _album(kept: Sequence[StepPicture], shots: Sequence[StepPicture], kind: Literal["album", "picture"]) -> ReplayMedia:
    place = layout([shot.picture for shot in kept], width=ALBUM_WIDTH)
    files = tuple(jpeg(_drawn(shot, place)) for shot in kept)
    return ReplayMedia(kind, files, place.size, len(kept), _left_out(kept, shots))


def _sheet(kept: Sequence[StepPicture], shots: Sequence[StepPicture]) -> ReplayMedia:
    """Place all of them side by side, in rows; never taller or heavier than a photo may be."""
    width = SHEET_WIDTH
    place = layout([shot.picture for shot in kept], width=width, tallest=width * 3)
    columns = max(1, min(len(kept), math.ceil(math.sqrt(len(kept) * place.size[1] / place.size[0]))))
    rows = math.ceil(len(kept) / columns)
    sheet = Image.new("RGB", (columns * place.size[0], rows * place.size[1]), "#000000")
    for number, shot in enumerate(kept):
        row, column = divmod(number, columns)
        sheet.paste(_drawn(shot, place), (column * place.size[0], row * place.size[1]))
    factor = max(1.0, sum(sheet.size) / MOST_SIDES)
    if factor > 1:
        sheet = sheet.resize((int(sheet.width / factor), int(sheet.height / factor)), Image.Resampling.LANCZOS)
    data = jpeg(sheet)
    for quality in (60, 40):
        if len(data) > MOST_PHOTO_BYTES:
            data = jpeg(sheet, quality)
    return ReplayMedia("sheet", (data,), sheet.size, len(kept), _left_out(kept, shots))


# A picture with its words below ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """Pixels: the picture's place, and the strip below it. Both sides are even, as films need them."""

    width: int
    picture: int
    strip: int

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.picture + self.strip


def sanitised(text: str) -> str:
    """Return the text as the font can draw it: one paragraph, no control or direction marks, no emoji."""
    flat = " ".join(text[:_MOST].split())
    return "".join(char for char in flat if unicodedata.category(char)[0] != "C" and not _undrawn(char))


def _undrawn(char: str) -> bool:
    return is_emoji(char) or is_joiner(char)


def opened(picture: bytes, least: tuple[int, int] | None = None) -> Image.Image | None:
    """Return the picture in RGB; None if it is none, or is larger than any screen.

    least: a JPEG may be decoded smaller, but not below this width and height; that is faster.
    """
    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.width * image.height > MOST_PIXELS:
                return None
            if least is not None:
                image.draft("RGB", least)
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError):
        return None


def _size(picture: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(picture)) as image:  # reads only the header
        return image.size


def layout(pictures: Sequence[bytes], *, width: int, tallest: int = 3000) -> Layout:
    """Return the layout for the most frequent shape; ``width`` is of an upright picture, a wide one gets more."""
    sizes = [_size(picture) for picture in pictures]
    common = max(dict.fromkeys(sizes), key=sizes.count)
    across = max(NARROWEST, round(width * 1.6) if common[0] > common[1] else width)
    high = min(tallest, max(1, round(across * common[1] / common[0])))
    size = _letters(across)
    strip = round(size * 1.35 * (1 + _LINES) + size)
    return Layout(across + across % 2, high + high % 2, strip + strip % 2)


def _letters(width: int) -> int:
    return max(11, round(width / 24))


def framed(image: Image.Image, shot: StepPicture, place: Layout) -> Image.Image:
    """Return the picture, fitted into its place, with the strip below."""
    canvas = Image.new("RGB", place.size, _EMPTY)
    factor = min(place.width / image.width, place.picture / image.height)
    fitted = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    scaled = image.resize(fitted, Image.Resampling.LANCZOS if factor > 0.5 else Image.Resampling.BOX)
    canvas.paste(scaled, ((place.width - fitted[0]) // 2, (place.picture - fitted[1]) // 2))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((0, place.picture, place.width, place.picture + place.strip), fill=_STRIP)
    size = _letters(place.width)
    room = place.width - 2 * (size // 2)
    left, top = size // 2, place.picture + size // 2
    draw.text((left, top), ellipsize(sanitised(shot.title), size, room), font=font(size), fill=_TITLE)
    for number, line in enumerate(_lines(shot.words, size, room), start=1):
        draw.text((left, top + round(number * size * 1.35)), line, font=font(size), fill=_WORDS)
    return canvas


def _lines(words: str, size: int, room: int) -> list[str]:
    lines = [*wrap(sanitised(words), size, room)] if words.strip() else []
    if len(lines) <= _LINES:
        return lines
    last = lines[_LINES - 1]
    while last and text_width(last + "…", size) > room:
        last = last[:-1]
    return [*lines[: _LINES - 1], last + "…"]


def jpeg(image: Image.Image, quality: int = 82) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()
