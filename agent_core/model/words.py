"""The texts of the prompts: what holds for every model, and what its form of answers adds. See ``prompts``.

An owner's system prompt, for one profile and language, is in ``prompts`` of their own folder.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from agent_core.model.profile import Form, ModelProfile, model_profiles
from agent_core.model.usage import text_tokens
from agent_core.owner import folder as own
from agent_core.texts import LANGUAGES, Listed

_FILLED_IN = frozenset({"date", "weekday"})
_LARGEST_SHARE = 0.5  # of a model's window: the most that an own prompt may take


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The texts in one language, from ``prompts/<lang>.toml``; ``$launch`` and the like are a form's names.

    ``system`` and ``rules`` tell a model its work; ``screen`` says what each turn holds, and that texts on the screen
    are not orders.
    """

    system: str
    screen: str
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
    """The texts about one form of answers, from ``prompts/<form>/<lang>.toml``.

    actions: by name, an example and what it does.
    answer_tools: replaces ``answer`` if the actions are offered as tools; "" in a form that has none.
    """

    answer: str
    title: str
    names: Mapping[str, str]
    actions: Mapping[str, tuple[str, str]]
    answer_tools: str = ""


@cache
def texts(lang: str) -> PromptTexts:
    return PromptTexts(**_read(f"{lang}.toml"))


@cache
def form_texts(form: Form, lang: str) -> FormTexts:
    return FormTexts(**_read(form, f"{lang}.toml"))


def own_prompt(profile: ModelProfile, lang: str) -> str:
    """Return the owner's system prompt for this profile, with ``$date`` and ``$weekday``; "" if there is none."""
    return _own_prompts(own.key()).get(f"{profile.name}.{lang}", "")


@cache
def _own_prompts(_: Path | None) -> dict[str, str]:
    return {name: prompt_in(read) for name, read in own.sources(own.Part.PROMPTS).items()}


def prompt_in(read: own.OwnerSource) -> str:
    """Return an owner's system prompt. Raises OwnWrong if its name, a placeholder or its length is wrong."""
    name, _, lang = read.name.rpartition(".")
    known = {profile.name: profile for profile in model_profiles()}
    if lang not in LANGUAGES or name not in known:
        names = Listed(sorted(known))
        message = f"it is named PROFILE.zh.txt or PROFILE.en.txt, PROFILE being one of {names}"
        raise read.wrong("own_prompt_name", message, known=names)
    text = own.template(read, _FILLED_IN)
    if text_tokens(text) > (most := int(known[name].context_tokens * _LARGEST_SHARE)):
        message = f"it takes {text_tokens(text)} tokens of the model's window; {most} at most"
        raise read.wrong("own_prompt_long", message, tokens=str(text_tokens(text)), most=str(most))
    return text


def own_actions(profile: ModelProfile, lang: str, prompt: str) -> str:
    """Return how to write the actions that a reply needs, except those that the owner's prompt already names."""
    form = form_texts(profile.form, lang)
    needed = {form.names[name] for name in ("knowledge", "type_name")}
    return "\n".join(" ".join(form.actions[name]) for name in sorted(needed) if name not in prompt)


def how_to_answer(profile: ModelProfile, lang: str) -> tuple[str, ...]:
    """Return the prompt's sections about the form of the answer and the actions.

    They are needed with tools, too: an endpoint may refuse tools, and a model may answer in words.
    """
    own = form_texts(profile.form, lang)
    lines = (" ".join(filter(None, (example, says))) for example, says in own.actions.values())
    return (own.answer_tools if profile.tools else own.answer, "\n".join((own.title, *lines)))


def summary_text(lang: str, **values: str | int) -> str:
    """Return the request for a summary. values: ``task``, ``wish``, ``notes``, ``app``, ``page``, ``longest``."""
    words = texts(lang)
    filled_in = {key: str(value) or words.none for key, value in values.items()}
    return string.Template(words.summary).substitute(filled_in).strip()


def filled(text: str, profile: ModelProfile, lang: str, **values: str) -> str:
    """Return ``text`` with the form's names of the actions, and ``values``, filled in."""
    return string.Template(text).substitute({**form_texts(profile.form, lang).names, **values})


def _read(*path: str) -> dict[str, Any]:
    source = resources.files("agent_core.model").joinpath("prompts", *path)
    return tomllib.loads(source.read_text(encoding="utf-8"))
