"""What a person is offered by buttons: none that would be refused for their role; and for free words in a private chat
what they may mean, namely the answer to a question that is open there, a task, or one for a time.

The words themselves are read again from the message that the offer replies to.
"""

from __future__ import annotations

from dataclasses import replace

from agent_core.errors import InputRejected
from agent_core.session import TO_CUSTOMER
from bot.channels.chat import proposals, schedules
from bot.channels.chat.answering import read_answer, told
from bot.channels.chat.cards import Button, Card, Line, choice_label, question_title
from bot.channels.chat.schedule_reading import ScheduleRequest, read_timed
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.actors import Actor, Role
from bot.desk.views import QuestionView

# By what stands before the first colon of the action; every other one is for all, or its subject looks to it.
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
    """Without the buttons that this person may not use. Where others read along, they stay: one of them may."""
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
    kept = (tuple(button for button in row if role.covers(_least(button))) for row in rows)
    return tuple(row for row in kept if row)


def _least(button: Button) -> Role:
    return LEAST.get(button.action.partition(":")[0], Role.VIEWER)


MOST_OFFERED = 5
SHOWN = 60  # characters of a question


async def offer(turn: Turn) -> Said:
    """As an answer where a question with a card in this chat takes such words, and as a task in any case."""
    words, said = turn.texts, turn.incoming.text.strip()
    if not turn.actor.role.covers(Role.OPERATOR):
        return turn.tell(words.get("offer.not_yours"), words.get("offer.not_yours_how"))
    lines = [Line(said, "", "quote")]
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
    """A time and a task; or why what begins with a time is none; None where no time stands in front."""
    try:
        return read_timed(said)
    except InputRejected as error:
        return error


def _as_a_task(turn: Turn, said: str) -> tuple[str, list[Line], list[tuple[Button, ...]]]:
    """Title, lines and buttons: what begins with a time is not begun at once without a word about it."""
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
    """The task alone, for ``go:now``: a run told to do something every five minutes might try."""
    timed = _timed(said)
    return timed.task if isinstance(timed, ScheduleRequest) else said


def _timed_button(words: Texts) -> Button:
    return Button("timed", words.get("offer.schedule"), "success")


async def _open_here(turn: Turn) -> list[QuestionView]:
    """The newest first; none where the person may not answer."""
    if not turn.actor.role.covers(Role.OPERATOR):
        return []
    return list(await turn.desk.questions.here(turn.actor, turn.chat))


def _about(view: QuestionView, words: Texts) -> str:
    contact = str(view.question.data.get("contact") or "")
    return " · ".join(part for part in (question_title(view.question, words), contact) if part)


def _lines(view: QuestionView, words: Texts, number: int) -> list[Line]:
    """``number`` 0: it is the only one."""
    text = " ".join(view.question.text.split())
    text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    lines = [Line(_about(view, words), f"{number}." if number else "")]
    return [*lines, Line(text, "", "quote")] if text else lines


def _meaning(view: QuestionView, said: str, words: Texts) -> str:
    """What a tap does with the words: they choose, go to the customer, or are told to the agent."""
    given = read_answer(view.question, said)
    for number, choice in enumerate(view.question.choices):
        if given is not None and choice.value == given.choice:
            return words.get("offer.choose", choice=choice_label(view, number, words))
    return words.get("offer.to_customer" if view.question.kind in TO_CUSTOMER else "offer.to_agent")


async def _forged(turn: Turn) -> bool:
    """Whether the tap is on a button that the bot does not show; that is written down."""
    incoming = turn.incoming
    if incoming.is_shown():
        return False
    await turn.desk.people.turned_away(incoming.chat.channel, incoming.person.user_id, incoming.person.name, "forged")
    return True


def confirm(turn: Turn, view: QuestionView) -> Said:
    """Words for a customer that look like a command: they go out by a button alone."""
    words, said = turn.texts, turn.incoming.text.strip()
    send = Button(f"mine:{view.id}", words.get("offer.to_customer"))
    title = words.get("question.like_a_command")
    return turn.say(Card(title, (Line(said, "", "quote"),), None, ((send, Button("no", words.get("offer.no"))),)))


async def taken(turn: Turn, question_id: str) -> Said:
    """The words are the answer to this question."""
    words, incoming = turn.texts, turn.incoming
    if await _forged(turn):
        return Said(toast=words.get("question.unknown"), alert=True)
    view = await turn.desk.questions.to_answer(turn.actor, question_id)
    if view is None:
        return Said(toast=words.get("question.unknown"), alert=True)
    said = incoming.subject.strip()
    given = read_answer(view.question, said)
    if given is None:
        return Said(toast=words.get("offer.lost_words"), alert=True)
    result = await turn.desk.questions.answer(turn.actor, question_id, choice=given.choice, text=given.text)
    receipt = await told(turn, view, result)
    changed = turn.change(Card(receipt, (Line(said, "", "quote"),)), toast=receipt)
    return replace(changed, messages=(*changed.messages, *await proposals.offer(turn, view, result)))


async def scheduled(turn: Turn, _: str) -> Said:
    """The words are a schedule; two taps on one offer add one."""
    words, incoming = turn.texts, turn.incoming
    if await _forged(turn):
        return Said(toast=words.get("offer.lost"), alert=True)
    request = read_timed(incoming.subject.strip())
    if request is None:
        return Said(toast=words.get("offer.lost"), alert=True)
    asked = incoming.reply_to.message_id if incoming.reply_to else incoming.key
    key = f"{turn.chat.channel}:{turn.chat.chat_id}:{asked}:timed"
    card = await schedules.added(turn, request, key=key)
    return turn.change(card, toast=card.title)


SUBJECT = Subject(buttons={"mine": taken, "timed": scheduled})
