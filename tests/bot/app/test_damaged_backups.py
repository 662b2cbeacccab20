"""Whatever a file is that somebody wants to put back: one clear error, and nothing has changed; or it is whole."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_core.errors import ConfigInvalid
from bot.app.backup import Restore, back_up, restore
from bot.app.database import open_database
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.channels.chat.texts import LANGUAGES, texts
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.main import app
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import sample_entries
from scheduler.runs.queue import ProcessLock
from scheduler.runs.service import RunService
from storage.events import Events
from storage.questions import Questions
from storage.runs import RunRow, Runs
from tests.bot.app.damaged_backups import HARMLESS, changed, make, names, packed, parts_of
from tests.support.child import measure

NAMES = list(names())


def settings_in(data: Path) -> Settings:
    return load(data_dir=data, database_url=f"sqlite:///{data / 'phonedesk.sqlite3'}", knowledge={"sample": False})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A data folder in use, and a back-up of it."""
    return asyncio.run(_made(tmp_path_factory.mktemp("whole")))


async def _made(folder: Path) -> tuple[Path, bytes]:
    settings = settings_in(folder / "data")
    db = await open_database(settings)
    run_id = await RunService(db).submit("QQ回复联系人11", serial="S1")
    await Runs(db).begin_attempt(run_id, 1, serial="S1")
    await Events(db).append(run_id, "step", {"n": 1}, picture=b"jpeg")
    await Questions(db).ask("q", run_id=run_id, kind="info", payload={"id": "q"})
    await EmbeddedKnowledge(db).add_all(sample_entries()[:3])
    await db.close()
    made = await back_up(settings, folder / "whole.zip")
    (settings.data_dir / "queue.sqlite3").write_bytes(b"a queue")
    return settings.data_dir, made.file.read_bytes()


@pytest.fixture
def settings(whole: tuple[Path, bytes], tmp_path: Path) -> Settings:
    """Of a data folder of its own, with what is in the other."""
    shutil.copytree(whole[0], tmp_path / "data")
    return settings_in(tmp_path / "data")


def damaged(name: str, whole: bytes, folder: Path) -> Path:
    file, made = folder / "damaged.zip", make(name, whole)
    if made is None:
        file.mkdir()
    else:
        file.write_bytes(made)
    return file


LOCKS = {".lock", ".holder"}  # in the second a process writes its number


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, without the locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path.suffix not in LOCKS
    }


@pytest.mark.rotating(parts=8)
@pytest.mark.parametrize("name", NAMES)
async def test_a_damaged_back_up_is_one_error_and_changes_nothing(
    name: str, whole: tuple[Path, bytes], settings: Settings, tmp_path: Path
) -> None:
    file = damaged(name, whole[1], tmp_path)
    before = contents(settings.data_dir)
    error, done = await tried(settings, file)
    if error is not None:
        assert name not in HARMLESS, error
        assert contents(settings.data_dir) == before
        assert error.key in ("backup_unusable", "backup_other_release"), error
        for lang in LANGUAGES:
            said, _, advice = texts(lang).error(error).partition("\n")
            assert str(file) in said
            assert advice
    else:  # a flip that nothing shows; what was put back can be worked with
        assert done is not None
        assert done.before is not None
        assert name in HARMLESS or name.startswith("flip"), name
        assert done.made_at is not None
        assert len(done.held) <= 1
        assert len(await runs_in(settings)) == 1
        assert {path.name for path in settings.data_dir.iterdir() if path.suffix not in LOCKS} == {
            "phonedesk.sqlite3",
            done.before.name,
        }


async def runs_in(settings: Settings) -> Sequence[RunRow]:
    db = await open_database(settings)
    try:
        return await Runs(db).find()
    finally:
        await db.close()


async def tried(settings: Settings, file: Path) -> tuple[ConfigInvalid | None, Restore | None]:
    try:
        return None, await restore(settings, file)
    except ConfigInvalid as error:
        return error, None


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert len(NAMES) > 190


