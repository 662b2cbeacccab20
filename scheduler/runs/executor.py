"""The executor: has an agent carry out one attempt, and stores what it tells meanwhile and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import structlog

from agent_core import ports
from agent_core.agent import PhoneAgent
from agent_core.errors import PhonedeskError
from agent_core.reply.outcome import pause
from agent_core.session import FINAL, Session, Status
from agent_core.texts import Lang, kept_language, say, told
from scheduler.runs.stop import Reason, StopSignal
from storage.answers import Answers
from storage.engine import Database
from storage.events import Events, NewEvent
from storage.questions import ANSWERED, Questions
from storage.runs import RunRow, Runs
from storage.runs.lost import MOST_TRIES, GaveUp, LeftAlone, plain_words

log = structlog.get_logger(__name__)

Learn = Callable[[ports.AnswerEvent], Awaitable[str]]  # returns the id of the new entry that waits for approval, or ""

HAS_LEFT = (ports.ReplyState.SENT, ports.ReplyState.UNKNOWN)


async def carry_out(
    agent: PhoneAgent, session: Session, stop: StopSignal, *, prepare: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Have the agent continue ``session`` until an outcome, a question that nobody answers now, Stop or Hold.

    The session holds the result; the caller stores it while the phone is still ours. Raises LeaseLost if another owner
    has taken the phone, and passes on a cancellation that is neither Stop nor Hold: then the run is not over, and
    another attempt continues it.

    stop: the signal of the agent's lease; it cancels this task.
    prepare: is done on the phone before the agent's first observation. Stop cancels it too.
    """
    begun = False
    try:
        if prepare is not None:
            await prepare()
        begun = True
        await agent.go_on(session)
    except asyncio.CancelledError:
        if stop.reason not in (Reason.STOP, Reason.HOLD):
            raise
        if session.status in FINAL and begun:
            await agent.go_on(session)  # it ended at this very moment: report the outcome
        elif stop.reason is Reason.STOP and begun:
            await agent.end_stopped()
        elif stop.reason is Reason.STOP:
            session.end(Status.STOPPED, "")


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt.

    - ``waiting``: for a person's answer.
    - ``held``: parked by Hold.
    - ``put_back``: to be resumed by any host that reaches the phone. ``message`` is the error that ended it, or "" if
      the run did not cause it.
    - ``put_off``: by an error of ``error_kind``, to be resumed in ``seconds``.
    - Otherwise the run is over.
    """

    status: Literal["waiting", "held", "put_back", "put_off", "succeeded", "failed", "stopped"]
    message: str = ""
    seconds: float = 0.0
    error_kind: str = ""


def outcome_of(session: Session) -> AttemptOutcome:
    """Return the outcome of an attempt whose agent has ended or waits."""
    match session.status:
        case Status.SUCCEEDED:
            return AttemptOutcome("succeeded", session.message)
        case Status.STOPPED:
            return AttemptOutcome("stopped", session.message)
        case Status.WAITING if session.is_put_off:
            return AttemptOutcome("put_off", session.message, seconds=pause(session), error_kind=session.error_kind)
        case Status.WAITING | Status.RUNNING:
            return AttemptOutcome("waiting", session.message)
        case Status.FAILED:
            return AttemptOutcome("failed", session.message)


async def store_outcome(
    runs: Runs, run_id: str, attempt: int, outcome: AttemptOutcome, *, gave_up: GaveUp = plain_words
) -> None:
    """Store how an attempt ended. ``gave_up``: makes the message for a run that was put back once too often."""
    match outcome.status:
        case "put_back":
            await runs.interrupt_attempt(run_id, attempt, error=outcome.message or None, gave_up=gave_up)
        case "put_off":
            seconds, kind = outcome.seconds, outcome.error_kind
            await runs.put_off_attempt(run_id, attempt, seconds=seconds, message=outcome.message, error_kind=kind)
        case "waiting" | "held":  # the run's row says whether it is held
            await runs.park_attempt(run_id, attempt, message=outcome.message)
        case over:
            await runs.end_attempt(run_id, attempt, status=over, message=outcome.message)


def language_of(run: RunRow) -> Lang:
    return kept_language(run.options.get("lang"))


def said(error: BaseException, lang: Lang) -> str:
    """Return the message for people about an error, without a database statement or a traceback."""
    if isinstance(error, PhonedeskError):
        return told(error, lang)
    first, _, _ = str(error).partition("\n")  # a database error continues with its statement
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def gave_up(lang: Lang) -> GaveUp:
    """Return a function that makes the message for a run whose attempts keep dying.

    lang: for runs whose options name no language.
    """

    def told(options: Mapping[str, Any], error: str) -> str:
        spoken = kept_language(options.get("lang"), lang)
        why = error or say(spoken, "run.process_died")
        return say(spoken, "run.gave_up", count=MOST_TRIES, error=why)

    return told


def left_alone(lang: Lang) -> LeftAlone:
    """Return a function that makes the message for a run that ended with its process. ``lang``: as for ``gave_up``."""

    def told(options: Mapping[str, Any]) -> str:
        return say(kept_language(options.get("lang"), lang), "run.left_alone")

    return told


class StoredRuns:
    """``agent_core.ports.RunStore`` over runs, events and the answer log.

    attempt: the attempt that writes; None if no attempt does. Once its turn is over (another attempt has the run, or
        the run is over) its writes change nothing and raise LeaseLost. The exception is a text that has already left
        the phone: the attempt that sent it still records it.
    learn: is called with each sent answer that a person had a hand in (their own text, or the record that they chose)
        after the answer is stored, and again if the event is repeated after a restart. Its errors are logged. The new
        entry is recorded in an event ``learnt``, with the ``question`` that the person answered and the ``entry``, so
        that the question's card can offer to approve it.
    """

    def __init__(self, db: Database, *, learn: Learn | None = None, attempt: int | None = None) -> None:
        self._attempt = attempt
        self._runs = Runs(db)
        self._events = Events(db)
        self._answers = Answers(db)
        self._questions = Questions(db)
        self._learn = learn
        self._saved = ("", "")  # the run's id and its session as last stored

    async def save(self, session: Session) -> None:
        saved = (session.run_id, session.model_dump_json())
        if saved != self._saved:  # the agent saves whenever something may have changed
            await self._runs.save_session(*saved, attempt=self._attempt)
            self._saved = saved

    async def event(
        self, run_id: str, event: ports.Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        if session is not None:
            saved = (run_id, session.model_dump_json())
            new = NewEvent(event.kind, dict(event.data), picture)
            await self._runs.save_session(*saved, event=new, attempt=self._attempt)
            self._saved = saved
            return
        if event.kind != "answer":
            attempt = None if event.kind == "reply" else self._attempt
            await self._events.append(run_id, event.kind, dict(event.data), picture=picture, attempt=attempt)
            return
        answer = _answer_event(event.data)
        attempt = None if answer.state in HAS_LEFT else self._attempt
        await self._answers.tell(run_id, answer, picture=picture, attempt=attempt)
        if self._learn is not None and _teaches(answer):
            try:
                if entry := await self._learn(answer):
                    await self._tell_learnt(run_id, answer.ledger_id, entry)
            except Exception as error:  # the answer is sent; failing to learn from it must not end the run
                log.exception("answer_not_learnt", run=run_id, ledger_id=answer.ledger_id, error=repr(error))

    async def _tell_learnt(self, run_id: str, ledger_id: int, entry: str) -> None:
        """Write the event ``learnt``. Without it the entry still waits for approval in the list of such entries."""
        asked = await self._questions.find(run_id=run_id, state=ANSWERED)
        of = [question.id for question in asked if question.payload["data"].get("ledger_id") == ledger_id]
        if of:
            await self._events.append(run_id, "learnt", {"question": of[-1], "entry": entry})


def _answer_event(data: Mapping[str, Any]) -> ports.AnswerEvent:
    """Build the event from its ``data()``."""
    values: dict[str, Any] = {**data, "state": ports.ReplyState(data["state"])}
    if values.get("records") is not None:
        values["records"] = [ports.Record(**record) for record in values["records"]]
    return ports.AnswerEvent(**values)


def _teaches(answer: ports.AnswerEvent) -> bool:
    by_person = answer.provenance == ports.Provenance.PERSON.value or (answer.person and answer.record_id)
    return answer.state is ports.ReplyState.SENT and bool(by_person)
