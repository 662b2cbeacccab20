"""Questions to the person at the terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

from agent_core.session import Answer, Question, Session
from bot.chat.cards import question_card
from bot.chat.texts import Texts
from bot.desk.port import QuestionView
from bot.terminal.lines import read_line
from bot.terminal.render import panel
from scheduler.ports import given_answer, store_question
from storage.engine import Database
from storage.events import Events
from storage.questions import Questions

PERSON = "terminal"


class TerminalHuman:
    """Asks where the run was started. A question is a row first, so that it can be answered later, from any channel."""

    def __init__(self, db: Database, console: Console, texts: Texts, *, stdin: TextIO | None = None) -> None:
        self._questions = Questions(db)
        self._events = Events(db)
        self._console = console
        self._texts = texts
        self._stdin = stdin

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        await store_question(self._questions, self._events, session, question, picture)
        view = QuestionView(id=question.id, run_id=session.run_id, question=question, lang=self._texts.lang)
        self._console.print(panel(question_card(view, self._texts), style="yellow"))
        while True:
            line = await read_line(self._console, self._stdin)
            if line is None:
                return None
            answer = read_answer(question, line)
            if answer is not None:
                await self._questions.answer(question.id, answer.model_dump(include={"choice", "text"}), by=PERSON)
                return given_answer(await self._questions.get(question.id))
            choices = " / ".join(choice.label for choice in question.choices)
            self._console.print(self._texts.get("question.not_a_choice", choices=choices), markup=False)


def read_answer(question: Question, line: str) -> Answer | None:
    """A number is a choice, so is its label or value; anything else is one's own words where they are allowed."""
    said = line.strip()
    if said.isdecimal() and 1 <= int(said) <= len(question.choices):
        return Answer(choice=question.choices[int(said) - 1].value, by=PERSON)
    for choice in question.choices:
        if said and said.casefold() in {choice.value.casefold(), choice.label.casefold()}:
            return Answer(choice=choice.value, by=PERSON)
    answer = Answer(text=said, by=PERSON)
    return answer if question.accepts(answer) else None
