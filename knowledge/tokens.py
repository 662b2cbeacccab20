"""Words for the index: what a text is made of, so that colloquial Chinese finds its entry.

Chinese has no blanks between words, so characters stand alone and in pairs; Latin words and numbers stay whole.
"""

from __future__ import annotations

import re
import unicodedata

_HAN = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+")
_OTHER = rf"[^\W_{_HAN}]"  # a letter or digit of no Han text
# Marks that change what is asked: 1.5米, -10度, 5-6天, 5~6天, Pro+, 1/2, 8:30, 5%. Anywhere else they are punctuation.
_TELLING = re.compile(
    rf"(?<![.])[.](?={_OTHER})|(?<!-)(?:(?<={_OTHER})-|-(?={_OTHER}))(?!-)|(?<!~)(?:~(?=\d)|(?<={_OTHER})~(?={_OTHER}))"
    rf"|(?<={_OTHER})/(?=\w)|(?<=\w)/(?={_OTHER})|(?<={_OTHER})\++|\+(?=\d)|(?<=\d):(?=\d)|(?<=\d)%"
)
_DASHES = str.maketrans(dict.fromkeys("‐‒–—−", "-") | dict.fromkeys("〜∼", "~") | {"⁄": "/"})
# A blank keeps two numbers apart; beside Han, between words (a picture may be read without) or between a word and its
# number, it is nothing.
_BLANK = re.compile(r"(?<=\d) (?=\d)|(?<=[.~/:+%-]) | (?=[.~/:+%-])")

# What is said around a question and changes nothing about it.
_GREETINGS = """
您好 你好 您好啊 你好啊 您好呀 你好呀 哈喽 哈啰 嗨 hello hi 在吗 在不在 在么 有人吗 有人在吗 早上好 下午好 晚上好
老板娘 老板 店家 掌柜 亲亲 亲 客服 小二 请问 请问下 请问一下 麻烦 麻烦您 麻烦你 麻烦问下 麻烦问一下 问下 问一下
想问 想问下 想问一下 我想问 我想问下 我想问一下 打扰 打扰了 打扰一下 不好意思 劳驾
咨询下 咨询一下 想咨询 我想咨询 我想咨询一下 诶 哎 欸 嗯 呃 please
"""
_ENDINGS = """
吗 嘛 么 呢 啊 呀 哦 噢 喔 哈 啦 咧 哒 滴 吧 的 谢谢 谢谢你 谢谢您 多谢 谢了 感谢 辛苦 亲 老板 请问 thanks
多谢了 感谢了 谢谢了 辛苦了 麻烦了
"""


def _leading(word: str) -> str:
    """A pattern for ``word`` in front: "hi" is not in "history", nor "请问下" in "请问下单"."""
    if word.isascii():
        return word + r"(?![a-z])"
    return word + r"(?![单午个次周月载])" if word.endswith("下") else word


_LEADING = re.compile("|".join(map(_leading, sorted(_GREETINGS.split(), key=len, reverse=True))))
_TRAILING = sorted(_ENDINGS.split(), key=len, reverse=True)
# "什么" and "怎么" end in a particle's character without having a particle.
_KEPT_ENDINGS = ("什么", "怎么", "多么", "要么", "那么", "这么", "目的")


def normalize(text: str) -> str:
    """NFKC, lower case, every punctuation mark and symbol a blank, blanks single."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def tokens(text: str) -> list[str]:
    """Characters and pairs of neighbouring characters of Han runs; Latin words and numbers whole. Order is kept."""
    found: list[str] = []
    for run in _RUN.findall(normalize(text)):
        if run[0].isascii() or not _is_han(run[0]):
            found.append(run)
            continue
        found.extend(run)
        found.extend(run[index : index + 2] for index in range(len(run) - 1))
    return found


def exact(text: str) -> str:
    """NFKC, lower case, without blanks and marks that say nothing; those of a number or of a model's name stay."""
    folded = unicodedata.normalize("NFKC", text).lower().translate(_DASHES)
    told = {match.start() + index for match in _TELLING.finditer(folded) for index in range(len(match[0]))}
    plain = "".join(char if char.isalnum() or at in told else " " for at, char in enumerate(folded))
    single = " ".join(plain.split())
    kept = {match.start() for match in _BLANK.finditer(single) if not _beside_han(single, match.start())}
    return "".join(char for at, char in enumerate(single) if char != " " or at in kept)


def _beside_han(text: str, at: int) -> bool:
    return _is_han(text[at - 1]) or _is_han(text[at + 1])


def stripped(text: str) -> str:
    """``text`` without greetings, politeness, closing particles and what ``exact`` leaves out: what two equal questions
    share. "1.5米" and "15米", "Pro" and "Pro+", "13 4" and "134" are not equal.

    A text of nothing but politeness gives "".
    """
    core = exact(text)
    while True:
        shorter = core
        while match := _LEADING.match(shorter):
            shorter = shorter[match.end() :].lstrip(".~").lstrip()  # "你好~15号": the mark belongs to the greeting
        shorter = exact(_without_ending(shorter))
        if shorter == core:
            return core
        core = shorter


def _without_ending(text: str) -> str:
    if text.endswith(_KEPT_ENDINGS):
        return text
    for ending in _TRAILING:
        if text.endswith(ending) and (not ending.isascii() or text == ending or text[-len(ending) - 1] == " "):
            return text[: -len(ending)]
    return text


def _is_han(char: str) -> bool:
    return "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or char >= "\U00020000"
