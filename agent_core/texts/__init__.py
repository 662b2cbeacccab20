"""The agent's texts for the model and for people, in both languages. Each file has the same keys."""

from __future__ import annotations

import json
import locale
import os
import re
import string
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date as Date  # noqa: N812 - a value here is called date
from functools import cache
from importlib import resources
from typing import Any, Literal

from agent_core.errors import MODEL_NAMES, PhonedeskError

Lang = Literal["zh", "en"]
LANGUAGES: tuple[Lang, ...] = ("zh", "en")
_AT = re.compile(r"line (\d+), column (\d+)")  # as tomllib says it
_TWICE = re.compile(r"twice|overwrite|mutate|extend|Cannot add")
_BEGIN, _END = "\ufdd0", "\ufdd1"  # of a value while a text is filled; Unicode has no characters there
_EDGES = re.compile(f"[{_BEGIN}{_END}]")
_HAN = "[\u3400-\u9fff]"
_AGAINST_HAN = re.compile(f"(?<={_HAN}){_BEGIN}(?=[A-Za-z0-9])|(?<=[A-Za-z0-9]){_END}(?={_HAN})")
_ENDS = tuple("。！？：；…—.!?:;")  # of a sentence, or of what goes on


def language_of(code: str) -> Lang:
    """Return our language for an IETF tag such as ``zh-hans``; English for every language but Chinese."""
    return "zh" if code.lower().startswith("zh") else "en"


def system_language() -> Lang:
    """Return the language of the system's locale; Chinese if it names none.

    C, POSIX and no locale at all, as in most containers and services, say nothing about the reader; the phones, their
    apps and customers are Chinese then.
    """
    named = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    if not named and sys.platform in {"win32", "darwin"}:
        named = locale.getlocale()[0] or ""
    code = named.partition(".")[0].partition("@")[0].lower()
    if code in {"", "c", "posix"} or code.startswith("chinese"):  # as Windows calls it
        return "zh"
    return language_of(code)


def kept_language(kept: object, usual: Lang = "zh") -> Lang:
    """Return the language that was stored with a run or a schedule; ``usual`` if none was."""
    return "zh" if kept == "zh" else "en" if kept == "en" else usual


@cache
def load_texts(package: str, lang: Lang) -> Mapping[str, str]:
    """Return all texts of a language, from ``LANG.toml`` in ``package``, by ``section.key``."""
    raw = tomllib.loads(resources.files(package).joinpath(f"{lang}.toml").read_text(encoding="utf-8"))
    return {f"{section}.{key}": text for section, texts in raw.items() for key, text in texts.items()}


def catalogue(lang: Lang) -> Mapping[str, str]:
    """Return the agent's texts in this language, by ``section.key``."""
    return load_texts(__name__, lang)


def fault(error: PhonedeskError, lang: Lang) -> str:
    """Return what went wrong, without the advice.

    An error without a text says it in its own words, in English.
    """
    text = catalogue(lang).get(f"errors.{error.key}")
    if text is None:
        return error.message
    return filled(text, {name: _word(value, lang) for name, value in error.values.items()}, lang).partition("\n")[0]


def told(error: PhonedeskError, lang: Lang) -> str:
    """Return what went wrong and, on further lines, what to do about it.

    If a kind of error has one text, such as a model that cannot be reached, that text comes first.
    """
    texts = catalogue(lang)
    names = (error.key, error.kind.removeprefix("model."))
    text = next((texts[key] for name in names if (key := f"model.{name}") in texts), "{error}")
    if f"errors.{error.key}" not in texts and text == "{error}":
        return str(error)
    values = asdict(MODEL_NAMES) | {name: _word(value, lang) for name, value in error.values.items()}
    head, *advice = filled(text, {**values, "error": fault(error, lang)}, lang).split("\n")
    more = texts.get(f"errors.{error.key}", "").split("\n")[1:]
    others = error.values.get("others")
    if isinstance(others, tuple):
        said = sentences([fault(one, lang) for one in others], lang)
        head = sentences([head, say(lang, "model.others_failed", errors=said)], lang)
    if "proxy" in error.values and error.key != "proxy_form":
        advice.insert(0, filled(texts["model.by_proxy"], values, lang))
    return "\n".join([head, *advice, *(filled(line, values, lang) for line in more)])


def _word(value: object, lang: Lang) -> object:
    return fault(value, lang) if isinstance(value, PhonedeskError) else value


