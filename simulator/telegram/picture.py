"""A chat as a picture: what a person with a phone would see of these messages, in a design of our own.

    picture = chat_picture(user.chat.messages, Look("Desk", "bot", viewer=user.id))
    path.write_bytes(to_png(picture))

All sizes are pixels. The same messages give the same picture; nothing of the machine's clock or fonts is in it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, PngImagePlugin

from simulator.telegram.people import Toast
from simulator.telegram.wording import (
    INK,
    LEADING,
    LINK,
    Block,
    Line,
    Span,
    Words,
    blocks,
    cut_to,
    line_width,
    lines_of,
    same,
    width_of,
    write,
)
from simulator.telegram.world import Button, Message

BACK, PAPER, OWN, FAINT, BAR, TINT = "#d5e0e8", "#ffffff", "#dcf3d0", "#7b8b99", "#2f7fb9", "#eef4f9"
STYLES = {"danger": "#d9424a", "success": "#2f9e60", "primary": "#2f7fb9"}
AVATARS = ("#e17076", "#7bc862", "#65aadd", "#a695e7", "#ee7aae", "#6ec9cb", "#faa774")
MARKS = (
    *STYLES.values(),
    "#ffc83d",
    "#b8860b",
    "#3b88c3",
    "#e0323e",
    "#3fa845",
    "#ff2d55",
    "#a05cc0",
    "#ffffff",
    "#000000",
)
EDGE, GAP, PAD, RADIUS = 16, 10, 14, 18
HEADER, AVATAR, KEY = 72, 44, 46
TALLEST = 620  # a picture in a bubble
_SMOOTH = 4


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a chat's picture, and its viewer.

    title, subtitle: at the top; none without a title.
    viewer: the person whose phone it is: their messages are at the right.
    words: may replace the texts, such as times that change each day.
    time: the clock under each message.
    """

    title: str = ""
    subtitle: str = ""
    viewer: int = 0
    width: int = 640
    size: int = 21
    time: str = "10:24"
    words: Words = same


