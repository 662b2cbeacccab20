"""Cards of runs and questions: pure functions from the desk's views to a ``Card``, which a channel shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agent_core.actions.write import in_words
from agent_core.model.usage import money
from agent_core.perception.compare import fold
from agent_core.session import (
    TO_CUSTOMER,
    KeptNote,
    LeftTo,
    Question,
    QuestionKind,
    ReplyRecord,
    StepRecord,
    StepVerdict,
)
from agent_core.texts import rule_words, say
from bot.channels.chat.texts import Texts
from bot.desk.history_views import PastRun
from bot.desk.views import AnswerView, PhoneView, QuestionView, RunStatus, RunView, StatusView
from knowledge.entries import Entry
from knowledge.personal import personal_data

Style = Literal["", "danger", "success", "primary"]
_LATIN = "\u2e7f"  # letters after this one are Chinese


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a card. ``action`` comes back when it is tapped; it has at most 64 bytes."""

    action: str
    label: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a card, ``label: text``. A long text may be cut.

    kind: ``quote`` for somebody's own words, ``code`` for a text to copy, ``secret`` for one that lets somebody in: a
        channel that keeps its messages keeps them without it.
    """

    text: str
    label: str = ""
    kind: Literal["plain", "quote", "code", "secret"] = "plain"


@dataclass(frozen=True, slots=True)
class Document:
    """A file for a person. ``name`` is a plain file name with its ending."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """An order for a replay. It takes seconds, so the channel has it made when it is shown (``history.media_card``)."""

    run_id: str
    kind: Literal["gif", "album", "sheet"]
    lang: Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Card:
    """The content that a channel shows as one message.

    picture: an encoded JPEG (or PNG).
    document, animation, album: sent in place of a picture, with the card as the caption. An animation is a GIF. An
        album has 2 to 10 JPEGs and no buttons.
    film: an order for a replay, whose card is shown instead.
    question: the id of the question that the card asks. Once it is answered, the card is no longer shown.
    """

    title: str
    lines: tuple[Line, ...] = ()
    picture: bytes | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()
    document: Document | None = None
    animation: Document | None = None
    album: tuple[bytes, ...] = ()
    film: ReplayOrder | None = None
    question: str = ""


def separator(label: str, colon: str) -> str:
    """Return the separator of a line's label and text: a blank after a number or a command, else ``colon``."""
    return " " if label.startswith(("/", "#")) or label.endswith(".") else colon


def colon_of(title: str, label: str) -> str:
    """Return a Chinese or a Latin colon, by the card's title; a label by itself may be a phone's or a person's name."""
    first = next((char for char in title if char.isalpha()), "")
    return "：" if first > _LATIN or label[-1:] > _LATIN else ": "


MOST_SAID = 600  # characters of sent texts on the card of a run
MOST_OF_A_QUESTION = 80  # characters of a record's question; its answer is more important
MOST_OF_A_TASK = 60  # characters of another run's task


