"""Decides who answers the agent's questions, by the mode of the call, and which of them a program may decide at all.

A question is stored before anybody sees it, so that it can be answered in every channel; the first answer counts.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO

import structlog

from agent_core.errors import PhonedeskError
from agent_core.model.base import Model
from agent_core.session import NO_REPLY, Answer, Choice, Question, QuestionKind, Session
from bot.channels.chat.answering import read_answer, says_yes, to_confirm
from bot.channels.chat.texts import texts
from bot.channels.cli.terminal.ask import TerminalHuman
from bot.channels.cli.terminal.console import Console
from bot.channels.mcp.arguments import MAX_TEXT
from bot.channels.mcp.client import Client, form_of
from bot.channels.mcp.story import opened
from bot.channels.mcp.texts import say
from bot.desk.actors import BadRequest
from scheduler.jobs.deadlines import AT_DEADLINE, NO_TIMES, QuestionTimes, answer_at_deadline
from scheduler.runs.human import given_answer, store_question
from storage.engine import MISSED_SECONDS, Database
from storage.events import Events
from storage.questions import OPEN, Questions

log = structlog.get_logger(__name__)

TERMINAL = Path("/dev/tty")
UNKNOWN = "UNKNOWN"  # what a model says that does not know an answer
MODEL = "auto_reply"  # the name of an answer's giver if a model gave it
REPLY_SECONDS = 60.0  # for a model's answer

# Questions that a program may decide: how its own task continues. Costs, customers' answers, and whether something
# arrived are decided by a person; a program may only say no.
PROGRAM_MAY = frozenset(
    {QuestionKind.INTERACT, QuestionKind.TAKE_OVER, QuestionKind.STUCK, QuestionKind.PERSON_ON_PHONE}
)
# Questions that a model may answer in a user's place if no customer is concerned.
MODEL_MAY = frozenset({QuestionKind.INTERACT, QuestionKind.STUCK})
# If only the deadline would end the run, an agent without an answer continues without one.
GOES_ON = frozenset({QuestionKind.TAKE_OVER, QuestionKind.STUCK, QuestionKind.PERSON_ON_PHONE})


def who_may(question: Question, *, person_there: bool) -> str:
    """Return who may say yes to this question: ``client`` or ``person``.

    person_there: a person answers at the client.
    """
    return "client" if person_there or question.kind in PROGRAM_MAY else "person"


def may_answer(question: Question, answer: Answer, *, person_there: bool) -> bool:
    """Tell whether this answer may come from a client. The harmless one that the deadline would give always may."""
    safe = AT_DEADLINE[question.kind].choice
    return who_may(question, person_there=person_there) == "client" or (bool(safe) and answer.choice == safe)


def _given(question: Question, words: str, *, by: str, program: bool = True) -> Answer | None:
    """Read an answer as ``read_answer`` does. ``program``: no person gave it."""
    answer = read_answer(question, words, by=by)
    return answer.model_copy(update={"program": program}) if answer is not None else None


def read_reply(question: Question, reply: str, *, by: str, person_there: bool, confirmed: bool = False) -> Answer:
    """Return a client's words as the answer. Raises BadRequest if they are not an answer that it may give.

    confirmed: words that look like a command are meant for the customer.
    """
    answer = _given(question, reply, by=by, program=not person_there)
    if answer is None:
        choices = ", ".join(f"{choice.value} ({choice.label})" for choice in question.choices)
        raise BadRequest("This is none of the choices.", advice=f"Reply with one of: {choices}.")
    if not may_answer(question, answer, person_there=person_there):
        raise BadRequest(
            "Only a person may answer this: it decides what a customer gets, or allows what cannot be taken back.",
            advice=f"Have a person answer it: in Telegram, or with `phonedesk questions answer {question.id}`.",
        )
    if to_confirm(question, answer) and not confirmed:
        raise BadRequest(
            "This looks like a command, and would be sent to the customer as it is.",
            advice="Set confirm to true if the customer is to read just that, or answer in other words.",
        )
    return answer


Answerer = Callable[[Session, Question, bytes | None], Awaitable[Answer | None]]


async def nobody(session: Session, question: Question, picture: bytes | None) -> Answer | None:
    """Give no answer: the client answers with its next call."""
    return None


async def no_reply(session: Session, question: Question, picture: bytes | None) -> Answer | None:
    """Answer as if the deadline had passed at once; questions that no deadline may decide wait for a person."""
    answer = answer_at_deadline(question.kind)
    if answer is not None and question.kind in GOES_ON and not _in_the_way(session, question):
        return answer.model_copy(update={"by": NO_REPLY})
    return answer


def _in_the_way(session: Session, question: Question) -> bool:
    """Tell whether a person has the phone in hand and keeps it, or may be in a customer's chat with it."""
    if question.kind is not QuestionKind.PERSON_ON_PHONE:
        return False
    before = any(asked.kind is question.kind and asked.id != question.id for asked in session.questions)
    return session.gate.enabled or before


async def reply_of(model: Model, session: Session, question: Question, jpeg: bytes | None) -> str:
    """Return a model's answer for the user, by the screen and the task; "" if it does not know, or cannot be asked."""
    labels = " / ".join(choice.label or choice.value for choice in question.choices)
    choices = say(session.lang, "ask.choices", choices=labels) if labels else ""
    asked = say(session.lang, "ask.reply", task=session.task, question=question.text, choices=choices, unknown=UNKNOWN)
    said = ""
    with suppress(PhonedeskError, TimeoutError):
        async with asyncio.timeout(REPLY_SECONDS):
            if jpeg is None:  # a question repeated after a restart has no picture
                said = (await model.ask([{"role": "user", "content": asked.strip()}])).text.strip()
            else:
                picture = await asyncio.to_thread(opened, jpeg)
                said = (await model.transcribe(picture, asked.strip())).strip()
    return "" if UNKNOWN in said.upper() else said


