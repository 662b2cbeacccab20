"""The people of a case: they see the open questions as a channel shows them, and answer as the file says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agent_core.session import Answer, Question, Session
from bot.channels.chat.answering import read_answer
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk
from bot.desk.views import QuestionView
from bot.tools.eval.scenario import PersonPart
from scheduler.runs.human import StoredHuman
from storage.engine import MISSED_SECONDS, Database

HOLD_SECONDS = 30.0  # longer than any answer takes


class ScriptedPeople:
    """A ``Human`` of ``agent_core.ports``: a question that will be answered holds the phone; others park the run."""

    def __init__(self, db: Database, desk: Desk, parts: Sequence[PersonPart]) -> None:
        self._db = db
        self._desk = desk
        self._parts = list(parts)
        self._left = [part.times for part in self._parts]
        self._held = StoredHuman(db, hold_seconds=HOLD_SECONDS, attempt=1)
        self._parked = StoredHuman(db, hold_seconds=0, attempt=1)
        self._promised: dict[str, PersonPart] = {}  # by the question's id
        self.refused: list[str] = []  # answers that the desk did not accept

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        part = self._take(question)
        if part is None:
            return await self._parked.ask(session, question, picture=picture)
        self._promised[question.id] = part
        return await self._held.ask(session, question, picture=picture)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        working = asyncio.create_task(self._answer_all(), name="eval-people")
        try:
            yield
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    @property
    def unused(self) -> list[str]:
        """Answers that no question asked for."""
        return [
            f"{part.on.value}: {part.choice or part.text}"
            for part, left in zip(self._parts, self._left, strict=True)
            if left > 0
        ]

    def _take(self, question: Question) -> PersonPart | None:
        for index, part in enumerate(self._parts):
            if part.on is not question.kind or (part.times and not self._left[index]):
                continue
            self._left[index] -= 1
            if part.text:
                # Read as a channel reads it. An unacceptable answer, such as a number without a choice, leaves the
                # question open.
                said = read_answer(question, part.text)
                if said is not None:
                    return part.model_copy(update={"choice": said.choice, "text": said.text})
                if question.free_text:
                    continue
            elif question.accepts(Answer(choice=part.choice)):
                return part
            choices = ", ".join(choice.value for choice in question.choices)
            self.refused.append(f"{part.choice or part.text!r} is no answer to {part.on.value}: {choices}")
            return None
        return None

    async def _answer_all(self) -> None:
        while True:
            waiter = self._db.signal("questions").waiter()
            for view in await self._desk.questions.seen_by(None):
                part = self._promised.pop(view.id, None)
                if part is not None:
                    await self._answer(view, part)
            await waiter.wait(MISSED_SECONDS)

    async def _answer(self, view: QuestionView, part: PersonPart) -> None:
        actor = Actor(id="eval", channel="eval", user_id=part.by, name=part.by, lang=view.lang, role=Role.OPERATOR)
        await self._desk.questions.answer(actor, view.id, choice=part.choice, text=part.text)
