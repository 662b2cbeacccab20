"""Runs one case, from its file to its result."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path

import structlog

from agent_core.errors import PhonedeskError
from agent_core.loop.tasks import TaskRules
from agent_core.perception.marks import to_jpeg
from agent_core.ports import LedgerRow
from agent_core.session import Session, Status
from bot.app.run_here import run_here
from bot.tools.eval.bench import Bench, EvalStage
from bot.tools.eval.judge import Evidence, always, judge
from bot.tools.eval.result import Case, CaseResult, EvalReply
from storage.events import Events
from storage.ledger import StoredLedger
from storage.runs import Runs

log = structlog.get_logger(__name__)

CASE_SECONDS = 300.0  # for a case with an instant model
REAL_SECONDS = 3600.0  # for a model that takes time


class Interrupted(Exception):
    """Somebody wants no more cases."""


async def run_case(bench: Bench, case: Case, *, keep: Path | None = None) -> CaseResult:
    """Run a case and judge it. ``keep``: a folder for the pictures and the log of a failed case."""
    result = case.result()
    begun = time.monotonic()
    async with bench.stage(case.scenario, case.mode) as stage:
        await _run(stage, case, result, REAL_SECONDS if bench.real else CASE_SECONDS)
        result.seconds = time.monotonic() - begun
        if keep is not None and not result.passed:
            folder = keep / "-".join(filter(None, (case.name, case.mode.value, case.look)))
            await _keep(stage, result, folder)
            result.kept = str(folder)
    return result


async def _run(stage: EvalStage, case: Case, result: CaseResult, seconds: float) -> None:
    """Do the case's runs; after ``seconds``, judge the work done so far."""
    scenario, phone = case.scenario, stage.phone
    before = dict(phone.settings)
    sessions: list[Session] = []
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            for task in scenario.runs:
                sessions.append(await _one(stage, task, case))  # noqa: PERF401 - earlier ones are reported
    except Interrupted:
        if not limit.expired():
            raise
    except Exception as error:  # a bug of ours is this case's result; the others are still run
        if not limit.expired():
            ours = not isinstance(error, PhonedeskError)
            log.warning("case_broke", file=result.file, mode=result.mode, exc_info=ours)
            result.problems.append(f"the run broke: {error or type(error).__name__}")
    if limit.expired():
        result.problems.append(f"not done after {seconds:.0f} s")
    complete = len(sessions) == len(scenario.runs)
    if not complete:
        sessions += await _cut_off(stage, sessions)
    _tell(result, stage, sessions)
    evidence = Evidence(
        scenario,
        sessions,
        phone.report(),
        await _ledger(stage, case),
        stage.model.calls,
        before,
        dict(phone.settings),
        stage.people.refused,
        () if stage.measured else stage.people.unused,
    )
    result.problems += judge(evidence) if complete else always(evidence)


async def _cut_off(stage: EvalStage, ended: list[Session]) -> list[Session]:
    """Return the run that did not end, as it was last saved."""
    runs = Runs(stage.core.db)
    for row in await runs.find(limit=1):
        whole = await runs.get(row.id)
        if whole is not None and whole.session and all(session.run_id != row.id for session in ended):
            return [Session.model_validate_json(whole.session)]
    return []


async def _one(stage: EvalStage, task: str, case: Case) -> Session:
    core, scenario = stage.core, case.scenario
    session = await run_here(
        core,
        task,
        human=stage.people,
        store=core.runs(attempt=1),
        lang=scenario.lang,
        max_steps=scenario.max_steps,
        rules=TaskRules(scenario.policy, tuple(scenario.only_apps)),
    )
    if session.status is Status.STOPPED:  # no file asks for that
        raise Interrupted
    return session


def _tell(result: CaseResult, stage: EvalStage, sessions: list[Session]) -> None:
    result.statuses = [session.status.value for session in sessions]
    result.message = sessions[-1].message if sessions else ""
    result.replies = [EvalReply(r.contact, r.text, r.provenance) for session in sessions for r in session.replies]
    result.asked = [question.kind.value for session in sessions for question in session.questions]
    result.steps = sum(len(session.steps) for session in sessions)
    model = stage.model
    result.model_calls, result.model_readings, result.model_seconds = model.calls, model.readings, model.seconds
    result.tokens_in, result.tokens_out = model.tokens_in, model.tokens_out


async def _ledger(stage: EvalStage, case: Case) -> dict[str, list[LedgerRow]]:
    ledger = StoredLedger(stage.core.db)
    serial = stage.core.settings.device.serial
    return {
        contact.key: sorted(await ledger.recent(serial, contact.app, contact.name), key=lambda row: row.id)
        for contact in case.scenario.contacts
    }


async def _keep(stage: EvalStage, result: CaseResult, folder: Path) -> None:
    """Write ``log.jsonl`` with all events, their pictures, and ``phone.json`` and ``end.jpg``: the phone at the end."""
    log, position, lines = Events(stage.core.db), 0, []
    files: dict[str, bytes] = {}
    while rows := await log.after(position):
        position = rows[-1].id
        for row in rows:
            picture = await log.picture(row.picture_id) if row.picture_id is not None else None
            name = f"{row.id:03d}-{row.kind}.jpg" if picture is not None else ""
            if picture is not None:
                files[name] = picture
            event = {"id": row.id, "run": row.run_id, "kind": row.kind, "picture": name, "data": dict(row.data)}
            lines.append(json.dumps(event, ensure_ascii=False))
    files["log.jsonl"] = "\n".join(lines).encode()
    files["phone.json"] = json.dumps(stage.phone.report(), ensure_ascii=False, indent=2).encode()
    files["problems.txt"] = "\n".join(result.problems).encode()
    files["end.jpg"] = await asyncio.to_thread(to_jpeg, await stage.phone.picture())
    await asyncio.to_thread(_write, folder, files)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():  # of an earlier run
        if old.suffix in {".jpg", ".jsonl"} or old.name in files:
            old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
