"""A recording as it leaves the desk: covered, for people and other models; and as lines of JSON, one per step, for
analysis and training.

What is stored is raw. Fields of a line keep their meaning within ``FORM``; new ones may be added.
docs/how-to/look-at-a-run.md lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from agent_core.actions import parse_reply
from agent_core.actions.parse import Dialect
from agent_core.errors import ActionParseError
from agent_core.loop.trajectory import (
    ModelRequest,
    covered_messages,
    covered_picture,
    covered_request,
    secrets_of,
    with_pictures,
)
from agent_core.model.profile import model_profiles
from agent_core.model.prompt import tools_of
from agent_core.perception.readings import Reading
from agent_core.perception.redaction import Secrets, covered_text, figures_in, tells_secret
from agent_core.session import Session, StepRecord
from agent_core.texts import Lang
from bot.app.escapes import to_json
from bot.desk.history_views import RecordedStep, RecordingView

Link = Callable[[RecordedStep], str]

FORM = 1
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


# Lines of JSON --------------------------------------------------------------------------------------------------------


def lines_of(view: RecordingView, link: Link) -> Iterator[str]:
    """Yield one line per step, without its end.

    link: returns the text in place of the step's picture, "" for nothing.
    """
    for step in view.steps:
        yield to_json(_line(view, step, link(step) if step.picture else ""))


def _line(view: RecordingView, step: RecordedStep, picture: str) -> dict[str, Any]:
    record, asked, session = step.record, step.asked, view.session
    return {
        "form": FORM,
        "run": view.run.id,
        "number": view.number,
        "task": session.task,
        "lang": session.lang,
        "policy": session.policy,
        "status": view.run.status.value,
        "step": record.index,
        "at": step.at.isoformat(timespec="milliseconds") if step.at else None,
        "model": asked.model if asked else None,
        "profile": asked.profile if asked else None,
        "messages": with_pictures(step.messages, lambda _: picture if asked.sees else "") if asked else None,
        "tools": _tools(asked, session.lang) if asked else None,
        "picture": picture or None,
        "covered": bool(asked and asked.covered and not asked.raw),
        "screen": _screen(asked) if asked else None,
        "reply": record.reply,
        "thinking": record.thinking,
        "ignored": record.ignored or ignored(record.reply, asked),
        "asked": record.asked,
        "action": record.action,
        "verdicts": [verdict.model_dump() for verdict in record.verdicts],
        "ok": record.ok,
        "result": record.result,
        "timings": record.timings,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "cost": record.cost,
        "currency": session.spent.currency,
    }


def _tools(asked: ModelRequest, lang: Lang) -> list[dict[str, Any]] | None:
    """Return the tools that the request offered; None if there were none."""
    profile = next((one for one in model_profiles() if one.name == asked.profile), None)
    return tools_of(profile, lang) or None if profile is not None else None


def _screen(asked: ModelRequest) -> dict[str, Any]:
    """Return the screen. ``elements``: with boxes as left, top, right, bottom, in pixels of the screen."""
    return {
        "package": asked.window.package,
        "activity": asked.window.activity,
        "size": list(asked.size),
        "chat": asked.chat.title if asked.chat else None,
        "elements": [_element(reading) for reading in asked.readings],
    }


def _element(reading: Reading) -> dict[str, Any]:
    return {
        "text": reading.text,
        "box": list(reading.box.as_tuple()),
        "role": reading.role,
        "source": reading.source.value,
    }


def ignored(reply: str, asked: ModelRequest | None) -> str:
    """Return the model's text after its first complete call, for a release that did not record it."""
    if asked is None or not reply:
        return ""
    dialect: Dialect = asked.dialect
    try:
        return parse_reply(reply, dialect=dialect).ignored
    except ActionParseError:
        return ""
