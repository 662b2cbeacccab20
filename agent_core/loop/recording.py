"""The records of a run: rows, events and pictures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agent_core.actions.types import Action, GetKnowledgeData, Tap
from agent_core.devices.base import Frame
from agent_core.errors import LeaseLost, ModelLimit, PhonedeskError
from agent_core.loop.outcome import ActResult, Thought
from agent_core.loop.trajectory import Tape, Trajectory
from agent_core.model.base import Completion
from agent_core.model.profile import ModelProfile
from agent_core.perception.marks import mark, to_jpeg
from agent_core.perception.observer import Observation
from agent_core.perception.redaction import Redaction
from agent_core.policies.base import Judgement
from agent_core.ports import AnswerEvent, Event, RunStore
from agent_core.session import Question, QuestionKind, ReplyRecord, Session, Status, StepRecord, StepVerdict
from agent_core.texts import told

THINKING_EVERY = 1.0  # seconds between two events of a thought that is streamed


@dataclass
class Taken:
    """A step, as far as it has come."""

    seen: Observation
    thought: Thought | None = None
    judgement: Judgement = field(default_factory=lambda: Judgement(None))
    result: ActResult | None = None
    _ends: list[float] = field(default_factory=lambda: [time.monotonic()])  # monotonic times at which its phases ended

    def thinks(self, thought: Thought) -> None:
        """Record the end of the model's phase."""
        self.thought = thought
        self._ends.append(time.monotonic())

    def judges(self, judgement: Judgement) -> None:
        """Record the end of the gate's phase."""
        self.judgement = judgement
        self._ends.append(time.monotonic())

    def timings(self, *, asked: bool) -> dict[str, float]:
        """Return the seconds of the phases so far, and of the whole step including its observation.

        asked: the model was asked. Without it, everything counts as the act.
        """
        ends = [*self._ends, time.monotonic()]
        names = ("model", "gate", "act") if asked else ("act",)
        phases = dict(zip(names, (end - begun for begun, end in pairwise(ends)), strict=False))
        return {
            "observe": self.seen.seconds,
            **self.seen.phases,
            **phases,
            "step": ends[-1] - ends[0] + self.seen.seconds,
        }


