"""The numbers of a text with their units, in digits or in words, and its links and codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from agent_core.reply.sureness.plain import HAN

_DIGITS = "零〇一二三四五六七八九"
_VALUES = {char: max(0, index - 1) for index, char in enumerate(_DIGITS)}
_VALUES |= {"两": 2, "壹": 1, "贰": 2, "叁": 3, "肆": 4, "伍": 5, "陆": 6, "柒": 7, "捌": 8, "玖": 9, "俩": 2, "仨": 3}
_POWERS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "万": 10**4, "亿": 10**8}
NUMERALS = "".join(_VALUES) + "".join(_POWERS) + "半"
# The units in which things are counted and measured. Other units may follow a number, too.
UNITS = """
小时 分钟 星期 礼拜 工作日 厘米 公分 毫米 英寸 公斤 千克 毫克 毫升 公里 千米 平米 平方米 平方 千瓦 毫安
天 日 时 分 秒 周 月 年 号 件 个 张 条 根 台 包 盒 箱 瓶 袋 双 套 支 只 片 块 元 圆 毛 角 米 寸 斤 克 升 瓦
伏 安 折 倍 次 回 人 位 岁 码 度 层 楼 点 代 版 平 匹 段 排 杯 罐 桶 组 份 对 颗 粒 本 部 辆
ml l g kg mg cm mm m km w kw v a ma mah gb tb mb hz inch day hour week month year minute
""".split()  # noqa: SIM905 - reads best
_HAN_UNIT = "|".join(sorted((unit for unit in UNITS if not unit.isascii()), key=len, reverse=True))
_SAME_UNIT = {
    one: names.split()[0]
    for names in (
        "元 块 圆 rmb",
        "周 星期 礼拜 week",
        "小时 hour",
        "ml 毫升",
        "kg 公斤 千克",
        "cm 厘米 公分",
        "mm 毫米",
        "g 克",
        "w 瓦",
        "v 伏",
        "mah 毫安",
        "平 平米 平方米 平方",
        "次 回",
        "度 °",
    )
    for one in names.split()
}
# 一 that is not a number: 一下, 一样, 一起 … and 统一, 唯一.
NO_NUMBER = re.compile(
    r"一(?=[下样些起定般直旦致并共切律会边])|(?<=[统唯同])一|万一|千万(?=[不别要])|十分(?=[感满抱方])|半(?=径)"
)
WORD_VALUES = {
    word: value
    for value, words in {
        0: "zero",
        1: "one once",
        2: "two twice couple",
        3: "three thrice",
        4: "four",
        5: "five",
        6: "six",
        7: "seven",
        8: "eight",
        9: "nine",
        10: "ten",
        11: "eleven",
        12: "twelve dozen",
        13: "thirteen",
        14: "fourteen fortnight",
        15: "fifteen",
        20: "twenty",
        30: "thirty",
        40: "forty",
        50: "fifty",
        60: "sixty",
        70: "seventy",
        80: "eighty",
        90: "ninety",
        100: "hundred",
        1000: "thousand",
        10**6: "million",
    }.items()
    for word in words.split()
}
WORD = re.compile(r"[a-zà-ÿ]+(?:'[a-z]+)?")
# Repeats are bounded if what follows them may be missing; otherwise a long text takes time in the square of its length.
LINK = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://[^\s，。；、！？）)】」”]+|www\.[a-z0-9./_%?=&#-]+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"
    r"|(?<![\w@])[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,8}\.(?:com|cn|net|org|io|cc|top|xyz|shop|vip|me|ly|co|info|app|link)\b[^\s，。；、]*"
)
CODE = re.compile(r"(?=[a-z0-9_./+-]{0,40}[a-z])(?=[a-z0-9_./+-]{0,40}[0-9])[a-z0-9][a-z0-9_./+-]*[a-z0-9]|[a-z]")
CODE_OF_TWO = re.compile(r"(?=[a-z0-9_./+-]{0,40}[0-9])[a-z0-9][a-z0-9_./+-]+")
_NUMBER = re.compile(
    rf"(?P<money>[¥$€£]\s*)?(?P<digits>\d+(?:[.,:/~-]\d+)*)(?P<power>[十百千万亿]*)\s*(?P<unit>%|℃|°|个?(?:{_HAN_UNIT})|[{HAN}]|[a-z]+)?"
)
FIGURE = re.compile(rf"(?:\d[\d.,:/~-]*|[{NUMERALS}]+)\s*[元块圆]?")
_NUMERAL = re.compile(rf"(?P<percent>百分之)?(?P<numeral>[{NUMERALS}]+)(?P<unit>个?(?:{_HAN_UNIT})|[{HAN}])?")


def links(text: str) -> set[str]:
    """Return the links and addresses of a text in lower case."""
    return {link.rstrip(".,;:!'") for link in LINK.findall(text)}


def codes(text: str) -> set[str]:
    """Return the words with letters and digits: models, orders, coupons, sizes such as 20w."""
    return {code for code in CODE.findall(LINK.sub(" ", text)) if len(code) > 1}


def unknown_figures(said: str, known: str) -> set[tuple[str, str]]:
    """Return the numbers of ``said`` that ``known`` does not contain with the same unit (without a unit: with any)."""
    there = set(figures(known))
    values = {value for value, _ in there}
    return {
        (value, unit) for value, unit in figures(said) if (value, unit) not in there and (unit or value not in values)
    }


def figures(text: str) -> Iterable[tuple[str, str]]:
    """Yield each number as its value and its unit: ("7", "天"), ("19.9", "元"), ("3-5", "天")."""
    text = LINK.sub(" ", text)
    text = CODE.sub(lambda match: " " if len(match[0]) > 1 else match[0], text)
    for match in _NUMBER.finditer(text):
        money = {"$": "$", "€": "€", "£": "£", "¥": "元"}.get((match["money"] or "").strip(), "")
        yield _value(match["digits"], match["power"]), money or _unit(match["unit"])
    rest = NO_NUMBER.sub(" ", _NUMBER.sub(_without_digits, text))
    for match in _NUMERAL.finditer(rest):
        yield _numeral(match["numeral"]), "%" if match["percent"] else _unit(match["unit"])
    words = WORD.findall(rest)
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word in WORD_VALUES:
            yield str(WORD_VALUES[word]), _unit(following)


def _without_digits(match: re.Match[str]) -> str:
    """Remove a number. A unit that is a numeral itself belongs to it in "3万", but in "7一" it is another number."""
    unit = match["unit"] or ""
    return f" {unit}" if unit and unit[0] in NUMERALS else " "


def _unit(unit: str | None) -> str:
    unit = unit or ""
    if unit and unit[0] in NUMERALS:
        return ""
    if unit[:1] == "个" and unit[1:] not in {"", "月"}:  # "3个月" is not "3月"
        unit = unit[1:]
    unit = unit.rstrip("s") if unit.isascii() else unit
    return same_unit(unit)


def same_unit(unit: str) -> str:
    """Return the representative of all units of this meaning: "元" for "块" and "圆"."""
    return _SAME_UNIT.get(unit, unit)


def _value(digits: str, power: str) -> str:
    factor = Decimal(1)
    for char in power:
        factor *= _POWERS[char]
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", digits)
    if len(plain) > 20:  # no amount, and decimals would round it
        return plain
    try:
        return _written(Decimal(plain) * factor)
    except InvalidOperation:
        return plain.replace("~", "-") + power


def _written(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _numeral(numeral: str) -> str:
    """Return the value of a Chinese numeral. A sequence of digits is read as digits: 二零二六 is 2026."""
    if numeral == "半":
        return "0.5"
    if not set(numeral) & (set(_POWERS) | {"半"}):
        return _written(Decimal("".join(str(_VALUES[char]) for char in numeral)))
    total, section, digit = Decimal(0), Decimal(0), Decimal(0)
    seen = False
    for char in numeral:
        if char in _VALUES:
            digit, seen = Decimal(_VALUES[char]), True
        elif char == "半":
            digit += Decimal("0.5")
            seen = True
        elif _POWERS[char] >= 10**4:
            total = (total + section + digit or Decimal(1)) * _POWERS[char]
            section, digit, seen = Decimal(0), Decimal(0), False
        else:
            section += (digit if seen else Decimal(1)) * _POWERS[char]
            digit, seen = Decimal(0), False
    return _written(total + section + digit)
