"""Strips a question of words without meaning: greetings, politeness and plain punctuation. Nothing else is dropped.

They are in closed lists, and a word counts only if it stands alone: "老板，包邮吗" begins with a greeting, "老板电话"
does not.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import groupby
from typing import Any

HAN = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_OTHER = rf"[^\W_{HAN}]"  # a letter or digit that is not Han
# Punctuation that changes the meaning by its place: 1.5米, -10度, - 10度, 5-6天, 5~6天, 1/2, 8:30, 7".
_TELLING = re.compile(
    rf"(?<![.])[.](?={_OTHER})|(?<!-)(?:(?<={_OTHER})-|-(?={_OTHER}|\s+\d))(?!-)"
    rf"|(?<!~)(?:~(?=\s*\d)|(?<={_OTHER})~(?={_OTHER}))"
    rf"|(?<={_OTHER})/(?=\w)|(?<=\w)/(?={_OTHER})|(?<=\d):(?=\d)|(?<=\d)[\"'](?!\w)"
)
# Elsewhere these are plain. A sign in neither list is part of the words: + < ≥ % $ ¥ # ° ×.
_PUNCTUATION = frozenset("。、，；：！？…·•「」『』【】〔〕《》〈〉—,.;:!?\"'()[]{}~-/`´|")
_PARTS = frozenset("，。；：！？…,.;:!?\n~—")  # separate words; a blank alone may be inside a name
_FORMS = str.maketrans(
    dict.fromkeys("‐‒–−➖﹣", "-")
    | dict.fromkeys("〜∼～", "~")
    | dict.fromkeys("➕✚✛﹢", "+")
    | dict.fromkeys("“”„″＂", '"')
    | dict.fromkeys("‘’′＇", "'")
    | {"⁄": "/", "≧": "≥", "≦": "≤", "￥": "¥"}
)
_CLAUSE = re.compile(r"[^，。！？…,.!?;；:：\n~～]*[，。！？…,.!?;；:：\n~～]*")
# A blank separates two numbers, and the mark of a measure (7") from what follows. Beside Han, between words (a picture
# may be read without blanks) or beside a sign it means nothing.
_BLANK = re.compile(r"(?<=\d) (?=\d)|(?<=[.~/:-]) | (?=[.~/:-])")
_AFTER_MEASURE = re.compile(r"(?<=[\"']) ")
_BESIDE_SIGN = re.compile(r" (?=[+%°<>=≥≤])|(?<=[+¥$€£<>=≥≤]) ")


@cache
def word_lists() -> dict[str, Any]:
    """Return the closed lists of words as in their file: words separated by blanks, and tables of them."""
    return tomllib.loads((resources.files("agent_core.reply.sureness") / "words.toml").read_text(encoding="utf-8"))


def stripped(text: str) -> str:
    """Return what equal questions have in common: ``text`` as NFKC in lower case, without blanks and meaningless words.

    Those are plain punctuation, greetings, politeness and closing particles. Marks in a number or a model's name stay,
    and so does every other sign: "1.5米" and "15米", "Pro" and "Pro+", "13 4" and "134" are not equal. A text of
    nothing but politeness gives "", and so does one without a letter or a digit.
    """
    return _close(spaced(text))


@lru_cache(maxsize=4096)  # a customer's words are compared with every question of every record
def spaced(text: str) -> str:
    """Return the same as ``stripped``, with a blank between words that a blank or punctuation separates."""
    found = _runs(text)
    polite = {number for number, (run, apart) in enumerate(found) if _is_politeness(run, apart=apart)}
    beside = {number + step for number in polite for step in (-1, 1)}  # "老板 麻烦问下"
    polite |= {number for number in beside & set(range(len(found))) if _is_politeness(found[number][0], apart=True)}
    polite |= set(range(_first_said(found, polite)))
    runs = [run for number, (run, _) in enumerate(found) if number not in polite]
    while runs and (rest := _without_start(runs[0])) != runs[0]:
        runs = [rest, *runs[1:]] if rest and not _is_politeness(rest, apart=False) else runs[1:]
    while runs and (rest := _without_end(runs[-1])) != runs[-1]:
        runs = [*runs[:-1], rest] if rest and not _is_politeness(rest, apart=False) else runs[:-1]
    return " ".join(runs) if any(char.isalnum() for run in runs for char in run) else ""


def is_politeness(text: str) -> bool:
    """Tell whether ``text`` says nothing that an answer could depend on."""
    return not stripped(text)


def acknowledges(text: str) -> bool:
    """Tell whether ``text`` closes its own question: "能退吗", "知道了"."""
    found = _runs(text)
    polite = {number for number, (run, apart) in enumerate(found) if _is_politeness(run, apart=apart)}
    return any(_acknowledging().fullmatch(run) for run, _ in found[_first_said(found, polite) :])


def _first_said(found: Sequence[tuple[str, bool]], polite: Collection[int]) -> int:
    """Return the index of the first run with a meaning. An acknowledgement before it counts as politeness."""
    says = (at for at, (run, _) in enumerate(found) if at not in polite and not _acknowledging().fullmatch(run))
    return next(says, len(found))


def without_politeness(text: str) -> str:
    """Return ``text`` as written, but without purely polite clauses and polite words at its beginning and end.

    The rest means the same: its stripped form is that of ``text``.
    """
    rest = "".join(clause for clause in _CLAUSE.findall(text) if stripped(clause)).strip()
    while (shorter := _before().sub("", rest, count=1).lstrip()) != rest:
        rest = shorter
    rest = _polite_end().sub("", rest)
    return rest if stripped(rest) == stripped(text) else text.strip()


def _runs(text: str) -> list[tuple[str, bool]]:
    """Return the runs between blanks and plain punctuation, each with whether marks or ends are on both sides."""
    folded = unicodedata.normalize("NFKC", text.translate(_FORMS)).lower().translate(_FORMS)
    folded = "".join(char for char in folded if unicodedata.category(char) != "Cf" and char != "\ufe0f")
    for phrase in _phrases():
        folded = folded.replace(phrase.replace("_", " "), phrase)
    told = {match.start() + index for match in _TELLING.finditer(folded) for index in range(len(match[0]))}
    smiles = _smiles()

    def says_nothing(at: int) -> bool:
        char = folded[at]
        return char.isspace() or char in smiles or (char in _PUNCTUATION and at not in told)

    pieces = [
        (plain, "".join(folded[at] for at in places)) for plain, places in groupby(range(len(folded)), key=says_nothing)
    ]
    ends = _PARTS | smiles
    found = []
    for number, (plain, run) in enumerate(pieces):
        gaps = [pieces[beside][1] for beside in (number - 1, number + 1) if 0 <= beside < len(pieces)]
        if not plain:
            found.append((run, all(ends & set(gap) for gap in gaps)))
    return found


def _is_politeness(run: str, *, apart: bool) -> bool:
    """Tell whether ``run`` consists only of greetings and politeness.

    Words that also name somebody ("老板") count only if they are separate.
    """
    return _alone(apart).fullmatch(run) is not None


def _without_start(run: str) -> str:
    shorter = _before().sub("", run, count=1)
    return shorter if shorter == run else shorter.lstrip(".~")  # "你好~15号": the mark belongs to the greeting


def _without_end(run: str) -> str:
    shorter = _behind().sub("", run, count=1)
    if shorter == run and not run.endswith(tuple(_list("kept_endings"))):
        shorter = next((run[: -len(end)] for end in _list("closing_particles") if run.endswith(end)), run)
    return shorter


def _close(text: str) -> str:
    """Return single-spaced words without the blanks that mean nothing."""
    kept = {match.start() for match in _BLANK.finditer(text) if not _beside_han(text, match.start())}
    kept |= {match.start() for match in _AFTER_MEASURE.finditer(text)}
    kept -= {match.start() for match in _BESIDE_SIGN.finditer(text)}
    return unicodedata.normalize("NFKC", "".join(char for at, char in enumerate(text) if char != " " or at in kept))


def _beside_han(text: str, at: int) -> bool:
    return is_han(text[at - 1]) or is_han(text[at + 1])


def is_han(char: str) -> bool:
    return "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or char >= "\U00020000"


@cache
def _phrases() -> list[str]:
    """Return the phrases of several words, with "_" for their blanks, the longest first."""
    words = _list("polite") + _list("acknowledging")
    return sorted((word for word in words if "_" in word), key=len, reverse=True)


@cache
def _smiles() -> frozenset[str]:
    return frozenset("".join(_list("smiles")))


@cache
def _alone(apart: bool) -> re.Pattern[str]:
    words = _list("polite") + (_list("addressed") if apart else [])
    return re.compile(rf"(?:(?:{_any(words)})[啊呀哦啦哈哟~]*)+")


@cache
def _acknowledging() -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{_any(_list('acknowledging'))})[啊呀哦啦哈哟~]*)+")


@cache
def _before() -> re.Pattern[str]:
    return re.compile(rf"^(?:{_any(_list('opening'))})(?:(?<!下)|(?![单午个次周月载]))")


@cache
def _behind() -> re.Pattern[str]:
    return re.compile(rf"(?<=[{HAN}])(?<![不说用])(?:{_any(_list('closing'))})$")


@cache
def _polite_end() -> re.Pattern[str]:
    return re.compile(rf"[,，\s]*(?:{_any(_list('closing'))}|thanks)[\s。.!！~～]*$", re.IGNORECASE)


@cache
def _list(name: str) -> list[str]:
    words: list[str] = word_lists()[name].split()
    return words


def _any(words: Sequence[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
