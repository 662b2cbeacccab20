"""Never a hundred steps of the same tap: repeats are called out to the model, then a person is asked."""

from __future__ import annotations

from hashlib import sha256

from agent_core.actions.types import Action, Finish, Wait
from agent_core.loop import questions
from agent_core.loop.recovery import ASKED_AT, EXITS, TOLD_AT, Recovery
from agent_core.loop.result import ActResult
from agent_core.perception.compare import Likeness, likeness, same_name
from agent_core.perception.observer import Observation
from agent_core.policies.base import Judgement
from agent_core.policies.unread_page import UnreadPage
from agent_core.session import Session
from agent_core.texts import say, sentences

LONGEST_CYCLE = 4  # screens that come round again and again
SEARCH_FOOT = 0.12  # of the height: a search's own field stands above, what it found below


class RepeatWatch:
    """Watches one run for the same proposals on the same screens. Its trail stands in the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._recovery = Recovery(session)
        self._digest = ""

    def look(self, seen: Observation, observation: str) -> str:
        """The observation for the next prompt, with what the screen itself says about the last act."""
        session = self._session
        unchanged = bool(self._digest) and seen.frame.digest == self._digest
        self._digest = seen.frame.digest
        hint = self._recovery.look(seen, unchanged=unchanged)
        if session.repeats >= TOLD_AT:
            hint = hint or say(session.lang, "run.repeated", count=session.repeats)
        return " ".join(filter(None, (observation, hint)))

    def count(self, action: Action | None, seen: Observation) -> ActResult | None:
        """Count the proposal; a question to a person where it, or a cycle of a few, goes on and on."""
        session = self._session
        if action is None:
            return None
        given_up = (None if isinstance(action, EXITS) else self._unread()) or self._given_up(action, seen)
        if given_up is not None:
            return given_up
        if not isinstance(action, Wait):  # how long is waited is counted in seconds
            signature = f"{seen.frame.digest}:{action.model_dump_json()}"
            trail = [*session.trail, sha256(signature.encode()).hexdigest()[:12]][-LONGEST_CYCLE * ASKED_AT :]
            session.trail = trail
            session.repeats = max(rounds(trail, length) for length in range(1, LONGEST_CYCLE + 1))
        why = self._recovery.proposed(action)
        if not why and (session.repeats < ASKED_AT or isinstance(action, EXITS)):
            return None
        text = why or say(session.lang, "run.stuck", count=session.repeats)
        self._recovery.forget()
        session.trail, session.repeats = [], 0
        return ActResult(text, ok=False, question=questions.stuck(session, text))

    def count_unread(self, seen: Observation, judgement: Judgement) -> None:
        """Count what was refused on pages that could not be read, until one can be."""
        if seen.unread_below is None:
            self._session.unread_refusals = 0
        elif any(verdict.policy == UnreadPage.name for verdict in judgement.verdicts):
            self._session.unread_refusals += 1

    def _unread(self) -> ActResult | None:
        session = self._session
        if session.unread_refusals < TOLD_AT:
            return None
        text = say(session.lang, "run.unread_stuck", count=session.unread_refusals)
        session.unread_refusals, session.trail, session.repeats = 0, [], 0
        return ActResult(text, ok=False, question=questions.stuck(session, text))

    def _given_up(self, action: Action, seen: Observation) -> ActResult | None:
        """A model that keeps wanting to end before the knowledge base was asked has a reason: a person decides.

        At once if it is seen that the contact is not to be found.
        """
        session = self._session
        refused = isinstance(action, Finish) and session.gate.enabled and not session.gate.knowledge_done
        if not isinstance(action, Wait):  # to wait between is no other idea
            session.refused_finishes = session.refused_finishes + 1 if refused else 0
        if not refused or not isinstance(action, Finish):
            return None
        missing = self._searched_in_vain(seen)
        if not missing and session.refused_finishes < TOLD_AT:
            return None
        session.refused_finishes, session.trail, session.repeats = 0, [], 0
        text = say(session.lang, "run.wants_to_end", message=action.message)
        if missing:
            text = say(session.lang, "run.not_found", contact=session.gate.contact)
        if session.cluster is None and session.gate.contact:  # their chat was never read
            text = sentences([text, say(session.lang, "run.no_chat", contact=session.gate.contact)], session.lang)
        return ActResult(text, ok=False, question=questions.stuck(session, text))

    def _searched_in_vain(self, seen: Observation) -> bool:
        """Return whether the contact's whole name stands in a search, and nothing that was found has that name.

        A page of which nothing is read tells nothing.
        """
        contact, foot = self._session.gate.contact, SEARCH_FOOT * seen.frame.image.height
        done = (step.action for step in self._session.steps if step.ok and step.action)
        if not any(act["kind"] in {"type", "type_name"} and same_name(act["text"], contact) for act in done):
            return False
        like = [one for one in seen.readings if likeness(one.text, contact) is not Likeness.OTHER]
        return bool(like) and all(one.box.center.y < foot for one in like)


def rounds(trail: list[str], length: int) -> int:
    """How often in a row the last ``length`` entries stand at the end of ``trail``."""
    last, count = trail[-length:], 0
    while len(last) == length and trail[len(trail) - length * (count + 1) : len(trail) - length * count] == last:
        count += 1
        if length * (count + 1) > len(trail):
            break
    return count