@pytest.mark.parametrize("name", ["cut 30", "archive text", "manifest null", "database without runs"])
def test_the_command_says_it_in_a_line_and_leaves_with_2(
    name: str, whole: tuple[Path, bytes], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHONEDESK_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("PHONEDESK_LANG", "zh")
    done = CliRunner().invoke(app, ["restore", str(damaged(name, whole[1], tmp_path))])
    assert done.exit_code == Exit.USAGE
    assert "不是能用的备份" in done.stderr
    assert "什么也没有改动" in done.stderr
    assert done.stdout == ""


def restored(data: str, file: str) -> str:
    """What ``phonedesk restore`` says, in a process that may write no file of more than 10 MB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))
    error, _ = asyncio.run(tried(settings_in(Path(data)), Path(file)))
    return error.message if error else ""


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("manifest of 50 MB", "its manifest is too long"),
        ("phonedesk.sqlite3 is 50 MB of zeros", "phonedesk.sqlite3 is no database"),
    ],
)
def test_a_bomb_takes_neither_memory_nor_disk(
    part: str, told: str, whole: tuple[Path, bytes], settings: Settings, tmp_path: Path
) -> None:
    cost = measure(restored, str(settings.data_dir), str(damaged(part, whole[1], tmp_path)))
    assert told in cost.result
    assert cost.memory < 20
    assert cost.cpu < 5


async def test_an_exabyte_does_not_fit(whole: tuple[Path, bytes], settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"takes \d+ MB, and \d+ MB are free"):
        await restore(settings, damaged("archive an exabyte", whole[1], tmp_path))


async def test_a_back_up_takes_the_place_of_a_broken_database(
    whole: tuple[Path, bytes], settings: Settings, tmp_path: Path
) -> None:
    """Which is when one is needed."""
    (settings.data_dir / "phonedesk.sqlite3").write_bytes(b"no database " * 1000)
    (settings.data_dir / "whole.zip").write_bytes(whole[1])
    done = await restore(settings, settings.data_dir / "whole.zip")
    assert done.before is not None
    assert (done.before / "phonedesk.sqlite3").read_bytes().startswith(b"no database")
    assert len(await runs_in(settings)) == 1


async def test_the_log_of_a_database_that_is_gone_is_not_played_into_the_new_one(
    whole: tuple[Path, bytes], settings: Settings, tmp_path: Path
) -> None:
    file, log = settings.data_dir / "phonedesk.sqlite3", settings.data_dir / "phonedesk.sqlite3-wal"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("DELETE FROM runs")
        connection.commit()
        left = log.read_bytes()
    file.unlink()
    log.write_bytes(left)
    (tmp_path / "whole.zip").write_bytes(whole[1])
    done = await restore(settings, tmp_path / "whole.zip")
    assert done.before is not None
    assert (done.before / log.name).read_bytes() == left
    assert len(await runs_in(settings)) == 1


async def test_what_cannot_be_put_into_its_place_leaves_all_as_it_was(
    whole: tuple[Path, bytes], settings: Settings, tmp_path: Path
) -> None:
    """A file stands where the database's folder goes."""
    (tmp_path / "whole.zip").write_bytes(whole[1])
    before = contents(settings.data_dir)
    settings = settings.model_copy(update={"database_url": f"sqlite:///{tmp_path}/damaged.zip/x/phonedesk.sqlite3"})
    (tmp_path / "damaged.zip").touch()
    with pytest.raises(ConfigInvalid) as raised:
        await restore(settings, tmp_path / "whole.zip")
    assert raised.value.key == "restore_unwritten"
    assert contents(settings.data_dir) == before


async def test_who_is_at_work_is_told_in_both_languages(whole: tuple[Path, bytes], settings: Settings) -> None:
    file = settings.data_dir / "whole.zip"
    file.write_bytes(whole[1])
    lock = ProcessLock(settings.data_dir / "host-7.lock")
    lock.acquire()
    error, _ = await tried(settings, file)
    lock.release()
    assert error is not None
    assert "请先结束它再恢复" in texts("zh").error(error)
    with sqlite3.connect(settings.data_dir / "phonedesk.sqlite3") as other:
        other.execute("BEGIN IMMEDIATE")
        error, _ = await tried(settings, file)
    other.close()
    assert error is not None
    assert "phonedesk.sqlite3" in texts("zh").error(error)


async def test_every_row_is_read_before_it_is_put_back(
    whole: tuple[Path, bytes], settings: Settings, tmp_path: Path
) -> None:
    """A value that the server could not read would stop it later, when the old database is gone."""
    parts = parts_of(whole[1])
    odd = changed(parts["phonedesk.sqlite3"], "UPDATE questions SET payload = 'no JSON'")
    (tmp_path / "odd.zip").write_bytes(packed({**parts, "phonedesk.sqlite3": odd}))
    with pytest.raises(ConfigInvalid, match="no back-up that can be used"):
        await restore(settings, tmp_path / "odd.zip")


def test_the_manifest_is_as_it_was_in_the_first_release(whole: tuple[Path, bytes]) -> None:
    told = json.loads(parts_of(whole[1])["manifest.json"])
    assert told.keys() == {"form", "made_at", "release", "parts"}
    assert (told["form"], told["parts"]) == (1, ["phonedesk.sqlite3"])
