"""Kinds of messages, by the words that stand in a bubble or that an app says of it."""

from __future__ import annotations

import re

from agent_core.screen.readings import BubbleKind

# What an empty input says in the place of a text.
_HINT = re.compile(
    r"^(?:说点什么|发消息|发送消息|输入消息|请输入(?:消息|内容)?|按住说话|聊点什么吧?|message|type a message)[.…。]*$",
    re.I,
)
_KINDS = (
    (
        BubbleKind.VOICE,
        re.compile(r"^\[?语音(?:消息)?\]?(?:[\s,，:：]*\d+\s*(?:秒|[\"″”'’]+))?$|^\d{1,2}\s*(?:[\"″”]|'{2}|’’)$"),
    ),
    (BubbleKind.IMAGE, re.compile(r"^\[?(?:图片|照片|相片|image|photo)\]?$", re.I)),
    (BubbleKind.VIDEO, re.compile(r"^\[?(?:短?视频|video)\]?$", re.I)),
    (BubbleKind.STICKER, re.compile(r"^\[?(?:动画表情|表情包?|贴纸|sticker)\]?$", re.I)),
    (
        BubbleKind.RED_PACKET,
        re.compile(r"^\[(?:QQ|微信)?红包\]|^(?:QQ|微信)?红包(?:$|\n)|恭喜发财.*(?:红包|大吉大利)|^\[?转账\]"),
    ),
    (BubbleKind.CALL, re.compile(r"^.{0,3}通话时长\s*\d{1,2}[:：]\d{2}(?:[:：]\d{2})?$")),
    (BubbleKind.FILE, re.compile(r"^\[文件\]")),
    (BubbleKind.LOCATION, re.compile(r"^\[位置\]")),
    (BubbleKind.CARD, re.compile(r"^\[(?:(?:QQ|微信)?小程序|链接|分享|卡片)\]")),
)
# What an app says of a message where its own words are not; a person may well write these words.
_NAMES = (
    (BubbleKind.FILE, re.compile(r"^文件(?:$|\W)")),
    (BubbleKind.LOCATION, re.compile(r"^(?:地理)?位置(?:$|\W)")),
    (BubbleKind.CARD, re.compile(r"^(?:(?:QQ|微信)?小程序|链接|分享|卡片)(?:$|\W)")),
    (BubbleKind.CALL, re.compile(r"^(?:语音|视频)通话(?:$|\W)")),
)
# A call that did not come about. A person may write these words too, of an order say.
_MISSED_CALL = re.compile(r"(?:通话|未接|接听|回拨|无应答|忙线|拒绝|取消)")
LONGEST_CALL = 16  # characters of what an app says of one

# What names them is no text of theirs.
WORDLESS = frozenset({BubbleKind.IMAGE, BubbleKind.STICKER, BubbleKind.VIDEO})
CARDS = frozenset({BubbleKind.FILE, BubbleKind.LOCATION, BubbleKind.CARD})  # several texts, the first is the name


def is_hint(text: str) -> bool:
    """Whether ``text`` is what an empty input shows."""
    return bool(_HINT.match(text.strip()))


def kind_of(text: str) -> BubbleKind:
    """The kind of message that a bubble's words tell of."""
    for kind, pattern in _KINDS:
        if pattern.search(text.strip()):
            return kind
    return BubbleKind.TEXT if text.strip() else BubbleKind.OTHER


def named_kind(description: str) -> BubbleKind:
    """The kind that an app's description of a message tells of; OTHER if it tells of none."""
    said = description.strip()
    kind = next((kind for kind, pattern in _NAMES if pattern.search(said)), kind_of(said))
    return BubbleKind.OTHER if kind is BubbleKind.TEXT else kind


def may_be_call(text: str) -> bool:
    """Return whether an app may say this of a call that did not come about."""
    return len(text) <= LONGEST_CALL and _MISSED_CALL.search(text) is not None
