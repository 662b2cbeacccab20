"""Back-up and restore of a PostgreSQL, by the very commands of the how-to."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agent_core.errors import ConfigInvalid
from bot.app.backup import back_up, restore
from bot.app.database import open_database
from bot.app.doctor.exam import Exam
from bot.app.doctor.services import knowledge
from bot.app.knowledge import own_entries
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from storage.engine import Database
from storage.events import Events
from storage.questions import Questions
from storage.runs import Runs
from storage.schedules import NewSchedule, Schedules
from tests.scheduler.runs.steps import SOON, desk, steps_once
from tests.storage import postgres

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PROGRAMS = postgres.find_programs()


@pytest.fixture
def socket_folder(postgres_folder: Path) -> Path:
    return postgres_folder


def commands(page: str) -> list[str]:
    """Those in the part about PostgreSQL that are not ours."""
    part = (HOW_TO / page).read_text("utf-8").partition("\n## PostgreSQL\n")[2].partition("\n## ")[0]
    lines = "".join(re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)).splitlines()
    assert lines.pop() == "phonedesk restore"
    return lines


async def typed(line: str, settings: Settings, folder: Path) -> None:
    env = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "PHONEDESK_DATABASE_URL": settings.database_url}
    shell = await asyncio.create_subprocess_exec("sh", "-c", line, cwd=folder, env=env, stderr=asyncio.subprocess.PIPE)
    _, said = await shell.communicate()
    assert (shell.returncode, said) == (0, b""), line


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[tuple[Database, EmbeddedKnowledge]]:
    async with AsyncExitStack() as stack:
        db = await open_database(settings)
        stack.push_async_callback(db.close)
        entries = own_entries(settings, db)
        stack.push_async_callback(entries.close)
        yield db, entries


@pytest.mark.skipif(PROGRAMS is not None and not (PROGRAMS / "pg_dump").exists(), reason="needs pg_dump")
async def test_a_dump_is_put_back_and_work_goes_on(url: str, tmp_path: Path) -> None:
    assert commands("back-up-and-restore.md") == commands("back-up-and-restore.zh-CN.md")
    dump, create, put_back = commands("back-up-and-restore.md")
    settings = load(data_dir=tmp_path / "data", database_url=url)
    async with opened(settings) as (db, entries):
        await entries.add(Entry(id="1", question="怎么退货", answer="七天内"))
        schedule = await Schedules(db).add(NewSchedule("0 12 * * *", "UTC", "nightly", serial="S9"))
        async with desk(db) as at:
            run = await at.service.submit("task", serial="S1")
            await asyncio.wait_for(at.in_midst.wait(), SOON)
            before = await Events(db).append(run, "note")
            await Questions(db).ask("q", run_id=run, kind="info", payload={"id": "q"})
            await typed(dump, settings, tmp_path)  # while it works
            at.go_on.set()
            await at.over(run)
        await entries.delete("1")
        await entries.add(Entry(id="2", question="几天发货", answer="两天"))
    with pytest.raises(ConfigInvalid, match="pg_dump"):
        await back_up(settings, tmp_path)

    await typed(create, settings, tmp_path)
    settings = load(data_dir=settings.data_dir, database_url=re.sub(r"/\w+\?", f"/{create.split()[-1]}?", url))
    await typed(put_back, settings, tmp_path)
    done = await restore(settings, None)
    assert (done.made_at, [held.id for held in done.held]) == (None, [run])

    async with opened(settings) as (db, entries):
        assert await Events(db).append(run, "note") > before + 1_000_000, "a gap is left"
        assert [entry.id for entry in await entries.list()] == ["1"]  # the mirror was of a later time
        await entries.add(Entry(id="3", question="几天发货", answer="三天"))
        assert [record.id for record in await entries.retrieve("几天发货")][:1] == ["3"]
        assert [row.id for row in await Schedules(db).all()] == [schedule.id]
        question = await Questions(db).get("q")
        assert question is not None
        assert (question.state, question.run_id) == ("open", run)
        async with desk(db) as at:
            at.go_on.set()
            assert [row.hold for row in await Runs(db).find()] == [True]
            assert await at.service.resume(run)
            await at.over(run)
            assert at.made[0] == (run, 2)  # from the saved state
        await steps_once(db, run)
    async with AsyncExitStack() as stack:
        verdict = await knowledge(Exam(settings, "", stack))
    assert (verdict.case, verdict.values["count"]) == ("entries", 2)


async def test_without_a_file_there_is_nothing_to_put_back_into_sqlite(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path / 'phonedesk.sqlite3'}")
    with pytest.raises(ConfigInvalid, match="no back-up"):
        await restore(settings, None)
