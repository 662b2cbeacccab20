"""Never a hundred steps of the same tap: repeats are called out to the model, then a person is asked."""

from __future__ import annotations

from agent_core import questions
from agent_core.actions.types import Action, Wait
from agent_core.observer import Observation
from agent_core.result import ActResult
from agent_core.session import Session
from agent_core.texts import say

TOLD_AT = 3
ASKED_AT = 6


class RepeatWatch:
    """Watches one run for the same proposal on the same screen. Its counters stand in the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._digest = ""

    def look(self, seen: Observation, observation: str) -> str:
        """The observation for the next prompt, with what the screen itself says about the last act."""
        session = self._session
        unchanged = bool(self._digest) and seen.frame.digest == self._digest
        self._digest = seen.frame.digest
        last = session.steps[-1].action if session.steps else None
        touched = last is not None and last["kind"] in {"tap", "double_tap", "long_press", "swipe", "back", "type"}
        hints = [say(session.lang, "run.unchanged")] if unchanged and touched and session.steps[-1].ok else []
        if session.repeats + 1 >= TOLD_AT:
            hints.append(say(session.lang, "run.repeated", count=session.repeats + 1))
        return " ".join(filter(None, (observation, *hints)))

    def count(self, action: Action | None, seen: Observation) -> ActResult | None:
        """Count the proposal; a question to a person where it goes on and on."""
        session = self._session
        if action is None or isinstance(action, Wait):
            return None
        signature = f"{seen.frame.digest}:{action.model_dump_json()}"
        session.repeats = session.repeats + 1 if signature == session.last_signature else 0
        session.last_signature = signature
        times = session.repeats + 1
        if times < ASKED_AT:
            return None
        text = say(session.lang, "run.stuck", count=times)
        session.repeats = 0
        return ActResult(text, ok=False, question=questions.stuck(session, text))
