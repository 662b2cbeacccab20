"""Describes problems with settings, in the user's language."""

from __future__ import annotations

from agent_core.errors import PhonedeskError
from agent_core.texts import Listed, Worded, sentences
from bot.app import logs
from bot.app.settings.loading import UNKNOWN, SettingProblem, SettingsWrong
from bot.app.settings.names import environment_name, names, nearest
from bot.app.settings.origin import Places
from bot.channels.chat.texts import Texts


def told(words: Texts, problem: SettingProblem, places: Places) -> dict[str, str]:
    """Return ``name``, ``where`` it is written, ``message`` and what may be ``meant``; "" for unknown ones."""
    meant = ""
    if problem.place:  # a field of one of the owner's files, or the whole file
        name = ".".join(problem.path)
        return {
            "name": name or problem.place,
            "where": problem.place if name else "",
            "message": reason(words, problem),
            "meant": "",
        }
    if problem.kind == UNKNOWN:
        near = nearest(environment_name(problem.path), [name.environment for name in names()])
        meant = next((name.key for name in names() if name.environment == near), "")
    place = next(iter(places.named(problem.path)), None) if problem.path else None
    where = words.get(f"config.from_{place.layer}", where=place.where) if place is not None else ""
    return {"name": ".".join(problem.path), "where": where, "message": reason(words, problem), "meant": meant}


def reason(words: Texts, problem: SettingProblem) -> str:
    """Return why a setting is wrong. A problem without a text is described in English."""
    if problem.kind == UNKNOWN:
        return words.get("config.unknown_field" if problem.place else "config.unknown")
    if problem.error is not None and words.find(f"errors.{problem.error.key}", ""):
        return logs.mask(_in_a_line(words, problem.error))
    key = f"wrong.{problem.kind}"
    if (problem.path or problem.place) and words.find(key, ""):
        # Our own texts show the form of an address with a password.
        return words.get(key, **{name: _shown(words, value) for name, value in problem.values.items()})
    return logs.mask(words.advice(f"{problem.message} {problem.advice}".strip()))


def _in_a_line(words: Texts, error: PhonedeskError) -> str:
    return sentences(words.error(error).splitlines(), words.lang)


def _shown(words: Texts, value: object) -> object:
    if isinstance(value, PhonedeskError):
        return logs.mask(_in_a_line(words, value))
    return _masked(value) if isinstance(value, str) and not isinstance(value, Worded) else value


def _masked(value: str) -> str:
    """Return a value without secrets; several, which pydantic writes as ``'a', 'b' or 'c'``, as a list."""
    if isinstance(value, Listed):
        return Listed(map(logs.mask, value.items))
    *parts, last = value.split(" or ")
    return Listed(map(logs.mask, [*", ".join(parts).split(", "), last])) if parts else logs.mask(value)


def summary(words: Texts, error: SettingsWrong) -> str:
    """Return all problems in one line, each with the place where it is written."""
    places, colon = Places(error.given), words.get("common.colon")
    said = []
    for one in (told(words, problem, places) for problem in error.problems):
        where = f" ({one['where']})" if one["where"] else ""
        meant = words.get("config.meant", name=one["meant"]) if one["meant"] else ""
        said += [f"{one['name']}{where}{colon}{one['message']}" if one["name"] else one["message"], meant]
    return sentences(said, words.lang)


def refusal(words: Texts, error: SettingsWrong) -> str:
    """Return everything that is wrong, on several lines."""
    lines = [words.get("config.refused" if error.refused else "config.unusable")]
    places = Places(error.given)
    for problem in error.problems:
        one = told(words, problem, places)
        # A value that was just given is not written anywhere yet.
        where = f"  ({one['where']})" if one["where"] and not error.refused else ""
        head = f"\u2717 {one['name']}{where}".rstrip()
        lines += [head, f"  {one['message']}"] if one["name"] else [f"\u2717 {one['message']}"]
        lines += ["  " + words.get("config.meant", name=one["meant"])] if one["meant"] else []
    return "\n".join(lines)
