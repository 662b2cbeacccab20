"""The questions that a run puts to a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from agent_core.actions.types import Tap
from agent_core.model.usage import money
from agent_core.perception.compare import Likeness, differences
from agent_core.perception.readings import ChatScreen, told_all
from agent_core.policies import Situation
from agent_core.policies.approval import asked_about
from agent_core.policies.right_chat import title_likeness
from agent_core.ports import LedgerRow, Record
from agent_core.reply.asked import CustomerQuestion
from agent_core.session import AskedQuestion, Choice, Planned, Question, QuestionKind, RowMark, Session
from agent_core.texts import cut, say, sentences

CANDIDATES = 3
RECORD = "record:"  # prefix of the choices that are candidates
# A record with a lower score is not a candidate, because one tap would send it. Of 36 questions in customers' words to
# the sample shop 35 score 0.2 or more with the right entry; a lower score means hardly a common word. For an external
# service, too, such a record is unrelated.
LEAST_SCORE = 0.2
LONGEST_SAID = 200  # characters of the model's words that are shown beside ours
SKIP = "skip"
STOP = "stop"  # ends the run
NONE = "none"


def _question(
    session: Session,
    kind: QuestionKind,
    text: str,
    choices: dict[str, str],
    *,
    first: Sequence[Choice] = (),
    free_text: bool = False,
    **data: object,
) -> Question:
    """Make a question. ``choices``: the keys of their labels, by value; ``first``: those that come before them."""
    keys = {value: f"card.{key}" for value, key in choices.items()}
    return Question(
        id=uuid4().hex[:12],
        kind=kind,
        text=text,
        choices=[*first, *(Choice(value=value, label=say(session.lang, key), key=key) for value, key in keys.items())],
        free_text=free_text,
        data={"contact": session.gate.contact, **data},
    )


def best_first(records: Sequence[Record]) -> list[Record]:
    """Sort records by score if all with a text have one, else keep their order. Those without a text come last.

    A person is shown them in this order, and the answer log stores the same order.
    """
    texts = [record for record in records if record.text.strip()]
    if all(record.score is not None for record in texts):
        texts.sort(key=lambda record: record.score or 0.0, reverse=True)
    return [*texts, *(record for record in records if not record.text.strip())]


def no_sure_answer(
    session: Session,
    planned: Planned,
    records: Sequence[Record],
    *,
    beside: Sequence[Mapping[str, str | None]] = (),
    sent: Sequence[Record] = (),
    together: Sequence[Record] = (),
) -> Question:
    """Ask for an answer: with the customer's words, the best records as choices, free text, or skip.

    together: the sure answer to each message of the question, in order, if each message by itself has one. They are
        the first choice, as one.
    beside: what else the customer wrote that has no sure answer, although this text has one: its ``words``, and the
        ``answer`` of a person, "" if it has none yet, or None if a person skipped it.
    sent: the records whose texts stand below these messages already; the customer does not get them twice.
    """
    best = [r for r in best_first(records) if r.text.strip() and (r.score is None or r.score >= LEAST_SCORE)]
    best = best[: CANDIDATES - bool(together)]
    labels = [record.question or record.text[:40] for record in best]
    numbered = [Choice(value=f"{RECORD}{n}", label=label) for n, label in enumerate(labels, start=bool(together))]
    if together:
        key = "card.together"
        numbered.insert(0, Choice(value=f"{RECORD}0", label=say(session.lang, key), key=key))
    return _question(
        session,
        QuestionKind.NO_SURE_ANSWER,
        planned.question,
        {SKIP: "skip"},
        first=numbered,
        free_text=True,
        query=planned.query,
        ledger_id=planned.ledger_id,
        fingerprint=planned.fingerprint,
        beside=[dict(one) for one in beside],
        together=len(together),
        candidates=[*([_together(together)] if together else []), *(_candidate(r, sent=r in sent) for r in best)],
    )


def _candidate(record: Record, *, sent: bool = False) -> dict[str, Any]:
    return {
        "id": record.id,
        "text": record.text,
        "question": record.question,
        "score": record.score,
        "source": record.source,
        "sent": sent,
    }


def _together(records: Sequence[Record]) -> dict[str, Any]:
    """Return a candidate of several records: their texts, each once, and the records as its ``parts``."""
    return {
        "id": "",
        "text": "\n".join(dict.fromkeys(record.text.strip() for record in records)),
        "question": "",
        "score": None,
        "source": records[0].source,
        "sent": False,
        "parts": [_candidate(record) for record in records],
    }


def candidate(question: Question, choice: str) -> dict[str, Any] | None:
    """Return the stored record that a choice of ``no_sure_answer`` stands for, or None."""
    number, candidates = choice.removeprefix(RECORD), question.data.get("candidates") or []
    if choice == number or not number.isdecimal() or int(number) >= len(candidates):
        return None
    found: dict[str, Any] = candidates[int(number)]
    return found


def right_chat(session: Session, title: str, detail: str, chat: ChatScreen | None = None) -> Question:
    """Ask whether this is the contact's chat. ``chat`` is what a yes will hold for.

    If the chat's name only looks like the contact's, the question names the letters that differ.
    """
    contact = session.gate.contact
    doubt = told_all(chat.doubts, session.lang) if chat is not None and chat.doubts else detail
    text = say(session.lang, "delivery.chat_unsure", contact=contact or "?", doubt=doubt)
    if chat is not None and title_likeness(chat, contact) is Likeness.ALIKE:
        letters = differences(chat.title, contact)
        text = say(session.lang, "delivery.chat_alike", title=chat.title, contact=contact, letters=letters)
    seen: dict[str, Any] = {}
    if chat is not None:
        doubts = [doubt.key for doubt in chat.doubts]
        seen = {"title_print": chat.title_print, "doubts": doubts, "group": chat.group}
    return _question(session, QuestionKind.RIGHT_CHAT, text, {"yes": "yes", "no": "no"}, title=title, **seen)


def which_row(session: Session, rows: Sequence[RowMark]) -> Question:
    """Ask which of several rows with the contact's name, from the top, is meant; of one row, whether it is."""
    contact = session.gate.contact
    labels = [" · ".join(filter(None, (str(n), row.time, cut(row.preview, 40)))) for n, row in enumerate(rows, 1)]
    return _question(
        session,
        QuestionKind.WHICH_ROW,
        say(session.lang, f"delivery.{'which_row' if len(rows) > 1 else 'is_row'}", contact=contact, count=len(rows)),
        {NONE: "none_of_them"},
        first=[Choice(value=f"row:{n}", label=label) for n, label in enumerate(labels)],
        rows=[row.model_dump() for row in rows],
    )


