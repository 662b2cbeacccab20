"""A back-up is put back after customers were answered: nobody is answered twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.backup import Backup, back_up
from bot.app.settings.loading import load
from scheduler.runs.service import RunService
from storage.runs import RunRow, Runs
from tests.acceptance.stage import ANSWER, TASK, Stage, stage, until_async

pytestmark = pytest.mark.rotating(parts=3)


async def row(on: Stage, run_id: str) -> RunRow:
    async with on.database() as db:
        found = await Runs(db).get(run_id)
    assert found is not None
    return found


async def rests(on: Stage, run_id: str) -> RunRow:
    async def over() -> RunRow | None:
        run = await row(on, run_id)
        return run if run.final or (run.status == "waiting" and run.attempt_due_at is None and not run.hold) else None

    return await until_async(over, what="the end of the run")


async def put_back(on: Stage, made: Backup, run_id: str) -> None:
    """Restore, serve, see that nothing begins by itself, resume, and see that nothing is sent."""
    done = await on.command("restore", str(made.file), "--json")
    assert done.code == 0, done
    assert [run["id"] for run in done.json["held"]] == [run_id]
    server = await on.serve()
    async with on.database() as db:
        assert await Runs(db).due() == []

        async def parked() -> bool:
            return (await row(on, run_id)).status == "waiting"

        await until_async(parked, what="it is parked")
        assert await RunService(db).resume(run_id)
    ended = await rests(on, run_id)
    assert on.sent == {"11": [ANSWER]}
    assert ended.status == "succeeded", ended.message
    assert await server.end() == 0
    on.at_rest()


async def test_what_was_sent_after_the_back_up_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path) as on:
        for name in ("PHONEDESK_DATA_DIR", "PHONEDESK_KNOWLEDGE__SAMPLE"):
            monkeypatch.setenv(name, on.environment[name])
        settings = load()
        server = await on.serve()
        async with on.database() as db:
            run_id = await RunService(db).submit(TASK, serial=on.phone.address)
        kept: dict[str, Backup] = {}
        number = 0
        while not on.sent:  # in the midst of the reply: by the state of its row
            number += 1
            made = await back_up(settings, tmp_path / f"{number}.zip")
            states = [reply.state for reply in await on.ledger(run_id)]
            if states and states != ["sent"]:
                kept[states[0]] = made
        assert (await rests(on, run_id)).status == "succeeded"
        assert await server.end() == 0
        assert kept, "no back-up was made in the midst of the reply"
        await put_back(on, list(kept.values())[-1], run_id)