def cut(text: str, length: int) -> str:
    """Return ``text`` as one line of at most ``length`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def plain(title: str, *lines: str) -> Card:
    """Return a card of texts only."""
    return Card(title, tuple(Line(line) for line in lines))


# Runs -----------------------------------------------------------------------------------------------------------------


def elapsed(texts: Texts, since: datetime, until: datetime) -> str:
    """Return a span of time in words."""
    seconds = max(0, round((until - since).total_seconds()))
    if seconds < 60:
        return texts.get("common.seconds", seconds=seconds)
    return texts.get("common.minutes", minutes=seconds // 60, seconds=seconds % 60)


ASKING = {"interact", "take_over"}  # actions whose words say that a person is asked


def describe_action(texts: Texts, step: StepRecord) -> str:
    """Return the action of a step in words; "" if it did nothing. A step that asks a person has not failed."""
    action = step.action or step.asked
    if not action:
        return say(texts.lang, "action.unreadable") if step.unread else ""
    said = in_words(texts.lang, action)
    if step.ok or action.get("kind") in ASKING:
        return said
    return say(texts.lang, "action.asks" if step.asks else "action.failed", action=said)


def model_said(last: StepRecord | None, message: str) -> bool:
    """Tell whether a run's ``message`` is the model's own, from the ``finish`` of its ``last`` step."""
    action = last.action if last is not None else None
    return bool(message) and action is not None and action.get("kind") == "finish" and action.get("message") == message


def started_by(run: RunView | PastRun, texts: Texts) -> str:
    """Return who or what started a run: a person, a program or a schedule; "" if that is not known."""
    if run.schedule_id:
        return texts.get("history.by_schedule", number=run.schedule_id)
    return texts.person(run.by)


def head_lines(run: RunView, texts: Texts) -> list[Line]:
    """Return the first lines of a run's card: task, phone, requester, place in the queue, and the reason for
    waiting.
    """
    lines = [Line(run.task, texts.get("card.task"))]
    if run.phone or run.serial:
        lines.append(Line(run.phone or run.serial, texts.get("card.phone")))
    if by := started_by(run, texts):
        lines.append(Line(by, texts.get("card.by")))
    if run.position:
        lines.append(Line(texts.get("card.position", position=run.position)))
    if (busy := run.busy_with) is not None:
        task, by = cut(busy.task, MOST_OF_A_TASK), texts.person(busy.by)
        said = texts.get(f"card.busy_{busy.kind}", number=busy.number, task=task, by=by, step=busy.steps)
        lines.append(Line(said))
    lines += away_lines(run, texts)
    return lines


def run_card(run: RunView, texts: Texts, *, now: datetime, thinking: str = "", picture: bytes | None = None) -> Card:
    """Return the live card of a run, or its outcome once the run has ended."""
    lines = head_lines(run, texts)
    if run.steps:
        lines.append(Line(texts.get("card.step_of", step=run.steps, max=run.max_steps), texts.get("card.step")))
    if not run.status.final:
        lines += _doing(run, texts, thinking)
    if run.started_at is not None:
        lines.append(Line(elapsed(texts, run.started_at, run.ended_at or now), texts.get("card.elapsed")))
    if run.status.final and run.spent.cost is not None:
        lines.append(Line(f"≈ {money(run.spent.cost)} {run.spent.currency}".rstrip(), texts.get("card.cost")))
    lines += stop_lines(run, texts)
    if run.unanswered:
        lines.append(Line(unanswered_words(run.unanswered, texts, some=bool(run.replies))))
    told = run_state(run, texts).endswith(run.message.rstrip("。."))  # "⏹ Stopped" needs no "Result: Stopped."
    if not told and (run.status.final or run.status is RunStatus.WAITING or run.again_at is not None):
        label = "card.model_note" if model_said(run.last_step, run.message) else "card.result"
        lines.append(Line(run.message, texts.get(label) if run.status.final else ""))
    if run.error_kind and run.status is RunStatus.FAILED and not run.left_to:
        lines += [Line(said) for said in error_lines(run.error_kind, texts, run.message)]
    lines += sent_lines(run.replies, texts)
    lines += note_lines(run.notes, texts) if run.status.final else []
    lines += rating_lines(run.answers, texts)
    buttons = (*rating_buttons(run.answers), *replay_buttons(run, texts)) if run.status.final else ()
    if not run.status.final:
        buttons = _live_buttons(run, texts)
    return Card(run_state(run, texts), tuple(lines), picture, buttons)


def stop_lines(run: RunView, texts: Texts) -> list[Line]:
    """Return who stopped a run. Whoever asked for it when the run was about to end otherwise has not stopped it."""
    if not run.stopped_by or (run.status.final and run.status is not RunStatus.STOPPED):
        return []
    return [Line(texts.person(run.stopped_by), texts.get("card.stopped_by"))]


def unanswered_words(contact: str, texts: Texts, *, some: bool) -> str:
    """Return that a stopped run has left a customer without an answer. ``some``: it has answered another question."""
    return texts.get("card.unanswered_rest" if some else "card.unanswered", contact=contact)


def away_lines(run: RunView, texts: Texts) -> list[Line]:
    """Return why a run's phone is away, how long the run waits, and what to do; nothing if the phone is not away."""
    if not run.away:
        return []
    since = run.away_since.strftime("%m-%d %H:%M") if run.away_since is not None else ""
    lines = [Line(texts.get(f"card.away_{run.away}", phone=run.phone or run.serial, host=run.away_host, since=since))]
    until = run.away_until.strftime("%m-%d %H:%M:%S") if run.away_until is not None else ""
    lines.append(Line(texts.get("card.away_until", time=until) if until else texts.get("card.away_for_ever")))
    do = f"card.away_{run.away}_do" if run.away in {"unauthorized", "host", "nobody"} else "card.away_do"
    return [*lines, Line(texts.get(do))]


