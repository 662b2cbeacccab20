"""Replaces the words of a screen by others of the same length and kind.

Chinese becomes Chinese, digits become digits, letters become Latin letters of about the same width; punctuation stays,
and all other signs become the same one. A Chinese character always becomes the same other one within a kit, and so does
a whole number or a whole Latin word, so that equal names stay equal; several may become one, so that nobody can restore
them.

Nothing stays because of what it looks like. Only the closed list in ``phrases.toml`` stays: whole phrases of the apps,
and the app's own words in templates, of which the gaps are replaced.
"""

from __future__ import annotations

import random
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib import resources

from agent_core.apps.profile import AppProfile
from agent_core.perception.kinds import is_time

# No character that resembles a letter of another script (力 and カ, 工 and エ): it would sometimes be read as that.
_CHINESE = (
    "安白班北本边表兵才草长场车城春村大刀灯地点电东冬对多方风高歌光国海汉河红花话黄火家江交节金京开空来蓝老乐里立林"
    "路绿马满毛美门米面民明木南年牛女平前青清秋去全热山上少生声石时事树水思松岁台太天田听头外王文五午夏先香向小心新星"
    "行学雪雨元园远月云运早张真正中住走左"
)
_NARROW, _WIDE, _LOWER, _UPPER, _DIGITS = "rtf", "mw", "abdehknpuy", "ABDEHKNPRT", "23456789"
_SIGNS = frozenset(
    " \t\n\r\u00a0\u3000!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    "\u3001\u3002\u300a\u300b\u300c\u300d\u300e\u300f\u3010\u3011\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff5e"
    "\u00b7\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2032\u2033\uffe5\u25b6"
)
_OTHER_SIGN = "\u2605"

_NUMBER = re.compile(r"\d+")
_UNITS = re.compile(r"[0-9]+|[A-Za-z]+|.", re.DOTALL)


class Disguise:
    """A replacer of texts. ``seed`` makes it repeatable; without one the replacements are random each time."""

    def __init__(self, profile: AppProfile, seed: str | None = None) -> None:
        self._random = random.Random(seed) if seed is not None else random.SystemRandom()  # noqa: S311 - no secret
        own = (*profile.send_texts, *profile.tabs, *profile.list_tabs, *profile.service_rows, *profile.voice_bar_texts)
        self._own = _said().phrases | {*own, *profile.my_avatar_texts}
        avatars = (pattern.replace("{name}", "*") for pattern in profile.avatar_texts)
        self._templates = tuple(map(_compiled, (*avatars, *_said().templates)))
        self._replaced: dict[str, str] = {}

    def line(self, text: str) -> str:
        """Replace a text that may come from the app itself: the app's own words in it stay."""
        if text.strip() in self._own:
            return text
        if is_time(text):
            return _NUMBER.sub(lambda found: {1: "8", 2: "12"}.get(len(found[0]), "2020"), text)
        for template in self._templates:
            if (found := template.fullmatch(text)) is not None:
                return self._gaps(text, found)
        return self.plain(text)

    def plain(self, text: str) -> str:
        """Replace every letter, digit and unusual sign."""
        return "".join(map(self._unit, _UNITS.findall(text)))

    def _gaps(self, text: str, found: re.Match[str]) -> str:
        out, place = "", 0
        for start, end in found.regs[1:]:
            out += text[place:start] + self.plain(text[start:end])
            place = end
        return out + text[place:]

    def _unit(self, unit: str) -> str:
        if unit in _SIGNS:
            return unit
        if unit not in self._replaced:
            self._replaced[unit] = "".join(map(self._letter, unit))
        return self._replaced[unit]

    def _letter(self, char: str) -> str:
        return self._random.choice([other for other in _pool(char) if other != char])


@dataclass(frozen=True, slots=True)
class _Said:
    """Texts of apps: whole texts, and templates in which * stands for other words."""

    phrases: frozenset[str]
    templates: tuple[str, ...]


@cache
def _said() -> _Said:
    data = tomllib.loads(resources.files("agent_core.kits").joinpath("phrases.toml").read_text(encoding="utf-8"))
    brackets, files = data["brackets"], data["files"]
    marked, named = (f"[{name}]*" for name in brackets), (f"*.{ending}" for ending in files)
    return _Said(frozenset(data["phrases"]), (*data["templates"], *marked, *named))


def _compiled(template: str) -> re.Pattern[str]:
    parts = (re.escape(part) for part in template.split("*"))
    return re.compile(r"\s*" + "(.*)".join(parts) + r"\s*", re.DOTALL)


def _pool(char: str) -> str:
    if char.isnumeric():
        return _CHINESE if "\u3400" <= char <= "\u9fff" else _DIGITS
    if unicodedata.category(char)[0] not in "LM":
        return _OTHER_SIGN + "\u2606"
    if unicodedata.east_asian_width(char) in "WF":
        return _CHINESE
    if char in "iljtfrI":
        return _NARROW
    if char in "mwMW":
        return _WIDE
    return _UPPER if char.isupper() else _LOWER
