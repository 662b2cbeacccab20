"""Buttons that a person is offered: only those that their role may use; and, for free text in a private chat, its
possible meanings: the answer to an open question there, a task, or a schedule.

The text itself is read again from the message that the offer replies to.
"""

from __future__ import annotations

from dataclasses import replace

from agent_core.errors import InputRejected
from agent_core.session import TO_CUSTOMER
from bot.channels.chat import proposals, runs, schedules
from bot.channels.chat.answering import read_answer, told, verdict
from bot.channels.chat.cards import Button, Card, Line, cut
from bot.channels.chat.questions import choice_label, question_title
from bot.channels.chat.schedule_reading import ScheduleRequest, read_timed
from bot.channels.chat.sweeps import means_line
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.actors import Actor, Role, role_denied
from bot.desk.views import AnswerOutcome, QuestionView

# By the part of the action before the first colon. Other buttons are for everybody, or their subject checks the role.
LEAST = {
    "stop": Role.OPERATOR,
    "hold": Role.OPERATOR,
    "resume": Role.OPERATOR,
    "q": Role.OPERATOR,
    "own": Role.OPERATOR,
    "mine": Role.OPERATOR,
    "go": Role.OPERATOR,
    "keep": Role.OWNER,
    "drop": Role.OPERATOR,
    "same": Role.OPERATOR,
    "timed": Role.OWNER,
    "rate": Role.OPERATOR,
    "people": Role.OWNER,
}


def for_person(said: Said, actor: Actor) -> Said:
    """Remove the buttons that this person may not use. In a group they stay, because somebody else may use them."""
    if actor.role is Role.OWNER:
        return said
    messages = tuple(
        replace(message, card=replace(message.card, buttons=_left(message.card.buttons, actor.role)))
        if message.chat.kind == "private" and message.chat.chat_id == actor.user_id
        else message
        for message in said.messages
    )
    return replace(said, messages=messages)


def _left(rows: tuple[tuple[Button, ...], ...], role: Role) -> tuple[tuple[Button, ...], ...]:
    kept = (
        tuple(button for button in row if role.covers(LEAST.get(button.action.partition(":")[0], Role.VIEWER)))
        for row in rows
    )
    return tuple(row for row in kept if row)


MOST_OFFERED = 5
SHOWN = 60  # characters of a question


async def offer(turn: Turn) -> Said:
    """Offer a text as the answer to open questions with a card in this chat that take it, and always as a task."""
    words, said = turn.texts, turn.incoming.text.strip()
    if not turn.actor.role.covers(Role.OPERATOR):
        return turn.tell(words.get("offer.not_yours"), words.get("offer.not_yours_how"))
    means = means_line(without_time(said), words)
    lines = [Line(said, "", "quote"), *([means] if means.text else [])]
    here = await _open_here(turn)
    taking = [view for view in here if read_answer(view.question, said) is not None][:MOST_OFFERED]
    if not taking:
        title, timing, rows = _as_a_task(turn, said)
        lines += timing
        if here:
            lines += [Line(words.get("offer.by_button")), Line(_about(here[0], words))]
            rows.append((Button(f"ask:{here[0].id}", words.get("offer.show_question")),))
        return turn.say(Card(title, tuple(lines), None, tuple(rows)))
    several = len(taking) > 1
    for number, view in enumerate(taking, start=1):
        lines += _lines(view, words, number if several else 0)
    answers = [
        (Button(f"mine:{view.id}", (f"{n}. " if several else "") + _meaning(view, said, words), "success"),)
        for n, view in enumerate(taking, start=1)
    ]
    task = [Button("go", words.get("offer.task")), Button("no", words.get("offer.no"))]
    if isinstance(_timed(said), ScheduleRequest):
        task[0] = Button("go:now", words.get("offer.now"))
        if turn.actor.role is Role.OWNER:
            task.insert(0, _timed_button(words))
    title = words.get("offer.which_question" if several else "offer.answer")
    return turn.say(Card(title, tuple(lines), None, (*answers, tuple(task))))


def _timed(said: str) -> ScheduleRequest | InputRejected | None:
    """Return the schedule that a text asks for, why its time cannot be read, or None if it begins with no time."""
    try:
        return read_timed(said)
    except InputRejected as error:
        return error


def _as_a_task(turn: Turn, said: str) -> tuple[str, list[Line], list[tuple[Button, ...]]]:
    """Return title, lines and buttons for a task. If it begins with a time, they say so before it can run now."""
    words, timed = turn.texts, _timed(said)
    no = Button("no", words.get("offer.no"))
    if timed is None:
        return words.get("offer.title"), [], [(Button("go", words.get("offer.yes"), "success"), no)]
    if isinstance(timed, InputRejected):
        whole = Button("go", words.get("offer.now"))
        return words.get("offer.title"), [Line(words.error(timed))], [(whole, no)]
    now = Button("go:now", words.get("offer.now"))
    lines = [Line(timed.expression, words.get("schedule.expression")), Line(timed.task, words.get("card.task"))]
    if turn.actor.role is not Role.OWNER:
        return words.get("offer.title"), [*lines, Line(words.get("offer.timed_by_owner"))], [(now, no)]
    return words.get("offer.timed"), lines, [(_timed_button(words), now, no)]


def without_time(said: str) -> str:
    """Return the task without its time, for ``go:now``: a run with the words "every five minutes" might try that."""
    timed = _timed(said)
    return timed.task if isinstance(timed, ScheduleRequest) else said


