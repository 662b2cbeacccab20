"""Replacing the words of a screen by others of the same length and kind.

Chinese becomes Chinese, digits become digits, Latin letters become Latin letters of about the same width; signs stay.
One letter always becomes the same letter within a kit, so that equal names stay equal, and several letters may become
one, so that the words cannot be restored. What the app itself says (发送, 昨天, [图片]) stays, because readers know it.
"""

from __future__ import annotations

import random
import re
import unicodedata

from agent_core.apps.profile import AppProfile
from agent_core.screen.times import is_time

_CHINESE = (
    "安白班北本边表兵才草长场车城春村大刀灯地点电东冬对多方风高歌工光国海汉河红花话黄火家江交节金京开空来蓝老乐里力立林"
    "路绿马满毛美门米面民明木南年牛女平千前青清秋去全热山上少生声石时事树水思松岁台太天田听头外王文五午夏先香向小心新星"
    "行学雪雨元园远月云运早张真正中住走左"
)
_NARROW, _WIDE, _LOWER, _UPPER, _DIGITS = "rtf", "mw", "abdehknpuy", "ABDEHKNPRT", "23456789"

# What apps say. What stands in a group is a person's and is replaced.
_KEPT = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"按住\s*(?:说话|讲话)|搜索|微信(?:[(（]\d+[)）])?|消息(?:[(（]\d+[)）])?|编辑|完成|换行|切换到键盘|语音|更多功能(?:按钮)?|表情|返回",
        r"(?:通话时长|聊天时长)\s*(.*)|未接来电|未接听|已取消|已拒绝|对方(?:无应答|已取消|已拒绝|忙线).*",
        r"你撤回了一条消息.*|[\"“”](.+)[\"“”]\s*撤回了一条消息|以上是打招呼的内容|以下为新消息|对方正在输入.*",
        r"(?:在线|离线|手机在线)(?: ?- ?.+)?",
        r"(?:\[[^\]]{1,8}\])+(.*)",
        r"(.+)(?:的资料卡|头像)|我的资料卡|返回消息未读\d+",
        r"(.*)(, ,有\d+条未读,)(.*)",
        r"(.+)(\.[A-Za-z][A-Za-z0-9]{1,4})",
        r"([\d.]+)\s*[KMG]?B(?:\s*[/|·].*)?|(?:QQ|微信)?(?:小程序|红包|转账|文件|链接)|领取红包|点击回拨",
    )
)
_NUMBER = re.compile(r"\d+")


class Disguise:
    """Replaces texts. ``seed`` makes it repeatable; without one the letters are drawn anew each time."""

    def __init__(self, profile: AppProfile, seed: str | None = None) -> None:
        self._random = random.Random(seed) if seed is not None else random.SystemRandom()  # noqa: S311 - no secret
        self._own = {*profile.send_texts, *profile.tabs, *profile.list_tabs, *profile.service_rows}
        self._letters: dict[str, str] = {}

    def line(self, text: str) -> str:
        """Replace a text that stands alone, and keep what the app itself says."""
        if text.strip() in self._own:
            return text
        if is_time(text):
            return _NUMBER.sub(lambda found: {1: "8", 2: "12"}.get(len(found[0]), "2020"), text)
        for pattern in _KEPT:
            if (found := pattern.fullmatch(text.strip())) is not None:
                return self._groups(text.strip(), found)
        return self.plain(text)

    def plain(self, text: str) -> str:
        """Replace every letter and digit."""
        return "".join(map(self._letter, text))

    def _groups(self, text: str, found: re.Match[str]) -> str:
        out, place = "", 0
        for index in range(1, (found.re.groups or 0) + 1):
            start, end = found.span(index)
            if start < 0 or not any(char.isalnum() for char in found[index]) or found[index].startswith((".", ", ,")):
                continue
            out += text[place:start] + self.plain(text[start:end])
            place = end
        return out + text[place:]

    def _letter(self, char: str) -> str:
        if not char.isalnum():
            return char
        if char not in self._letters:
            self._letters[char] = self._random.choice([other for other in _pool(char) if other != char])
        return self._letters[char]


def _pool(char: str) -> str:
    if char.isdigit():
        return _DIGITS
    if unicodedata.east_asian_width(char) in "WF":
        return _CHINESE
    if char in "iljtfrI1":
        return _NARROW
    if char in "mwMW":
        return _WIDE
    return _UPPER if char.isupper() else _LOWER