def answered_before(session: Session, question: str, answer: str, fingerprint: str) -> Question:
    """Ask whether to answer again, because the same words were answered before."""
    return _question(
        session,
        QuestionKind.ANSWERED_BEFORE,
        question,
        {"again": "again", SKIP: "already"},
        answer=answer,
        fingerprint=fingerprint,
    )


def delivery_unknown(session: Session, reply: Planned | LedgerRow) -> Question:
    """Ask whether the part of ``reply`` that was on its way has arrived."""
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
    """Ask how to send a typed text, because no control that sends it was found."""
    return _question(
        session,
        QuestionKind.NO_SEND,
        say(session.lang, "delivery.no_send"),
        {"enter": "press_enter", "sent": "sent_by_hand", SKIP: "give_up"},
        answer=planned.part_text,
        customer=planned.question,
    )


def first_delivery(session: Session, planned: Planned, app: str, version: str, changed: Sequence[str] = ()) -> Question:
    """Ask before the first reply in an untested version of the app, and show the text that is about to be sent.

    changed: fields of ``AppLook`` that look different now, if the version itself is known.
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


def rest_unsent(session: Session, planned: Planned, new: Sequence[str] = ()) -> Question:
    """Ask whether to send the rest of a long answer, because the messages ``new`` came between two of its parts."""
    rest = "\n".join(planned.parts[planned.part :])
    text = say(session.lang, "delivery.rest_unsent", sent=planned.part, parts=len(planned.parts))
    choices = {"send": "send_rest", SKIP: "leave_rest"}
    return _question(session, QuestionKind.REST_UNSENT, text, choices, answer=rest, new=list(new))


def still_send(
    session: Session, planned: Planned, shown: Sequence[CustomerQuestion] = (), new: Sequence[str] = ()
) -> Question:
    """Ask whether to send a person's answer although the chat has changed since.

    shown: what a skip settles. new: the messages that came since the answer.
    """
    return _question(
        session,
        QuestionKind.STILL_SEND,
        say(session.lang, "delivery.still_send"),
        {"send": "send", SKIP: "skip"},
        free_text=True,
        answer=planned.text,
        customer=planned.question,
        new=list(new),
        shown=[{"words": one.words, "fingerprint": one.fingerprint} for one in shown],
    )


def written_before(session: Session, planned: Planned) -> Question:
    """Ask about an answer that a person wrote to the same messages in an earlier run, which did not send it."""
    question = still_send(session, planned)
    question.text = say(session.lang, "delivery.written_before")
    return question


def unreadable(session: Session, asked: AskedQuestion) -> Question:
    """Ask for an answer to a message that is not text: a person looks, and writes the answer or skips it."""
    return _question(
        session,
        QuestionKind.UNREADABLE,
        asked.words,
        {SKIP: "skip"},
        free_text=True,
        fingerprint=asked.fingerprint,
    )


def person_on_phone(session: Session) -> Question:
    """Ask whether the run may go on, because somebody touched the phone."""
    text = say(session.lang, "run.person_on_phone")
    return _question(session, QuestionKind.PERSON_ON_PHONE, text, {"go_on": "go_on", STOP: "stop"})


def foreign_draft(session: Session, draft: str) -> Question:
    """Ask whether to clear a draft that is not ours from the input."""
    text = say(session.lang, "delivery.foreign_draft", draft=draft)
    return _question(session, QuestionKind.FOREIGN_DRAFT, text, {"clear": "clear", SKIP: "keep"}, draft=draft)


def chat_changed(session: Session, new: Sequence[str] = ()) -> Question:
    """Ask whether to try again, because the chat kept changing while we answered; ``new`` is the newest message."""
    text = say(session.lang, "delivery.changed_gave_up")
    return _question(session, QuestionKind.CHAT_CHANGED, text, {"retry": "retry", SKIP: "skip"}, new=list(new))


def sensitive_tap(session: Session, tap: Tap, situation: Situation, to_ask: str = "") -> Question:
    """Ask before a sensitive tap, in ``to_ask`` if a policy wrote it, else in our words for the button.

    The model's own words follow as a quotation, because a page may have made it say them.
    """
    target = situation.target(tap.element)
    named = say(session.lang, "run.ask_tap_on", target=target) if target else say(session.lang, "run.ask_tap")
    said = cut(" ".join(re.sub("[“”]", " ", tap.message or "").split()), LONGEST_SAID)
    words = say(session.lang, "run.ask_tap_said", said=said) if said else ""
    text = " ".join(filter(None, (to_ask or named, words)))
    choices = {"allow": "allow", "deny": "deny"}
    return _question(session, QuestionKind.SENSITIVE_TAP, text, choices, **asked_about(tap, situation))


def take_over(session: Session, message: str) -> Question:
    """Ask a person to do on the phone what ``message`` says, and to say when it is done."""
    text = message.strip() or say(session.lang, "run.take_over_blank")
    return _question(session, QuestionKind.TAKE_OVER, text, {"done": "done", STOP: "stop"})


def interact(session: Session, text: str, choices: Sequence[str]) -> Question:
    """Ask the model's question, with its choices except blank and repeated ones; free text is allowed, too."""
    named = dict.fromkeys(choice for choice in choices if choice.strip())
    text = text.strip() or say(session.lang, "run.interact_blank")
    first = [Choice(value=choice, label=choice) for choice in named]
    return _question(session, QuestionKind.INTERACT, text, {}, first=first, free_text=True)


def stuck(session: Session, text: str) -> Question:
    """Ask whether a run that makes no progress is to continue. Free text is passed to the model.

    A person who let it continue before is told so, because the same again is not likely to help.
    """
    if before := sum(question.kind is QuestionKind.STUCK for question in session.questions):
        text = sentences([text, say(session.lang, "run.stuck_again", count=before)], session.lang)
    return _question(session, QuestionKind.STUCK, text, {"go_on": "go_on", STOP: "stop"}, free_text=True)


def budget(session: Session) -> Question | None:
    """Ask whether the run may spend as much again, if its budget is used up. A reply that is half sent continues."""
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
    """Raise the run's budget above what it has spent so far, because a person said to go on."""
    spent = session.spent
    times = [spent.tokens // session.max_tokens] if session.max_tokens else []
    times += [int((spent.cost or 0.0) // session.max_cost)] if session.max_cost else []
    session.allowance = max(session.allowance, *times) + 1 if times else session.allowance + 1