def _timed_button(words: Texts) -> Button:
    return Button("timed", words.get("offer.schedule"), "success")


async def _open_here(turn: Turn) -> list[QuestionView]:
    """Return the open questions in this chat, the newest first; none if the person may not answer."""
    if not turn.actor.role.covers(Role.OPERATOR):
        return []
    return list(await turn.desk.questions.here(turn.actor, turn.chat))


def _about(view: QuestionView, words: Texts) -> str:
    contact = str(view.question.data.get("contact") or "")
    return " · ".join(part for part in (question_title(view.question, words), contact) if part)


def _lines(view: QuestionView, words: Texts, number: int) -> list[Line]:
    """Return the lines of a question. ``number``: 0 if it is the only one."""
    text = cut(view.question.text, SHOWN)
    lines = [Line(_about(view, words), f"{number}." if number else "")]
    return [*lines, Line(text, "", "quote")] if text else lines


def _meaning(view: QuestionView, said: str, words: Texts) -> str:
    """Return the effect of a tap on the text: it chooses, goes to the customer, or goes to the agent."""
    given = read_answer(view.question, said)
    for number, choice in enumerate(view.question.choices):
        if given is not None and choice.value == given.choice:
            return words.get("offer.choose", choice=choice_label(view, number, words))
    return words.get("offer.to_customer" if view.question.kind in TO_CUSTOMER else "offer.to_agent")


async def _forged(turn: Turn) -> bool:
    """Tell whether the tapped button is not under its message, and write that to the audit log."""
    incoming = turn.incoming
    if incoming.is_shown():
        return False
    await turn.desk.people.turned_away(incoming.chat.channel, incoming.person.user_id, incoming.person.name, "forged")
    return True


def confirm(turn: Turn, view: QuestionView) -> Said:
    """Ask before words that look like a command go to a customer: only a button sends them."""
    words, said = turn.texts, turn.incoming.text.strip()
    send = Button(f"mine:{view.id}", words.get("offer.to_customer"))
    title = words.get("question.like_a_command")
    return turn.say(Card(title, (Line(said, "", "quote"),), None, ((send, Button("no", words.get("offer.no"))),)))


async def taken(turn: Turn, question_id: str) -> Said:
    """Take the text as the answer to this question."""
    words, said = turn.texts, turn.incoming.subject.strip()
    forged = await _forged(turn)
    view = await turn.desk.questions.to_answer(turn.actor, question_id)
    if view is None:
        return Said(toast=words.get("question.unknown"), alert=True)
    given = None if forged else read_answer(view.question, said)
    if given is None:
        lost = words.get("offer.lost_words")
        over = verdict(words, view, AnswerOutcome("late", view.by, view.answer), me=turn.actor.name)
        return Said(toast=lost if view.open else over, alert=True)
    result = await turn.desk.questions.answer(turn.actor, question_id, choice=given.choice, text=given.text)
    receipt = told(turn, view, result)
    changed = turn.change(Card(receipt, (Line(said, "", "quote"),)), toast=receipt)
    return replace(changed, messages=(*changed.messages, *await proposals.offer(turn, view, result)))


async def scheduled(turn: Turn, _: str) -> Said:
    """Take the text as a schedule. Two taps on one offer add only one."""
    words, incoming = turn.texts, turn.incoming
    if await _forged(turn):
        return Said(toast=words.get("offer.lost"), alert=True)
    request = read_timed(incoming.subject.strip())
    if request is None:
        return Said(toast=words.get("offer.lost"), alert=True)
    card = await schedules.added(turn, request, key=_key(turn, "timed"))
    return turn.change(card, toast=card.title)


async def started(turn: Turn, value: str) -> Said:
    """Start the text as a task, ``now`` without its time. Two taps on one offer start one run."""
    words, incoming = turn.texts, turn.incoming
    if not turn.actor.role.covers(Role.OPERATOR):
        raise role_denied(turn.actor, Role.OPERATOR)
    task = incoming.subject.strip()
    task = without_time(task) if value == "now" else task
    if await _forged(turn) or not task:
        return Said(toast=words.get("offer.lost"), alert=True)
    run = await turn.desk.runs.start(turn.actor, task, chat=turn.chat, key=_key(turn, "go"))
    # The offer itself becomes the run's card.
    card = replace(runs.card_of(turn, run), replaces=incoming.reply_to)
    return Said((card,), toast=words.get("offer.started"))


async def declined(turn: Turn, _: str) -> Said:
    """Leave the text alone."""
    words, task = turn.texts, turn.incoming.subject.strip()
    if not turn.actor.role.covers(Role.OPERATOR):
        raise role_denied(turn.actor, Role.OPERATOR)
    if await _forged(turn):
        return Said(toast=words.get("offer.lost"), alert=True)
    said = words.get("offer.declined")
    return turn.change(Card(said, (Line(task, "", "quote"),) if task else ()), toast=said)


def _key(turn: Turn, what: str) -> str:
    """Return the name of what an offer brings, the same however often it is tapped."""
    incoming = turn.incoming
    asked = incoming.reply_to.message_id if incoming.reply_to else incoming.key
    return f"{turn.chat.channel}:{turn.chat.chat_id}:{asked}:{what}"


SUBJECT = Subject(buttons={"mine": taken, "timed": scheduled, "go": started, "no": declined})
