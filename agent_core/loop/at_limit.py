"""The end of a run at its most steps: what it says is on the screen after its last act."""

from __future__ import annotations

import structlog

from agent_core.errors import DeviceError
from agent_core.loop.cut_short import cut_short, owes_answers
from agent_core.loop.result import Ending
from agent_core.model.history import app_name, cut
from agent_core.perception.observer import Observer
from agent_core.session import Session, Status
from agent_core.texts import is_said, say

MOST_SEEN = 400  # characters
BETWEEN = " · "

log = structlog.get_logger(__name__)


async def end_at_limit(session: Session, observer: Observer) -> Ending:
    """What was thought before the last act tells nothing of what came of it: so it is looked once more."""
    said = said_at_limit(session, await _on_screen(observer))
    return Ending(Status.FAILED, said) if owes_answers(session) else cut_short(session, said)


def said_at_limit(session: Session, seen: str = "") -> str:
    """``seen``: what is on the screen; without it, what was thought last stands there."""
    last = session.steps[-1] if session.steps else None
    seen = seen or ((last.thinking or last.result) if last else "")
    return say(session.lang, "run.max_steps", steps=session.max_steps, seen=seen)


def ended_at_limit(session: Session) -> bool:
    """Whether this is what the run ended by."""
    return is_said(session.message, session.lang, "run.max_steps", "seen", steps=session.max_steps)


async def _on_screen(observer: Observer) -> str:
    """The app in front and the texts there, from the top; "" where it cannot be looked. Secrets are left out."""
    try:
        seen = await observer.observe(None)
    except DeviceError as error:
        log.warning("not_seen_at_limit", error=str(error))
        return ""
    covered = await observer.veil.boxes(seen.frame)
    shown = [one for one in seen.readings if not any(one.box.intersects(box) for box in covered)]
    texts = dict.fromkeys(" ".join(one.text.split()) for one in sorted(shown, key=lambda one: one.box.top))
    words = cut(BETWEEN.join(filter(None, texts)), MOST_SEEN)
    return ": ".join(filter(None, (app_name(seen.window.package), words)))
