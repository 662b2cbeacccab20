"""Back-up and restore: whole copies beside a writer, refusals, and what is held afterwards."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import stat
import zipfile
from pathlib import Path

import pytest

import storage
from agent_core.errors import ConfigInvalid
from bot.app.backup import back_up, database_file, restore
from bot.app.database import open_database
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.channels.chat.texts import texts
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.queue import ProcessLock
from scheduler.runs.service import RunService
from storage.events import Events
from storage.leases import Leases
from storage.model_calls import Trajectories
from storage.questions import Questions
from storage.runs import RunRow, Runs


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    data = tmp_path / "data"
    return load(data_dir=data, database_url=f"sqlite:///{data / 'phonedesk.sqlite3'}", knowledge={"sample": False})


async def filled(settings: Settings) -> list[str]:
    """A run at work, one in the line, one that waits for a person, one that is over; and the knowledge store."""
    db = await open_database(settings)
    service, runs = RunService(db), Runs(db)
    ids = [await service.submit(f"task {number}", serial=f"S{number}") for number in range(4)]
    for number in (0, 2, 3):
        await runs.begin_attempt(ids[number], 1, serial=f"S{number}")
    assert await Leases(db).acquire("S0", "host", ids[0])
    await Questions(db).ask("q", run_id=ids[2], kind="info", payload={"id": "q"})
    await runs.park_attempt(ids[2], 1)
    await runs.end_attempt(ids[3], 1, status="succeeded")
    await Trajectories(db).asked(ids[3], 1, "{}", digest="d", picture=b"a screen " * 10_000)
    await EmbeddedKnowledge(db).seed_sample_if_empty()
    await db.close()
    return ids


def newest() -> bytes:
    """The revision of the tables."""
    return max((Path(storage.__file__).parent / "migrations" / "versions").glob("2*.py")).name[:6].encode()


async def rows(settings: Settings) -> list[RunRow]:
    db = await open_database(settings)
    found = await Runs(db).find(limit=100)
    await db.close()
    return sorted(found, key=lambda run: run.id)


async def test_what_was_backed_up_comes_back_and_what_was_not_over_is_held(settings: Settings, tmp_path: Path) -> None:
    ids = await filled(settings)
    made = await back_up(settings, tmp_path)
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    db = await open_database(settings)  # life goes on
    await RunService(db).submit("later")
    await Runs(db).end_attempt(ids[0], 1, status="succeeded")
    await db.close()
    (settings.data_dir / "queue.sqlite3").touch()

    done = await restore(settings, made.file)
    assert done.made_at == made.made_at
    assert [run.id for run in done.held] == ids[:3]
    found = await rows(settings)
    assert [(run.id, run.hold, run.status) for run in found] == [
        (ids[0], True, "running"),
        (ids[1], True, "waiting"),
        (ids[2], True, "waiting"),
        (ids[3], False, "succeeded"),
    ]
    assert done.before is not None
    assert {file.name for file in done.before.iterdir()} == {"phonedesk.sqlite3", "queue.sqlite3"}
    assert {file.name for file in settings.data_dir.iterdir() if file.suffix == ".sqlite3"} == {"phonedesk.sqlite3"}

    db = await open_database(settings)
    assert (await EmbeddedKnowledge(db).stats()).live > 0
    kept = Trajectories(db)  # what models were asked came with it, what they were shown did not
    assert [(row.data, row.picture) for row in await kept.of(ids[3])] == [("{}", "d")]
    assert await kept.picture(ids[3], "d") is None
    await db.close()

    db = await open_database(settings)  # nothing begins by itself, not with an answer either, until a person says so
    await Questions(db).answer("q", {"text": "yes"}, by="owner")
    due = Dispatcher(db, None)
    await due._tidy()
    assert await Runs(db).due() == []
    assert await RunService(db).resume(ids[1])
    assert [run.id for run in await Runs(db).due()] == [ids[1]]
    await db.close()


async def test_no_event_gets_an_id_that_was_given_out_before(settings: Settings, tmp_path: Path) -> None:
    await filled(settings)
    db = await open_database(settings)
    seen = {await Events(db).append("r1", "step")}
    await db.close()
    made = await back_up(settings, tmp_path)
    for number in range(3):  # the same back-up again, too
        db = await open_database(settings)
        new = [await Events(db).append("r1", "step") for _ in range(20)]
        await db.close()
        assert min(new) > max(seen)
        seen.update(new)
        done = await restore(settings, made.file)
        assert done.before is not None
        done.before.rename(tmp_path / f"before {number}")  # its name has the second


async def test_ids_are_higher_after_a_restore_though_no_event_was_in_it(settings: Settings, tmp_path: Path) -> None:
    await (await open_database(settings)).close()
    made = await back_up(settings, tmp_path)
    db = await open_database(settings)
    before = await Events(db).append("r1", "step")
    await db.close()
    await restore(settings, made.file)
    db = await open_database(settings)
    assert await Events(db).append("r1", "step") > before
    await db.close()


async def test_a_copy_beside_a_writer_is_whole(settings: Settings, tmp_path: Path) -> None:
    await filled(settings)
    db = await open_database(settings)
    ended = False
    numbers = itertools.count()

    async def write() -> None:
        while not ended:
            await Events(db).append("r1", "step", {"n": 1}, picture=next(numbers).to_bytes(4) + b"x" * 5000)

    writing = asyncio.create_task(write())
    made = [await back_up(settings, tmp_path / f"{number}.zip") for number in range(3)]
    ended = True
    await writing
    await db.close()
    for one in made:
        with zipfile.ZipFile(one.file) as archive:
            archive.extract("phonedesk.sqlite3", tmp_path / one.file.stem)
        copied = sqlite3.connect(tmp_path / one.file.stem / "phonedesk.sqlite3")
        assert copied.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        pictured, pictures = (
            copied.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
            for what in ("events WHERE picture_id IS NOT NULL", "pictures")
        )
        assert pictured == pictures
        copied.close()


async def test_nothing_is_put_back_while_a_server_works(settings: Settings, tmp_path: Path) -> None:
    await filled(settings)
    made = await back_up(settings, tmp_path)
    lock = ProcessLock(settings.data_dir / "host-7.lock")
    lock.acquire()
    with pytest.raises(ConfigInvalid, match="Another process"):
        await restore(settings, made.file)
    lock.release()
    db = await open_database(settings)  # one without phones has no lock
    await Runs(db).find()
    with pytest.raises(ConfigInvalid, match=r"phonedesk\.sqlite3 open"):
        await restore(settings, made.file)
    await db.close()
    assert not list(settings.data_dir.glob("before-restore-*"))
    assert not any(run.hold for run in await rows(settings))


@pytest.mark.parametrize("what", ["no zip", "half a database", "of a later release"])
async def test_what_is_no_back_up_changes_nothing(settings: Settings, tmp_path: Path, what: str) -> None:
    await filled(settings)
    made = await back_up(settings, tmp_path)
    broken = tmp_path / "broken.zip"
    if what == "no zip":
        broken.write_bytes(made.file.read_bytes()[:1000])
    else:
        with zipfile.ZipFile(made.file) as archive, zipfile.ZipFile(broken, "w") as other:
            for name in archive.namelist():
                data = archive.read(name)
                if name == "phonedesk.sqlite3" and what == "half a database":
                    data = data[: len(data) // 2]
                elif name == "phonedesk.sqlite3":
                    data = data.replace(newest(), b"9999")
                other.writestr(name, data)
    with pytest.raises(ConfigInvalid) as raised:
        await restore(settings, broken)
    if what == "half a database":  # what SQLite says is told, in both languages
        assert "malformed" in texts("zh").error(raised.value)
    assert not list(settings.data_dir.glob("before-restore-*"))
    assert not any(run.hold for run in await rows(settings))
    assert not list(settings.data_dir.glob(".restore-*"))


async def test_what_cannot_be_backed_up_is_said(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="no database"):
        await back_up(settings, tmp_path)
    await filled(settings)
    file = database_file(settings)
    assert file is not None
    made = await back_up(settings, tmp_path / "one.zip")
    with pytest.raises(ConfigInvalid, match="there already"):
        await back_up(settings, made.file)
    with pytest.raises(ConfigInvalid, match="could not be written"):
        await back_up(settings, tmp_path / "no" / "such" / "folder.zip")
    for missing in (tmp_path / "disk", tmp_path / "no" / "bk"):  # such as a disk that is not mounted
        with pytest.raises(ConfigInvalid, match="no folder") as raised:
            await back_up(settings, missing)
        assert "zip" in texts("zh").error(raised.value)
        assert not missing.exists()
