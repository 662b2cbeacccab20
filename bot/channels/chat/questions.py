"""Questions in the chat: their cards, and ``/ask``, which lists the open ones and shows one again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog

from agent_core.errors import PhonedeskError
from agent_core.perception.compare import fold
from agent_core.session import TO_CUSTOMER, Question, QuestionKind
from bot.channels.chat.cards import Button, Card, Line, Style, cut, plain
from bot.channels.chat.run_cards import MOST_OF_A_QUESTION
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.views import QuestionView, RunView
from knowledge.entries import Entry
from knowledge.personal import personal_data

log = structlog.get_logger(__name__)

_STYLES: Mapping[str, Style] = {
    "yes": "success", "allow": "success", "done": "success", "arrived": "success", "go_on": "success",
    "retry": "primary", "again": "primary", "send": "success", "not_arrived": "danger", "clear": "danger",
    "enter": "primary", "sent": "success",
    "no": "danger", "deny": "danger", "stop": "danger",
}  # fmt: skip
_DATA_LABELS = (
    ("title", "question.shown_title"),
    ("draft", "question.draft"),
    ("customer", "question.asked"),
)
_ANSWER_LABEL = {
    QuestionKind.DELIVERY_UNKNOWN: "question.our_answer",
    QuestionKind.FIRST_DELIVERY: "question.our_answer",
    QuestionKind.ANSWERED_BEFORE: "question.earlier",
    QuestionKind.REST_UNSENT: "question.rest",
    QuestionKind.STILL_SEND: "question.our_answer",
    QuestionKind.NO_SEND: "question.our_answer",
}
# A person acts on the phone, so the picture from when the card was made is of little use.
ON_THE_PHONE = {QuestionKind.TAKE_OVER, QuestionKind.PERSON_ON_PHONE}
MOST_ASKED = 20  # in one list
# How alike a candidate's question is, by the knowledge base's score. In the sample shop no wording of another entry
# scores 0.8 or more; from 0.5 on, more wordings belong to the same entry than to another one.
VERY_ALIKE, SOMEWHAT_ALIKE = 0.8, 0.5
_CUSTOMERS_WORDS = {QuestionKind.NO_SURE_ANSWER, QuestionKind.ANSWERED_BEFORE, QuestionKind.UNREADABLE}


# Commands and buttons -------------------------------------------------------------------------------------------------


async def ask(turn: Turn) -> Said:
    """Handle ``/ask``: list the open questions."""
    return turn.say(ask_card(await turn.desk.questions.all_open(turn.actor), turn.texts, now=turn.now))


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


async def _card(turn: Turn, view: QuestionView, picture: bytes | None) -> Card:
    alike = len(await turn.desk.questions.alike(view.id, actor=turn.actor))
    run = await turn.desk.runs.get(view.run_id)
    return question_card(view, turn.texts, run=run, picture=picture, alike=alike)


def _over(turn: Turn, view: QuestionView) -> Said:
    return Said(toast=turn.texts.get("question.late_nobody" if not view.by else "ask.over"), alert=True)


async def _picture(turn: Turn, view: QuestionView) -> bytes | None:
    """Return the current screen if a person acts on the phone, else the screen at the time of the question."""
    if view.question.kind in ON_THE_PHONE:
        try:
            return await turn.desk.phones.screenshot(turn.actor, view.serial or None)
        except PhonedeskError as error:  # the phone is away, but the question can still be answered
            log.info("no_fresh_picture", question=view.id, error=str(error))
    return await turn.desk.questions.picture(view.id)


# Cards ----------------------------------------------------------------------------------------------------------------


def question_card(
    view: QuestionView,
    texts: Texts,
    *,
    run: RunView | None = None,
    picture: bytes | None = None,
    hint: str = "",
    alike: int = 0,
    learnt: str = "",
    approves: bool = True,
) -> Card:
    """Return the card of a question with its choices; once it is answered, with the answering person and the learnt
    entry.

    hint: how to answer if there are no buttons.
    alike: how many other open questions ask nearly the same.
    learnt: the fate of the learnt entry, if somebody has decided on it just now.
    approves: whether somebody who sees the card may approve entries.
    """
    question = view.question
    lines = []
    if run is not None:
        lines.append(Line(run.task, texts.get("card.task")))
    if contact := str(question.data.get("contact") or ""):
        lines.append(Line(contact, texts.get("question.contact")))
    if question.text:
        theirs = question.kind in _CUSTOMERS_WORDS
        label = "question.customer" if theirs else "question.words"
        lines.append(Line(question.text if theirs else texts.typed(question.text), texts.get(label), "quote"))
    if not view.open:
        return _closed(view, texts, lines, picture, learnt=learnt, approves=approves)
    lines += _data_lines(view, texts)
    if alike:
        lines.append(Line(texts.get("question.alike", count=alike)))
    if question.kind is QuestionKind.FIRST_DELIVERY:
        lines.append(Line(texts.get("question.learn_first")))
    lines.append(Line(hint or _hint(view, texts)))
    if view.deadline is not None:
        lines.append(Line(_until(view, texts)))
    return Card(
        question_title(view.question, texts), tuple(lines), picture, question_buttons(view, texts), question=view.id
    )


def question_title(question: Question, texts: Texts) -> str:
    """Return a question in a few words, the same wherever it is shown."""
    if question.kind is QuestionKind.NO_SURE_ANSWER and (beside := question.data.get("beside")):
        decided = all(one["answer"] != "" for one in beside)  # None: skipped
        return texts.get("question.sure_beside_decided" if decided else "question.sure_alone")
    if question.data.get("together"):
        return texts.get("question.sure_of_each")
    return texts.get(f"question.{question.kind.value}")


def _closed(
    view: QuestionView, texts: Texts, lines: list[Line], picture: bytes | None, *, learnt: str, approves: bool
) -> Card:
    """Return a closed question's card: who answered what. A learnt entry is shown instead of the candidates."""
    title, outcome = question_title(view.question, texts), Line(_outcome(view, texts))
    if learnt:
        return Card(title, (*lines, outcome, Line(learnt)), picture)
    if view.learnt is None:
        lines += [*_data_lines(view, texts), outcome]
        if view.question.kind is QuestionKind.NO_SURE_ANSWER and _own_words(view):
            lines.append(Line(texts.get("question.learnt")))
        return Card(title, tuple(lines), picture)
    entry = view.learnt
    lines += [outcome, Line(texts.get("question.keep" if approves else "question.keep_by_owner"))]
    lines += [
        Line(entry.question, texts.get("question.keep_asked"), "quote"),
        Line(entry.answer, texts.get("question.keep_answered"), "quote"),
    ]
    buttons = [
        Button(f"keep:{view.id}:{proposal_mark(entry)}", texts.get("question.keep_yes"), "success"),
        Button(f"drop:{view.id}", texts.get("question.keep_no")),
    ]
    new = f"{entry.question}\n{entry.answer}" if _own_words(view) else entry.question  # a candidate's answer is known
    if seen := personal_data(new):
        lines.append(Line(texts.get("kb.personal", seen=" ".join(seen))))
        buttons.append(Button(f"kb:show:{entry.id}", texts.get("kb.edit")))
    return Card(title, tuple(lines), picture, (tuple(buttons),) if approves else ())


