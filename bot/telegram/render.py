"""From a card to Telegram's HTML and buttons, within Telegram's limits (counted in UTF-16 units)."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html import escape

from PIL import Image
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from bot.chat.cards import Card, Line
from bot.telegram.parcel import Film, Key, Parcel

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_TOAST = 200
MAX_DATA = 64  # bytes
MAX_LABEL = 64  # longer ones are cut by the apps anyway
MAX_PHOTO_BYTES = 10 * 1024 * 1024
MAX_PHOTO_SIDES = 10_000  # pixels, width and height together
MAX_PHOTO_RATIO = 20
CUT = "…"

# Control characters but newline and tab, and halves of surrogate pairs: Telegram refuses or drops them.
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


_UNFIT_NAME = re.compile(r"[\s<>:\"|?*\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """The text within ``limit`` units, with an ellipsis where something was left out. Never half a character."""
    if units(text) <= limit:
        return text
    if limit <= 0:
        return ""
    kept = text.encode("utf-16-le")[: 2 * (limit - units(CUT))].decode("utf-16-le", "ignore")
    return kept.rstrip() + CUT


def clean(text: str) -> str:
    """The text without what cannot be sent; line ends as newlines."""
    return _UNFIT.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def file_name(written: str) -> str:
    """A name that no program takes for anything but a name: no folders, no control characters, at most 80 characters.

    The ending stays.
    """
    plain = _UNFIT_NAME.sub("_", clean(written).replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, dot, ending = plain.rpartition(".")
    if not dot or not stem or len(ending) > 8:
        return plain[:80] or "file"
    return f"{stem[: 79 - len(ending)]}.{ending}"


def _line_units(line: Line) -> int:
    return units(line.text) + (units(line.label) + 2 if line.label else 0) + 1


def _fitted(card: Card, limit: int) -> Card:
    """The card with its longest lines cut, then its last lines left out, until it fits."""
    title = cut(clean(card.title) or CUT, 200)
    lines = [replace(line, text=clean(line.text), label=cut(clean(line.label), 64)) for line in card.lines]
    lines = [line for line in lines if line.text]
    while (over := units(title) + sum(map(_line_units, lines)) - limit) > 0:
        longest = max(lines, key=lambda line: units(line.text))
        length = units(longest.text)
        if length <= 40:
            lines.pop()
            continue
        place = next(n for n, line in enumerate(lines) if line is longest)
        lines[place] = replace(longest, text=cut(longest.text, max(40, length - over)))
    return replace(card, title=title, lines=tuple(lines))


def to_html(card: Card, limit: int) -> str:
    """The card as HTML whose visible text has at most ``limit`` units."""
    fitted = _fitted(card, limit)
    parts = [f"<b>{escape(fitted.title, quote=False)}</b>"]
    for line in fitted.lines:
        text = escape(line.text, quote=False)
        label = escape(line.label, quote=False)
        if line.kind == "quote":
            # A quote is a block of its own: it stands on its own lines whether or not a newline is written.
            parts.append(f"{label}\n<blockquote>{text}</blockquote>" if label else f"<blockquote>{text}</blockquote>")
        elif line.kind == "code":
            parts.append(f"{label} <code>{text}</code>" if label else f"<code>{text}</code>")
        else:
            parts.append(f"{label} {text}" if label.startswith(("/", "#")) else (f"{label}: {text}" if label else text))
    return "\n".join(parts)


def keyboard(card: Card) -> list[list[Key]]:
    """Buttons whose action is too long for Telegram are a mistake of ours: ValueError."""
    rows = []
    for row in card.buttons:
        keys = []
        for button in row:
            if not 1 <= len(button.action.encode()) <= MAX_DATA:
                raise ValueError(f"A button's action must have 1 to {MAX_DATA} bytes: {button.action!r}")
            keys.append(Key(label=cut(clean(button.label) or CUT, MAX_LABEL), data=button.action, style=button.style))
        rows.append(keys)
    return rows


def is_photo(picture: bytes) -> bool:
    """Whether Telegram takes this picture as a photo; else it goes as a file. What is no picture, it refuses itself."""
    if len(picture) > MAX_PHOTO_BYTES:
        return False
    try:
        with Image.open(io.BytesIO(picture)) as image:  # the header alone
            width, height = image.size
    except (OSError, ValueError, SyntaxError):
        return True
    return width + height <= MAX_PHOTO_SIDES and max(width, height) <= MAX_PHOTO_RATIO * min(width, height)


def parcel(card: Card, *, thread_id: str = "", reply_to: str = "", kind: str = "private") -> Parcel:
    """The card drawn as a text and as a picture's caption, ready for the outbox."""
    film = card.film
    return Parcel(
        text=to_html(card, MAX_TEXT),
        caption=to_html(card, MAX_CAPTION),
        keyboard=keyboard(card),
        picture=card.picture if card.document is None and card.animation is None and not card.album else None,
        document=card.document.data if card.document is not None else None,
        document_name=file_name(card.document.name) if card.document is not None else "",
        animation=card.animation.data if card.animation is not None else None,
        animation_name=file_name(card.animation.name) if card.animation is not None else "",
        album=list(card.album),
        film=Film(run_id=film.run_id, kind=film.kind, lang=film.lang) if film is not None else None,
        thread_id=int(thread_id) if thread_id else None,
        reply_to=int(reply_to) if reply_to else None,
        group=kind == "group",
    )


def markup(rows: list[list[Key]]) -> InlineKeyboardMarkup | None:
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [
            [InlineKeyboardButton(key.label, callback_data=key.data, style=key.style or None) for key in row]
            for row in rows
        ]
    )
