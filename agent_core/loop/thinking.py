"""From an observation to the model's proposal: prompt, call, parse."""

from __future__ import annotations

import time
from dataclasses import replace

from agent_core.actions import parse_reply
from agent_core.apps.profile import AppProfile
from agent_core.errors import ActionParseError, ModelError
from agent_core.loop.notes import Summary
from agent_core.loop.questions import stuck
from agent_core.loop.recording import Recorder
from agent_core.loop.result import ActResult, Thought
from agent_core.model.base import Message, Model, Request
from agent_core.model.history import app_name, cut
from agent_core.model.profile import ModelProfile
from agent_core.model.prompt import build_messages
from agent_core.perception.observer import Observation
from agent_core.session import Session
from agent_core.texts import Lang, say, told
from agent_core.texts.clean import clean_text

PARSE_TRIES = 3
_MOST_SAID = 120  # characters of a reply that a person is shown


class Thinker:
    """The caller of a model about one screen after another."""

    def __init__(self, model: Model, *, profile: ModelProfile, elements: bool) -> None:
        self._model = model
        self._profile = profile
        self.summary = Summary(model, profile)
        self._elements = elements

    async def think(
        self, session: Session, seen: Observation, profile: AppProfile | None, recorder: Recorder
    ) -> Thought:
        """Return the model's proposal for the screen in ``seen``. Raises ModelError if the model does not answer."""
        begun = time.monotonic()

        def written(model: ModelProfile) -> list[Message]:
            return build_messages(
                session,
                current_app=app_name(seen.window.package),
                picture=seen.frame,
                elements=seen.readings if self._elements and model.elements else None,
                profile=profile,
                model=model,
            )

        messages = Request(written, self._profile)
        await recorder.asked(seen, messages, self._model.name, self._profile)
        try:
            completion = await self._model.complete(messages, on_thinking=recorder.thinking)
        except ModelError as error:
            raise in_words(error, session.lang) from None
        seconds = time.monotonic() - begun
        answered, name = completion.profile or self._profile, completion.model or self._model.name
        # a fallback answered: record the request as sent to it
        if (answered, name) != (self._profile, self._model.name):
            await recorder.asked(seen, messages.written_for(answered), name, answered)
        completion = replace(completion, model=name, profile=answered)
        try:
            reply = parse_reply(completion.text, dialect=answered.dialect, ended=completion.ended)
        except ActionParseError as error:
            return Thought(completion, seconds, problem=self._unreadable(session, error, completion.text))
        session.parse_failures = 0
        if reply.summary:  # of what was done up to this step, including it
            session.summary, session.summarised_at = reply.summary, len(session.steps) + 1
        return Thought(completion, seconds, reply.thinking, reply.action, reply.ignored)

    def _unreadable(self, session: Session, error: ActionParseError, said: str) -> ActResult:
        """Tell the model exactly what was wrong with what it said, or ask a person the third time in a row."""
        session.parse_failures += 1
        count = session.parse_failures
        if count < PARSE_TRIES:
            return ActResult(say(session.lang, "run.parse_failed", error=error.message), ok=False)
        session.parse_failures = 0
        said = cut(" ".join(clean_text(said).split()), _MOST_SAID) or "—"
        text = say(session.lang, "run.parse_gave_up", count=count, said=said)
        return ActResult(text, ok=False, question=stuck(session, text))


def in_words(error: ModelError, lang: Lang) -> ModelError:
    """Return the error with its message in the run's language."""
    made = type(error)(told(error, lang), advice="", key=error.key, **error.values)
    made.retried = error.retried
    return made
