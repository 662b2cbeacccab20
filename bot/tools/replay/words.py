"""The words for a recorded run, in a terminal as on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_core.loop.trajectory import Message, picture_in
from agent_core.session import StepRecord, StepVerdict
from agent_core.texts import say
from bot.channels.chat import run_cards
from bot.channels.chat.cards import took_words
from bot.channels.chat.history import past_lines
from bot.channels.chat.run_cards import describe_action, error_lines, state_of
from bot.channels.chat.sweeps import left_lines, message_in_words, outcome_line
from bot.channels.chat.texts import Texts
from bot.desk.history_views import PastRun, RecordingView
from bot.desk.views import RunStatus, RunView


def action_of(data: Mapping[str, Any] | None, words: Texts) -> str:
    """Return an action in words, "" for none."""
    return describe_action(words, StepRecord(index=0, action=dict(data))) if data else ""


def ruled(verdict: StepVerdict, words: Texts) -> str:
    """Return the decision of a rule, and the rule, with a label before it."""
    return words.get("card.gate") + words.get("common.colon") + run_cards.ruled(verdict, words)


def result_of(step: StepRecord) -> str:
    """Return a step's result without what its verdicts say.

    It is "" if it only says that it was done, which is for the model: a person sees it.
    """
    bare = {say("zh", "run.done"), say("en", "run.done")}
    result = step.result.removeprefix(" ".join(verdict.message for verdict in step.verdicts if verdict.message)).strip()
    return "" if step.ok and result in bare else result


def is_for_model(step: StepRecord) -> bool:
    """Tell whether a step's result is worded for the model, so that people are told so."""
    return step.unread or (step.action or {}).get("kind") == "get_knowledge_data"


def outcome_of(run: RunView, words: Texts) -> list[str]:
    """Return the run's outcome, in its own words, one line each.

    If it failed, also its meaning and what to do; if it was stopped, whom it left without an answer. Of a sweep first
    what became of its contacts, and whom it left out.
    """
    failed = run.status is RunStatus.FAILED
    swept = [outcome_line(run.status, run.sweep, words)] if run.sweep is not None else []
    if run.sweep is not None and run.sweep.looked is not None:
        started = len(run.sweep.contacts)
        swept += left_lines(run.sweep.details, words, looked=run.sweep.looked, started=started)
    message = message_in_words(run, words) or (words.get("plan.interrupted") if failed and run.plan is not None else "")
    lines = error_lines(run.error_kind, words, message) if failed and run.error_kind and not run.left_to else []
    left = run_cards.unanswered_words(run.unanswered, words, some=bool(run.replies)) if run.unanswered else ""
    return [line for line in (*swept, words.typed(message), *lines, left) if line]


def no_steps(run: RunView, words: Texts) -> str:
    """Return why a run has no steps to show: it never began, has done none yet, or they are not kept any more."""
    if not run.status.final:
        return words.get("replay.steps_to_come")
    return words.get("replay.never_began" if run.started_at is None else "replay.steps_gone")


def part_of(part: PastRun, words: Texts) -> tuple[str, str]:
    """Return a listed part of a plan or a sweep: its time and outcome; and its task with the result."""
    head, said = past_lines(replace(part, plan=0, by=""), words, whole=True)
    return head.text, said.text


def facts_of(view: RecordingView, words: Texts) -> list[str]:
    """Return outcome, phone, who asked, the duration, the models, and the recording's size on disk."""
    run = view.run
    seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
    models = dict.fromkeys(f"{step.asked.model} ({step.asked.profile})" for step in view.steps if step.asked)
    facts = [
        words.get(state_of(run.status, left_to=run.left_to)),
        run.phone or run.serial,
        run_cards.started_by(run, words),
        took_words(seconds, words),
        *models,
    ]
    records = [step.record for step in view.steps]
    tokens_in, tokens_out = sum(step.tokens_in for step in records), sum(step.tokens_out for step in records)
    if tokens_in or tokens_out:
        facts.append(words.get("replay.tokens", tokens_in=tokens_in, tokens_out=tokens_out))
    if view.recorded:
        facts.append(words.get("replay.stored", size=stored_bytes(view) / 1024 / len(view.recorded)))
    return [fact for fact in facts if fact]


def stored_bytes(view: RecordingView) -> int:
    """Return the size of the recording: the requests, and each picture once."""
    pictures = {step.asked.picture: len(step.picture) for step in view.recorded if step.asked and step.picture}
    return sum(step.stored for step in view.recorded) + sum(pictures.values())


def role_word(message: Message, words: Texts) -> str:
    return words.find(f"replay.role_{message.get('role', '')}", str(message.get("role", "")))


def text_of_message(message: Message, words: Texts) -> str:
    """Return the message's words; a picture is only named."""
    content = message.get("content")
    if not isinstance(content, list):
        return str(content or "")
    return "\n\n".join(
        str(part.get("text", "")) if picture_in(part) is None else words.get("replay.picture") for part in content
    )
