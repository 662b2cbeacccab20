"""The questions that a run puts to a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agent_core.actions.types import Tap
from agent_core.model.history import cut
from agent_core.model.usage import money
from agent_core.perception.compare import Likeness, differences
from agent_core.perception.doubts import told_all
from agent_core.perception.readings import ChatScreen
from agent_core.policies import Situation
from agent_core.policies.approval import asked_about
from agent_core.policies.right_chat import title_likeness
from agent_core.ports import LedgerRow, Record
from agent_core.reply.asked import CustomerQuestion
from agent_core.session import AskedQuestion, Choice, Planned, Question, QuestionKind, RowMark, Session
from agent_core.texts import say

CANDIDATES = 3
RECORD = "record:"  # begins the choices that are candidates
# A record below is no candidate: one tap would send it. Of 36 questions in customers' words to the sample shop 35 score
# 0.2 or more with the right entry; what scores less shares hardly a word. For a service it is unrelated, too.
LEAST_SCORE = 0.2
LONGEST_SAID = 200  # characters of the model's words beside ours
SKIP = "skip"
STOP = "stop"  # ends the run
NONE = "none"


def _question(
    session: Session, kind: QuestionKind, text: str, choices: dict[str, str], *, free_text: bool = False, **data: object
) -> Question:
    keys = {value: f"card.{key}" for value, key in choices.items()}
    return Question(
        id=uuid4().hex[:12],
        kind=kind,
        text=text,
        choices=[Choice(value=value, label=say(session.lang, key), key=key) for value, key in keys.items()],
        free_text=free_text,
        data={"contact": session.gate.contact, **data},
    )


def best_first(records: Sequence[Record]) -> list[Record]:
    """By their scores where each one with a text has one, else in the knowledge base's order; without text: the last.

    A person is shown them in this order, and the answer log keeps it: what it shows is what they decided on.
    """
    texts = [record for record in records if record.text.strip()]
    if all(record.score is not None for record in texts):
        texts.sort(key=lambda record: record.score or 0.0, reverse=True)
    return [*texts, *(record for record in records if not record.text.strip())]


def no_sure_answer(
    session: Session, planned: Planned, records: Sequence[Record], *, sure_alone: bool = False
) -> Question:
    """Ask with the customer's words, the best records as choices, one's own words, or skip.

    ``sure_alone``: these words have a sure answer, and what the customer wrote beside them has none.
    """
    best = [r for r in best_first(records) if r.text.strip() and (r.score is None or r.score >= LEAST_SCORE)]
    best = best[:CANDIDATES]
    question = _question(
        session,
        QuestionKind.NO_SURE_ANSWER,
        planned.question,
        {SKIP: "skip"},
        free_text=True,
        query=planned.query,
        ledger_id=planned.ledger_id,
        fingerprint=planned.fingerprint,
        sure_alone=sure_alone,
        candidates=[
            {"id": r.id, "text": r.text, "question": r.question, "score": r.score, "source": r.source} for r in best
        ],
    )
    numbered = [
        Choice(value=f"{RECORD}{n}", label=record.question or record.text[:40]) for n, record in enumerate(best)
    ]
    return question.model_copy(update={"choices": [*numbered, *question.choices]})


def candidate(question: Question, choice: str) -> dict[str, Any] | None:
    """Return the record that this choice of ``no_sure_answer`` stands for, as the question holds it; None if none."""
    number, candidates = choice.removeprefix(RECORD), question.data.get("candidates") or []
    if choice == number or not number.isdecimal() or int(number) >= len(candidates):
        return None
    found: dict[str, Any] = candidates[int(number)]
    return found


def right_chat(session: Session, title: str, detail: str, chat: ChatScreen | None = None) -> Question:
    """``chat`` is what a yes is going to hold for. If its name only looks like the contact's, the letters are told."""
    contact = session.gate.contact
    doubt = told_all(chat.doubts, session.lang) if chat is not None and chat.doubts else detail
    text = say(session.lang, "delivery.chat_unsure", contact=contact or "?", doubt=doubt)
    if chat is not None and title_likeness(chat, contact) is Likeness.ALIKE:
        letters = differences(chat.title, contact)
        text = say(session.lang, "delivery.chat_alike", title=chat.title, contact=contact, letters=letters)
    choices = {"yes": "yes", "no": "no"}
    if chat is None:
        return _question(session, QuestionKind.RIGHT_CHAT, text, choices, title=title)
    doubts = [doubt.key for doubt in chat.doubts]
    seen: dict[str, Any] = {"title_print": chat.title_print, "doubts": doubts, "group": chat.group}
    return _question(session, QuestionKind.RIGHT_CHAT, text, choices, title=title, **seen)