class Recorder:
    """The recorder of one run: its steps, events and pictures."""

    def __init__(
        self, session: Session, store: RunStore, redaction: Redaction, trajectory: Trajectory | None = None
    ) -> None:
        self._session = session
        self._tape = Tape(session, trajectory, redaction) if trajectory is not None else None
        self._store = store
        self._redaction = redaction
        self._last_thinking = 0.0
        self._seen: Observation | None = None  # the newest screen that a step was taken on
        self._model, self._heard = "", ""  # of that step: the model's name, and its thinking so far
        self.last_action: Action | None = None  # the newest proposal, as the gate left it

    async def started(self) -> None:
        """Write the event that begins a run or an attempt that resumes it."""
        session = self._session
        kind = "resumed" if session.steps else "started"
        await self._store.event(session.run_id, Event(kind, {"task": session.task, "serial": session.serial}))

    async def asked(
        self, seen: Observation, messages: Sequence[dict[str, Any]], model: str, profile: ModelProfile
    ) -> None:
        """Record that the model is being asked; the request is written in the background."""
        self._model, self._heard = model, ""
        self._last_thinking = time.monotonic()  # nobody needs half of a reply that is there at once
        if self._tape is not None:
            await self._tape.asked(seen, messages, model, profile)

    async def thinking(self, text: str) -> None:
        """Write the model's thinking so far as an event, at most once in ``THINKING_EVERY`` seconds."""
        self._heard, now = text, time.monotonic()
        if now - self._last_thinking >= THINKING_EVERY:
            self._last_thinking = now
            await self._event("thinking", {"text": text, "step": len(self._session.steps) + 1})

    @asynccontextmanager
    async def taking(self, seen: Observation) -> AsyncIterator[Taken]:
        """Record the step that is taken on this screen, even if the phone or the model fails during it.

        At the end the step is added to the session, and its picture with the action drawn on it to the event log.
        """
        self._seen, self._model, self._heard = seen, "", ""
        taken = Taken(seen)
        try:
            yield taken
        except (LeaseLost, ModelLimit):
            raise  # another owner has the phone, or nobody was asked
        except PhonedeskError as error:
            taken.result = ActResult(told(error, self._session.lang), ok=False)
            await self._step(taken, taken.result)
            raise
        if taken.thought is not None and taken.result is not None:
            await self._step(taken, taken.result)
        elif taken.result is not None and taken.result.ending is None:
            await self._early(taken, taken.result)

    async def _step(self, taken: Taken, result: ActResult) -> None:
        await self._written()
        session, seen, judgement = self._session, taken.seen, taken.judgement
        asked = taken.thought is not None or bool(self._model)
        timings = taken.timings(asked=asked)
        thought = taken.thought or Thought(Completion("", model=self._model), timings.get("model", 0.0), self._heard)
        self.last_action = GetKnowledgeData(query=result.query) if result.query else judgement.action
        usage = thought.completion.usage
        if asked:
            timings["model"] = thought.seconds
        told = {"first_token": usage.first_token, "thinking": usage.thinking_end, "reply": usage.total or None}
        timings |= {name: seconds for name, seconds in told.items() if seconds is not None}
        record = StepRecord(
            index=len(session.steps) + 1,
            thinking=thought.thinking,
            reply=thought.completion.text,
            ignored="\n".join(filter(None, (thought.ignored, thought.completion.rest))),
            asked=thought.action.model_dump() if thought.action else None,
            action=self.last_action.model_dump() if self.last_action else None,
            ok=result.ok,
            asks=result.question is not None,
            result=" ".join(filter(None, (*judgement.messages, result.message))),
            verdicts=[
                StepVerdict(policy=verdict.policy, decision=verdict.decision.value, message=verdict.message)
                for verdict in judgement.verdicts
            ],
            package=seen.window.package,
            timings={name: round(seconds, 4) for name, seconds in timings.items()},
            tokens_in=usage.tokens_in + (result.usage.tokens_in if result.usage else 0),
            tokens_out=usage.tokens_out + (result.usage.tokens_out if result.usage else 0),
            tokens_cached=usage.tokens_cached,
            tokens_guessed=usage.guessed,
            cost=session.new_cost,
            model=thought.completion.model,
            form=thought.completion.profile.form if thought.completion.profile else "",
            instead_of=thought.completion.instead_of,
        )
        session.steps.append(record)
        data = {**record.model_dump(exclude={"reply"}), "size": list(seen.size)}
        picture = await self.picture(seen.frame, judgement.action)
        await self._store.event(session.run_id, Event("step", data), picture=picture, session=session)

    async def _early(self, taken: Taken, result: ActResult) -> None:
        """Record a step without the model as the query that it would have called; the next prompt shows it so."""
        session = self._session
        newest = session.replies[-1] if session.replies else None
        query = session.planned.query if session.planned else (newest.query or newest.question) if newest else ""
        self.last_action = GetKnowledgeData(query=query) if query else None
        record = StepRecord(
            index=len(session.steps) + 1,
            action=self.last_action.model_dump() if self.last_action else None,
            ok=result.ok,
            asks=result.question is not None,
            result=result.message,
            package=taken.seen.window.package,
            cost=session.new_cost,
            timings={name: round(seconds, 4) for name, seconds in taken.timings(asked=False).items()},
        )
        session.steps.append(record)
        data = {**record.model_dump(exclude={"reply"}), "size": list(taken.seen.size)}
        await self._event("step", data, await self.picture(taken.seen.frame))

    async def reply(self, reply: ReplyRecord) -> None:
        """Record a sent reply. The event is written first: after a crash in between it is repeated, not missing."""
        await self._event("reply", reply.model_dump())
        await self.save()

    async def answer(self, event: AnswerEvent, frame: Frame | None) -> None:
        """Record the outcome of a customer's question, with a picture from before or after."""
        await self._event("answer", event.data(), await self.picture(frame) if frame else None)

    async def save(self) -> None:
        """Store the session, after the request that belongs to it."""
        await self._written()
        await self._store.save(self._session)

    async def answered(self, question_id: str, by: str, text: str) -> None:
        """Write the event of an answered question."""
        await self._event("answered", {"question": question_id, "by": by, "text": text})

    async def outcome(self) -> None:
        """Write the event that ends a run. A failed run has a picture of the last screen."""
        session = self._session
        data = {
            "status": session.status.value,
            "message": session.message,
            "error_kind": session.error_kind,
            "steps": len(session.steps),
            "replies": [reply.model_dump() for reply in session.replies],
            "notes": [note.model_dump() for note in session.notes],
            "spent": session.spent.model_dump(),
        }
        failed = self._seen if session.status is Status.FAILED else None
        await self._event("outcome", data, await self.picture(failed.frame) if failed else None)

    async def picture_for(self, question: Question, frame: Frame | None) -> bytes | None:
        """Return the picture shown with a question, with the place of a tap drawn on it; None without a frame."""
        tap = question.data.get("tap") if question.kind is QuestionKind.SENSITIVE_TAP else None
        return await self.picture(frame, Tap.model_validate(tap) if tap else None) if frame else None

    async def picture(self, frame: Frame, action: object = None) -> bytes:
        """Return the screen as a JPEG for people: secrets are covered, and ``action`` is drawn on it."""
        image = await self._redaction.over(frame)
        return await asyncio.to_thread(lambda: to_jpeg(mark(image, action)))

    async def _written(self) -> None:
        """Wait until the request is stored, so that it is there before its result."""
        if self._tape is not None:
            await self._tape.settled()

    async def _event(self, kind: str, data: Mapping[str, object], picture: bytes | None = None) -> None:
        await self._store.event(self._session.run_id, Event(kind, data), picture=picture)
