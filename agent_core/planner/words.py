"""What a planner is told, in its language. See ``prompts``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Lang = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Texts:
    """``system`` holds ``$steps``, ``$date``; ``tools``: by name, ``what`` it does and each parameter's meaning.

    ``only`` holds ``$phone``: it stands before a message that is about one phone. ``bad_arguments``, ``max_turns`` and
    the others are told to the model, or to who asked; ``$phone``, ``$why``, ``$contact``, ``$text``, ``$id`` stand in
    them.
    ``cut_off``: what the conversation keeps of a plan that did not come to its end, ``$done`` being lines of
    ``cut_off_part``, or ``cut_off_nothing``. ``states``: of a part, by the status of its run.
    """

    system: str
    only: str
    bad_arguments: str
    tool_failed: str
    max_turns: str
    stopped: str
    nothing_said: str
    interrupted: str
    crashed: str
    busy: str
    meanwhile: str
    no_phone: str
    sent: str
    waits: str
    cut_off: str
    cut_off_part: str
    cut_off_nothing: str
    states: Mapping[str, str]
    tools: Mapping[str, Mapping[str, str]]


@cache
def texts(lang: Lang) -> Texts:
    source = resources.files("agent_core.planner").joinpath("prompts", f"{lang}.toml")
    return Texts(**tomllib.loads(source.read_text(encoding="utf-8")))
