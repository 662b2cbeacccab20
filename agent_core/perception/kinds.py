"""Recognises kinds of messages by the words in a bubble or an app's description of it, and times in chat apps."""

from __future__ import annotations

import re

from agent_core.perception.readings import BubbleKind

# Hints that an empty input shows.
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
    (BubbleKind.FILE, re.compile(r"^\[文件\]")),
    (BubbleKind.LOCATION, re.compile(r"^\[位置\]")),
    (BubbleKind.CARD, re.compile(r"^\[(?:(?:QQ|微信)?小程序|链接|分享|卡片)\]")),
)
_SECONDS = re.compile(r"(?<!\d)(\d{1,3})\s*(?:秒|[\"″”＂]|['’′]{1,2})\s*(?:$|\n)")
# Lines that apps show for calls. A person who writes nothing but these words is shown as a call, too.
_CALLS = (
    r"未接来电|未接(?:语音|视频)?(?:通话|电话)|未接听|未接通|未应答|无人接听|(?:对方)?无应答|(?:对方|你)?已(?:取消|拒绝|挂断)",
    r"对方(?:未接听|未接通|未应答|无人接听|已?取消|已?拒绝|已?挂断|忙|正忙|忙线中?|正在通话中)|忙线(?:中|未接听)?",
    r"(?:通话|聊天)时长\s*[:：]?\s*(?:\d{1,3}[:：]\d{2}(?:[:：]\d{2})?|[\d一二三四五六七八九十时小分钟秒]+)?",
    r"(?:语音|视频)?(?:通话|聊天)(?:已|已经)?(?:结束|中断|取消)|通话连接失败|已在其[他它]设备上?(?:接听|拒绝|处理)",
    r"[^，。？！,?!]{0,20}发起了?(?:一个)?(?:语音|视频|群)(?:通话|聊天|电话)|点击(?:回拨|重拨)",
    r"missed (?:voice |video )?call|(?:call )?(?:cancell?ed|declined)(?: by caller)?|(?:call )?not answered|no answer",
    r"(?:line )?busy|(?:call )?duration\s*[:：]?\s*\d{1,3}[:：]\d{2}(?:[:：]\d{2})?|call ended",
    r"(?:answered|declined) on another device",
)
_CALL = re.compile(
    rf"(?:\[?(?:语音|视频|QQ)?(?:通话|电话)\]?[\s:：,，]*)?(?P<said>(?:{'|'.join(_CALLS)})(?:[\s，,·]*点击(?:回拨|重拨))?)[。.]?",
    re.I,
)
# A recogniser reads the receiver icon before or behind such a line as signs, Latin letters, or one character.
_SIGN = r"(?:[^\u4e00-\u9fff]{0,3}|[\u4e00-\u9fff]\W{0,2})"
_CALL_IN_PICTURE = re.compile(rf"{_SIGN}?{_CALL.pattern}{_SIGN}?", re.I)
# How an app describes a message whose own words are not there; a person may well write these words.
_NAMES = (
    (BubbleKind.FILE, re.compile(r"^文件(?:$|\W)")),
    (BubbleKind.LOCATION, re.compile(r"^(?:地理)?位置(?:$|\W)")),
    (BubbleKind.CARD, re.compile(r"^(?:(?:QQ|微信)?小程序|链接|分享|卡片)(?:$|\W)")),
    (BubbleKind.CALL, re.compile(r"^(?:语音|视频)通话(?:$|\W)")),
)
# A missed call. A person may write these words too, about an order for example.
_MISSED_CALL = re.compile(r"(?:通话|未接|接听|回拨|无应答|忙线|拒绝|取消)")
LONGEST_CALL = 16  # characters of an app's line about a call

# Their names are not the customer's text.
WORDLESS = frozenset({BubbleKind.IMAGE, BubbleKind.STICKER, BubbleKind.VIDEO})
CARDS = frozenset({BubbleKind.FILE, BubbleKind.LOCATION, BubbleKind.CARD})  # several texts, the first is the name


def is_hint(text: str) -> bool:
    """Tell whether ``text`` is the hint of an empty input."""
    return bool(_HINT.match(text.strip()))


def call_line(text: str, *, in_picture: bool = False) -> str:
    """Return the app's line about a call in ``text``; "" if the text is anything else.

    in_picture: the text was recognised in a picture, so that the receiver icon may have been read with it.
    """
    found = (_CALL_IN_PICTURE if in_picture else _CALL).fullmatch(text.strip())
    return found["said"].strip() if found else ""


def kind_of(text: str) -> BubbleKind:
    """Return the kind of message that a bubble's words indicate."""
    if call_line(text):
        return BubbleKind.CALL
    for kind, pattern in _KINDS:
        if pattern.search(text.strip()):
            return kind
    return BubbleKind.TEXT if text.strip() else BubbleKind.OTHER


def voice_seconds(text: str) -> int | None:
    """Return the seconds of a voice message by its text, such as ``16″`` or ``语音 16秒``; None if it gives none.

    An app's transcription of the message may contain other numbers.
    """
    found = _SECONDS.search(text)
    return int(found[1]) if found else None


def named_kind(description: str) -> BubbleKind:
    """Return the kind that an app's description of a message indicates; OTHER if it indicates none."""
    said = description.strip()
    kind = next((kind for kind, pattern in _NAMES if pattern.search(said)), kind_of(said))
    return BubbleKind.OTHER if kind is BubbleKind.TEXT else kind


def may_be_call(text: str) -> bool:
    """Tell whether an app may say this of a missed call."""
    return len(text) <= LONGEST_CALL and _MISSED_CALL.search(text) is not None


_TIME = re.compile(
    r"^(?:(?:(?:今天|昨天|前天|星期[一二三四五六日天]|周[一二三四五六日天])?\s*"
    r"(?:凌晨|清晨|早上|上午|中午|下午|傍晚|晚上)?\s*\d{1,2}[:：]\d{2}(?:\s*[AP]M)?)"
    r"|昨天|前天|刚刚|\d{1,2}(?:分钟|小时)前|星期[一二三四五六日天]|周[一二三四五六日天]"
    r"|(?:\d{2,4}[年/.-])?\d{1,2}[月/.-]\d{1,2}日?|Yesterday|(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Satur|Sat|Sun)(?:day)?)$",
    re.IGNORECASE,
)


def is_time(text: str) -> bool:
    """Tell whether ``text`` is the time in a row: ``14:05``, ``昨天``, ``星期三`` …"""
    return bool(_TIME.match(text.strip()))
