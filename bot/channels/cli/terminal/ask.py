"""Asks the person at the terminal."""

from __future__ import annotations

import asyncio
from typing import TextIO

from agent_core.session import TO_CUSTOMER, Answer, Question, Session
from bot.channels.chat.answering import no_answer, read_answer, says_yes, to_confirm
from bot.channels.chat.questions import question_card
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Console
from bot.channels.cli.terminal.input import drop_typed, read_line
from bot.channels.cli.terminal.render import panel
from bot.desk.views import QuestionView
from scheduler.runs.human import given_answer, store_question
from storage.engine import Database
from storage.events import Events
from storage.people import TERMINAL, Audit
from storage.questions import Questions

FIRST_ATTEMPT = 1  # a run started in the terminal has only this one


class TerminalHuman:
    """Questions in the terminal of the run.

    A question is stored first, so that it can be answered later in any channel.
    """

    def __init__(self, db: Database, console: Console, texts: Texts, *, stdin: TextIO | None = None) -> None:
        self._questions = Questions(db)
        self._events = Events(db)
        self._audit = Audit(db)
        self._console = console
        self._texts = texts
        self._stdin = stdin

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        await store_question(self._questions, self._events, session, question, picture, attempt=FIRST_ATTEMPT)
        answer = await self.read(session.run_id, question)
        if answer is None:
            return None
        await self._audit.write(
            TERMINAL, TERMINAL, "answer", {"question": question.id, "text": answer.text, "choice": answer.choice}
        )
        await self._questions.answer(question.id, answer.kept(), by=TERMINAL)
        return given_answer(await self._questions.get(question.id))

    async def read(self, run_id: str, question: Question) -> Answer | None:
        """Show a stored question, and read the answer; None at the end of the input. Can be cancelled."""
        view = QuestionView(id=question.id, run_id=run_id, question=question, lang=self._texts.lang)
        words = "question.hint_type" if question.kind in TO_CUSTOMER else "question.hint_words"
        hint = self._texts.get(words if question.free_text else "question.hint_number")
        drop_typed(self._stdin)
        self._console.print(panel(question_card(view, self._texts, hint=hint), style="yellow"))
        try:
            return await self._answer(view, hint)
        except asyncio.CancelledError:
            self._console.print()  # so that the next message begins a line
            raise

    async def _answer(self, view: QuestionView, hint: str) -> Answer | None:
        question = view.question
        while True:
            line = await read_line(self._console, self._stdin)
            if line is None:
                self._console.print()  # so that the next message begins a line
                return None
            answer = read_answer(question, line, by=TERMINAL)
            if answer is not None and to_confirm(question, answer):
                self._console.print(self._texts.get("question.like_a_command"))
                self._console.print(self._texts.get("question.confirm_typed"))
                line = await read_line(self._console, self._stdin)
                if line is None or not says_yes(line):
                    self._console.print(hint)
                    continue
            if answer is not None:
                return answer
            self._console.print(no_answer(self._texts, view, line))
