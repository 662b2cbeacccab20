"""Covers a recording for people and for other models. The stored data are raw."""

from __future__ import annotations

from dataclasses import replace

from agent_core.loop.trajectory import covered_messages, covered_picture, covered_request, secrets_of
from agent_core.perception.redaction import Secrets, covered_text, figures_in, tells_secret
from agent_core.session import Session, StepRecord
from bot.desk.history_views import RecordedStep, RecordingView

WORDS = ("thinking", "reply", "result", "followed")  # a step's texts that are part of later requests


def covered(view: RecordingView) -> RecordingView:
    """Return the same run with secrets covered, in pictures and in everything that a model was or will be asked."""
    secrets, raw = Secrets(), [step.asked for step in view.steps if step.asked and step.asked.raw]
    for asked in raw:
        secrets |= secrets_of(asked)
    steps = tuple(_covered(step, secrets) for step in view.steps) if raw else view.steps
    return replace(view, steps=steps, session=_covered_past(view.session, secrets))


def _covered_past(session: Session, secrets: Secrets) -> Session:
    """Cover the past in another model's prompt: it is written from the steps, which are stored as they were."""
    told = [text for step in session.steps for text in _words(step) if tells_secret(text, step.package)]
    if not (secrets := secrets | figures_in(told)):
        return session
    steps = [
        step.model_copy(
            update={name: covered_text(text, secrets) for name, text in zip(WORDS, _words(step), strict=True)}
        )
        for step in session.steps
    ]
    return session.model_copy(update={"steps": steps})


def _words(step: StepRecord) -> tuple[str, ...]:
    return tuple(getattr(step, name) for name in WORDS)


def _covered(step: RecordedStep, secrets: Secrets) -> RecordedStep:
    if step.asked is None:
        return step
    # Words from one screen may be in the messages of a later one.
    messages = tuple(covered_messages(step.messages, step.asked, secrets))
    picture = covered_picture(step.picture, step.asked) if step.picture else None
    return replace(step, asked=covered_request(step.asked, secrets), messages=messages, picture=picture)
