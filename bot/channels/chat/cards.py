"""The content that a channel shows as a message: a card with lines and buttons, and the parts that many cards have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.channels.chat.texts import Texts

Style = Literal["", "danger", "success", "primary"]
MOST_ACTION_BYTES = 64  # of a button
ENTRIES_A_PAGE = 10  # of a log
ELSEWHERE = "~"  # in a button: the filter is too long for it, and is in the message that was replied to
_LATIN = "\u2e7f"  # letters after this one are Chinese


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a card. ``action`` comes back when it is tapped; it has at most ``MOST_ACTION_BYTES``."""

    action: str
    label: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a card, ``label: text``. A long text may be cut.

    kind: ``quote`` for somebody's own words, ``code`` for a text to copy, ``secret`` for one that lets somebody in: a
        channel that keeps its messages keeps them without it.
    """

    text: str
    label: str = ""
    kind: Literal["plain", "quote", "code", "secret"] = "plain"


@dataclass(frozen=True, slots=True)
class Document:
    """A file for a person. ``name`` is a plain file name with its ending."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """An order for a replay. It takes seconds, so the channel has it made when it is shown (``history.media_card``).

    It is stored in Telegram's outbox without the values that are the defaults: the names and defaults must stay.
    """

    run_id: str
    kind: Literal["gif", "album", "sheet"] = "gif"
    lang: Literal["zh", "en"] = "zh"


@dataclass(frozen=True, slots=True)
class Card:
    """The content that a channel shows as one message.

    picture: an encoded JPEG (or PNG).
    document, animation, album: sent in place of a picture, with the card as the caption. An animation is a GIF. An
        album has 2 to 10 JPEGs and no buttons.
    film: an order for a replay, whose card is shown instead.
    question: the id of the question that the card asks. Once it is answered, the card is no longer shown.
    """

    title: str
    lines: tuple[Line, ...] = ()
    picture: bytes | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()
    document: Document | None = None
    animation: Document | None = None
    album: tuple[bytes, ...] = ()
    film: ReplayOrder | None = None
    question: str = ""


def separator(label: str, colon: str) -> str:
    """Return the separator of a line's label and text: a blank after a number or a command, else ``colon``."""
    return " " if label.startswith(("/", "#")) or label.endswith(".") else colon


def colon_of(title: str, label: str) -> str:
    """Return a Chinese or a Latin colon, by the card's title; a label by itself may be a phone's or a person's name."""
    first = next((char for char in title if char.isalpha()), "")
    return "：" if first > _LATIN or label[-1:] > _LATIN else ": "


def cut(text: str, length: int) -> str:
    """Return ``text`` as one line of at most ``length`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def plain(title: str, *lines: str) -> Card:
    """Return a card of texts only."""
    return Card(title, tuple(Line(line) for line in lines))


def took_words(seconds: float | None, texts: Texts) -> str:
    """Return in words how long something took; "" if that is not known."""
    if seconds is None:
        return ""
    whole = max(0, round(seconds))
    if whole < 60:
        return texts.get("common.seconds", seconds=whole)
    return texts.get("common.minutes", minutes=whole // 60, seconds=whole % 60)


def screen_action(serial: str, wish: Literal["", "file", "read"] = "") -> str:
    """Return the Screen button's action, without the phone if its serial is too long for a button.

    wish: ``file`` for full resolution, ``read`` for the reading of the screen.
    """
    bare = f"screen:{wish}" if wish else "screen"
    action = f"screen:{serial} {wish}".rstrip() if serial else bare
    return action if len(action.encode()) <= MOST_ACTION_BYTES else bare


def in_rows(buttons: Sequence[Button], width: int = 5) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons of a page's entries in rows of ``width``: numbers are short."""
    return tuple(tuple(buttons[start : start + width]) for start in range(0, len(buttons), width))


def turning(log: str, rest: str, words: Texts, *, newer: object, older: object) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons to the newer and the older page.

    newer, older: the first and the last number of this page; None if there is nothing beyond it.
    rest: the filter, as it was written after the command ``log``.
    """
    row = []
    if newer is not None:
        row.append(Button(_page_action(log, f"a{newer}", rest), words.get(f"{log}.newer")))
    if older is not None:
        row.append(Button(_page_action(log, f"b{older}", rest), words.get(f"{log}.older")))
    return (tuple(row),) if row else ()


def _page_action(log: str, place: str, rest: str) -> str:
    action = f"{log}:{place}:{rest}"
    return action if len(action.encode()) <= MOST_ACTION_BYTES else f"{log}:{place}:{ELSEWHERE}"