def state_of(
    status: RunStatus, *, held: bool = False, away: bool = False, left_to: LeftTo = "", stopping: bool = False
) -> str:
    """Return the text key of a run's state, the same wherever a run is shown.

    stopping: somebody has asked it to stop.

    A run that left its customer to an older run, which has not answered yet, has neither failed nor succeeded.
    """
    if left_to and status.final:
        return {"run": "card.elsewhere", "over": "card.elsewhere_over"}.get(left_to, "card.waiting")
    if stopping and not status.final:
        return "card.stopping"
    if held and not status.final:
        return "card.holding" if status is RunStatus.RUNNING else "card.held"
    return "card.away" if away and status is RunStatus.QUEUED else f"card.{status.value}"


def run_state(run: RunView, texts: Texts) -> str:
    """Return a run's state in words."""
    if run.again_at is not None:
        return texts.get("card.put_off", time=run.again_at.strftime("%H:%M:%S"))
    stopping = bool(run.stopped_by)
    return texts.get(state_of(run.status, held=run.held, away=bool(run.away), left_to=run.left_to, stopping=stopping))


def _live_buttons(run: RunView, texts: Texts) -> tuple[tuple[Button, ...], ...]:
    stop = Button(f"stop:{run.id}", texts.get("button.stop"), "danger")
    screen = Button(screen_action(run.serial), texts.get("button.screen"))
    if run.stopped_by:
        return ((screen,),)
    if run.held:
        return ((Button(f"resume:{run.id}", texts.get("button.resume"), "success"), stop, screen),)
    return ((stop, screen, Button(f"hold:{run.id}", texts.get("button.hold"))),)


def replay_buttons(run: RunView, texts: Texts) -> tuple[tuple[Button, ...], ...]:
    """Return the Replay button if the run has steps."""
    return ((Button(f"replay:{run.id}", texts.get("button.replay")),),) if run.steps else ()


def error_lines(kind: str, texts: Texts, message: str = "") -> list[str]:
    """Return what went wrong and what to do about it, in the person's language.

    message: the error's own words, which are shown elsewhere. Their content is not repeated.
    """
    said, advice = texts.find(f"error.{kind}", texts.get("error.error")), texts.find(f"advice.{kind}", "")
    if message and message.startswith(said.rstrip("。.")):
        return []  # the message has advice for this case
    return [line for line in (said, "" if advice in message else advice) if line]


def _doing(run: RunView, texts: Texts, thinking: str) -> list[Line]:
    lines = []
    thought = thinking or (run.last_step.thinking if run.last_step else "")
    if thought.strip():
        lines.append(Line(thought.strip(), texts.get("card.thinking"), "quote"))
    if run.last_step and (action := describe_action(texts, run.last_step)):
        lines.append(Line(action, texts.get("card.action")))
    if run.last_step and run.last_step.instead_of:
        why = texts.find(f"error.{run.last_step.instead_of}", texts.get("error.model"))
        lines.append(Line(texts.get("card.fallback", model=run.last_step.model, why=why), texts.get("card.model")))
    verdicts = run.last_step.verdicts if run.last_step else []
    return [*lines, *(Line(ruled(verdict, texts), texts.get("card.gate")) for verdict in verdicts)]


def ruled(verdict: StepVerdict, texts: Texts) -> str:
    """Return the decision of a rule in words, and the rule. The rule's own message is written for the model."""
    return " · ".join(part for part in (decided(verdict, texts), rule_words(texts.lang, verdict.policy)) if part)


def decided(verdict: StepVerdict, texts: Texts) -> str:
    """Return the decision of a rule in words."""
    return texts.find(f"gate.{verdict.decision}", verdict.decision)


