"""The messages for a model that was trained on the AutoGLM form.

One conversation: the system prompt, the task once, past steps as text, the newest screen with its picture. What stands
before the newest screen grows at its end only, and is condensed in blocks, so that a server's prefix cache holds.
"""

from __future__ import annotations

import json
import re
import string
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pydantic import TypeAdapter

from agent_core.actions.types import Action
from agent_core.actions.write import to_autoglm
from agent_core.apps import profile as apps
from agent_core.apps.profile import AppProfile
from agent_core.geometry import Point
from agent_core.model.pictures import Picture, PictureCache, picture_tokens
from agent_core.model.tokens import MESSAGE_TOKENS, text_tokens
from agent_core.screen.readings import Reading
from agent_core.session import Session, StepRecord

CONTEXT_TOKENS = 25_480  # AutoGLM-Phone's window
REPLY_TOKENS = 3_000
PICTURE_TOKENS = 1_600  # the least that is set aside; a half-size phone screen costs about 900
ELEMENTS_TOKENS = 3_500  # all elements together; what does not fit is left out from the end
BLOCK = 10  # steps that are condensed at once
AFTER_CONDENSING = 0.6  # of the budget: how full it may be after condensing, so that it happens rarely
CONDENSED_SHARE = 0.3  # of the budget, for the one-liners
LONGEST_THINKING = 500  # characters of a past step's thinking
LONGEST_OBSERVATION = 800
LONGEST_LINE = 90
LONGEST_TEXT = 300  # of one element

_THINK = re.compile(r"<think>(.*?)(?:</think>|$)", re.IGNORECASE | re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"</?(?:think|answer)>|<\|(?:begin|end)_of_box\|>", re.IGNORECASE)

_ACTION: TypeAdapter[Action] = TypeAdapter(Action)

Message = dict[str, Any]
_pictures = PictureCache()


@dataclass(frozen=True, slots=True)
class Texts:
    """The prompt's texts in one language, from ``prompts/<lang>.toml``."""

    system: str
    reply: str
    elements: str
    earlier: str
    left_out: str
    done: str
    failed: str
    unreadable: str
    none: str


@cache
def texts(lang: str) -> Texts:
    source = resources.files("agent_core.model").joinpath("prompts", f"{lang}.toml")
    return Texts(**tomllib.loads(source.read_text(encoding="utf-8")))


def app_name(package: str | None) -> str:
    """The app's name as the prompt shows it: the profile's, else the package."""
    known = apps.profile_of_package(package)
    return known.name if known else package or ""


def system_prompt(session: Session, profile: AppProfile | None = None, *, elements: bool = False) -> str:
    """The system prompt of this run: the same bytes at each of its steps."""
    words = texts(session.lang)
    sections = [string.Template(words.system).substitute(date=session.date)]
    if elements:
        sections.append(words.elements)
    if session.gate.enabled:
        app = _task_app(session, profile)
        forbidden = "、".join(app.ai_entries) if app else ""
        sections.append(
            string.Template(words.reply).substitute(
                app=app.name if app else session.gate.app,
                contact=session.gate.contact,
                forbidden=forbidden or words.none,
            )
        )
    return "\n".join(section.strip() for section in sections)


def _task_app(session: Session, profile: AppProfile | None) -> AppProfile | None:
    """The task's app, not the one in front: the prefix must not change with the screen."""
    return next((known for known in apps.profiles() if known.key == session.gate.app), profile)


def build_messages(
    session: Session,
    *,
    current_app: str,
    picture: Picture | None,
    elements: Sequence[Reading] | None,
    profile: AppProfile | None,
    size: tuple[int, int] | None = None,
    max_context_tokens: int = CONTEXT_TOKENS,
    max_tokens: int = REPLY_TOKENS,
) -> list[Message]:
    """The messages of the next request, within ``max_context_tokens`` with a reply of ``max_tokens``.

    ``current_app`` is the name of the app in front. ``elements`` None: not shown. Their boxes are pixels of the
    picture, or of a screen of ``size`` (width, height) where there is no picture. ``profile`` is the reply task's app,
    used where the gate's app has no profile of its own.
    """
    shown = size or (picture.image.size if picture is not None else None)
    if elements is not None and shown is None:
        raise ValueError("elements without a picture need the size of the screen")
    system = {"role": "system", "content": system_prompt(session, profile, elements=elements is not None)}
    info: dict[str, Any] = {"current_app": current_app}
    if session.steps:
        info["last_observation"] = _cut(session.observation or session.steps[-1].result, LONGEST_OBSERVATION)
    if elements is not None and shown is not None:
        info["elements"] = _elements(elements, shown)
    first_app = app_name(session.steps[0].package) if session.steps and session.steps[0].package else current_app
    budget = max_context_tokens - max_tokens - _reserve(picture, elements) - text_tokens(system["content"])
    if not session.steps:
        return [system, _user(f"{session.task}\n\n{_json(info)}", picture)]
    opening = _user(f"{session.task}\n\n{_json({'current_app': first_app})}", None)
    budget -= text_tokens(session.task) + LONGEST_OBSERVATION + 100
    return [system, opening, *_history(session, budget), _user(f"** Screen Info **\n\n{_json(info)}", picture)]


