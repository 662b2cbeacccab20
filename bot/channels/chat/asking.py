"""Open questions on demand: ``/ask`` and its buttons."""

from __future__ import annotations

import structlog

from agent_core.errors import PhonedeskError
from bot.channels.chat import cards
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.views import QuestionView

log = structlog.get_logger(__name__)


async def ask(turn: Turn) -> Said:
    """Handle ``/ask``: list the open questions."""
    return turn.say(cards.ask_card(await turn.desk.questions.all_open(turn.actor), turn.texts, now=turn.now))


async def show(turn: Turn, question_id: str) -> Said:
    """Show the question's card again in this chat, as a new message, for example if the old one was lost."""
    name = turn.incoming.key or f"{turn.chat.chat_id}:{turn.incoming.message_id}"
    view = await turn.desk.questions.show(turn.actor, question_id, chat=turn.chat, name=name)
    picture = await _picture(turn, view) if view.open else None
    view = await turn.desk.questions.get(question_id) or view  # it may have been answered while the picture was taken
    if not view.open:
        return _over(turn, view)
    card = await _card(turn, view, picture)
    return Said((Outgoing(card, turn.chat, shows=f"question:{question_id}@{name}"),))


async def look(turn: Turn, question_id: str) -> Said:
    """Put a fresh picture of the phone on the card whose button was tapped."""
    view = await turn.desk.questions.get(question_id)
    if view is None:
        return Said(toast=turn.texts.get("question.unknown"), alert=True)
    if not view.open:
        return _over(turn, view)
    picture = await turn.desk.phones.screenshot(turn.actor, view.serial or None)
    view = await turn.desk.questions.get(question_id) or view
    if not view.open:
        return _over(turn, view)
    card = await _card(turn, view, picture)
    return turn.change(card, toast=turn.texts.get("ask.fresh"))


async def _card(turn: Turn, view: QuestionView, picture: bytes | None) -> cards.Card:
    alike = len(await turn.desk.questions.alike(view.id, actor=turn.actor))
    run = await turn.desk.runs.get(view.run_id)
    return cards.question_card(view, turn.texts, run=run, picture=picture, alike=alike)


def _over(turn: Turn, view: QuestionView) -> Said:
    return Said(toast=turn.texts.get("question.late_nobody" if not view.by else "ask.over"), alert=True)


async def _picture(turn: Turn, view: QuestionView) -> bytes | None:
    """Return the current screen if a person acts on the phone, else the screen at the time of the question."""
    if view.question.kind in cards.ON_THE_PHONE:
        try:
            return await turn.desk.phones.screenshot(turn.actor, view.serial or None)
        except PhonedeskError as error:  # the phone is away, but the question can still be answered
            log.info("no_fresh_picture", question=view.id, error=str(error))
    return await turn.desk.questions.picture(view.id)


SUBJECT = Subject(
    commands={"ask": ask},
    buttons={"ask": show, "look": look},
)
