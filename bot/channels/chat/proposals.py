"""Offers after a person's answer, in the same chat: always to answer like this, and to answer others who ask alike."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_core.loop.questions import candidate
from agent_core.session import Answer, QuestionKind
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.kb_cards import undo_button
from bot.channels.chat.questions import proposal_mark, question_card
from bot.channels.chat.texts import Texts, texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.views import AnswerOutcome, QuestionView

MOST_ALIKE = 8  # in one list

# Always to answer like this -------------------------------------------------------------------------------------------


async def _keep(turn: Turn, value: str) -> Said:
    """Approve the entry that the card shows. If it has changed since, show it as it is now instead."""
    question_id, _, mark = value.partition(":")
    view = await turn.desk.questions.to_answer(turn.actor, question_id)
    if view is None or view.learnt is None:
        return Said(toast=turn.texts.get("question.kept_before"), alert=True)
    if mark != proposal_mark(view.learnt):
        card = question_card(view, texts(view.lang), run=await turn.desk.runs.get(view.run_id))
        return turn.change(card, toast=turn.texts.get("question.keep_changed"))
    entry = await turn.desk.kb.approve(turn.actor, view.learnt.id)
    return await _decided(turn, view, "question.kept", entry.id)


async def _drop(turn: Turn, question_id: str) -> Said:
    view = await turn.desk.questions.to_answer(turn.actor, question_id)
    if view is None or view.learnt is None:
        return Said(toast=turn.texts.get("question.kept_before"), alert=True)
    entry = await turn.desk.kb.reject(turn.actor, view.learnt.id)
    return await _decided(turn, view, "question.dropped", entry.id, undo=True)


async def _decided(turn: Turn, view: QuestionView, key: str, entry_id: str, *, undo: bool = False) -> Said:
    words = texts(view.lang)  # the card stays in its language, whoever decides
    card = question_card(view, words, run=await turn.desk.runs.get(view.run_id), learnt=words.get(key, id=entry_id))
    buttons = undo_button(entry_id, words) if undo else ()
    return turn.change(replace(card, buttons=buttons), toast=turn.texts.get(key, id=entry_id))


# To answer others who ask alike ---------------------------------------------------------------------------------------


async def offer(turn: Turn, view: QuestionView, result: AnswerOutcome) -> tuple[Outgoing, ...]:
    """Return a list of the open questions that ask nearly the same as the answered one; nothing if there are none."""
    answered = replace(view, open=False, answer=result.answer)
    if result.state != "accepted" or not _text(answered):
        return ()
    others = await _others(turn, view.id)
    if not others:
        return ()
    once = f"alike:{turn.chat.key}:{view.id}"
    return (Outgoing(_card(answered, others, turn.texts), turn.chat, turn.incoming.message_id, once=once),)


async def _same(turn: Turn, value: str) -> Said:
    """Give the same answer: ``QUESTION:OTHER`` to one question, ``QUESTION:all:MARK`` to all in the marked list."""
    question_id, _, wanted = value.partition(":")
    view = await turn.desk.questions.to_answer(turn.actor, question_id)
    if view is None:
        return Said(toast=turn.texts.get("question.unknown"), alert=True)
    if not _text(view):
        return Said(toast=turn.texts.get("same.no_text"), alert=True)
    others = await _others(turn, question_id)
    if wanted.startswith("all:"):
        chosen = others if wanted == f"all:{_mark(others)}" else []
    else:
        chosen = [other for other in others if other.id == wanted]
    done = 0
    for other in chosen:
        given = _same_answer(view, other)
        if given is not None:
            result = await turn.desk.questions.answer(turn.actor, other.id, choice=given.choice, text=given.text)
            done += result.state == "accepted"
    said = turn.texts.get("same.done", count=done) if chosen else turn.texts.get("same.changed")
    left = await _others(turn, question_id)
    card = _card(view, left, turn.texts) if left else Card(turn.texts.get("same.none_left"))
    return turn.change(card, toast=said)


async def _others(turn: Turn, question_id: str) -> Sequence[QuestionView]:
    others = await turn.desk.questions.alike(question_id, actor=turn.actor)
    return others[:MOST_ALIKE]


def _same_answer(view: QuestionView, other: QuestionView) -> Answer | None:
    """Return the answer to ``other`` with the text that answered ``view``; None if that is not a text for a customer.

    If the text was a record and the other question offers it, too, the answer is that record. Then the other wording is
    learnt as one of the record's.
    """
    text = _text(view)
    if not text:
        return None
    picked = _picked(view)
    for choice in other.question.choices if picked is not None else ():
        offered = candidate(other.question, choice.value)
        if offered is not None and picked is not None and _record(offered) == _record(picked):
            return Answer(choice=choice.value)
    return Answer(text=text)


def _text(view: QuestionView) -> str:
    """Return the text that the answer to ``view`` sends to the customer; "" if it sends none."""
    if view.question.kind is not QuestionKind.NO_SURE_ANSWER or view.open:
        return ""
    picked = _picked(view)
    if picked is not None:
        return str(picked.get("text") or "")
    return "" if view.answer in {choice.value for choice in view.question.choices} else view.answer


def _picked(view: QuestionView) -> Mapping[str, Any] | None:
    return candidate(view.question, view.answer)


def _record(found: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(found.get(name) for name in ("id", "source", "text"))


def _card(view: QuestionView, others: Sequence[QuestionView], words: Texts) -> Card:
    """Return a card with the text, and the others' questions in their words, each with a button."""
    lines, buttons = [Line(_text(view), words.get("same.text"), "quote")], []
    for number, other in enumerate(others, start=1):
        asked = " ".join(other.question.text.split())  # uncut: a person decides by the one word that differs
        contact = str(other.question.data.get("contact") or "?")
        lines.append(Line(asked, f"{number}. {contact}", "quote"))
        buttons.append((Button(f"same:{view.id}:{other.id}", words.get("same.one", number=number, contact=contact)),))
    if len(others) > 1:
        every = Button(f"same:{view.id}:all:{_mark(others)}", words.get("same.all", count=len(others)), "primary")
        buttons.append((every,))
    return Card(words.get("same.title", count=len(others)), tuple(lines), None, tuple(buttons))


def _mark(others: Sequence[QuestionView]) -> str:
    """Return a hash of the questions in a list, so that all are answered only if the person has seen them all."""
    return hashlib.blake2b(" ".join(other.id for other in others).encode(), digest_size=4).hexdigest()


SUBJECT = Subject(buttons={"keep": _keep, "drop": _drop, "same": _same})
