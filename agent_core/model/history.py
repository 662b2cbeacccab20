"""Puts a run's past into a request: turns of the conversation, the oldest condensed in blocks; or a summary."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from agent_core.actions.types import Action
from agent_core.actions.write import to_autoglm, to_json
from agent_core.apps import profile as apps
from agent_core.model.profile import ModelProfile
from agent_core.model.usage import MESSAGE_TOKENS, text_tokens
from agent_core.model.words import PromptTexts, texts
from agent_core.session import Session, StepRecord
from agent_core.texts import cut

BLOCK = 10  # steps that are condensed at once
AFTER_CONDENSING = 0.6  # of the budget: how full it may be after condensing; a low value makes that rare
CONDENSED_SHARE = 0.3  # of the budget, for the one-line steps
LONGEST_THINKING = 500  # characters of a past step's thinking
LONGEST_OBSERVATION = 800
LONGEST_SUMMARY = 4_000
LONGEST_LINE = 90
LONGEST_ANSWER = 200  # of a person's answer, in such a line
RECALLED = 10  # past steps that are listed: those since the summary, and those with a person's answer

_THINK = re.compile(r"<think>(.*?)(?:</think>|$)", re.IGNORECASE | re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"</?(?:think|answer)>|<\|(?:begin|end)_of_box\|>", re.IGNORECASE)

_ACTION: TypeAdapter[Action] = TypeAdapter(Action)

Message = dict[str, Any]


def app_name(package: str | None) -> str:
    """Return the app's name as the prompt shows it: the profile's, else the package."""
    known = apps.profile_of_package(package)
    return known.name if known else package or ""


def as_json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)


def history(session: Session, profile: ModelProfile, budget: int) -> list[Message]:
    """Return the past steps: the oldest as one-liners in the first turn, the others as turns of their own."""
    words = texts(session.lang)
    turns = [_turn(session.steps, index, profile, words) for index in range(len(session.steps))]
    costs = [sum(text_tokens(text) + MESSAGE_TOKENS for text in turn) for turn in turns]
    lines = [_line(step, profile, words) for step in session.steps]
    line_costs = [text_tokens(line) + 2 for line in lines]
    condensed, left_out = _condensed_at(costs, line_costs, budget)
    # If steps are extremely long, the window matters more than a stable prefix. The newest condensed step is still a
    # turn, with the lines in place of its thinking.
    while condensed < len(turns) - 1:
        carrier = _carrier(session, turns, condensed - 1, profile) if condensed else 0
        if sum(costs[condensed:]) + sum(line_costs[left_out:condensed]) + carrier <= budget:
            break
        condensed += 1
    messages: list[Message] = []
    for index in range(max(0, condensed - 1), len(turns)):
        reply, info = turns[index]
        if index == condensed - 1:
            earlier = _earlier(lines[left_out:condensed], condensed, left_out, words)
            reply = _assistant(session.steps[index], profile, words, thinking=earlier)
        messages.append({"role": "assistant", "content": reply})
        if info:
            messages.append({"role": "user", "content": [{"type": "text", "text": info}]})
    return messages


def _carrier(session: Session, turns: Sequence[tuple[str, str]], index: int, profile: ModelProfile) -> int:
    """Return the tokens of the turn that carries the lines, without them."""
    bare = _assistant(session.steps[index], profile, texts(session.lang), thinking="…")
    return text_tokens(bare) + text_tokens(turns[index][1]) + 2 * MESSAGE_TOKENS


def _condensed_at(costs: Sequence[int], line_costs: Sequence[int], budget: int) -> tuple[int, int]:
    """Return how many of the oldest steps are condensed, and how many of these are left out; both grow in blocks only.

    It is replayed from the first step, so that each step gives the same result as in all requests before.
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


def _turn(steps: Sequence[StepRecord], index: int, profile: ModelProfile, words: PromptTexts) -> tuple[str, str]:
    """Return the assistant's text of this step, and the Screen Info that followed it (empty for the last step)."""
    step = steps[index]
    if index + 1 == len(steps):
        return _assistant(step, profile, words), ""
    following = steps[index + 1]
    info = {
        "current_app": app_name(following.package),
        "last_observation": told_of(step),
    }
    return _assistant(step, profile, words), f"** Screen Info **\n\n{as_json(info)}"


def told_of(step: StepRecord) -> str:
    """Return the message to the model about a step: its result, and a person's answer if there was one."""
    answer = cut(step.followed, LONGEST_OBSERVATION)
    room = LONGEST_OBSERVATION - len(answer) - 1
    result = step.result if not answer else cut(step.result, room) if room > 0 else ""
    return cut(" ".join(filter(None, (result, answer))), LONGEST_OBSERVATION)


def _assistant(step: StepRecord, profile: ModelProfile, words: PromptTexts, *, thinking: str = "") -> str:
    """Return the assistant's turn. ``thinking`` replaces the model's own."""
    thought, answer = _split(_reply_of(step, profile))
    thinking = thinking or cut((thought or step.thinking).strip(), LONGEST_THINKING)
    if profile.form == "json" and step.asked is not None:
        return to_json(_ACTION.validate_python(step.asked), thought=thinking, longest=LONGEST_OBSERVATION)
    answer = cut(answer.strip() or words.none, LONGEST_OBSERVATION)
    return f"<think>{thinking}</think><answer>{answer}</answer>"


def _reply_of(step: StepRecord, profile: ModelProfile) -> str:
    """Return the model's reply; for a step decided without it, the call that it would have made.

    That call is also used for a step of a model whose answers have another form.
    """
    if step.form not in {"", profile.form} and step.asked is not None:
        return to_autoglm(_ACTION.validate_python(step.asked))
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


def _line(step: StepRecord, profile: ModelProfile, words: PromptTexts) -> str:
    readable = step.asked is not None or not step.reply
    answer = " ".join(_split(_reply_of(step, profile))[1].split()) if readable else words.unreadable
    outcome = cut(" ".join(step.followed.split()), LONGEST_ANSWER) or (words.done if step.ok else words.failed)
    return f"{step.index}. {cut(answer or words.none, LONGEST_LINE)} → {outcome}"


def _earlier(lines: Sequence[str], condensed: int, left_out: int, words: PromptTexts) -> str:
    head = [string.Template(words.earlier).substitute(count=condensed)]
    if left_out:
        head.append(string.Template(words.left_out).substitute(count=left_out))
    return "\n".join((*head, *lines))


def recalled(session: Session, profile: ModelProfile) -> dict[str, Any]:
    """Return the past for a model that keeps its own summary: that summary, and one line per step since then.

    Steps with a person's answer stay, because the model may not have written it down.
    """
    words = texts(session.lang)
    kept = [step for at, step in enumerate(session.steps) if at >= session.summarised_at or step.followed]
    lines = [_line(step, profile, words) for step in kept[-RECALLED:]]
    summary = {"summary": cut(session.summary, LONGEST_SUMMARY)} if session.summary else {}
    return {**summary, **({"steps": lines} if lines else {})}
