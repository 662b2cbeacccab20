"""Reads the notifications of QQ and WeChat: the name in a title, and the writer.

QQ: "昵称" or "昵称(2条新消息)", with "[特别关心]" before it for some; a group's text is "昵称: 内容". Others are
"QQ空间动态(共1条未读)" and "关联QQ号 (3条新消息)". WeChat: the text of one message has no prefix; several are
"[2条]昵称: 内容", also in a chat of two, in which 昵称 is the title. Both can hide the writer: "你收到了2条新消息". An
unknown form says that there are messages but not whose, so the list of chats is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Notification
from agent_core.geometry import Box
from agent_core.perception.compare import name, same_name
from agent_core.perception.lists import ChatRow, with_preview

NOWHERE = Box(0, 0, 1, 1)
_MESSAGES = re.compile(r"消息|message", re.IGNORECASE)
_COUNTED = re.compile(
    r"\s*[(（]\s*(?:\d+\+?\s*条(?:新|未读)消息|共\s*\d+\+?\s*条未读|\d+\+?\s*(?:new |unread )?messages?)\s*[)）]$",
    re.IGNORECASE,
)
_CARED_FOR = re.compile(r"^\[特别关[心注]\]\s*")
# Text that may belong to an app's format, and not to a name.
_STRANGE = re.compile(
    r"^[\[【][^\]】]*[\]】]|[(（][^()（）]*(?:条|消息|未读|messages?)[^()（）]*[)）]$|\d+\s*[条则].{0,4}(?:消息|未读)"
    r"|^[你您](?:收到|有).*消息$",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"^\[(\d{1,4})\+?条(?:新消息)?\]\s*")
_COLON = re.compile(r"[：:]\s*")


@dataclass(frozen=True, slots=True)
class Told:
    """The contents of a notification.

    row: a row as the list would show it; None if it names nobody.
    messages: there are messages even if it names nobody, so the list of chats knows more.
    """

    row: ChatRow | None = None
    messages: bool = False


def told_by(note: Notification, profile: AppProfile, known: Sequence[str] = ()) -> Told:
    """Read one notification of the app. ``known``: complete names of contacts; one of them is a name in any form."""
    title, text = note.title.strip(), note.text.strip()
    called = _CARED_FOR.sub("", _COUNTED.sub("", title)).strip()
    if any(same_name(title, one) for one in known):
        called = title
    elif not called or called in (profile.name, *profile.aliases):
        return Told(messages=bool(_MESSAGES.search(f"{title} {text}")))
    elif _STRANGE.search(called) and not any(same_name(called, one) for one in known):
        return Told(messages=True)
    row = ChatRow(called, NOWHERE, 1)
    several = _SEVERAL.match(text)
    if several is None:
        return Told(with_preview(row, text), messages=True)
    rest, count = text[several.end() :], int(several[1])
    own = name(called, drawn=True)
    if name(rest, drawn=True).startswith(f"{own}:"):  # the app may write a wide or a narrow colon
        words = _COLON.split(rest, maxsplit=own.count(":") + 1)[-1]
        return Told(ChatRow(called, NOWHERE, count, words), messages=True)
    colon = _COLON.search(rest)
    if colon is None:
        return Told(messages=True)
    return Told(ChatRow(called, NOWHERE, count, rest, sender=rest[: colon.start()].strip()), messages=True)
