"""Free words in a private chat: the answer to a question that is open there, or a task. They say which by a button.

The words themselves are read again from the message that the offer replies to.
"""

from __future__ import annotations

from agent_core.session import TO_CUSTOMER
from bot.chat.answering import read_answer, verdict
from bot.chat.cards import Button, Card, Line, choice_label
from bot.chat.texts import Texts
from bot.chat.turn import Said, Subject, Turn
from bot.desk.actors import Role
from bot.desk.port import QuestionView

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
        rows = [(Button("go", words.get("offer.yes"), "success"), Button("no", words.get("offer.no")))]
        if not here:
            return turn.say(Card(words.get("offer.title"), tuple(lines), None, tuple(rows)))
        lines += [Line(words.get("offer.by_button")), Line(_about(here[0], words))]
        shown = (Button(f"ask:{here[0].id}", words.get("offer.show_question")),)
        return turn.say(Card(words.get("offer.title"), tuple(lines), None, (*rows, shown)))
    several = len(taking) > 1
    for number, view in enumerate(taking, start=1):
        lines += _lines(view, words, number if several else 0)
    answers = [
        (Button(f"mine:{view.id}", (f"{n}. " if several else "") + _meaning(view, said, words), "success"),)
        for n, view in enumerate(taking, start=1)
    ]
    task = (Button("go", words.get("offer.task")), Button("no", words.get("offer.no")))
    title = words.get("offer.which_question" if several else "offer.answer")
    return turn.say(Card(title, tuple(lines), None, (*answers, task)))


async def _open_here(turn: Turn) -> list[QuestionView]:
    """The newest first; none where the person may not answer."""
    if not turn.actor.role.covers(Role.OPERATOR):
        return []
    return list(await turn.desk.questions_here(turn.actor, turn.chat))


def _about(view: QuestionView, words: Texts) -> str:
    contact = str(view.question.data.get("contact") or "")
    return " · ".join(part for part in (words.get(f"question.{view.question.kind.value}"), contact) if part)


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
            return words.get("offer.choose", choice=choice_label(view, number))
    return words.get("offer.to_customer" if view.question.kind in TO_CUSTOMER else "offer.to_agent")


async def taken(turn: Turn, question_id: str) -> Said:
    """The words are the answer to this question."""
    words, incoming = turn.texts, turn.incoming
    if not incoming.is_shown():
        person = incoming.person
        await turn.desk.turned_away(incoming.chat.channel, person.user_id, person.name, "forged")
        return Said(toast=words.get("question.unknown"), alert=True)
    view = await turn.desk.question_to_answer(turn.actor, question_id)
    if view is None:
        return Said(toast=words.get("question.unknown"), alert=True)
    said = incoming.subject.strip()
    given = read_answer(view.question, said)
    if given is None:
        return Said(toast=words.get("offer.lost_words"), alert=True)
    result = await turn.desk.answer(turn.actor, question_id, choice=given.choice, text=given.text)
    told = verdict(words, view, result)
    return turn.change(Card(told, (Line(said, "", "quote"),)), toast=told)


SUBJECT = Subject(buttons={"mine": taken})
