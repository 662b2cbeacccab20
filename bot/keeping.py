"""Back-up and restore: one file with whole copies of our databases, taken while a server works or not. A PostgreSQL
is copied and put back by its own programs; what has to be put in order after that is done here, too.

The queue's file is not in it: a leg is started because its run is due, and that stands in our tables. After a restore
the queue begins empty, so no leg of a later time is started, and none is taken for done.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from alembic.util import CommandError
from sqlalchemy.engine.url import make_url

from agent_core.errors import ConfigInvalid
from bot.app import open_database
from bot.knowledge import knowledge_file
from bot.release import release
from bot.settings import Settings
from scheduler.dbos_queue import ProcessLock
from storage.backup import BrokenCopy, HeldRun, InUse, Restored, alone, check, copy
from storage.engine import Database, database_url

FORM = 1
MANIFEST, DATABASE, KNOWLEDGE = "manifest.json", "phonedesk.sqlite3", "knowledge.sqlite3"
PARTS = (DATABASE, KNOWLEDGE)
LEFT_OUT = ("trajectory_pictures",)  # the bulk of the database, and gone after a few days in any case


@dataclass(frozen=True, slots=True)
class Backup:
    """``parts``: the databases that are in it."""

    file: Path
    made_at: datetime
    parts: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Restore:
    """``made_at``: of the file that was put back; None where it was pg_restore's. ``held``: the runs that were not over
    then. ``before``: what was there.
    """

    made_at: datetime | None
    parts: tuple[str, ...]
    held: Sequence[HeldRun]
    before: Path | None


def database_file(settings: Settings) -> Path | None:
    """Where our database is; None for PostgreSQL."""
    url = database_url(settings.url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _sources(settings: Settings) -> dict[str, Path]:
    """The files by their name in the archive, whether they are there or not."""
    database = database_file(settings)
    return {**({DATABASE: database} if database else {}), KNOWLEDGE: knowledge_file(settings)}


# Back-up ------------------------------------------------------------------------------------------------------------


async def back_up(settings: Settings, to: Path) -> Backup:
    """Write a back-up to the file ``to``, or with a name of its own into the folder ``to``.

    ConfigInvalid where there is nothing to back up, the file is there already, or it cannot be written; and for
    PostgreSQL.
    """
    if database_file(settings) is None:
        raise ConfigInvalid(
            "The database is PostgreSQL, and everything is in it; nothing was written.",
            advice='Use: pg_dump --format=custom --file=desk.dump "$PHONEDESK_DATABASE_URL" (see the how-to).',
        )
    return await asyncio.to_thread(_back_up, settings, to, datetime.now(UTC))


def _back_up(settings: Settings, to: Path, now: datetime) -> Backup:
    file = to / f"phonedesk-{now:%Y%m%d-%H%M%S}.zip" if to.is_dir() else to
    if file.exists():
        said, advice = f"{file} is there already.", "Give another name, or a folder."
        raise ConfigInvalid(said, advice=advice, key="backup_there", name=file)
    sources = {name: path for name, path in _sources(settings).items() if path.is_file()}
    if DATABASE not in sources:
        said, folder_of = f"There is no database in {settings.data_dir}.", settings.data_dir
        raise ConfigInvalid(said, advice="Check PHONEDESK_DATA_DIR.", key="backup_nothing", name=folder_of)
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.absolute().parent) as folder:
            made = _archive(Path(folder), sources, {"form": FORM, "made_at": now.isoformat(), "release": release()})
            made.replace(file)
    except (OSError, BrokenCopy) as error:
        raise ConfigInvalid(
            f"The back-up could not be written: {error}.",
            advice="Nothing was left. Is there room on the disk?",
            key="backup_unwritten",
            name=file,
            why=_why(error),
        ) from error
    return Backup(file, now, tuple(sources), file.stat().st_size)


def _archive(folder: Path, sources: dict[str, Path], told: dict[str, object]) -> Path:
    made = folder / "made.zip"
    # It holds what customers wrote: for this user alone.
    os.close(os.open(made, os.O_CREAT | os.O_WRONLY, 0o600))
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps({**told, "parts": list(sources)}))
        for name, source in sources.items():
            copy(source, folder / name, without=LEFT_OUT)
            archive.write(folder / name, name)
            (folder / name).unlink()
    with made.open("rb") as written:
        os.fsync(written.fileno())
    return made


# Restore ------------------------------------------------------------------------------------------------------------


async def restore(settings: Settings, file: Path | None) -> Restore:
    """Put a back-up in the place of what is there, which is kept beside it; runs that were not over then are held.

    ``file`` None: pg_restore has put the PostgreSQL of the settings back; runs are held in it, and this machine's queue
    goes aside. ConfigInvalid where a server works, or the file is none that can be used; then nothing has changed.
    """
    if file is None and database_file(settings) is not None:
        raise ConfigInvalid("There is no back-up to put back.", advice="Name the file of phonedesk backup.")
    async with AsyncExitStack() as stack:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        stack.enter_context(_locked(settings))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".restore-", dir=settings.data_dir)))
        made_at, parts = await asyncio.to_thread(_unpack, file, folder) if file else (None, ())
        database = database_file(settings)
        if (DATABASE in parts) != (database is not None):
            raise ConfigInvalid(
                "The back-up is of another kind of database.", advice="Check PHONEDESK_DATABASE_URL, see the how-to."
            )
        held = await _settled(settings, folder / DATABASE if database else None)
        sources = _sources(settings)
        await asyncio.to_thread(_only_user, [*sources.values(), *_queues(settings)])
        before = await asyncio.to_thread(
            _exchange, settings, {sources[name]: folder / name for name in parts}, datetime.now(UTC)
        )
        return Restore(made_at, parts, held, before)


def _locked(settings: Settings) -> ExitStack:
    """No server of this data folder runs, and none starts meanwhile."""
    stack = ExitStack()
    names = {f"{settings.queue.executor_id}.lock", *(path.name for path in settings.data_dir.glob("*.lock"))}
    try:
        for name in sorted(names):
            lock = ProcessLock(settings.data_dir / name)
            lock.acquire()
            stack.callback(lock.release)
    except ConfigInvalid as error:
        stack.close()
        raise ConfigInvalid(error.message, advice="End it before you restore.") from None
    return stack


def _why(error: Exception) -> Exception | str:
    """What SQLite says of a broken copy has no text; the rest is told in the person's language."""
    return str(error) if isinstance(error, BrokenCopy) else error


