"""``phonedesk questions``: lists and answers the open questions of runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_core.loop.questions import SKIP, STOP
from agent_core.session import TO_CUSTOMER
from agent_core.texts import say, sentences
from bot.channels.chat.answering import no_answer, read_answer, to_confirm, verdict
from bot.channels.chat.cards import Line
from bot.channels.chat.questions import answer_label, choice_label, question_card
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.at_desk import phones_are_worked, with_desk
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, confirm, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import panel
from bot.desk.actors import Actor, NotFound
from bot.desk.views import AnswerOutcome, QuestionView, RunView
from storage.history import History

if TYPE_CHECKING:
    from bot.desk.desk import Desk


questions = typer.Typer()


@questions.callback(invoke_without_command=True)
def all_(context: typer.Context) -> None:
    """Show the open questions, and answer them."""
    if context.invoked_subcommand is None:
        list_()


@questions.command("list")
def list_(as_json: Json = False) -> None:
    """List the open questions, the oldest first."""
    found, lang = with_desk(_open)
    if as_json:
        print_json(
            [
                {**_plain(view, texts(lang)), "run": number, "task": run.task if run else ""}
                for view, run, number in found
            ]
        )
        return
    words = texts(lang)
    for view, run, number in found:
        card = question_card(view, words, run=run, hint=_hint(view, words))
        Console().print(panel(replace(card, lines=(_head(view, run, number, words), *card.lines))))
    if not found:
        Console().print(words.get("ask.none"))


@questions.command()
def answer(
    question: Annotated[str, typer.Argument(metavar="ID")],
    said: str,
    as_json: Json = False,
) -> None:
    """Answer a question; its run continues if `phonedesk serve` is running. The first answer wins."""
    (view, result, served), lang = with_desk(_given(question, said))
    words = texts(lang)
    meant = read_answer(view.question, said) if result is None else None
    if (
        meant is not None
        and not as_json
        and confirm(words.get("question.like_a_command"), wrong=words.get("common.yes_or_no"))
    ):
        (view, result, served), lang = with_desk(_given(question, said, confirmed=True))
    if as_json:
        before = _answer_before(view) if result is not None and result.state == "late" else {}
        print_json({"id": view.id, "state": result.state if result else "refused", **before})
    elif result is None and meant is None:
        console = Console(stderr=True)
        console.print(panel(question_card(view, words, hint=_hint(view, words))))  # with the choices and their numbers
        console.print(no_answer(words, view, said))
    elif result is None:
        said_so = sentences([say(lang, "run.nothing_sent"), words.get("question.left_open", id=view.id)], lang)
        Console(stderr=True).print(said_so, soft_wrap=True)
    else:
        told = [_verdict(words, view, result)]
        if result.state == "accepted":
            told.append(words.get(f"question.{_follows(view, result)}"))
            told += [] if served else [words.get("common.no_worker")]
        Console().print(sentences(told, lang))
    if result is None:
        raise typer.Exit(Exit.USAGE)
    raise typer.Exit(Exit.OK if result.state == "accepted" else Exit.FAILED)


def _follows(view: QuestionView, result: AnswerOutcome) -> str:
    """Return the text key of the run's next action after an answer that counts."""
    if view.held:
        return "run_is_held"
    if result.answer == STOP:
        return "run_ends"
    return "goes_on" if view.question.kind in TO_CUSTOMER and result.answer != SKIP else "run_goes_on"


def _answer_before(view: QuestionView) -> dict[str, str | None]:
    at = view.answered_at.isoformat() if view.answered_at else None
    return {"answer": view.answer, "by": view.by, "answered_at": at}


def _verdict(words: Texts, view: QuestionView, result: AnswerOutcome) -> str:
    """Return the outcome of the answer; if another person was first, also when that was."""
    if result.state != "late" or view.answered_at is None:
        return verdict(words, view, result)
    return words.get(
        "question.late_at",
        by=words.person(view.by),
        time=f"{view.answered_at:%Y-%m-%d %H:%M}",
        answer=answer_label(view, view.answer, words),
    )


async def _open(desk: Desk, me: Actor) -> list[tuple[QuestionView, RunView | None, int]]:
    """Return each open question with its run and the run's number."""
    numbers = History(desk.context.db)
    views = await desk.questions.all_open(me)
    return [(view, await desk.runs.get(view.run_id), await numbers.number_of(view.run_id)) for view in views]


def _head(view: QuestionView, run: RunView | None, number: int, words: Texts) -> Line:
    """Return a line with the run that asks, its phone, and since when it waits."""
    parts = [f"#{number}", *([run.phone] if run and run.phone else [])]
    if view.asked_at is not None:
        parts.append(words.get("question.since", time=view.asked_at.strftime("%m-%d %H:%M")))
    return Line(" · ".join(parts))


def _given(
    question_id: str, said: str, *, confirmed: bool = False
) -> Callable[[Desk, Actor], Awaitable[tuple[QuestionView, AnswerOutcome | None, bool]]]:
    """Return a call that gives the answer; it returns the question, the outcome, and whether a server continues."""

    async def call(desk: Desk, me: Actor) -> tuple[QuestionView, AnswerOutcome | None, bool]:
        view = await desk.questions.get(question_id)
        if view is None:
            raise NotFound(
                f"There is no question {question_id}.", advice="See /ask for the open ones.", key="no_question"
            )
        given = read_answer(view.question, said, by=me.name)
        if given is None:
            return view, None if view.open else AnswerOutcome("late", view.by, view.answer), False
        if view.open and not confirmed and to_confirm(view.question, given):
            return view, None, False
        result = await desk.questions.answer(me, view.id, choice=given.choice, text=given.text)
        return await desk.questions.get(view.id) or view, result, await phones_are_worked(desk)

    return call


def _hint(view: QuestionView, words: Texts) -> str:
    return words.get("question.hint_command", id=view.id)


def _plain(view: QuestionView, words: Texts) -> dict[str, Any]:
    question = view.question
    return {
        "id": view.id,
        "run_id": view.run_id,
        "phone": view.serial,
        "kind": question.kind.value,
        "contact": question.data.get("contact", ""),
        "text": question.text,
        "choices": [choice_label(view, number, words) for number in range(len(question.choices))],
        "free_text": question.free_text,
        "asked_at": view.asked_at.isoformat() if view.asked_at else None,
        "deadline": view.deadline.isoformat() if view.deadline else None,
    }
