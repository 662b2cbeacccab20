"""Cards of runs: their state and outcome, what was sent and where it came from, and its ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from agent_core.actions.write import in_words
from agent_core.model.usage import money
from agent_core.session import KeptNote, LeftTo, ReplyRecord, StepRecord, StepVerdict
from agent_core.texts import rule_words, say
from bot.channels.chat.cards import Button, Card, Line, Style, cut, screen_action, took_words
from bot.channels.chat.texts import Texts
from bot.desk.history_views import PastRun
from bot.desk.views import AnswerView, RunStatus, RunView

MOST_SAID = 600  # characters of sent texts on the card of a run
MOST_OF_A_QUESTION = 80  # characters of a record's question; its answer is more important
MOST_OF_A_TASK = 60  # characters of another run's task
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
    lines += elapsed_lines(run, texts, now=now)
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


def elapsed_lines(run: RunView, texts: Texts, *, now: datetime) -> list[Line]:
    """Return how long a run has taken; nothing if it has not begun."""
    if run.started_at is None:
        return []
    return [
        Line(took_words(((run.ended_at or now) - run.started_at).total_seconds(), texts), texts.get("card.elapsed"))
    ]


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


def run_line(run: RunView, texts: Texts) -> str:
    """Return a run in one line: its state, its task and its steps."""
    return texts.get("status.run_line", status=run_state(run, texts), task=run.task, steps=run.steps)


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


def note_lines(notes: Sequence[KeptNote], texts: Texts) -> list[Line]:
    """Return the newest notes and summaries that fit into MOST_SAID characters, but at least one, the oldest first."""
    lines: list[Line] = []
    room = MOST_SAID
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
