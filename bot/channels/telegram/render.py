"""Turns a card into Telegram's HTML and buttons, within Telegram's limits.

Lengths are counted in UTF-16 units, and a cut never splits a visible character.
"""

from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import replace
from html import escape

from PIL import Image
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from bot.channels.chat.cards import MOST_ACTION_BYTES, Card, Line, colon_of, separator
from bot.channels.chat.turn import Person
from bot.channels.telegram.outgoing import OutgoingButton, OutgoingMessage, Topic

CUT = "…"
_JOINER = "\u200d"
_LONGEST = 64  # characters that may form one; longer sequences are not examined


def units(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """Return the text within ``limit`` units, with an ellipsis if something was left out; no character is split."""
    if units(text) <= limit:
        return text
    if limit <= 0:
        return ""
    return text[: _end(text, limit - units(CUT))].rstrip() + CUT


def split(text: str, limit: int) -> tuple[str, str]:
    """Return the part that fits into ``limit`` units (at least one character), and the rest.

    The split is between lines, sentences or words if there is such a place in the second half.
    """
    if units(text) <= limit:
        return text, ""
    end = max(1, _end(text, limit))
    for mark in ("\n", "。", "！", "？", ". ", "! ", "? ", "；", "，", " "):
        at = text.rfind(mark, end // 2, end)
        if at > 0:
            end = at + len(mark)
            break
    return text[:end].rstrip(), text[end:].lstrip()


def _end(text: str, limit: int) -> int:
    """Return how many characters fit into ``limit`` units without splitting a visible character."""
    end = len(text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, limit)].decode("utf-16-le", "ignore"))
    for back in range(min(_LONGEST, end)):
        if not _joined(text, end - back):
            return end - back
    return end