def screen_action(serial: str, wish: Literal["", "file", "read"] = "") -> str:
    """Return the Screen button's action, without the phone if its serial is too long for a button.

    wish: ``file`` for full resolution, ``read`` for the reading of the screen.
    """
    bare = f"screen:{wish}" if wish else "screen"
    action = f"screen:{serial} {wish}".rstrip() if serial else bare
    return action if len(action.encode()) <= 64 else bare


def reply_lines(reply: ReplyRecord, texts: Texts) -> list[Line]:
    """Return lines with a customer's question, the reply, and its source."""
    lines = []
    if reply.question:
        lines.append(Line(reply.question, texts.get("card.customer", contact=reply.contact), "quote"))
    sent = texts.get("card.sent" if reply.delivered else "card.not_delivered")
    lines.append(Line(reply.text, sent, "quote"))
    return [*lines, *source_lines(reply, texts)]


def sent_lines(replies: Sequence[ReplyRecord], texts: Texts, *, room: int = MOST_SAID) -> list[Line]:
    """Return the replies that fit into ``room`` characters, but at least the first, and how many more there are."""
    lines: list[Line] = []
    for number, reply in enumerate(replies):
        one = reply_lines(reply, texts)
        room -= sum(len(line.label) + len(line.text) for line in one)
        if lines and room < 0:
            return [*lines, Line(texts.get("card.more_sent", count=len(replies) - number))]
        lines += one
    return lines


def note_lines(notes: Sequence[KeptNote], texts: Texts, *, room: int = MOST_SAID) -> list[Line]:
    """Return the newest notes and summaries that fit into ``room`` characters, but at least one, the oldest first."""
    lines: list[Line] = []
    for number in range(len(notes), 0, -1):
        note = notes[number - 1]
        place = " · ".join(part for part in (note.app, texts.get("card.step_short", step=note.step)) if part)
        label = texts.get("card.summary" if note.summary else "card.note", place=place)
        room -= len(label) + len(note.text)
        if lines and room < 0:
            return [Line(texts.get("card.more_notes", count=number)), *lines]
        lines.insert(0, Line(note.text, label, "quote"))
    return lines


def source_lines(answer: ReplyRecord | AnswerView, texts: Texts) -> list[Line]:
    """Return a line with the source of a text: a person, or a record with its score and its chooser; nothing if
    unknown.
    """
    if answer.provenance == "person":
        return [Line(texts.get("card.from_person", person=texts.person(answer.person)), texts.get("card.source"))]
    chosen = [Line(texts.get("answers.by_person", person=texts.person(answer.person)))] if answer.person else []
    if not answer.record_source and not answer.record_id:
        return chosen
    # People know the shop's own entries by their questions, and those of a service also by their document.
    own = answer.record_source.startswith("embedded:")
    asked = [texts.get("card.record", question=cut(one, MOST_OF_A_QUESTION)) for one in answer.record_questions]
    parts = ["" if own else answer.record_source, *asked]
    if not any(parts):
        parts = [texts.get("card.own_record") if own else texts.number(answer.record_id)]
    if answer.score is not None:
        parts.append(texts.get("card.score", score=answer.score))
    return [Line(" · ".join(part for part in parts if part), texts.get("card.source")), *chosen]


# Thumbs ---------------------------------------------------------------------------------------------------------------

THUMBS = {1: "👍", -1: "👎"}
MOST_RATED = 20  # answers on one card; more can be rated in the list of answers
_PRESSED: Mapping[int, Style] = {1: "success", -1: "danger"}


def rating_buttons(answers: Sequence[AnswerView], *, place: str = "") -> tuple[tuple[Button, ...], ...]:
    """Return 👍 and 👎 for each answer, ``rate:<answer>:<1 or -1>``, numbered if there are several.

    place: the end of the action, which tells on which card the button is.
    """
    rows = []
    for number, answer in enumerate(answers[:MOST_RATED], start=1):
        rows.append(
            tuple(
                Button(
                    f"rate:{answer.id}:{rating}" + (f":{place}" if place else ""),
                    (f"{number} " if len(answers) > 1 else "") + thumb + (" ✓" if answer.rating == rating else ""),
                    _PRESSED[rating] if answer.rating == rating else "",
                )
                for rating, thumb in THUMBS.items()
            )
        )
    return tuple(rows)


