"""Runs, as the rest of the product asks for them, and the line in front of each phone: who goes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduler.runs.worker import Worker
from storage.engine import Database
from storage.questions import AnswerResult, Questions
from storage.runs import NewRun, RunRow, Runs

# The higher number goes first; of equals the older run.
PERSON = 10  # somebody asked for it and looks on
BEGUN = 8  # what has begun (its answer is there, its host died) goes on before anything but a person's own
WATCH = 6  # a customer has just written
SCHEDULE = 0
ASKED_SWEEP = 3  # one contact of many; somebody asked for them all
SWEEP = -10  # one contact of many, by the clock


def places(due: Sequence[RunRow], phones: Sequence[str]) -> Mapping[str, int]:
    """Each run's place in the line, from 1, by its id. ``due``: in the order in which they get a phone.

    A run that takes any phone stands in the shortest line of the usable ``phones``, as things are now; where there are
    none, all such runs stand in one line.
    """
    waiting: Counter[str] = Counter()
    found = {}
    for run in due:
        serial = run.wanted or min(phones, key=lambda phone: waiting[phone], default="")
        waiting[serial] += 1
        found[run.id] = waiting[serial]
    return found


class RunService:
    """What can be done with runs. Every call takes effect in the database; the dispatcher is woken in this process."""

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
        """Have a task done; the run's id. ``serial`` empty: on any phone that is free.

        ``key`` names the request: asked again, it gives the run that it started the first time.
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
        """Stop a run: the status afterwards (``running`` until the attempt has tidied up), None for an unknown run."""
        status = await self._runs.request_stop(run_id, by=by)
        if status is not None and self._worker is not None:
            self._worker.stop_now(run_id)
        return status

    async def hold(self, run_id: str) -> bool:
        """Park a run until ``resume``: it gives its phone back, or does not begin. False: held already, or over."""
        held = await self._runs.request_hold(run_id)
        if held and self._worker is not None:
            self._worker.hold_now(run_id)
        return held

    async def resume(self, run_id: str) -> bool:
        """Bring a held run back. False where it is not held."""
        return await self._runs.resume(run_id)

    async def answer(
        self, question_id: str, answer: Mapping[str, Any], *, by: str, at: datetime | None = None
    ) -> AnswerResult:
        """Answer a question; the first answer wins. KeyError for an unknown question. ``at``: when it was given."""
        return await self._questions.answer(question_id, answer, by=by, at=at)

    async def get(self, run_id: str) -> RunRow | None:
        return await self._runs.get(run_id)

    async def place(self, run_id: str, phones: Sequence[str]) -> int:
        """The place of a run in the line of its phone, from 1; 0 where it is in none. ``phones``: the usable ones."""
        return places(await self._runs.due(begun=BEGUN), phones).get(run_id, 0)
