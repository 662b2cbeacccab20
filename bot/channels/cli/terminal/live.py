"""Shows a run in a terminal as it happens: one line per step, and how long a model has not answered yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from agent_core.model.base import Completion, Message, Model, ModelWrapper, OnThinking
from agent_core.model.usage import money
from agent_core.ports import Event, RunStore
from agent_core.session import KeptNote, Question, ReplyRecord, Session, Status, StepRecord
from bot.app.settings.layers import Settings
from bot.channels.chat.run_cards import (
    describe_action,
    error_lines,
    model_said,
    note_lines,
    reply_lines,
    ruled,
    state_of,
    unanswered_words,
)
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Console, Text
from bot.channels.cli.terminal.render import before
from bot.channels.cli.terminal.texts import typed
from bot.desk.views import RunStatus
from bot.tools.replay.timings import timings_of
from storage.engine import Database
from storage.events import Events
from storage.history import History

FIRST_SECONDS = 5.0  # most models answer sooner
EVERY_SECONDS = 10.0


class LiveRuns:
    """A run store that shows the data it stores. Words of people and screens are printed as text, never as markup."""

    def __init__(
        self,
        store: RunStore,
        console: Console,
        texts: Texts,
        name: Callable[[str], Awaitable[str]],
        db: Database,
    ) -> None:
        """name: gives a phone's name for its serial."""
        self._store = store
        self._name = name
        self._history = History(db)
        self._console = console
        self._texts = texts
        self._replies: list[ReplyRecord] = []
        self._model = ""  # the fallback model that was reported
        self._question: Question | None = None  # the last one

    async def save(self, session: Session) -> None:
        self._question = session.question or self._question
        await self._store.save(session)

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        await self._store.event(run_id, event, picture=picture, session=session)
        match event.kind:
            case "started" | "resumed":
                await self.began(str(event.data["task"]), str(event.data["serial"]), run_id)
            case "step":
                self._step(StepRecord.model_validate(dict(event.data)))
                self._tell_replies()
            case "reply":
                # Shown below the step that sent it, which is shown when it ends.
                self._replies.append(ReplyRecord.model_validate(dict(event.data)))
            case "outcome":
                self._tell_replies()
                self._tell_notes([KeptNote.model_validate(note) for note in event.data["notes"]])
            case "answered":
                self._answered(str(event.data["question"]), str(event.data["by"]), str(event.data["text"]))

    async def began(self, task: str, serial: str, run_id: str) -> None:
        """Show that a run, or a sweep's look, begins."""
        self._line(f"▶ {task}", "bold")
        label = before(self._texts.get("card.phone"), self._texts)
        self._line(f"  {label}{await self._name(serial)} · #{await self._history.number_of(run_id)}", "dim")

    def _step(self, step: StepRecord) -> None:
        seconds = step.timings.get("step", 0.0)
        said = describe_action(self._texts, step)
        action = said or step.result.partition("\n")[0] or "—"  # an error's advice is shown below the end of the run
        took = self._texts.get("common.seconds", seconds=f"{seconds:.1f}")
        self._line(f"{step.index:>3}  {action}  ({took})", "" if step.ok else "yellow")
        if step.instead_of and step.model != self._model:
            why = self._texts.find(f"error.{step.instead_of}", self._texts.get("error.model"))
            self._line(f"     {self._texts.get('card.fallback', model=step.model, why=why)}", "yellow")
        self._model = step.model if step.instead_of else ""
        if step.thinking:
            self._line(f"     {step.thinking}", "dim")
        for verdict in step.verdicts:  # the rule's message to the model is worded for the model
            self._line(f"     {ruled(verdict, self._texts)}", "yellow")
        # shown above, or only for the model
        told = not said or step.unread or step.result in said or bool(step.verdicts)
        if not told and not step.ok:
            first, *_ = step.result.splitlines() or [""]  # the following lines are advice for the model
            self._line(f"     {typed(first)}", "yellow")

    def _answered(self, question: str, by: str, text: str) -> None:
        asked = self._question
        if asked is not None and asked.id == question:
            texts = self._texts
            text = next((one.in_words(texts.lang) for one in asked.choices if one.value == text), text)
        who = self._texts.person(by)
        self._line(f"    {before(who, self._texts)}{text}", "yellow")

    def _tell_replies(self) -> None:
        for reply in self._replies:
            for line in reply_lines(reply, self._texts):
                self._line(f"    {before(line.label, self._texts)}{line.text}", "green")
        self._replies.clear()

    def _tell_notes(self, notes: Sequence[KeptNote]) -> None:
        for line in note_lines(notes, self._texts):
            self._line(f"    {before(line.label, self._texts)}{line.text}", "cyan")

    def _line(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style))