def _unpack(file: Path, folder: Path) -> tuple[datetime, tuple[str, ...]]:
    try:
        with zipfile.ZipFile(file) as archive:
            told = json.loads(archive.read(MANIFEST))
            parts = tuple(name for name in PARTS if name in told["parts"])
            made_at = datetime.fromisoformat(told["made_at"])
            if told["form"] != FORM:
                raise ConfigInvalid(f"{file} was made by a later release ({told['release']}).", advice="Update first.")
            for name in parts:
                with archive.open(name) as packed, (folder / name).open("wb") as out:
                    shutil.copyfileobj(packed, out)
                check(folder / name)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, BrokenCopy) as error:
        raise ConfigInvalid(
            f"{file} is no back-up that can be used: {error}.",
            advice="Nothing was changed.",
            key="backup_unusable",
            name=file,
            why=_why(error),
        ) from error
    return made_at, parts


async def _settled(settings: Settings, file: Path | None) -> Sequence[HeldRun]:
    """The restored database, brought up to this release; ``file`` None for the PostgreSQL of the settings."""
    db = Database(f"sqlite:///{file}") if file else await open_database(settings)
    try:
        if file:
            await db.migrate()
        return await Restored(db).settle()
    except CommandError as error:  # its tables are of a revision that this release does not know
        raise ConfigInvalid(f"The back-up was made by a later release: {error}.", advice="Update first.") from None
    finally:
        await db.close()
        if file:
            await asyncio.to_thread(alone, file)


def _queues(settings: Settings) -> list[Path]:
    url = make_url(settings.queue_url)
    own = [Path(url.database)] if url.get_backend_name() == "sqlite" and url.database else []
    return sorted({*own, *settings.data_dir.glob("queue*.sqlite3")})


def _only_user(files: Sequence[Path]) -> None:
    """``serve --no-phones`` and commands have no lock, but they have the file open."""
    for file in files:
        try:
            alone(file)
        except InUse:
            raise ConfigInvalid(
                f"Another process has {file.name} open.", advice="End what runs of phonedesk before you restore."
            ) from None


def _exchange(settings: Settings, new: dict[Path, Path], now: datetime) -> Path | None:
    """What is there goes aside, the new takes its place; where the old is."""
    old = [path for path in (*new, *_queues(settings)) if path.exists()]
    aside = settings.data_dir / f"before-restore-{now:%Y%m%d-%H%M%S}"
    if old:
        aside.mkdir()
    for path in old:
        shutil.move(path, aside / path.name)
    for target, made in new.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
    return aside if old else None
