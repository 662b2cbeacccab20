"""Runs over HTTP: start them, see how far they are, stop, hold and resume them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AliasPath, Field

from agent_core.loop.tasks import TaskRules, check_task
from bot.channels.web.api.devices import ApiDevice
from bot.channels.web.api.operations import ApiCall, Line, Lines, Operations, Paged, Shown, Text, Wish
from bot.channels.web.api.questions import ApiQuestion
from bot.desk.actors import Conflict, Role
from bot.desk.history_views import HistoryAsked
from bot.desk.views import RunStatus

operations = Operations("runs")


class ApiNewRun(Wish):
    """A task in plain words. ``device``: a serial or a name. ``policy``, ``apps``: as in ``phonedesk run``."""

    task: Annotated[Text, Field(min_length=1, examples=["QQ回复联系人11"])]
    device: Line = ""
    policy: Line = ""
    apps: Lines = []


class ApiRunsQuery(Paged):
    """``since``, ``until``: `7d`, `12h`, `today`, `2026-11-01` or `2026-11-01 18:30`."""

    words: Line = ""
    contact: Line = ""
    status: RunStatus | Literal[""] = ""
    since: Line = ""
    until: Line = ""


class ApiUsed(Shown):
    """What the calls of models cost. ``cost`` is null if no price is known."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    currency: str


class ApiSwept(Shown):
    """A contact of a sweep."""

    contact: str
    state: str
    texts: list[str]
    message: str
    run: str = Field(validation_alias="run_id")


class ApiAnswered(Shown):
    """A customer's question and what became of it.

    state: as in the ledger. standing: the state that people are shown. provenance: where the text came from.
    rating: 1, -1 or 0.
    """

    id: str
    run: str = Field(validation_alias="run_id")
    device: str = Field(validation_alias="serial")
    app: str
    contact: str
    question: str
    sent: str
    state: str
    standing: str
    provenance: str
    source: str = Field(validation_alias="record_source")
    score: float | None
    person: str
    rating: int
    rated_by: str
    asked_at: datetime
    changed_at: datetime
    question_id: str
    before: bool = Field(description="Whether there is a picture of the screen before.")
    after: bool = Field(description="Whether there is a picture of the screen after.")


class ApiRun(Shown):
    """A run, a sweep, or a plan.

    position: the place in the phone's queue, 0 if it is not queued. parent: the sweep or plan that it belongs to.
    unanswered: the contact whose question is open because the run was stopped.
    """

    id: str
    task: str
    status: RunStatus
    device: str = Field(validation_alias="serial")
    device_name: str = Field(validation_alias="phone")
    by: str
    schedule: str = Field(validation_alias="schedule_id")
    steps: int
    max_steps: int
    message: str
    error: str = Field(validation_alias="error_kind")
    position: int
    held: bool
    stopped_by: str
    unanswered: str
    parent: str
    again_at: datetime | None
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    spent: ApiUsed
    answers: list[ApiAnswered]
    contacts: list[ApiSwept] | None = Field(None, validation_alias=AliasPath("sweep", "contacts"))


class ApiPastRun(Shown):
    """A run in a list. ``number`` is its number for people; it never changes. ``unanswered``: as in a run."""

    number: int
    id: str
    task: str
    status: RunStatus
    device_name: str = Field(validation_alias="phone")
    by: str
    schedule: str = Field(validation_alias="schedule_id")
    message: str
    held: bool
    unanswered: str
    at: datetime
    seconds: float | None


class ApiRunPage(Shown):
    """A page of runs, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiPastRun]
    total: int
    next: str


class ApiStep(Shown):
    """A step: what the model thought and proposed (``asked``), and what was done after the gate (``action``)."""

    index: int
    thinking: str
    asked: dict[str, Any] | None
    action: dict[str, Any] | None
    ok: bool
    result: str
    package: str | None
    timings: dict[str, float]
    model: str
    tokens_in: int
    tokens_out: int


class ApiSteps(Shown):
    items: list[ApiStep]


class ApiStatus(Shown):
    """What is going on now."""

    devices: list[ApiDevice] = Field(validation_alias="phones")
    runs: list[ApiRun]
    questions: list[ApiQuestion]


@operations.get("/status")
async def get_status(call: ApiCall) -> ApiStatus:
    """Show phones, active runs and open questions."""
    return ApiStatus.of(await call.desk.status(call.actor))


@operations.get("/runs")
async def list_runs(call: ApiCall, query: ApiRunsQuery) -> ApiRunPage:
    """List runs, the newest first."""
    asked = HistoryAsked(query.words, query.contact, query.status, query.since, query.until)
    page = await call.desk.history.runs(call.actor, asked, before=query.before, limit=query.limit)
    items = [ApiPastRun.of(run) for run in page.runs]
    return ApiRunPage(items=items, total=page.total, next=str(items[-1].number) if page.older and items else "")


@operations.post("/runs", Role.OPERATOR, status=201, once=True)
async def start_run(call: ApiCall, body: ApiNewRun) -> ApiRun:
    """Start a run, or a sweep if the task is to answer several contacts.

    It waits for its phone. Follow its events, or ask for it again, to see what becomes of it.
    """
    rules = TaskRules(body.policy, tuple(body.apps))
    run = await call.desk.runs.start(
        call.actor, body.task, chat=None, serial=body.device or None, rules=rules, key=call.key
    )
    if run.task != check_task(body.task):
        said, advice = f"This {call.key_header} names another task.", "Use a new one for each request."
        raise Conflict(said, advice=advice, key="another_request", header=call.key_header)
    return ApiRun.of(run)


@operations.get("/runs/{run_id}")
async def get_run(call: ApiCall, run_id: str) -> ApiRun:
    """Show a run by its id or its number."""
    return ApiRun.of(await call.desk.history.run(call.actor, run_id))


@operations.get("/runs/{run_id}/steps")
async def list_steps(call: ApiCall, run_id: str) -> ApiSteps:
    """List the steps of a run, the oldest first."""
    replay = await call.desk.history.replay(call.actor, run_id)
    return ApiSteps(items=[ApiStep.of(step) for step in replay.steps])


@operations.post("/runs/{run_id}/stop", Role.OPERATOR)
async def stop_run(call: ApiCall, run_id: str) -> ApiRun:
    """Stop a run. A reply that is being sent is finished first."""
    run = await call.desk.runs.stop(call.actor, run_id)
    if run is None:
        raise Conflict(f"The run {run_id} has ended.", key="run_has_ended", name=run_id)
    return ApiRun.of(run)


@operations.post("/runs/{run_id}/hold", Role.OPERATOR)
async def hold_run(call: ApiCall, run_id: str) -> ApiRun:
    """Hold a run until it is resumed. Its phone is free meanwhile."""
    run = await call.desk.runs.hold(call.actor, run_id)
    if run is None:
        raise Conflict(f"The run {run_id} has ended, or is being stopped.", key="run_is_ending", name=run_id)
    return ApiRun.of(run)


@operations.post("/runs/{run_id}/resume", Role.OPERATOR)
async def resume_run(call: ApiCall, run_id: str) -> ApiRun:
    """Let a held run go on."""
    run = await call.desk.runs.resume(call.actor, run_id)
    if run is None:
        raise Conflict(f"The run {run_id} is not held.", key="run_not_held", name=run_id)
    return ApiRun.of(run)