def proposal_mark(entry: Entry) -> str:
    """Return a hash of an entry's question and answer, so that the approved text is the shown one."""
    return hashlib.blake2b(f"{entry.question}\n{entry.answer}".encode(), digest_size=4).hexdigest()


def _until(view: QuestionView, texts: Texts) -> str:
    """Return the deadline, and what happens then."""
    if view.deadline is None:
        return ""
    until = texts.get("question.deadline", time=view.deadline.strftime("%m-%d %H:%M"))
    return until + (f" · {texts.get(f'then.{view.then}')}" if view.then else "")


def _data_lines(view: QuestionView, texts: Texts) -> list[Line]:
    data, lines = view.question.data, []
    for key, label in _DATA_LABELS:
        if value := str(data.get(key) or ""):
            lines.append(Line(value, texts.get(label), "quote"))
    label = _ANSWER_LABEL.get(view.question.kind, "")
    if label and (answer := str(data.get("answer") or "")):
        lines.append(Line(answer, texts.get(label), "quote"))
    if new := "\n".join(data.get("new") or ()):
        lines.append(Line(new, texts.get("question.new"), "quote"))
    for other in data.get("beside") or ():
        answer = texts.get("question.beside_skipped") if other["answer"] is None else other["answer"]
        said = f"{other['words']}\n→ {answer}" if answer else other["words"]
        lines.append(Line(said, texts.get("question.beside"), "quote"))
    if count := int(data.get("together") or 0):
        lines.append(Line(texts.get("question.several_messages", count=count)))
    candidates = data.get("candidates")
    for number, candidate in enumerate(candidates if isinstance(candidates, list) else [], start=1):
        if isinstance(candidate, dict):
            lines.append(_candidate_line(candidate, number, view.question.text, texts))
    return lines


def _candidate_line(candidate: Mapping[str, Any], number: int, customer: str, texts: Texts) -> Line:
    """Return a candidate's question and answer, and in words how alike ``customer``'s is if there is a score."""
    asked = cut(str(candidate.get("question") or ""), MOST_OF_A_QUESTION)
    answer = str(candidate.get("text", ""))
    score = candidate.get("score")
    if parts := candidate.get("parts"):
        said = texts.get("question.candidate_together", number=number, count=len(parts))
    elif isinstance(score, int | float):
        how = "same" if asked and fold(asked) == fold(customer) else _alike(score)
        said = texts.get("question.candidate_alike", number=number, alike=texts.get(f"question.alike_{how}"))
    else:
        said = texts.get("question.candidate", number=number)
    if candidate.get("sent"):
        answer = f"{answer}\n{texts.get('question.candidate_sent')}"
    return Line(f"{asked}\n→ {answer}" if asked else answer, said, "quote")


