"""The run service: submit, stop, hold and answer runs; and the order in which runs get a phone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from storage.engine import Database
from storage.questions import AnswerResult, Questions
from storage.runs import NewRun, RunRow, Runs

if TYPE_CHECKING:
    from scheduler.runs.worker import Worker

# Runs with the higher priority go first; of equals, the older run.
PERSON = 10  # a person asked for it and is watching
BEGUN = 8  # continues after an answer or its host's death: before everything except a person's request
WATCH = 6  # a customer has just written
SCHEDULE = 0
ASKED_SWEEP = 3  # one contact of a sweep that a person asked for
SWEEP = -10  # one contact of a scheduled sweep


def places(due: Sequence[RunRow], phones: Sequence[str]) -> Mapping[str, int]:
    """Return each run's place in the line for its phone, from 1, by its id.

    A run that takes any phone joins the shortest line, as things are now. If no phone is usable, all such runs share
    one line.

    due: the waiting runs in the order in which they get a phone.
    phones: the usable phones.
    """
    waiting: Counter[str] = Counter()
    found = {}
    for run in due:
        serial = run.wanted or min(phones, key=lambda phone: waiting[phone], default="")
        waiting[serial] += 1
        found[run.id] = waiting[serial]
    return found


class RunService:
    """The operations on runs. Every call takes effect in the database and wakes this process's dispatcher."""

    def __init__(self, db: Database, *, worker: Worker | None = None) -> None:
        self._runs = Runs(db)
        self._questions = Questions(db)
        self._worker = worker

    async def submit(
        self,
        task: str,
        *,
        serial: str = "",
        options: Mapping[str, Any] | None = None,
        requested_by: str = "",
        chat: Mapping[str, Any] | None = None,
        priority: int = PERSON,
        key: str = "",
    ) -> str:
        """Store a run for a task. Return its id.

        serial: the phone; "" takes any phone that is free.
        key: an idempotency key. A second call with the same key returns the run of the first.
        """
        run_id = await self._runs.create(
            NewRun(
                task=task,
                serial=serial,
                options=options or {},
                requested_by=requested_by,
                chat=chat,
                priority=priority,
            ),
            key=key,
        )
        if run_id is None:  # only a schedule's tick can have its run already
            raise RuntimeError("The run was not stored.")
        return run_id

    async def request_stop(self, run_id: str, *, by: str = "") -> str | None:
        """Stop a run.

        Return its new status (``running`` until the attempt has tidied up), or None if the run is unknown.
        """
        status = await self._runs.request_stop(run_id, by=by)
        if status is not None and self._worker is not None:
            self._worker.stop_now(run_id)
        return status

    async def hold(self, run_id: str) -> bool:
        """Park a run until ``resume``: it gives its phone back, or doesn't begin.

        Return False if it is held already or over.
        """
        held = await self._runs.request_hold(run_id)
        if held and self._worker is not None:
            self._worker.hold_now(run_id)
        return held

    async def resume(self, run_id: str) -> bool:
        """Put a held run back into the line. Return False if it is not held."""
        return await self._runs.resume(run_id)

    async def answer(
        self, question_id: str, answer: Mapping[str, Any], *, by: str, at: datetime | None = None
    ) -> AnswerResult:
        """Answer a question; the first answer wins.

        Raises KeyError if the question is unknown. ``at``: when it was given.
        """
        return await self._questions.answer(question_id, answer, by=by, at=at)

    async def get(self, run_id: str) -> RunRow | None:
        return await self._runs.get(run_id)

    async def place(self, run_id: str, phones: Sequence[str]) -> int:
        """Return a run's place in line for its phone, from 1; 0 if it is not in line. ``phones``: the usable ones."""
        return places(await self._runs.due(begun=BEGUN), phones).get(run_id, 0)
