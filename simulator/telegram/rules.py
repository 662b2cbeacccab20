"""Telegram's refusals, in Telegram's words."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html.entities import name2codepoint
from typing import Any, ClassVar

from PIL import Image, UnidentifiedImageError

Entity = dict[str, Any]  # a MessageEntity as it goes over the wire

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_TOAST = 200
MAX_CALLBACK_DATA = 64  # bytes
MAX_PHOTO_BYTES = 10 * 1024 * 1024
MAX_PHOTO_SIDES = 10_000
MAX_PHOTO_RATIO = 20
MAX_UPLOAD_BYTES = 50 * 1024 * 1024
MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024  # the most that a bot may fetch
MAX_PLACEHOLDER = 64

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current content "
    "and reply markup of the message"
)


class ApiError(Exception):
    """An answer ``{"ok": false}``. ``description`` without the prefix that goes with the code."""

    PREFIX: ClassVar[dict[int, str]] = {
        400: "Bad Request: ",
        401: "",
        403: "Forbidden: ",
        404: "",
        409: "Conflict: ",
        413: "",
        429: "Too Many Requests: ",
    }

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        self.code = code
        self.description = self.PREFIX.get(code, "") + description
        self.parameters = parameters
        super().__init__(self.description)


def refuse(description: str) -> ApiError:
    return ApiError(400, description)


def utf16(text: str) -> int:
    """Return the length as Telegram counts it: UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# HTML ----------------------------------------------------------------------------------------------------------------

_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot));?")
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]+)(?:\s*=\s*("[^"]*"|'[^']*'|[\w.\-/:]+))?\s*""")