def _joined(text: str, at: int) -> bool:
    """Tell whether the characters around this position are shown as one: accents, skin tones, families, flags."""
    if not 0 < at < len(text):
        return False
    before, behind = text[at - 1], text[at]
    if _JOINER in (before, behind) or unicodedata.category(behind) in {"Mn", "Me", "Mc"}:
        return True
    if "\U0001f3fb" <= behind <= "\U0001f3ff" or "\U000e0020" <= behind <= "\U000e007f":
        return True
    if not (_of_a_flag(before) and _of_a_flag(behind)):
        return False
    first = at - 1
    while first > 0 and _of_a_flag(text[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _of_a_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_TOAST = 200
MAX_PLACEHOLDER = 64
MAX_LABEL = 64  # the apps cut longer ones anyway
MAX_PHOTO_BYTES = 10 * 1024 * 1024
MAX_PHOTO_SIDES = 10_000  # pixels, width and height together
MAX_PHOTO_RATIO = 20
MOST_PARTS = 5  # messages that one card may take

# Control characters except newline and tab, and halves of surrogate pairs: Telegram refuses or drops them.
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


_UNFIT_NAME = re.compile(r"[\s<>:\"|?*\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+")


def clean(text: str) -> str:
    """Return the text without anything that cannot be sent, with line ends as newlines."""
    return _UNFIT.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def file_name(written: str) -> str:
    """Return a name that no program misreads: no folders, no control characters, at most 80 characters.

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
    """Return the card with its longest lines cut, then its last lines left out, until it fits."""
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
    """Return the card as HTML whose visible text has at most ``limit`` units."""
    fitted = _fitted(card, limit)
    return "\n".join([_title(fitted.title), *(_line(line, fitted.title) for line in fitted.lines)])


def _title(title: str) -> str:
    return f"<b>{escape(title, quote=False)}</b>"


def _line(line: Line, title: str) -> str:
    text = escape(line.text, quote=False)
    label = escape(line.label, quote=False)
    if line.kind == "quote":
        # A quote is a separate block: it is on its own lines with or without a newline.
        return f"{label}\n<blockquote>{text}</blockquote>" if label else f"<blockquote>{text}</blockquote>"
    if line.kind in {"code", "secret"}:
        text = f"<code>{text}</code>"
    return f"{label}{separator(line.label, colon_of(title, line.label))}{text}" if label else text


def fits(card: Card, *, captioned: bool) -> bool:
    """Tell whether all of it can be read in one message, with or without a picture."""
    lines = sum(_line_units(replace(line, text=clean(line.text))) for line in card.lines)
    return units(clean(card.title)) + lines <= (MAX_CAPTION if captioned else MAX_TEXT)


def whole(card: Card, limit: int) -> list[str]:
    """Return all of a card that is longer than ``limit`` units, as HTML of messages; empty if it fits.

    A long line continues in the next message, with separate tags in each. More than ``MOST_PARTS`` messages give none.
    """
    title = cut(clean(card.title) or CUT, 200)
    lines = [replace(line, text=clean(line.text), label=cut(clean(line.label), 64)) for line in card.lines]
    lines = [line for line in lines if line.text]
    if units(title) + sum(map(_line_units, lines)) <= limit:
        return []
    parts, room = [[_title(title)]], MAX_TEXT - units(title)
    for line in lines:
        rest = line
        while rest.text:
            head = _line_units(replace(rest, text=""))
            size = _line_units(rest)
            if size > room and (size <= MAX_TEXT or room < 200 + head):
                parts.append([])
                room = MAX_TEXT
            first, others = split(rest.text, room - head)
            parts[-1].append(_line(replace(rest, text=first), title))
            room -= head + units(first)
            rest = replace(rest, text=others, label="")
    htmls = ["\n".join(part) for part in parts if part]
    return htmls if len(htmls) <= MOST_PARTS else []


def keyboard(card: Card) -> list[list[OutgoingButton]]:
    """Return the buttons. Raises ValueError for an action that is too long for Telegram, which is a bug of ours."""
    rows = []
    for row in card.buttons:
        keys = []
        for button in row:
            if not 1 <= len(button.action.encode()) <= MOST_ACTION_BYTES:
                raise ValueError(f"A button's action must have 1 to {MOST_ACTION_BYTES} bytes: {button.action!r}")
            keys.append(
                OutgoingButton(label=cut(clean(button.label) or CUT, MAX_LABEL), data=button.action, style=button.style)
            )
        rows.append(keys)
    return rows


def is_photo(picture: bytes) -> bool:
    """Tell whether Telegram takes this picture as a photo; else it is sent as a file.

    Telegram itself refuses non-pictures.
    """
    if len(picture) > MAX_PHOTO_BYTES:
        return False
    try:
        with Image.open(io.BytesIO(picture)) as image:  # reads only the header
            width, height = image.size
    except (OSError, ValueError, SyntaxError):
        return True
    return width + height <= MAX_PHOTO_SIDES and max(width, height) <= MAX_PHOTO_RATIO * min(width, height)


def outgoing(
    card: Card,
    *,
    thread_id: str = "",
    reply_to: str = "",
    kind: str = "private",
    topic: Topic | None = None,
    in_one: bool = False,
) -> OutgoingMessage:
    """Draw the card as a text and as a picture's caption, ready for the outbox.

    in_one: cut the text that does not fit; otherwise ``whole`` has everything, too.
    """
    captioned = card.picture is not None or card.document is not None
    return OutgoingMessage(
        text=to_html(card, MAX_TEXT),
        caption=to_html(card, MAX_CAPTION),
        keyboard=keyboard(card),
        picture=card.picture if card.document is None and card.animation is None and not card.album else None,
        document=card.document.data if card.document is not None else None,
        document_name=file_name(card.document.name) if card.document is not None else "",
        animation=card.animation.data if card.animation is not None else None,
        animation_name=file_name(card.animation.name) if card.animation is not None else "",
        album=list(card.album),
        film=card.film,
        thread_id=int(thread_id) if thread_id else None,
        reply_to=int(reply_to) if reply_to else None,
        group=kind == "group",
        question=card.question,
        topic=topic,
        whole=[] if in_one or card.film is not None else whole(card, MAX_CAPTION if captioned else MAX_TEXT),
    )


def asking(drawn: OutgoingMessage, person: Person, placeholder: str = "") -> OutgoingMessage:
    """Make the message open this person's input for a reply: in a group we get only replies, not other messages.

    ``placeholder`` is shown in the empty input. In a group the person is named, so that it opens for nobody else.
    """
    hint = cut(clean(placeholder), MAX_PLACEHOLDER) or CUT
    if not drawn.group:
        return drawn.model_copy(update={"keyboard": [], "force_reply": hint})
    name = escape(cut(clean(person.name), 64) or person.user_id, quote=False)
    mention = f'<a href="tg://user?id={int(person.user_id)}">{name}</a>'
    return drawn.model_copy(update={"text": f"{mention}\n{drawn.text}", "keyboard": [], "force_reply": hint})


def markup(rows: list[list[OutgoingButton]]) -> InlineKeyboardMarkup | None:
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [
            [InlineKeyboardButton(key.label, callback_data=key.data, style=key.style or None) for key in row]
            for row in rows
        ]
    )
