"""When is a task a reply task, for which app and which contact: decided by the task's text, by code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent_core.apps.profile import AppProfile, profiles

_SERVICE = re.compile(r"智能客服|回复|GET_KNOWLEDGE_DATA|联系人\s*\S|\breply\b|\banswer\b", re.IGNORECASE)
_QUOTED = re.compile(r"(?:联系人|contact)\s*[“\"'「『]([^”\"'」』]+)[”\"'」』]", re.IGNORECASE)
_PLAIN = re.compile(r"(?:联系人|\bcontact\b)\s*[:：]?\s*([^\s，。,;；!！?？、：:的“”\"']+)", re.IGNORECASE)

_WITH_OF = re.compile(_PLAIN.pattern.replace("的", ""), re.IGNORECASE)
_PRONOUNS = frozenset("我你他她它咱")  # "我的小店" is a name
_MORE = re.compile(r"然后|并(?=[说回发把且告])|再(?=[说回发把告])")  # what is to be done besides is no part of a name


@dataclass(frozen=True, slots=True)
class ReplyTask:
    profile: AppProfile
    contact: str  # "" where the text names none


def contact_of(task: str, known: Iterable[str] = ()) -> str:
    """The contact that the text names: ``联系人11``, ``联系人 11``, ``联系人“某某的店”``; "" for none.

    Without quotes it is not told where a name ends: one of the ``known`` contacts that stands there is taken whole.
    """
    quoted = _QUOTED.search(task)
    if quoted:
        return quoted.group(1).strip()
    found = _PLAIN.search(task)
    if found and found.group(1) in _PRONOUNS:
        found = _WITH_OF.search(task) or found
    if found is None:
        return ""
    words = found.group(1)
    named = _MORE.split(words)[0].strip() or words
    here = task[found.start(1) :]
    longer = [name for name in known if len(name) > len(named) and _begins_with(here, name)]
    return max(longer, key=len, default=named)


def _begins_with(text: str, name: str) -> bool:
    """Whether the whole ``name`` stands first; a longer Latin word or number is another one."""
    return text.startswith(name) and not re.match(r"[A-Za-z0-9]{2}", name[-1:] + text[len(name) : len(name) + 1])


def reply_task(task: str, *, certain: bool = False) -> ReplyTask | None:
    """The reply task that the text is, or None: an app with a profile is named, and a word of the reply flow.

    Of several apps the one that is named first. ``certain``: it is one, whatever its words.
    """
    if not certain and not _SERVICE.search(task):
        return None
    named = [(place, candidate) for candidate in profiles() if (place := _place(candidate, task)) is not None]
    return ReplyTask(min(named, key=lambda pair: pair[0])[1], contact_of(task)) if named else None


def _place(profile: AppProfile, task: str) -> int | None:
    """Where the app is named first; a name inside that of another app (企业微信) is none of it."""
    for other in profile.unlike:
        task = re.sub(_name_pattern(other), "\0" * len(other), task, flags=re.IGNORECASE)
    found = (re.search(_name_pattern(name), task, re.IGNORECASE) for name in (profile.name, *profile.aliases))
    return min((match.start() for match in found if match), default=None)


def _name_pattern(name: str) -> str:
    # A Latin name must not be part of a longer Latin word; Chinese around it is no hindrance.
    return rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])" if name.isascii() else re.escape(name)