def _alike(score: float) -> str:
    """Return how alike a candidate's question is, as the texts name it."""
    return "very" if score >= VERY_ALIKE else "somewhat" if score >= SOMEWHAT_ALIKE else "not_much"


def _outcome(view: QuestionView, texts: Texts) -> str:
    if not view.by and not view.answer:
        return texts.get("question.closed")
    return texts.get("question.answered", by=texts.person(view.by), answer=answer_label(view, view.answer, texts))


def _own_words(view: QuestionView) -> bool:
    """Tell whether the answer is a person's own words, which go to the customer, and not one of the choices."""
    return bool(view.answer) and view.answer not in {choice.value for choice in view.question.choices}


def _hint(view: QuestionView, texts: Texts) -> str:
    question = view.question
    if not question.choices:
        return texts.get("question.hint_only_reply")
    return texts.get("question.hint_reply" if question.free_text else "question.hint_buttons")


def choice_label(view: QuestionView, number: int, texts: Texts) -> str:
    """Return the words on the button of a choice. ``number`` counts from 0."""
    label = view.question.choices[number].in_words(texts.lang)
    candidates = view.question.data.get("candidates")
    if view.question.kind is QuestionKind.NO_SURE_ANSWER and isinstance(candidates, list) and number < len(candidates):
        return f"{number + 1}. {label}"
    return label


def answer_label(view: QuestionView, answer: str, texts: Texts) -> str:
    """Return an answer as people read it: the words of the choice with this value, else the answer itself."""
    for number, choice in enumerate(view.question.choices):
        if choice.value == answer:
            return choice_label(view, number, texts)
    return answer


def question_buttons(view: QuestionView, texts: Texts) -> tuple[tuple[Button, ...], ...]:
    """Return a button for each choice, ``q:<question>:<number>``; short ones are side by side."""
    question = view.question
    rows: list[tuple[Button, ...]] = []
    for number, choice in enumerate(question.choices):
        button = Button(f"q:{view.id}:{number}", choice_label(view, number, texts), _STYLES.get(choice.value, ""))
        beside = rows and len(rows[-1]) < 2 and all(len(b.label) <= 12 for b in (*rows[-1], button))
        if beside:
            rows[-1] = (*rows[-1], button)
        else:
            rows.append((button,))
    if question.free_text and question.kind in TO_CUSTOMER:
        rows.append((Button(f"own:{view.id}", texts.get("button.own"), "primary"),))
    if question.kind in ON_THE_PHONE:
        rows.append((Button(f"look:{view.id}", texts.get("button.look")),))
    return tuple(rows)


def ask_card(questions: Sequence[QuestionView], texts: Texts, *, now: datetime) -> Card:
    """Return a list of the open questions, each with how long it has been open and a button that shows its card."""
    if not questions:
        return Card(texts.get("ask.none"))
    lines, buttons = [], []
    for number, view in enumerate(questions[:MOST_ASKED], start=1):
        kind, question = question_title(view.question, texts), view.question
        open_for = open_since(texts, view.asked_at or now, now)
        contact = str(question.data.get("contact") or "")
        lines.append(Line(" · ".join(part for part in (kind, contact, open_for) if part), f"#{number}"))
        if question.text:
            lines.append(Line(question.text, "", "quote"))
        buttons.append((Button(f"ask:{view.id}", texts.get("ask.show", number=number)),))
    if len(questions) > MOST_ASKED:
        lines.append(Line(texts.get("ask.more", count=len(questions) - MOST_ASKED)))
    return Card(texts.get("ask.title", count=len(questions)), tuple(lines), None, tuple(buttons))


def open_since(texts: Texts, since: datetime, now: datetime) -> str:
    """Return how long something has been open: in minutes, from an hour on in hours and minutes."""
    minutes = max(0, int((now - since).total_seconds() // 60))
    if minutes < 60:
        return texts.get("ask.open_minutes", minutes=minutes)
    return texts.get("ask.open_hours", hours=minutes // 60, minutes=minutes % 60)


def reminder_card(view: QuestionView, texts: Texts, *, now: datetime) -> Card:
    """Return a short reminder, sent as a reply to the question's card. A reply to it answers the question, too."""
    kind = question_title(view.question, texts)
    if not view.open:
        return plain(kind, _outcome(view, texts))
    lines = [Line(kind)]
    if view.deadline is not None:
        lines.append(Line(_until(view, texts)))
    title = texts.get("ask.reminder", open=open_since(texts, view.asked_at or now, now))
    show = Button(f"ask:{view.id}", texts.get("offer.show_question"))
    return Card(title, tuple(lines), None, ((show,),), question=view.id)


SUBJECT = Subject(
    commands={"ask": ask},
    buttons={"ask": show, "look": look},
)
