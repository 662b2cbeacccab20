"""A recording as people may see it. Only what is stored raw differs from it."""

from __future__ import annotations

from dataclasses import replace

from agent_core.screen.secret_texts import COVER, Secrets
from agent_core.trajectory import covered_messages, covered_picture, covered_request, secrets_of
from bot.desk.history_port import RecordedStep, RecordingView

__all__ = ["COVER", "covered"]


def covered(view: RecordingView) -> RecordingView:
    """The same run without what may not be shown, in pictures and in what the model was asked."""
    secrets, raw = Secrets(), [step.asked for step in view.steps if step.asked and step.asked.raw]
    for asked in raw:
        secrets |= secrets_of(asked)
    return replace(view, steps=tuple(_covered(step, secrets) for step in view.steps)) if raw else view


def _covered(step: RecordedStep, secrets: Secrets) -> RecordedStep:
    if step.asked is None:
        return step
    # What was read on one screen may stand in the messages of a later one.
    messages = tuple(covered_messages(step.messages, step.asked, secrets))
    picture = covered_picture(step.picture, step.asked) if step.picture else None
    return replace(step, asked=covered_request(step.asked, secrets), messages=messages, picture=picture)