def is_said(said: str, lang: Lang, key: str, hole: str, **values: Any) -> bool:
    """Tell whether ``said`` is the text of ``key`` with these values.

    If ``hole`` is in the text, anything may take its place.
    """
    head, found, tail = say(lang, key, **{**values, hole: "\0"}).partition("\0")
    return said.startswith(head) and said.endswith(tail) if found else said == head


def rule_words(lang: Lang, policy: str) -> str:
    """Return the rule of the gate in words for a person; its name if the rule is not ours."""
    return catalogue(lang).get(f"rule.{policy}", policy)


def weekday(lang: Lang, date: str) -> str:
    """Return the name of the weekday of an ISO date; "" if ``date`` is none."""
    try:
        return say(lang, f"weekday.{Date.fromisoformat(date).isoweekday()}")
    except ValueError:
        return ""


def say(lang: Lang, key: str, **values: Any) -> str:
    """Return the text of ``key`` with ``values`` filled in.

    Raises KeyError for an unknown key: a text must not be missing.
    """
    return filled(catalogue(lang)[key], values, lang)


def sentences(parts: Iterable[str], lang: Lang) -> str:
    """Join sentences as the language does: in Chinese without a blank. A missing full stop before the next is added."""
    *first, last = [part for part in parts if part] or [""]
    stop, between = ("。", "") if lang == "zh" else (".", " ")
    ended = [part if part.rstrip("”’\"')）").endswith(_ENDS) else part + stop for part in first]
    return between.join([*ended, last])


class Listed(str):
    """Several words as one value of a text: separated as the text's language does it, by commas anywhere else."""

    __slots__ = ("items",)

    items: tuple[str, ...]

    def __new__(cls, items: Iterable[object]) -> Listed:
        words = tuple(item if isinstance(item, str) else str(item) for item in items)
        made = super().__new__(cls, ", ".join(words))
        made.items = words
        return made

    def joined(self, lang: Lang) -> str:
        """Return the words as a text of this language lists them."""
        words = [str(_in_language(item, lang)) for item in self.items]
        return ("、" if lang == "zh" else ", ").join(words)


class Worded(str):
    """One of the agent's texts as a value of another text: worded in that text's language, in English anywhere else."""

    __slots__ = ("key", "values")

    key: str
    values: Mapping[str, object]

    def __new__(cls, key: str, **values: object) -> Worded:
        made = super().__new__(cls, say("en", key, **values))
        made.key, made.values = key, values
        return made

    def said(self, lang: Lang) -> str:
        return say(lang, self.key, **self.values)


class NameIn(str):
    """A name that is another one in Chinese, as one value of a text: said in that text's language."""

    __slots__ = ("zh",)

    zh: str

    def __new__(cls, en: str, zh: str) -> NameIn:
        made = super().__new__(cls, en)
        made.zh = zh
        return made

    def said(self, lang: Lang) -> str:
        return self.zh if lang == "zh" else str(self)


def toml_problem(error: tomllib.TOMLDecodeError) -> Worded:
    """Describe the syntax error of a TOML file and its place; the library's own words are English."""
    kind = "twice" if _TWICE.search(str(error)) else "form"
    if (at := _AT.search(str(error))) is None:
        return Worded("toml.unfinished")
    return Worded(f"toml.{kind}", line=at[1], column=at[2])


def json_problem(error: ValueError) -> Worded:
    """Describe the place of a JSON syntax error."""
    if isinstance(error, json.JSONDecodeError):
        return Worded("json.at", line=error.lineno, column=error.colno)
    return Worded("json.form")


class _Filling(string.Formatter):
    """A ``str.format`` that also knows ``{count:reply|replies}``: one word for 1, another for any other number."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        if bar:
            return one if str(value) == "1" else many
        return f"{_BEGIN}{super().format_field(value, format_spec)}{_END}"


_filling = _Filling()


def cut(text: str, longest: int) -> str:
    """Return the text within ``longest`` characters, with an ellipsis if something was left out."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def filled(text: str, values: Mapping[str, Any], lang: Lang) -> str:
    """Return ``text``, which is in ``lang``, with ``values`` in its placeholders. KeyError for one without a value.

    A Latin letter or a digit of a value does not stand against a Chinese character of the text: a space comes between.
    """
    said = _filling.vformat(text, (), {name: _in_language(value, lang) for name, value in values.items()})
    return _EDGES.sub("", _AGAINST_HAN.sub(" ", said))


def _in_language(value: object, lang: Lang) -> object:
    if isinstance(value, Listed):
        return value.joined(lang)
    return value.said(lang) if isinstance(value, Worded | NameIn) else value