def which_row(session: Session, rows: Sequence[RowMark]) -> Question:
    """Several rows have the contact's name, from the top: which is meant. One: whether it is the contact's."""
    contact = session.gate.contact
    question = _question(
        session,
        QuestionKind.WHICH_ROW,
        say(session.lang, f"delivery.{'which_row' if len(rows) > 1 else 'is_row'}", contact=contact, count=len(rows)),
        {NONE: "none_of_them"},
        rows=[row.model_dump() for row in rows],
    )
    labels = [" · ".join(filter(None, (str(n), row.time, cut(row.preview, 40)))) for n, row in enumerate(rows, 1)]
    numbered = [Choice(value=f"row:{n}", label=label) for n, label in enumerate(labels)]
    return question.model_copy(update={"choices": [*numbered, *question.choices]})


def answered_before(session: Session, question: str, answer: str, fingerprint: str) -> Question:
    return _question(
        session,
        QuestionKind.ANSWERED_BEFORE,
        question,
        {"again": "again", SKIP: "already"},
        answer=answer,
        fingerprint=fingerprint,
    )


def delivery_unknown(session: Session, reply: Planned | LedgerRow) -> Question:
    """``reply`` is the one whose part is on its way."""
    return _question(
        session,
        QuestionKind.DELIVERY_UNKNOWN,
        say(session.lang, "delivery.unknown"),
        {"arrived": "arrived", "not_arrived": "not_arrived"},
        answer=reply.part_text,
        ledger_id=reply.ledger_id if isinstance(reply, Planned) else reply.id,
        more=reply.part + 1 < len(reply.parts),
    )


def no_send(session: Session, planned: Planned) -> Question:
    """The text stands typed, and nothing is seen that sends it."""
    return _question(
        session,
        QuestionKind.NO_SEND,
        say(session.lang, "delivery.no_send"),
        {"enter": "press_enter", "sent": "sent_by_hand", SKIP: "give_up"},
        answer=planned.part_text,
        customer=planned.question,
    )


def first_delivery(session: Session, planned: Planned, app: str, version: str, changed: Sequence[str] = ()) -> Question:
    """The text that is about to be sent, before the first reply in a version of the app that nobody has tried.

    ``changed``: the version is known, but these parts of it look otherwise now (fields of ``AppLook``).
    """
    contact, between = session.gate.contact, say(session.lang, "learnt.between")
    parts = between.join(say(session.lang, f"learnt.{part}") for part in changed)
    said = (
        say(session.lang, "delivery.looks_changed", app=app, contact=contact, parts=parts)
        if changed
        else say(session.lang, "delivery.first", app=app, version=version or "?", contact=contact)
    )
    return _question(
        session,
        QuestionKind.FIRST_DELIVERY,
        said,
        {"send": "send", SKIP: "skip"},
        answer=planned.text,
        customer=planned.question,
        version=version,
    )


def rest_unsent(session: Session, planned: Planned) -> Question:
    """Between two parts of a long answer something else came into the chat."""
    rest = "\n".join(planned.parts[planned.part :])
    text = say(session.lang, "delivery.rest_unsent", sent=planned.part, parts=len(planned.parts))
    return _question(session, QuestionKind.REST_UNSENT, text, {"send": "send_rest", SKIP: "leave_rest"}, answer=rest)


def still_send(session: Session, planned: Planned, shown: Sequence[CustomerQuestion] = ()) -> Question:
    """What a person answered, and the chat that is not any more as it was then. ``shown``: what a skip settles."""
    text = say(session.lang, "delivery.still_send")
    return _question(
        session,
        QuestionKind.STILL_SEND,
        text,
        {"send": "send", SKIP: "skip"},
        free_text=True,
        answer=planned.text,
        customer=planned.question,
        shown=[{"words": one.words, "fingerprint": one.fingerprint} for one in shown],
    )


