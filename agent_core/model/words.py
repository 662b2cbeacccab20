"""The texts of the prompts: what holds for every model, and what its form of answers adds. See ``prompts``."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from agent_core.model.profile import Form, ModelProfile


@dataclass(frozen=True, slots=True)
class Texts:
    """What is said in one language, from ``prompts/<lang>.toml``; ``$launch`` and its like are a form's names."""

    system: str
    rules: str
    reply: str
    elements: str
    earlier: str
    left_out: str
    done: str
    failed: str
    unreadable: str
    none: str
    summary: str


@dataclass(frozen=True, slots=True)
class FormTexts:
    """What is said of one form of answers, from ``prompts/<form>/<lang>.toml``.

    ``actions``: an example and what it does, by name. ``answer_tools``: in place of ``answer`` where the actions are
    offered as tools; "" in a form that has none.
    """

    answer: str
    title: str
    names: Mapping[str, str]
    actions: Mapping[str, tuple[str, str]]
    answer_tools: str = ""


@cache
def texts(lang: str) -> Texts:
    return Texts(**_read(f"{lang}.toml"))


@cache
def form_texts(form: Form, lang: str) -> FormTexts:
    return FormTexts(**_read(form, f"{lang}.toml"))


def how_to_answer(profile: ModelProfile, lang: str) -> tuple[str, ...]:
    """The prompt's sections about the form of the answer and the actions.

    With tools too: an endpoint may refuse them, and a model may answer in words.
    """
    own = form_texts(profile.form, lang)
    lines = (" ".join(filter(None, (example, says))) for example, says in own.actions.values())
    return (own.answer_tools if profile.tools else own.answer, "\n".join((own.title, *lines)))


def summary_text(lang: str, **values: str | int) -> str:
    """What a model is asked for a summary with: ``task``, ``wish``, ``notes``, ``app``, ``page``, ``longest``."""
    words = texts(lang)
    filled_in = {key: str(value) or words.none for key, value in values.items()}
    return string.Template(words.summary).substitute(filled_in).strip()


def filled(text: str, profile: ModelProfile, lang: str, **values: str) -> str:
    """``text`` with the form's names of the actions, and ``values``."""
    return string.Template(text).substitute({**form_texts(profile.form, lang).names, **values})


def _read(*path: str) -> dict[str, Any]:
    source = resources.files("agent_core.model").joinpath("prompts", *path)
    return tomllib.loads(source.read_text(encoding="utf-8"))