def outcome_line(session: Session, words: Texts) -> Text:
    """Print the outcome of the run, and after an error what to do about it, in the person's language."""
    styles = {"succeeded": "bold green", "failed": "bold red", "waiting": "bold yellow", "stopped": "bold yellow"}
    status = session.comes_to.value
    message = session.message
    if model_said(session.steps[-1] if session.steps else None, message):
        message = before(words.get("card.model_note"), words) + message
    if session.elsewhere is not None or session.comes_to is not Status.SUCCEEDED:
        message = typed(message)  # it advises; texts that were sent stay unchanged
    message = message.replace("\n", "\n    ")
    state = state_of(RunStatus(session.status.value), left_to=session.left_to)
    line = Text(ended(state, message, words), style=styles.get(status, ""))
    if session.error_kind and session.comes_to is Status.FAILED:
        for said in error_lines(session.error_kind, words, session.message):
            line.append(f"\n    {said}")
    spent = session.spent
    if spent.calls:
        used = words.get("digest.calls", calls=f"{spent.calls:,}") + " · "
        used += words.get("digest.tokens", tokens_in=f"{spent.tokens_in:,}", tokens_out=f"{spent.tokens_out:,}")
        cost = f" · ≈ {money(spent.cost)} {spent.currency}".rstrip() if spent.cost is not None else ""
        line.append(f"\n    {used}{cost}")
    return line


def ended(state: str, message: str, words: Texts) -> str:
    """Return how a run ended, and its message if that says more: "⏹ Stopped", not "⏹ Stopped  Stopped.".

    state: a text key, see ``state_of``.
    """
    said = words.get(state)
    return said if said.endswith(message.rstrip("。.")) else f"{said}  {message}"


def left_open(session: Session, words: Texts) -> Text:
    """Return what becomes of the question that the run waited for at its end, and of the customer's; else nothing."""
    said, stopped = [], session.status is Status.STOPPED
    if session.question is not None and (stopped or session.status is Status.WAITING):
        key = "question.closed_by_stop" if stopped else "question.left_open"
        said.append(words.get(key, id=session.question.id))
    if stopped and session.cluster is not None and session.cluster.left:
        said.append(unanswered_words(session.gate.contact, words, some=bool(session.replies)))
    return Text("\n".join(f"    {line}" for line in said), style="yellow")


async def learnt_line(db: Database, session: Session, words: Texts) -> Text:
    """Return how many entries the knowledge base learnt from the person's answers; empty if none."""
    entries = [await Events(db).entry_of(session.run_id, question.id) for question in session.questions]
    count = len(set(filter(None, entries)))
    return Text(f"    {words.get('question.learnt_here', count=count)}" if count else "", style="dim")


def timings_line(session: Session, words: Texts) -> Text:
    """Show the time of each phase of its steps on one line; empty if there were no steps."""
    timings = timings_of([session.steps])
    seconds = {phase.name: phase for phase in timings.phases}
    if "step" not in seconds:
        return Text()
    told = {name: round(seconds[name].total, 1) if name in seconds else 0.0 for name in ("model", "observe", "act")}
    mean = seconds["model"].mean if "model" in seconds else 0.0
    whole = max(round(seconds["step"].total, 1), sum(told.values()))
    rest = whole - sum(told.values())  # the rules, and the time between the phases
    line = words.get("timings.short", steps=timings.steps, seconds=whole, mean=mean, rest=rest, **told)
    return Text(f"    {line}", style="dim")


# While a model has not answered ---------------------------------------------------------------------------------------


class WaitedFor(ModelWrapper):
    """A model whose calls are reported while they last.

    say: gets the seconds after ``first`` seconds, then every ``every`` seconds. Thinking is a sign of life: after it
        they are counted from 0.
    """

    def __init__(
        self,
        model: Model,
        say: Callable[[int], object],
        *,
        first: float = FIRST_SECONDS,
        every: float = EVERY_SECONDS,
    ) -> None:
        super().__init__(model)
        self._say = say
        self._first, self._every = first, every
        self._since = 0.0

    async def complete(self, messages: Sequence[Message], *, on_thinking: OnThinking | None = None) -> Completion:
        async def heard(text: str) -> None:
            self._since = asyncio.get_running_loop().time()
            if on_thinking is not None:
                await on_thinking(text)

        async with self._told():
            return await super().complete(messages, on_thinking=heard)

    async def ask(self, messages: Sequence[Message]) -> Completion:
        async with self._told():
            return await super().ask(messages)

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        self._since = asyncio.get_running_loop().time()
        telling = asyncio.create_task(self._tell(), name="model-waited-for")
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self) -> None:
        clock = asyncio.get_running_loop().time
        due = self._since + self._first
        while True:
            await asyncio.sleep(due - clock())
            if (silent := clock() - self._since) >= self._first:
                self._say(round(silent))
            due = max(due, self._since) + self._every


def waiting_line(seconds: int, settings: Settings, words: Texts) -> Text:
    """Say what happens if it lasts longer: another try, or the next model."""
    key = "card.waiting_next" if settings.model.fallbacks else "card.waiting_again"
    return Text(f"     {words.get(key, seconds=seconds, most=settings.model.timeout_seconds)}", style="dim")