def rating_lines(answers: Sequence[AnswerView], texts: Texts) -> list[Line]:
    """Return the ratings, and who gave them."""
    label = texts.get("answers.rating")
    return [
        Line(f"{THUMBS[answer.rating]} {answer.rated_by}", f"{label} {number}" if len(answers) > 1 else label)
        for number, answer in enumerate(answers, start=1)
        if answer.rating
    ]


# Questions ------------------------------------------------------------------------------------------------------------

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


# Status and phones ----------------------------------------------------------------------------------------------------


def status_card(status: StatusView, texts: Texts, *, may_act: bool = True) -> Card:
    """Return the card of ``/status``. ``may_act``: whether the person may stop and resume runs."""
    lines = [Line(phone_state(phone, texts), phone.name or phone.serial) for phone in status.phones] or [
        Line(texts.get("status.no_phones"))
    ]
    lines += [Line(_run_line(run, texts)) for run in status.runs]
    if not status.runs:
        lines.append(Line(texts.get("status.idle")))
    for question in status.questions:
        kind = question_title(question.question, texts)
        lines.append(Line(question.question.text or kind, texts.get("status.questions"), "quote"))
    rows = [_row(run, texts) for run in status.runs[:5]] if may_act else []
    return Card(texts.get("status.title"), tuple(lines), None, tuple(rows))


def phone_state(phone: PhoneView, texts: Texts) -> str:
    if phone.state == "away":
        since = phone.since.strftime("%m-%d %H:%M") if phone.since is not None else ""
        return texts.get("status.phone_away", host=phone.host, since=since)
    said = texts.get(f"status.phone_{phone.state}")
    return texts.get("status.phone_at", state=said, host=phone.host) if phone.host else said


def _run_line(run: RunView, texts: Texts) -> str:
    return texts.get("status.run_line", status=run_state(run, texts), task=run.task, steps=run.steps)


def _row(run: RunView, texts: Texts) -> tuple[Button, ...]:
    stop = Button(f"stop:{run.id}", f"{texts.get('button.stop')} · {run.task[:20]}", "danger")
    if not run.held:
        return (stop,)
    return (Button(f"resume:{run.id}", f"{texts.get('button.resume')} · {run.task[:20]}", "success"), stop)


def devices_card(status: StatusView, texts: Texts) -> Card:
    """Return each phone with its serial, its state, its active run, its parked runs and the runs that wait for it."""
    lines = [line for phone in status.phones for line in _device_lines(phone, status.runs, texts)]
    waiting = sum(1 for run in status.runs if not run.serial and run.status is RunStatus.QUEUED)
    if waiting:
        lines.append(Line(texts.get("devices.any_phone", count=waiting), texts.get("devices.queue")))
    none = (Line(texts.get("status.no_phones")),)
    return Card(texts.get("devices.title"), tuple(lines) if status.phones else (*none, *lines))


def _device_lines(phone: PhoneView, runs: Sequence[RunView], texts: Texts) -> list[Line]:
    here = [run for run in runs if run.serial == phone.serial]
    queued = [run for run in here if run.status is RunStatus.QUEUED]
    # A run that waits for a person keeps the phone for a while and then parks. Only the lease tells which it is.
    at_work = [run for run in here if run.status is RunStatus.RUNNING or run.id == phone.run_id]
    parked = [run for run in here if run not in queued and run not in at_work]
    lines = [
        Line(phone_state(phone, texts), phone.name or phone.serial),
        Line(phone.serial, texts.get("devices.serial"), "code"),
    ]
    if phone.tags:
        lines.append(Line(" ".join(f"#{tag}" for tag in phone.tags), texts.get("devices.tags")))
    lines += [Line(_run_line(run, texts), texts.get("devices.runs")) for run in at_work]
    lines += [Line(_run_line(run, texts), texts.get("devices.parked")) for run in parked]
    if queued:
        said = texts.get("devices.waiting", count=len(queued), task=queued[0].task)
        lines.append(Line(said, texts.get("devices.queue")))
    return lines