def _reserve(picture: Picture | None, elements: Sequence[Reading] | None) -> int:
    # Fixed amounts: what is condensed must depend on the past alone, or it would change back and forth.
    pictures = max(PICTURE_TOKENS, picture_tokens(picture.image.size)) if picture is not None else PICTURE_TOKENS
    return pictures + (ELEMENTS_TOKENS if elements is not None else 0)


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)


def _user(text: str, picture: Picture | None) -> Message:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if picture is not None:
        parts.insert(0, {"type": "image_url", "image_url": {"url": _pictures.url(picture)}})
    return {"role": "user", "content": parts}


def _elements(readings: Sequence[Reading], size: tuple[int, int]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    room = ELEMENTS_TOKENS
    for reading in sorted(readings, key=lambda r: (r.box.top, r.box.left)):
        if not reading.text.strip() and not reading.role:
            continue
        center = reading.box.center
        x, y = Point(max(0, center.x), max(0, center.y)).to_relative(size)
        entry: dict[str, Any] = {"text": _cut(reading.text, LONGEST_TEXT), "x": x, "y": y}
        if reading.role:
            entry["role"] = reading.role
        room -= text_tokens(_json(entry)) + 2
        if room < 0:
            break
        listed.append(entry)
    return listed


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _history(session: Session, budget: int) -> list[Message]:
    """Past steps: the oldest as one-liners in the first turn, the others as turns of their own."""
    words = texts(session.lang)
    turns = [_turn(session.steps, index, words) for index in range(len(session.steps))]
    costs = [sum(text_tokens(text) + MESSAGE_TOKENS for text in turn) for turn in turns]
    lines = [_line(step, words) for step in session.steps]
    line_costs = [text_tokens(line) + 2 for line in lines]
    condensed, left_out = _condensed_at(costs, line_costs, budget)
    messages: list[Message] = []
    for index in range(max(0, condensed - 1), len(turns)):
        reply, info = turns[index]
        if index == condensed - 1:
            reply = (
                f"<think>{_earlier(lines[left_out:condensed], condensed, left_out, words)}</think>{_answer_of(reply)}"
            )
        messages.append({"role": "assistant", "content": reply})
        if info:
            messages.append(_user(info, None))
    return messages


def _condensed_at(costs: Sequence[int], line_costs: Sequence[int], budget: int) -> tuple[int, int]:
    """How many of the oldest steps are condensed, and how many of these are left out; both grow in blocks only.

    Played through from the first step, so that the outcome at each step is the one of all requests before.
    """
    condensed = left_out = 0
    spent = 0
    for step in range(len(costs)):
        spent += costs[step]
        lines = sum(line_costs[left_out:condensed])
        if spent + lines <= budget:
            continue
        while condensed + BLOCK <= step and spent + lines > budget * AFTER_CONDENSING:
            spent -= sum(costs[condensed : condensed + BLOCK])
            condensed += BLOCK
            lines = sum(line_costs[left_out:condensed])
        while left_out + BLOCK <= condensed and lines > budget * CONDENSED_SHARE:
            left_out += BLOCK
            lines = sum(line_costs[left_out:condensed])
    return condensed, left_out


def _turn(steps: Sequence[StepRecord], index: int, words: Texts) -> tuple[str, str]:
    """The assistant's text of this step, and the Screen Info that followed it (empty for the last step)."""
    step = steps[index]
    if index + 1 == len(steps):
        return _assistant(step, words), ""
    following = steps[index + 1]
    info = {
        "current_app": app_name(following.package),
        "last_observation": _cut(step.result, LONGEST_OBSERVATION),
    }
    return _assistant(step, words), f"** Screen Info **\n\n{_json(info)}"


def _assistant(step: StepRecord, words: Texts) -> str:
    thinking, answer = _split(_reply_of(step))
    thinking = _cut((thinking or step.thinking).strip(), LONGEST_THINKING)
    return f"<think>{thinking}</think><answer>{_cut(answer.strip() or words.none, LONGEST_OBSERVATION)}</answer>"


def _reply_of(step: StepRecord) -> str:
    """What the model said; for a step that was decided without it, the call that it would have said."""
    if step.reply or step.action is None:
        return step.reply
    return to_autoglm(_ACTION.validate_python(step.action))


def _split(reply: str) -> tuple[str, str]:
    thought = _THINK.search(reply)
    answered = _ANSWER.search(reply, thought.end() if thought else 0)
    if answered is not None:
        answer = answered.group(1)
    else:
        answer = reply[thought.end() :] if thought else reply
    return (thought.group(1) if thought else "", _TAGS.sub("", answer))


def _answer_of(turn: str) -> str:
    return turn[turn.rindex("<answer>") :]


def _line(step: StepRecord, words: Texts) -> str:
    readable = step.asked is not None or not step.reply
    answer = " ".join(_split(_reply_of(step))[1].split()) if readable else words.unreadable
    outcome = words.done if step.ok else words.failed
    return f"{step.index}. {_cut(answer or words.none, LONGEST_LINE)} → {outcome}"


def _earlier(lines: Sequence[str], condensed: int, left_out: int, words: Texts) -> str:
    head = [string.Template(words.earlier).substitute(count=condensed)]
    if left_out:
        head.append(string.Template(words.left_out).substitute(count=left_out))
    return "\n".join((*head, *lines))
