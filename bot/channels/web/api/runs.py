"""Runs over HTTP: start them, see how far they are, stop, hold and resume them."""

from __future__ import annotations

from agent_core.loop.tasks import TaskRules, check_task
from bot.channels.web.api.models import (
    ApiNewRun,
    ApiPastRun,
    ApiRun,
    ApiRunPage,
    ApiRunsQuery,
    ApiStatus,
    ApiStep,
    ApiSteps,
)
from bot.channels.web.api.operations import ApiCall, Operations
from bot.desk.actors import Conflict, Role
from bot.desk.history_views import HistoryAsked

operations = Operations("runs")


@operations.get("/status")
async def get_status(call: ApiCall) -> ApiStatus:
    """Show phones, active runs and open questions."""
    return ApiStatus.of(await call.desk.status(call.actor))


@operations.get("/runs")
async def list_runs(call: ApiCall, query: ApiRunsQuery) -> ApiRunPage:
    """List runs, the newest first."""
    asked = HistoryAsked(query.words, query.contact, query.status, query.since, query.until)
    before = int(query.cursor) if query.cursor else None
    page = await call.desk.history.runs(call.actor, asked, before=before, limit=query.limit)
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
        said, advice = "This Idempotency-Key names another task.", "Use a new one for each request."
        raise Conflict(said, advice=advice, key="another_request")
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