def chat_picture(messages: Sequence[Message], look: Look, *, toast: Toast | None = None) -> Image.Image:
    """Return an RGB picture, ``look.width`` wide and as high as needed. ``toast`` lies over the end, as after a tap."""
    group = any(message.chat.type != "private" for message in messages)
    parts = [_Part(together, look, group) for together in _albums(messages)]
    top = HEADER if look.title else 0
    height = top + EDGE + sum(part.height + GAP for part in parts) + EDGE - GAP
    told = _toast(toast, look) if toast is not None and toast.text else None
    if told is not None:
        height += told.height + EDGE
    page = Image.new("RGB", (look.width, height), BACK)
    y = top + EDGE
    for part in parts:
        part.draw(page, y)
        y += part.height + GAP
    if look.title:
        _header(page, look)
    if told is not None:
        page.paste(told, ((look.width - told.width) // 2, height - told.height - EDGE))
    return page


def to_png(picture: Image.Image, description: str = "", *, colours: int = 255) -> bytes:
    """Return a small PNG. ``description`` is stored in it, for people who cannot see it
    (``Image.text["Description"]``).
    """
    info = PngImagePlugin.PngInfo()
    if description:
        info.add_itxt("Description", description)
    out = io.BytesIO()
    few = picture.quantize(palette=_palette(picture, colours), dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True, pnginfo=info)
    return out.getvalue()


def _palette(picture: Image.Image, colours: int) -> Image.Image:
    """Return the picture's colours, and those of small marks, which would be lost among so many greys."""
    band = max(8, picture.height // 100)
    sheet = Image.new("RGB", (picture.width, picture.height + band * len(MARKS)), BACK)
    sheet.paste(picture)
    for number, colour in enumerate(MARKS):
        top = picture.height + band * number
        sheet.paste(colour, (0, top, picture.width, top + band))
    return sheet.quantize(colours, method=Image.Quantize.MEDIANCUT)


def transcript(messages: Sequence[Message], words: Words = same) -> str:
    """Return all texts of the picture, except those inside of pictures."""
    return "\n\n".join(
        "\n".join(
            [
                f"[{message.sender.name}]" + (f" [{message.content.media}]" if message.content.media else ""),
                *(["".join(span.text for span in block.spans) for block in blocks(message.content, words)]),
                *(" ".join(f"[{words(button.text)}]" for button in row) for row in message.content.buttons),
            ]
        )
        for message in messages
    )


def _albums(messages: Sequence[Message]) -> list[list[Message]]:
    """Group the messages of one album."""
    found: list[list[Message]] = []
    for message in messages:
        if found and message.media_group_id and found[-1][0].media_group_id == message.media_group_id:
            found[-1].append(message)
        else:
            found.append([message])
    return found


class _Part:
    """A message, or an album, with its buttons: measured when it is made, drawn when its place is known."""

    def __init__(self, messages: Sequence[Message], look: Look, group: bool) -> None:
        self.look = look
        self.message = next((message for message in messages if message.words), messages[0])
        self.own = self.message.sender.id == look.viewer
        self.avatar = group and not self.own
        self.size, self.small = look.size, round(look.size * 0.8)
        left = EDGE + (AVATAR + GAP if self.avatar else 0)
        most = look.width - left - EDGE - (12 if self.avatar else 64)
        self.pictures = [picture for message in messages if (picture := _picture_of(message)) is not None]
        inner = most - 2 * PAD
        self.blocks = [(block, self._lines(block, inner)) for block in blocks(self.message.content, look.words)]
        self.file = self.message.content.file if self.message.content.media == "document" else None
        self.keys = self.message.content.buttons
        self.width = most if self.pictures or self.keys else min(most, self._needed())
        self.left = look.width - EDGE - self.width if self.own else left
        self.media = _media(self.pictures, self.width) if self.pictures else None
        self.bubble = self._measure()
        self.height = self.bubble + len(self.keys) * (KEY + 5)

    def _lines(self, block: Block, width: float) -> list[Line]:
        return lines_of(block.spans, self.size, width - (20 if block.kind == "quote" else 0))

    def _needed(self) -> int:
        """Return the width of a bubble of words."""
        wide = [line_width(line, self.size) + (26 if block.kind == "quote" else 0)
                for block, lines in self.blocks for line in lines]  # fmt: skip
        if self.file is not None:
            wide.append(70 + width_of(self.file.name, self.size))
        if self.avatar:
            wide.append(width_of(self.message.sender.name, self.small))
        if self.message.reply_to is not None:
            wide.append(min(320.0, 20 + width_of(self.message.reply_to.words, self.small)))
        one = len(self.blocks) == 1 and len(self.blocks[0][1]) == 1
        clock = self._clock_width()
        return round(max([*wide, clock]) + 2 * PAD + (clock + 8 if one else 0))

    def _clock_width(self) -> float:
        return width_of(self.look.time, round(self.small * 0.86))

    def _measure(self) -> int:
        return self._lay(None, 0)

    def draw(self, page: Image.Image, top: int) -> None:
        right = self.left + self.width
        _rounded(page, (self.left, top, right, top + self.bubble), RADIUS, OWN if self.own else PAPER)
        if self.avatar:
            _avatar(page, (EDGE, top + self.bubble - AVATAR), AVATAR, self.message.sender.name, self.message.sender.id)
        self._lay(page, top)
        y = top + self.bubble + 5
        for row in self.keys:
            _keys(page, (self.left, y, right, y + KEY), row, self.look)
            y += KEY + 5

    def _lay(self, page: Image.Image | None, top: int) -> int:
        """Draw everything in the bubble, from its top down.

        Return the bubble's height. Without a page, only measure.
        """
        y = top + PAD - 4
        y = self._above(page, y)
        if self.media is not None:
            y = top if y == top + PAD - 4 else y
            if page is not None:
                mask = _corner_mask(self.media.size, RADIUS if y == top else 0, bool(self.blocks))
                page.paste(self.media, (self.left, y), mask)
            y += self.media.height + 8
        if self.file is not None:
            if page is not None:
                _file_row(page, (self.left + PAD, y), self.file.name, len(self.file.data), self.size)
            y += 60
        room = 0.0
        for block, lines in self.blocks:
            y = self._block(page, y, block, lines)
            room = self.width - 2 * PAD - (line_width(lines[-1], self.size) if block.kind == "plain" else 9999)
        return self._clock(page, y, room) - top

    def _above(self, page: Image.Image | None, y: int) -> int:
        """Draw the sender, if there are several, and the message replied to. Return the y below them."""
        x = self.left + PAD
        if self.avatar:
            if page is not None:
                colour = _colour(self.message.sender.id)
                write(page, (x, y), (Span(self.message.sender.name, bold=True),), self.small, colour)
            y += round(self.small * LEADING) + 4
        said = self.message.reply_to
        if said is not None:
            step = round(self.small * LEADING)
            if page is not None:
                pen = ImageDraw.Draw(page)
                pen.rounded_rectangle((x, y + 2, x + self.width - 2 * PAD, y + 2 * step + 4), 6, fill=_shade(self.own))
                pen.rectangle((x, y + 2, x + 3, y + 2 * step + 4), fill=BAR)
                room = self.width - 2 * PAD - 20
                write(page, (x + 12, y + 2), (Span(said.sender.name, bold=True),), self.small, BAR)
                first = self.look.words(said.words)
                write(page, (x + 12, y + 2 + step), (Span(cut_to(first, self.small, room)),), self.small)
            y += 2 * step + 10
        return y

    def _block(self, page: Image.Image | None, y: int, block: Block, lines: Sequence[Line]) -> int:
        x, step = self.left + PAD, round(self.size * LEADING)
        if block.kind == "quote":
            y += 3
            if page is not None:
                pen = ImageDraw.Draw(page)
                pen.rounded_rectangle((x, y, self.left + self.width - PAD, y + len(lines) * step + 6), 7, fill=TINT)
                pen.rectangle((x, y, x + 3, y + len(lines) * step + 6), fill=BAR)
            x, y = x + 14, y + 3
        for line in lines:
            if page is not None:
                write(page, (x, y), line, self.size)
            y += step
        return y + (6 if block.kind == "quote" else 0)

    def _clock(self, page: Image.Image | None, y: int, room: float) -> int:
        size = round(self.small * 0.86)
        wide = self._clock_width()
        step = round(size * LEADING)
        if room < wide + 10:
            y += step  # on a line of its own
        if page is not None:
            write(page, (self.left + self.width - PAD - wide, y - step), (Span(self.look.time),), size, FAINT)
        return y + PAD - 6


# Pieces ---------------------------------------------------------------------------------------------------------------


def _header(page: Image.Image, look: Look) -> None:
    pen = ImageDraw.Draw(page)
    pen.rectangle((0, 0, look.width, HEADER - 1), fill=PAPER)
    pen.rectangle((0, HEADER - 1, look.width, HEADER), fill="#bccad5")
    pen.line([(34, 24), (22, 36), (34, 48)], fill=BAR, width=4, joint="curve")
    _avatar(page, (56, 12), 48, look.title, 0)
    y = 11 if look.subtitle else 22
    write(page, (118, y), (Span(look.title, bold=True),), look.size + 1)
    if look.subtitle:
        write(page, (118, y + 29), (Span(look.subtitle),), round(look.size * 0.76), FAINT)


def _keys(page: Image.Image, box: tuple[int, int, int, int], row: Sequence[Button], look: Look) -> None:
    left, top, right, bottom = box
    wide = (right - left - 5 * (len(row) - 1)) / len(row)
    size = round(look.size * 0.92)
    for number, button in enumerate(row):
        x = left + number * (wide + 5)
        fill = STYLES.get(button.style, "#f5f9fc")
        _rounded(page, (round(x), top, round(x + wide), bottom), 10, fill)
        label = cut_to(look.words(button.text), size, wide - 16)
        ink = PAPER if button.style in STYLES else LINK
        start = x + (wide - width_of(label, size)) / 2
        write(page, (start, top + (KEY - size * LEADING) / 2 - 1), (Span(label, bold=True),), size, ink)


def _toast(toast: Toast, look: Look) -> Image.Image:
    """Return a toast: a dark line that would go away; an alert as a light box with a shadow's edge."""
    size = round(look.size * 0.95)
    lines = lines_of([Span(look.words(toast.text))], size, look.width - 140)
    step = round(size * LEADING)
    wide = round(max(line_width(line, size) for line in lines)) + 56
    box = Image.new("RGB", (wide, len(lines) * step + 28), BACK)
    fill, ink = (PAPER, INK) if toast.alert else ("#3a4753", PAPER)
    _rounded(box, (0, 0, box.width, box.height), 16, "#9fb0bd" if toast.alert else fill)
    if toast.alert:
        _rounded(box, (2, 2, box.width - 2, box.height - 2), 15, fill)
    for number, line in enumerate(lines):
        write(box, (28, 14 + number * step), line, size, ink)
    return box


def _picture_of(message: Message) -> Image.Image | None:
    """Return a photo, or the middle frame of a moving picture with a mark at its corner."""
    content = message.content
    if content.file is None or content.media not in {"photo", "animation"}:
        return None
    with Image.open(io.BytesIO(content.file.data)) as image:
        if content.media == "photo":
            return image.convert("RGB")
        image.seek(getattr(image, "n_frames", 1) // 2)
        frame = image.convert("RGB")
    size = max(14, frame.width // 18)
    _rounded(frame, (size, size, size * 5, round(size * 2.9)), size // 2, "#3a4753")
    write(frame, (size * 2, size * 1.2), (Span("GIF", bold=True),), size, PAPER)
    return frame


def _media(pictures: Sequence[Image.Image], width: int) -> Image.Image:
    """Return one picture on a ground of the bubble's width, or several side by side."""
    if len(pictures) > 1:
        columns = min(len(pictures), 5)
        wide = (width - 4 * (columns - 1)) // columns
        small = [p.resize((wide, round(p.height * wide / p.width)), Image.Resampling.LANCZOS) for p in pictures]
        tall = max(p.height for p in small)
        rows = -(-len(small) // columns)
        ground = Image.new("RGB", (width, rows * (tall + 4) - 4), PAPER)
        for number, picture in enumerate(small):
            row, column = divmod(number, columns)
            ground.paste(picture, (column * (wide + 4), row * (tall + 4)))
        return ground
    [picture] = pictures
    factor = min(width / picture.width, TALLEST / picture.height)
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    ground = Image.new("RGB", (width, size[1]), "#c3d0da")
    ground.paste(picture.resize(size, Image.Resampling.LANCZOS), ((width - size[0]) // 2, 0))
    return ground


def _file_row(page: Image.Image, place: tuple[int, int], name: str, size: int, text: int) -> None:
    x, y = place
    _rounded(page, (x, y + 2, x + 48, y + 50), 24, BAR)
    pen = ImageDraw.Draw(page)
    pen.line([(x + 24, y + 13), (x + 24, y + 36)], fill=PAPER, width=4)
    pen.line([(x + 14, y + 27), (x + 24, y + 37), (x + 34, y + 27)], fill=PAPER, width=4, joint="curve")
    write(page, (x + 60, y), (Span(name, bold=True),), text)
    write(page, (x + 60, y + 28), (Span(f"{max(1, round(size / 1024))} KB"),), round(text * 0.76), FAINT)


def _avatar(page: Image.Image, place: tuple[int, int], side: int, name: str, person: int) -> None:
    x, y = place
    _rounded(page, (x, y, x + side, y + side), side // 2, _colour(person))
    size = round(side * 0.46)
    first = name[:1].upper()
    write(page, (x + (side - width_of(first, size)) / 2, y + side * 0.17), (Span(first, bold=True),), size, PAPER)


def _colour(person: int) -> str:
    return BAR if person == 0 else AVATARS[person % len(AVATARS)]


def _shade(own: bool) -> str:
    return "#c8e8b8" if own else TINT


def _rounded(page: Image.Image, box: tuple[int, int, int, int], radius: int, fill: str) -> None:
    """Draw a rectangle with smooth corners."""
    left, top, right, bottom = box
    mask = Image.new("L", ((right - left) * _SMOOTH, (bottom - top) * _SMOOTH))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, mask.width - 1, mask.height - 1), radius * _SMOOTH, fill=255)
    page.paste(Image.new("RGB", (right - left, bottom - top), fill), (left, top), mask.reduce(_SMOOTH))


def _corner_mask(size: tuple[int, int], radius: int, words_below: bool) -> Image.Image:
    """Return a mask that is round at the top, and at the bottom if nothing follows."""
    width, height = size
    mask = Image.new("L", (width * _SMOOTH, height * _SMOOTH))
    low = height * _SMOOTH - 1 + (radius * _SMOOTH if words_below else 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width * _SMOOTH - 1, low), radius * _SMOOTH, fill=255)
    return mask.reduce(_SMOOTH)
