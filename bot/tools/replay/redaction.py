"""A recording as people may see it, and as another model is asked for it. What is stored raw differs from it."""

from __future__ import annotations

from dataclasses import replace

from agent_core.loop.trajectory import covered_messages, covered_picture, covered_request, secrets_of
from agent_core.perception.redaction import COVER, Secrets, covered_text, figures_in, tells_secret
from agent_core.session import Session, StepRecord
from bot.desk.history_views import RecordedStep, RecordingView

__all__ = ["COVER", "covered"]

WORDS = ("thinking", "reply", "result", "followed")  # of a step, as they stand in a request of a later one


def covered(view: RecordingView) -> RecordingView:
    """The same run without what may not be shown, in pictures and in what the model was asked, or will be."""
    secrets, raw = Secrets(), [step.asked for step in view.steps if step.asked and step.asked.raw]
    for asked in raw:
        secrets |= secrets_of(asked)
    steps = tuple(_covered(step, secrets) for step in view.steps) if raw else view.steps
    return replace(view, steps=steps, session=_covered_past(view.session, secrets))


def _covered_past(session: Session, secrets: Secrets) -> Session:
    """What another model is told of the past: it is written anew from the steps, which are kept as they were."""
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
    # What was read on one screen may stand in the messages of a later one.
    messages = tuple(covered_messages(step.messages, step.asked, secrets))
    picture = covered_picture(step.picture, step.asked) if step.picture else None
    return replace(step, asked=covered_request(step.asked, secrets), messages=messages, picture=picture)
