"""What a run leaves behind: rows, events and pictures, for every consumer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from agent_core.actions.types import Action, GetKnowledgeData
from agent_core.devices.base import Frame
from agent_core.gate.base import Judgement
from agent_core.model.profile import ModelProfile
from agent_core.observer import Observation
from agent_core.ports import AnswerEvent, Event, RunStore
from agent_core.result import ActResult
from agent_core.screen.marks import mark, to_jpeg
from agent_core.screen.veil import Veil
from agent_core.session import ReplyRecord, Session, StepRecord, StepVerdict
from agent_core.thinking import Thought
from agent_core.trajectory import Tape, Trajectory

THINKING_EVERY = 1.0  # seconds between two events of a thought that streams


class Recorder:
    """Writes one run's story down."""

    def __init__(self, session: Session, store: RunStore, veil: Veil, trajectory: Trajectory | None = None) -> None:
        self._session = session
        self._tape = Tape(session, trajectory, veil) if trajectory is not None else None
        self._store = store
        self._veil = veil
        self._last_thinking = 0.0
        self.last_action: Action | None = None  # what became of the newest proposal

    async def started(self) -> None:
        session = self._session
        kind = "resumed" if session.steps else "started"
        await self._store.event(session.run_id, Event(kind, {"task": session.task, "serial": session.serial}))

    async def asked(
        self, seen: Observation, messages: Sequence[dict[str, Any]], model: str, profile: ModelProfile
    ) -> None:
        """The model is being asked; it is written down meanwhile."""
        if self._tape is not None:
            await self._tape.asked(seen, messages, model, profile)

    async def thinking(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last_thinking >= THINKING_EVERY:
            self._last_thinking = now
            await self._event("thinking", {"text": text, "step": len(self._session.steps) + 1})

    async def step(
        self, seen: Observation, thought: Thought, judgement: Judgement, result: ActResult, timings: dict[str, float]
    ) -> None:
        """Add the step to the session and its picture, with the act drawn on it, to the event log."""
        await self._written()
        session, self.last_action = self._session, judgement.action
        usage = thought.completion.usage
        if usage.first_token is not None:
            timings = {**timings, "first_token": usage.first_token}
        timings = {"observe": seen.seconds, **seen.phases, "model": thought.seconds, **timings}
        record = StepRecord(
            index=len(session.steps) + 1,
            thinking=thought.thinking,
            reply=thought.completion.text,
            asked=thought.action.model_dump() if thought.action else None,
            action=judgement.action.model_dump() if judgement.action else None,
            ok=result.ok,
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
        data = {**record.model_dump(exclude={"reply"}), "size": list(seen.size), "ignored": bool(thought.ignored)}
        await self._event("step", data, await self.picture(seen.frame, judgement.action))
        await self._store.save(session)

    async def early(self, seen: Observation, result: ActResult) -> None:
        """Add what was done without asking the model, as the query that it would have called: it is told of it so."""
        if result.ending is not None:
            return
        session = self._session
        newest = session.replies[-1] if session.replies else None
        query = session.planned.query if session.planned else (newest.query or newest.question) if newest else ""
        record = StepRecord(
            index=len(session.steps) + 1,
            action=GetKnowledgeData(query=query).model_dump() if query else None,
            ok=result.ok,
            result=result.message,
            package=seen.window.package,
            cost=session.new_cost,
            timings={name: round(seconds, 4) for name, seconds in {"observe": seen.seconds, **seen.phases}.items()},
        )
        session.steps.append(record)
        data = {**record.model_dump(exclude={"reply"}), "size": list(seen.size), "ignored": False}
        await self._event("step", data, await self.picture(seen.frame))

    async def reply(self, reply: ReplyRecord) -> None:
        """The event first: after a crash between the two it is told once more, never not at all."""
        await self._event("reply", reply.model_dump())
        await self.save()

    async def answer(self, event: AnswerEvent, frame: Frame | None) -> None:
        """What became of a customer's question, with the screen of before or after."""
        await self._event("answer", event.data(), await self.picture(frame) if frame else None)

    async def save(self) -> None:
        await self._written()
        await self._store.save(self._session)

    async def answered(self, question_id: str, by: str, text: str) -> None:
        await self._event("answered", {"question": question_id, "by": by, "text": text})

    async def outcome(self) -> None:
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
        await self._event("outcome", data)

    async def picture(self, frame: Frame, action: object = None) -> bytes:
        """The screen as JPEG for people: secrets are covered, and ``action`` is drawn on it."""
        image = await self._veil.over(frame)
        return await asyncio.to_thread(lambda: to_jpeg(mark(image, action)))

    async def _written(self) -> None:
        """What the model was asked is stored before what came of it."""
        if self._tape is not None:
            await self._tape.settled()

    async def _event(self, kind: str, data: Mapping[str, object], picture: bytes | None = None) -> None:
        await self._store.event(self._session.run_id, Event(kind, data), picture=picture)
