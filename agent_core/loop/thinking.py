"""What the loop asks of the model: the next action for an observation, and the notes of ``Note`` and ``Call_API``."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from agent_core.actions import parse_reply
from agent_core.apps.profile import AppProfile, secret_rules
from agent_core.errors import ActionFailed, ActionParseError, ModelError
from agent_core.loop.outcome import ActResult, Thought
from agent_core.loop.questions import stuck
from agent_core.loop.recording import Recorder
from agent_core.model.base import Completion, Message, Model, Request, Usage
from agent_core.model.history import app_name
from agent_core.model.profile import ModelProfile
from agent_core.model.prompt import build_messages, data_url
from agent_core.model.words import summary_text
from agent_core.perception.observer import Observation
from agent_core.perception.redaction import secret_boxes
from agent_core.session import KeptNote, Session
from agent_core.texts import Lang, cut, fault, say, told
from agent_core.texts.clean import clean_text

PARSE_TRIES = 3
_MOST_SAID = 120  # characters of a reply that a person is shown
MOST_NOTES = 100  # of a run, including summaries
LONGEST_NOTE = 4_000  # characters of one note
LONGEST_NOTES = 12_000  # characters that are summarised at once, the newest
LONGEST_WISH = 1_000
LONGEST_SUMMARY = 700  # the next prompt has no room for more
_THE_PAGE = {"", "true", "page"}  # models write these for the page itself


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


def page_text(seen: Observation) -> str:
    """Return the text of the page from the top, without the secrets that are covered in pictures for people."""
    hidden = secret_boxes(seen.readings, secret_rules(seen.window.package), seen.size)
    readings = sorted(seen.readings, key=lambda reading: (reading.box.top, reading.box.left))
    lines = [r.text.strip() for r in readings if r.text.strip() and not any(r.box.intersects(box) for box in hidden)]
    return "\n".join(dict.fromkeys(lines))


@dataclass(frozen=True, slots=True)
class Summary:
    """The notes of a run, and the model's texts about the notes and the page in front."""

    model: Model
    profile: ModelProfile

    async def note(self, session: Session, seen: Observation, message: str) -> Usage | None:
        """Store ``message``, or the page's text if it is empty or names the page.

        If no text was read, a model with vision writes down the page. Returns the usage of that call, if there was one.
        Raises ActionFailed if there is nothing to store, or too much is stored.
        """
        _check_room(session)
        text, usage = message.strip(), None
        if text.lower() in _THE_PAGE:
            text = page_text(seen)
            if not text and self.profile.vision:
                completion = await self._asked(session, seen, say(session.lang, "run.note_wish"))
                text, usage = completion.text.strip(), completion.usage
        if not text:
            raise ActionFailed(say(session.lang, "run.note_empty"))
        _keep(session, seen, cut(text, LONGEST_NOTE))
        return usage

    async def make(self, session: Session, seen: Observation, instruction: str) -> tuple[str, Usage]:
        """Return a summary, which is also stored as a note, and its usage. Raises ActionFailed if none can be made."""
        _check_room(session)
        completion = await self._asked(session, seen, instruction)
        if not completion.text.strip():
            raise ActionFailed(say(session.lang, "run.summary_empty"))
        text = cut(completion.text.strip(), LONGEST_SUMMARY)
        _keep(session, seen, text, summary=True)
        return text, completion.usage

    async def _asked(self, session: Session, seen: Observation, wish: str) -> Completion:
        try:
            return await self.model.ask(self._messages(session, seen, wish))
        except ModelError as error:
            raise ActionFailed(say(session.lang, "run.summary_failed", error=fault(error, session.lang))) from None

    def _messages(self, session: Session, seen: Observation, instruction: str) -> list[Message]:
        text = summary_text(
            session.lang,
            task=session.task,
            wish=cut(instruction.strip(), LONGEST_WISH),
            notes=_newest(session.notes),
            app=app_name(seen.window.package),
            page=cut(page_text(seen), LONGEST_NOTE),
            longest=LONGEST_SUMMARY - 100,
        )
        if not self.profile.vision:
            return [{"role": "user", "content": text}]
        picture = {"type": "image_url", "image_url": {"url": data_url(seen.frame.image)}}
        return [{"role": "user", "content": [picture, {"type": "text", "text": text}]}]


def _check_room(session: Session) -> None:
    if len(session.notes) >= MOST_NOTES:
        raise ActionFailed(say(session.lang, "run.notes_full", count=MOST_NOTES))


def _keep(session: Session, seen: Observation, text: str, *, summary: bool = False) -> None:
    app, step = app_name(seen.window.package), len(session.steps) + 1
    session.notes.append(KeptNote(text=text, app=app, step=step, summary=summary))


def _newest(notes: list[KeptNote]) -> str:
    """Return the newest notes that fit, in their order."""
    found: list[str] = []
    room = LONGEST_NOTES
    for number in range(len(notes), 0, -1):
        one = notes[number - 1]
        written = f"{number}. [{one.app}] {one.text}"
        room -= len(written)
        if room < 0:
            break
        found.append(written)
    return "\n".join(reversed(found))
