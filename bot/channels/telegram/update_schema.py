"""Whether an update is one: what is read of it has the types that the Bot API gives it.

Telegram's library makes objects of anything; what is odd would come to light later, where it is taken for our fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MOST_NUMBER = 2**52 - 1  # of chats and people, as the Bot API says
MOST_UPDATE = 2**62
_Number = Annotated[int, Field(ge=-MOST_NUMBER, le=MOST_NUMBER)]
BROKEN = "unparsed"  # stands in an update in place of what could not be parsed: what is wrong with it
_BROKEN = dict.fromkeys((0, *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}")


class UnreadableUpdate(Exception):
    """What came is no update, or one of a release to come. It will not be readable the next time either."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _User(_Part):
    id: Annotated[int, Field(gt=0, le=MOST_NUMBER)]
    is_bot: bool
    first_name: str
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = None


class _Chat(_Part):
    id: _Number
    type: str
    title: str | None = None


class _File(_Part):
    file_id: str
    file_name: str | None = None
    file_size: int | None = None


class _Button(_Part):
    callback_data: str | None = None


class _Keyboard(_Part):
    inline_keyboard: list[list[_Button]]


class _Origin(_Part):
    type: str


class _Message(_Part):
    message_id: _Number
    date: Annotated[int, Field(ge=0, le=2**40)]
    chat: _Chat
    sender: _User | None = Field(default=None, alias="from")
    sender_chat: _Chat | None = None
    via_bot: _User | None = None
    forward_origin: _Origin | None = None
    message_thread_id: _Number | None = None
    is_topic_message: bool | None = None
    text: str | None = None
    caption: str | None = None
    document: _File | None = None
    animation: _File | None = None
    photo: list[_File] | None = None
    media_group_id: str | None = None
    is_automatic_forward: bool | None = None
    edit_date: Annotated[int, Field(ge=0, le=2**40)] | None = None
    reply_to_message: _Message | None = None
    reply_markup: _Keyboard | None = None


class _Tap(_Part):
    id: str
    sender: _User = Field(alias="from")
    message: _Message | None = None
    inline_message_id: str | None = None
    data: str | None = None


class _Query(_Part):
    sender: _User = Field(alias="from")
    query: str


class _Update(_Part):
    """The kinds that something is read of."""

    update_id: int
    message: _Message | None = None
    edited_message: _Message | None = None
    callback_query: _Tap | None = None
    inline_query: _Query | None = None
    chosen_inline_result: _Query | None = None


def number_of(raw: object) -> int | None:
    """The update's number; None for what has none that can be kept."""
    update_id = raw.get("update_id") if isinstance(raw, dict) else None
    if not isinstance(update_id, int) or isinstance(update_id, bool) or not 0 <= update_id < MOST_UPDATE:
        return None
    return update_id


def checked(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The update, without signs that no text can hold. UnreadableUpdate where it is none."""
    if BROKEN in raw:
        raise UnreadableUpdate(str(raw[BROKEN]))
    try:
        _Update.model_validate(raw)
        return {key: _clean(value) for key, value in raw.items()}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnreadableUpdate(f"{where}: {first['msg']}") from None
    except RecursionError:
        raise UnreadableUpdate("too deep") from None


def _clean(value: Any) -> Any:
    """Half a surrogate pair, or a NUL, can be stored in no database; what of JSON holds them is plain data."""
    if isinstance(value, str):
        return value.translate(_BROKEN)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