def by_model(model: Model) -> Answerer:
    async def answered(session: Session, question: Question, picture: bytes | None) -> Answer | None:
        if session.gate.enabled or question.kind not in MODEL_MAY:
            return None
        words = await reply_of(model, session, question, picture)
        return _given(question, words, by=MODEL) if words else None

    return answered


def by_form(client: Client, *, name: str, person_there: bool) -> Answerer:
    """Return an answerer for a person at the client who fills in a form. If they decline, the question waits."""

    async def answered(session: Session, question: Question, picture: bytes | None) -> Answer | None:
        if client.elicit is None or who_may(question, person_there=person_there) != "client":
            return None
        words = await client.elicit(question.text, form_of(question))
        if len(words) > MAX_TEXT:  # the limit of every other answer of a client
            log.info("client_answer_too_long", run_id=session.run_id, characters=len(words))
            return None
        answer = _given(question, words, by=name, program=not person_there) if words else None
        if answer is not None and to_confirm(question, answer):
            sure = Question(id=question.id, kind=question.kind, choices=[Choice(value="yes"), Choice(value="no")])
            again = await client.elicit(texts(session.lang).get("question.like_a_command"), form_of(sure))
            return answer if says_yes(again) else None
        return answer

    return answered


class AskingHuman:
    """A store of questions, which passes each to ``answerer``; the first answer in any channel wins.

    Implements ``agent_core.ports.Human``. The phone is held for ``hold_seconds`` meanwhile; after that the session
    waits without it.

    times: the deadlines of questions to people.
    patient: questions of these kinds wait without a deadline.
    """

    def __init__(
        self,
        db: Database,
        answerer: Answerer,
        *,
        attempt: int,
        hold_seconds: float,
        times: QuestionTimes = NO_TIMES,
        patient: frozenset[QuestionKind] = PROGRAM_MAY,
    ) -> None:
        self._db = db
        self._questions = Questions(db)
        self._events = Events(db)
        self._answerer = answerer
        self._attempt = attempt
        self._hold = hold_seconds
        self._times = times
        self._patient = patient

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        times = NO_TIMES if question.kind in self._patient else self._times
        await store_question(
            self._questions, self._events, session, question, picture, times=times, attempt=self._attempt
        )
        answer = await self._asked(session, question, picture)
        if answer is not None and question.accepts(answer):
            await self._questions.answer(question.id, answer.kept(), by=answer.by)
        return given_answer(await self._questions.get(question.id))

    async def _asked(self, session: Session, question: Question, picture: bytes | None) -> Answer | None:
        """Return the answerer's answer; None if it gives none in time, or somebody else was first."""
        asking = asyncio.ensure_future(self._answerer(session, question, picture))
        elsewhere = asyncio.create_task(self._answered_elsewhere(question.id))
        try:
            await asyncio.wait([asking, elsewhere], timeout=self._hold, return_when=asyncio.FIRST_COMPLETED)
            return await asking if asking.done() else None
        except Exception as error:  # noqa: BLE001 - a client that cannot be asked leaves the question open
            log.warning("client_not_asked", run_id=session.run_id, error=repr(error))
            return None
        finally:
            for task in (asking, elsewhere):
                task.cancel()
            await asyncio.wait([asking, elsewhere])

    async def _answered_elsewhere(self, question_id: str) -> None:
        while True:
            waiter = self._db.signal("questions").waiter()
            try:
                row = await self._questions.get(question_id)
                if row is None or row.state != OPEN:
                    return
            except Exception as error:  # noqa: BLE001 - a database that is away for a moment takes no question back
                log.warning("question_not_looked_at", question_id=question_id, error=repr(error))
            await waiter.wait(MISSED_SECONDS)


class Terminal:
    """The person at the server's terminal, who is asked one question at a time."""

    def __init__(self) -> None:
        self._one_by_one = asyncio.Lock()
        self._withdrawn = False  # the last question was withdrawn while its answer was typed

    def check(self) -> None:
        """Raise BadRequest if this server has no terminal."""
        with ExitStack() as stack:
            _opened(stack)

    def answerer(self, db: Database) -> Answerer:
        """Return an answerer that reads the words of the person at the terminal.

        A question that is over, or answered elsewhere, is withdrawn.
        """

        async def answered(session: Session, question: Question, picture: bytes | None) -> Answer | None:
            async with self._one_by_one:
                with ExitStack() as stack:
                    stdin, stdout = _opened(stack)
                    if self._withdrawn:
                        _forget_typed(stdin)
                    console = Console(file=stdout, force_terminal=True)
                    human = TerminalHuman(db, console, texts(session.lang), stdin=stdin)
                    self._withdrawn = True
                    try:
                        answer = await human.read(session.run_id, question)
                    except asyncio.CancelledError:
                        console.print()
                        raise
                    self._withdrawn = False
                    return answer

        return answered


def _forget_typed(stdin: TextIO) -> None:
    """Discard typed input, because text typed for a withdrawn question must not answer another one."""
    with suppress(ImportError, OSError):
        termios = importlib.import_module("termios")  # not available everywhere
        termios.tcflush(stdin, termios.TCIFLUSH)


def _opened(stack: ExitStack) -> tuple[TextIO, TextIO]:
    """Open the terminal itself, because over stdio, standard input and output belong to the client."""
    with suppress(OSError):
        return (
            stack.enter_context(TERMINAL.open("r", encoding="utf-8")),
            stack.enter_context(TERMINAL.open("w", encoding="utf-8")),
        )
    raise BadRequest(
        "reply_mode manual_reply asks in the server's terminal, and this server has none.",
        advice="Start it in a terminal, or choose another reply_mode.",
    )
