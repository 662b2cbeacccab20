"""Near misses that one word or its place makes, beside those of ``corpus``: made of every wording, or written by hand.

- `made()`: each class of `MAKERS`, of every wording of the 60 records.
- `by_hand()`: from ``by_hand/<shop>.toml``, a table for each record, with a line for each kind of near miss.
- `passages()`: the answer of each record as a text without a question, and what must not get it.

The word lists of the check were written with all shops in view but `HELD_OUT`, whose near misses were tried afterwards.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

from tests.near_misses.corpus import NearMiss, ShopRecord, bare, near_misses, paraphrases, records

HELD_OUT = "appliances"

_MAY = ("可不可以", "可以", "能不能", "能")
_MUST = ("需要", "必须", "应该", "想")
_ASKED = re.compile(r"(?:吗|不|没有|没)?[?？]?$")
# How something else may be asked of the same; {q} is a question without its particle.
_DIMENSIONS = ("怎么{q}", "为什么{q}", "谁{q}", "{q}多少钱", "什么时候{q}", "{q}几次", "{q}多重", "{q}在哪")
_VERBS = ("{q}贵不贵", "{q}重不重", "{q}粘不粘手", "{q}用没用", "发没发{q}", "要不要{q}", "退不退{q}")
_BEHIND = ("知道了", "收到", "好的", "明白了 谢谢", "不客气", "行", "可以的", "ok")
_LIMITS = (
    *(
        "只{q}吗",
        "都{q}吗",
        "又{q}吗",
        "第二件{q}吗",
        "除了这个{q}吗",
        "{q}以外呢",
        "昨天{q}吗",
        "上次{q}吗",
        "如果{q}呢",
    ),
    *(
        "谁说{q}",
        "{q}才怪",
        "我朋友{q}吗",
        "是我{q}吗",
        "一半{q}吗",
        "{q}的那个坏了吗",
        "不{q}吗",
        "没{q}吗",
        "不是{q}吗",
    ),
)
_ENGLISH_LIMITS = (
    "why {q}",
    "who says {q}",
    "{q} only",
    "{q} again",
    "my friend asks {q}",
    "{q} twice",
    "never mind, {q}",
)
_ENGLISH_BEHIND = ("okay", "ok", "got it", "no need")
_MARKS = ("-", "~", "+", "<", ">=", "±")


def _modal(words: str, record: ShopRecord) -> Iterator[str]:
    if record.english:
        for one, other in (
            ("Can I", "Must I"),
            ("can I", "should I"),
            ("Do you", "Must you"),
            ("can you", "would you"),
        ):
            if one in words:
                yield words.replace(one, other, 1)
        return
    known = next((may for may in _MAY if may in words), "")
    if known and "否" not in words:
        yield from (words.replace(known, must, 1) for must in _MUST)
    elif "会" in words.replace("会员", ""):
        yield from (re.sub("会不会|会(?!员)", must, words, count=1) for must in (*_MUST, "能"))


def _dimension(words: str, record: ShopRecord) -> Iterator[str]:
    if not record.english and _is_whether(words):
        yield from (form.format(q=_core(words)) for form in _DIMENSIONS)


def _a_not_a(words: str, record: ShopRecord) -> Iterator[str]:
    if not record.english and _is_whether(words):
        yield from (form.format(q=_core(words)) for form in _VERBS if form[0] not in words)


def _politeness_behind(words: str, record: ShopRecord) -> Iterator[str]:
    behind = _ENGLISH_BEHIND if record.english else _BEHIND
    yield from (f"{words} | {polite}" for polite in behind)
    yield from (f"{words.rstrip('?？')}，{polite}" for polite in behind[:3])


def _sign_with_blank(words: str, record: ShopRecord) -> Iterator[str]:
    number = re.search(r"(?<![\d.:~-])\d+", words)
    if number:
        yield from (f"{words[: number.start()]}{mark} {words[number.start() :]}" for mark in _MARKS)


def _limit(words: str, record: ShopRecord) -> Iterator[str]:
    forms = _ENGLISH_LIMITS if record.english else _LIMITS
    yield from (form.format(q=words.rstrip("?") if record.english else _core(words)) for form in forms)


def _is_whether(words: str) -> bool:
    return bool(re.search(r"(?:吗|不|没有)$|不", words)) and not re.search(r"多|几|怎么|如何|什么|哪", words)


def _core(words: str) -> str:
    return _ASKED.sub("", words)


MAKERS: dict[str, Callable[[str, ShopRecord], Iterator[str]]] = {
    "modal": _modal,
    "dimension": _dimension,
    "a_not_a": _a_not_a,
    "politeness_behind": _politeness_behind,
    "sign_with_blank": _sign_with_blank,
    "limit": _limit,
}


@cache
def made() -> tuple[NearMiss, ...]:
    """Return what the makers make of every wording, without what is a wording or a fair paraphrase of the record."""
    fair = {bare([words]) for record in records() for words in record.wordings}
    fair |= {bare(paraphrase.messages) for paraphrase in paraphrases()}
    found: dict[tuple[str, str], NearMiss] = {}
    for record, kind in product(records(), MAKERS):
        for words in (near for wording in record.wordings for near in MAKERS[kind](wording, record)):
            messages = tuple(words.split(" | "))
            if kind == "politeness_behind" or bare(messages) not in fair:
                id_ = f"{record.id}/{kind}/{words}"
                found.setdefault((record.id, words), NearMiss(id_, kind, record.id, messages, f"made: {kind}"))
    return tuple(found.values())


@cache
def by_hand() -> tuple[NearMiss, ...]:
    """Return the near misses that are written out, by shop."""
    return tuple(
        NearMiss(f"{record}/{kind}/{words}", kind, record, tuple(words.split(" | ")), f"by hand: {kind}")
        for path in sorted((Path(__file__).parent / "by_hand").glob("*.toml"))
        for record, kinds in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for kind, all_words in kinds.items()
        for words in all_words
    )


_ASKS_NOTHING = (
    *(
        "在吗",
        "你好",
        "好的",
        "客服",
        "老板",
        "谢谢",
        "人工",
        "亲",
        "hello",
        "有人吗",
        "收到",
        "可以吗",
        "能吗",
        "行不行",
    ),
    *("多少钱", "怎么办", "什么时候", "多久", "哪里", "为什么", "怎么弄", "几天", "有吗", "是吗", "真的吗", "需要吗"),
    *("能给我吗", "能帮我吗", "can I?", "how much", "when?", "ok?"),
)


@cache
def passages() -> tuple[NearMiss, ...]:
    """Return what must not get the answer of a record as a passage: what asks nothing, and what nearly asks for it."""
    found = [
        NearMiss(f"{record.id}/nothing/{words}", "nothing", record.id, (words,), "it asks nothing")
        for record, words in product(records(), _ASKS_NOTHING)
    ]
    return (*found, *near_misses(), *by_hand())
