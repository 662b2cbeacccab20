"""The texts for a planner, in its language. See ``prompts``.

How it should plan may be in the owner's own words: ``planner/LANG.txt`` of their own folder.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from agent_core.owner import folder as own
from agent_core.texts import LANGUAGES, Lang, weekday


@dataclass(frozen=True, slots=True)
class PlannerTexts:
    """The texts in one language.

    system, rules, always: hold ``$steps``, ``$date``, ``$weekday``. ``rules``, how to plan, may be the owner's own.
    only: holds ``$phone``; precedes a message that is about one phone.
    bad_arguments, max_turns and the others: are told to the model, or to whoever asked; they hold ``$phone``, ``$why``,
    ``$contact``, ``$text``, ``$id``.
    cut_off: the record of an unfinished plan in the conversation; ``$done`` is lines of ``cut_off_part``, or
    ``cut_off_nothing``.
    states: of a part, by the status of its run.
    tools: by name, ``what`` it does and each parameter's meaning.
    """

    system: str
    rules: str
    always: str
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
def texts(lang: Lang) -> PlannerTexts:
    source = resources.files("agent_core.planner").joinpath("prompts", f"{lang}.toml")
    return PlannerTexts(**tomllib.loads(source.read_text(encoding="utf-8")))


_FILLED_IN = frozenset({"date", "weekday", "steps"})


def instructions(lang: Lang, date: str, steps: int) -> str:
    """Return the planner's system prompt.

    date: today, as YYYY-MM-DD.
    steps: the most steps of an executor call.
    """
    words = texts(lang)
    rules = _own_rules(own.key()).get(lang, words.rules)
    whole = "\n\n".join(part.strip() for part in (words.system, rules, words.always))
    return string.Template(whole).substitute(date=date, weekday=weekday(lang, date), steps=steps)


@cache
def _own_rules(_: Path | None) -> Mapping[str, str]:
    return {name: rules_in(read) for name, read in own.sources(own.Part.PLANNER).items()}


def rules_in(read: own.OwnerSource) -> str:
    """Return the owner's rules for planning. Raises OwnWrong if the file's name or a placeholder is wrong."""
    if read.name not in LANGUAGES:
        raise read.wrong("own_planner_name", "it is named zh.txt or en.txt")
    return own.template(read, _FILLED_IN)