def _entity_text(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return chr(name2codepoint[name])
    number = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(number) if 0 < number < 0x110000 else match.group()


class _HtmlReader:
    """A reader of the Bot API's HTML style; offsets in complaints are bytes of UTF-8, in entities UTF-16 units."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self.text: list[str] = []
        self.length = 0  # UTF-16 units so far
        self.open: list[tuple[str, int, dict[str, str]]] = []
        self.entities: list[Entity] = []

    def fail(self, words: str, at: int | None = None) -> ApiError:
        offset = len(self.source[: self.position if at is None else at].encode())
        return refuse(f"can't parse entities: {words.format(offset=offset)}")

    def add(self, piece: str) -> None:
        self.text.append(piece)
        self.length += utf16(piece)

    def read(self) -> tuple[str, list[Entity]]:
        while self.position < len(self.source):
            character = self.source[self.position]
            if character == "<":
                self.tag()
            elif character == "&" and (match := _ENTITY.match(self.source, self.position)):
                self.add(_entity_text(match))
                self.position = match.end()
            else:
                self.add(character)
                self.position += 1
        if self.open:
            raise self.fail(f'Can\'t find end tag corresponding to start tag "{self.open[-1][0]}"')
        self.entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))
        return "".join(self.text), self.entities

    def tag(self) -> None:
        start = self.position
        end = self.source.find(">", start)
        if end < 0:
            raise self.fail("Unclosed start tag at byte offset {offset}")
        body = self.source[start + 1 : end]
        if body.startswith("/"):
            self.close(body[1:].strip().lower(), start)
        else:
            self.begin(body, start)
        self.position = end + 1

    def begin(self, body: str, start: int) -> None:
        name, _, rest = body.partition(" ")
        name = name.lower()
        if name not in _TAGS:
            raise self.fail(f'Unsupported start tag "{name}" at byte offset {{offset}}', start)
        attributes = {key.lower(): value.strip("\"'") for key, value in _ATTRIBUTE.findall(rest)}
        if name == "span" and attributes.get("class") != "tg-spoiler":
            raise self.fail('Tag "span" must have class "tg-spoiler" at byte offset {offset}', start)
        self.open.append((name, self.length, attributes))

    def close(self, name: str, start: int) -> None:
        if not self.open:
            raise self.fail("Unexpected end tag at byte offset {offset}", start)
        expected, offset, attributes = self.open.pop()
        if name not in {"", expected}:
            words = f'Unmatched end tag at byte offset {{offset}}, expected "</{expected}>", found "</{name}>"'
            raise self.fail(words, start)
        if self.length == offset:
            return
        entity: Entity = {"type": _TAGS[expected], "offset": offset, "length": self.length - offset}
        if expected == "a":
            if not attributes.get("href"):
                return
            entity["url"] = _ENTITY.sub(_entity_text, attributes["href"])
        if expected == "blockquote" and "expandable" in attributes:
            entity["type"] = "expandable_blockquote"
        self.entities.append(entity)


def parse_text(text: str, parse_mode: str | None) -> tuple[str, list[Entity]]:
    """Return the text that a person sees and its entities. Blanks around it are removed, as Telegram does."""
    if parse_mode is None or parse_mode == "":
        return text.strip(), []
    if parse_mode.lower() != "html":
        raise refuse("unsupported parse_mode")  # the Markdown styles are left out here on purpose
    parsed, entities = _HtmlReader(text).read()
    leading = utf16(parsed) - utf16(parsed.lstrip())
    parsed = parsed.strip()
    size = utf16(parsed)
    kept = []
    for entity in entities:
        begin = max(0, entity["offset"] - leading)
        end = min(size, entity["offset"] + entity["length"] - leading)
        if end > begin:
            kept.append({**entity, "offset": begin, "length": end - begin})
    return parsed, kept


def checked_text(text: str, parse_mode: str | None) -> tuple[str, list[Entity]]:
    parsed, entities = parse_text(text, parse_mode)
    if not parsed:
        raise refuse("message text is empty")
    if utf16(parsed) > MAX_TEXT:
        raise refuse("message is too long")
    return parsed, entities


def checked_caption(caption: str | None, parse_mode: str | None) -> tuple[str, list[Entity]]:
    parsed, entities = parse_text(caption or "", parse_mode)
    if utf16(parsed) > MAX_CAPTION:
        raise refuse("message caption is too long")
    return parsed, entities


# Pictures, buttons and the rest ---------------------------------------------------------------------------------------


def photo_size(data: bytes) -> tuple[int, int]:
    """Return width and height of a picture that may be sent as a photo."""
    if len(data) > MAX_PHOTO_BYTES:
        raise refuse(
            f"file of size {len(data)} bytes is too big for a photo; the maximum size is {MAX_PHOTO_BYTES} bytes"
        )
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            width, height = image.size
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise refuse("IMAGE_PROCESS_FAILED") from None
    if width + height > MAX_PHOTO_SIDES or max(width, height) > MAX_PHOTO_RATIO * min(width, height):
        raise refuse("PHOTO_INVALID_DIMENSIONS")
    return width, height


def animation_size(data: bytes) -> tuple[int, int]:
    """Return width and height of a GIF, 0 of a film.

    Any other file is refused here; Telegram would show it as a mere file.
    """
    if data[4:8] == b"ftyp":
        return 0, 0
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.format != "GIF":
                raise refuse("wrong type of the animation: a GIF or an MPEG-4 film is wanted")
            return image.size
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise refuse("wrong type of the animation: a GIF or an MPEG-4 film is wanted") from None


def no_size(data: bytes) -> tuple[int, int]:
    """Return 0, 0 for a file that is not examined."""
    return 0, 0


def check_rights(media: str, *, allowed: bool) -> None:
    """Refuse media in a group in which the bot may send only words."""
    if media and not allowed:
        raise refuse(f"not enough rights to send {media}s to the chat")


def check_kind(is_photo: bool, media: str) -> None:
    """Refuse a file that is sent again by its id as another kind."""
    if is_photo != (media == "photo"):
        have, want = ("Photo", media.capitalize()) if is_photo else ("Document", "Photo")
        raise refuse(f"can't use file of type {have} as {want}")


def check_keyboard(rows: Sequence[Sequence[Any]]) -> None:
    """Check a keyboard. ``rows`` of aiogram's InlineKeyboardButton."""
    if sum(len(row) for row in rows) > 100:
        raise refuse("REPLY_MARKUP_TOO_LONG")
    for button in (button for row in rows for button in row):
        if not button.text.strip():
            raise refuse("can't parse inline keyboard button: Button text must be non-empty")
        if button.callback_data is None and button.url is None:
            raise refuse("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
        if button.callback_data is not None and not 1 <= len(button.callback_data.encode()) <= MAX_CALLBACK_DATA:
            raise refuse("BUTTON_DATA_INVALID")
        if button.style is not None and button.style not in {"danger", "success", "primary"}:
            raise refuse("can't parse inline keyboard button: invalid button style specified")


def check_placeholder(placeholder: str | None) -> None:
    if placeholder is not None and not 1 <= utf16(placeholder) <= MAX_PLACEHOLDER:
        raise refuse("input field placeholder must be 1-64 characters long")


def check_language(code: str) -> None:
    if not re.fullmatch(r"([a-z]{2})?", code):
        raise refuse("invalid language code specified")


def check_commands(names: Sequence[tuple[str, str]]) -> None:
    if len(names) > 100:
        raise refuse("BOT_COMMANDS_TOO_MUCH")
    for name, description in names:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", name):
            raise refuse("BOT_COMMAND_INVALID")
        if not 1 <= utf16(description) <= 256:
            raise refuse("BOT_COMMAND_DESCRIPTION_INVALID")