def written_before(session: Session, planned: Planned) -> Question:
    """What a person wrote to the same messages for an earlier run, which did not send it."""
    question = still_send(session, planned)
    question.text = say(session.lang, "delivery.written_before")
    return question


def unreadable(session: Session, asked: AskedQuestion) -> Question:
    """What the customer sent is no text: a person looks, and writes the answer or skips it."""
    return _question(
        session,
        QuestionKind.UNREADABLE,
        asked.words,
        {SKIP: "skip"},
        free_text=True,
        fingerprint=asked.fingerprint,
    )


def person_on_phone(session: Session) -> Question:
    text = say(session.lang, "run.person_on_phone")
    return _question(session, QuestionKind.PERSON_ON_PHONE, text, {"go_on": "go_on", STOP: "stop"})


def foreign_draft(session: Session, draft: str) -> Question:
    text = say(session.lang, "delivery.foreign_draft", draft=draft)
    return _question(session, QuestionKind.FOREIGN_DRAFT, text, {"clear": "clear", SKIP: "keep"}, draft=draft)


def chat_changed(session: Session) -> Question:
    text = say(session.lang, "delivery.changed_gave_up")
    return _question(session, QuestionKind.CHAT_CHANGED, text, {"retry": "retry", SKIP: "skip"})


def sensitive_tap(session: Session, tap: Tap, situation: Situation, to_ask: str = "") -> Question:
    """What the button says in our own words, ``to_ask`` where a policy has some, and the model's behind it, quoted:
    a page may have talked it into them.
    """
    target = situation.target(tap.element)
    named = say(session.lang, "run.ask_tap_on", target=target) if target else say(session.lang, "run.ask_tap")
    said = cut(" ".join(re.sub("[“”]", " ", tap.message or "").split()), LONGEST_SAID)
    words = say(session.lang, "run.ask_tap_said", said=said) if said else ""
    text = " ".join(filter(None, (to_ask or named, words)))
    choices = {"allow": "allow", "deny": "deny"}
    return _question(session, QuestionKind.SENSITIVE_TAP, text, choices, **asked_about(tap, situation))


def take_over(session: Session, message: str) -> Question:
    text = message.strip() or say(session.lang, "run.take_over_blank")
    return _question(session, QuestionKind.TAKE_OVER, text, {"done": "done", STOP: "stop"})


def interact(session: Session, text: str, choices: Sequence[str]) -> Question:
    """In one's own words, or one of the model's choices: blank ones and a second of the same are left out."""
    named = dict.fromkeys(choice for choice in choices if choice.strip())
    text = text.strip() or say(session.lang, "run.interact_blank")
    question = _question(session, QuestionKind.INTERACT, text, {}, free_text=True)
    return question.model_copy(update={"choices": [Choice(value=c, label=c) for c in named]})


def stuck(session: Session, text: str) -> Question:
    return _question(session, QuestionKind.STUCK, text, {"go_on": "go_on", STOP: "stop"}, free_text=True)


def budget(session: Session) -> Question | None:
    """Whether the run may spend as much again, where it has used up what it may; a reply that is half sent goes on."""
    spent, times = session.spent, session.allowance
    if session.half_sent:
        return None
    if session.max_tokens and spent.tokens >= session.max_tokens * times:
        text = say(session.lang, "run.budget_tokens", spent=f"{spent.tokens:,}", limit=f"{session.max_tokens:,}")
    elif session.max_cost and (spent.cost or 0.0) >= session.max_cost * times:
        cost, most = money(spent.cost or 0.0), money(session.max_cost)
        text = say(session.lang, "run.budget_cost", spent=cost, limit=most, currency=spent.currency)
    else:
        return None
    return _question(session, QuestionKind.BUDGET, text, {"go_on": "go_on", STOP: "stop"})


def allow_more(session: Session) -> None:
    """A person says go on: what the run may spend is raised above what it has spent by now."""
    spent = session.spent
    times = [spent.tokens // session.max_tokens] if session.max_tokens else []
    times += [int((spent.cost or 0.0) // session.max_cost)] if session.max_cost else []
    session.allowance = max(session.allowance, *times) + 1 if times else session.allowance + 1
