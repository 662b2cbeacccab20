"""Back-up and restore: one file with whole copies of our databases, made with or without a server at work. PostgreSQL
is copied and restored by its own programs; the clean-up that is needed after that is done here, too.

The queue's file is not in a back-up: an attempt is started because its run is due, which our tables tell. After a
restore the queue begins empty, so it starts no attempt from after the back-up, and takes none for done.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from errno import EISDIR, ENOENT, ENOSPC
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, StrictInt
from sqlalchemy.engine.url import make_url

from agent_core.errors import ConfigInvalid, PhonedeskError
from bot.app.database import open_database
from bot.app.release import release
from bot.app.settings.layers import Settings
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs.queue import ProcessLock
from storage.backup import BrokenCopy, HeldRun, InUse, Restored, alone, check, copy, schema
from storage.engine import Database, database_url
from storage.migrations import LONGEST_REVISION, OtherRelease

FORM = 1
MANIFEST, DATABASE = "manifest.json", "phonedesk.sqlite3"
OURS = {"alembic_version", "runs"}  # tables that no other program's file has
LEFT_OUT = ("trajectory_pictures",)  # the bulk of the database, and deleted after a few days in any case


PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # Python unpacks these piece by piece, others without a bound
SQLITE = b"SQLite format 3\0"
MOST_OF_MANIFEST = 65_536  # bytes
ROOM_LEFT = 100_000_000  # bytes that stay free while a back-up is unpacked


class Manifest(BaseModel):
    """The description in a back-up, as JSON. A later release may add to it.

    parts: the names of its databases: always one.
    """

    form: StrictInt
    made_at: AwareDatetime
    release: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Backup:
    """A back-up that was written. ``bytes``: its size."""

    file: Path
    made_at: datetime
    bytes: int


@dataclass(frozen=True, slots=True)
class Restore:
    """The result of a restore.

    made_at: when the back-up was made; None if pg_restore has put the database back.
    held: the runs that had not ended then.
    before: the folder with the previous data; None if there was none.
    """

    made_at: datetime | None
    held: Sequence[HeldRun]
    before: Path | None


def database_file(settings: Settings) -> Path | None:
    """Return the path of our database; None for PostgreSQL."""
    url = database_url(settings.url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


# Back-up ------------------------------------------------------------------------------------------------------------


async def back_up(settings: Settings, to: Path) -> Backup:
    """Write a back-up to the file ``to``, or into the folder ``to`` with a name of its own, and return it.

    Raises ConfigInvalid if there is nothing to back up, ``to`` is neither a folder nor a new file ending with .zip, the
    file cannot be written, or the database is PostgreSQL.
    """
    database = database_file(settings)
    if database is None:
        raise ConfigInvalid(
            "The database is PostgreSQL, and everything is in it; nothing was written.",
            advice='Use: pg_dump --format=custom --file=desk.dump "$PHONEDESK_DATABASE_URL". With compose.yaml: docker '
            "compose exec -T db pg_dump --username=phonedesk --format=custom phonedesk > desk.dump",
            key="backup_postgres",
        )
    return await asyncio.to_thread(_back_up, database, settings.data_dir, to, datetime.now(UTC))


def _back_up(database: Path, data_dir: Path, to: Path, now: datetime) -> Backup:
    file = to / f"phonedesk-{now:%Y%m%d-%H%M%S}.zip" if to.is_dir() else to
    if file.exists():
        said, advice = f"{file} is there already.", "Give another name, or a folder."
        raise ConfigInvalid(said, advice=advice, key="backup_there", name=file)
    if file.suffix.lower() != ".zip":  # such as the folder of a disk that is not mounted
        raise ConfigInvalid(
            f"There is no folder {file}.",
            advice="Is the disk mounted? Name a folder that is there, or a file that ends with .zip.",
            key="backup_no_folder",
            name=file,
        )
    if not database.is_file():
        said = f"There is no database in {data_dir}."
        raise ConfigInvalid(said, advice="Check PHONEDESK_DATA_DIR.", key="backup_nothing", name=data_dir)
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.absolute().parent) as folder:
            told = Manifest(form=FORM, made_at=now, release=release(), parts=(DATABASE,))
            _archive(Path(folder), database, told).replace(file)
    except (OSError, BrokenCopy) as error:
        raise ConfigInvalid(
            f"The back-up could not be written: {error}.",
            advice="Nothing was left. Is there room on the disk?",
            key="backup_unwritten",
            name=file,
            why=_why(error),
        ) from error
    return Backup(file, now, file.stat().st_size)


def _archive(folder: Path, database: Path, told: Manifest) -> Path:
    made = folder / "made.zip"
    # It contains customers' messages, so only this user may read it.
    os.close(os.open(made, os.O_CREAT | os.O_WRONLY, 0o600))
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, told.model_dump_json())
        copy(database, folder / DATABASE, without=LEFT_OUT)
        archive.write(folder / DATABASE, DATABASE)
    with made.open("rb") as written:
        os.fsync(written.fileno())
    return made


# Restore ------------------------------------------------------------------------------------------------------------


async def restore(settings: Settings, file: Path | None) -> Restore:
    """Replace our databases by those of a back-up. The old ones are kept aside; runs that had not ended are held.

    file: the back-up. None if pg_restore has put back the PostgreSQL of the settings: then its runs are held, and this
        machine's queue is put aside.
    Raises ConfigInvalid if a server is running or the file cannot be used; then nothing has changed.
    """
    if file is None and database_file(settings) is not None:
        said, advice = "There is no back-up to put back.", "Name the file of phonedesk backup."
        raise ConfigInvalid(said, advice=advice, key="backup_not_named")
    async with AsyncExitStack() as stack:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        stack.enter_context(_locked(settings))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".restore-", dir=settings.data_dir)))
        database = database_file(settings)
        if file is not None and database is None:
            raise ConfigInvalid(
                "The back-up is of another kind of database.",
                advice="Check PHONEDESK_DATABASE_URL, see the how-to.",
                key="backup_other_kind",
            )
        new: dict[Path, Path] = {}
        if file is not None and database is not None:
            made_at, held = await _from_file(file, folder)
            new[database] = folder / DATABASE
        else:
            made_at, held = None, await _settled(await open_database(settings))
        await asyncio.to_thread(_only_user, [*new, *_queues(settings)])
        before = await asyncio.to_thread(_exchange, settings, new, datetime.now(UTC))
        return Restore(made_at, held, before)


def _locked(settings: Settings) -> ExitStack:
    """Lock this data folder against servers. Raises ConfigInvalid if one is running."""
    stack = ExitStack()
    names = {f"{settings.queue.executor_id}.lock", *(path.name for path in settings.data_dir.glob("*.lock"))}
    try:
        for name in sorted(names):
            lock = ProcessLock(settings.data_dir / name)
            lock.acquire()
            stack.callback(lock.release)
    except ConfigInvalid as error:
        stack.close()
        raise ConfigInvalid(
            error.message, advice="End it before you restore.", key="restore_at_work", **error.values
        ) from None
    return stack


def _why(error: Exception) -> Exception | str:
    """Return why it failed: SQLite's own words for a broken copy, else the error in the person's language."""
    return str(error) if isinstance(error, BrokenCopy) else error


async def _from_file(file: Path, folder: Path) -> tuple[datetime, Sequence[HeldRun]]:
    """Unpack a back-up's database into ``folder`` and migrate it to this release.

    Returns when the back-up was made, and the runs that are held.
    """
    with _usable(file):
        told = await asyncio.to_thread(_unpack, file, folder)
        held = await _settled(Database(f"sqlite:///{folder / DATABASE}"), folder / DATABASE)
        return told.made_at, held


@contextmanager
def _usable(file: Path) -> Iterator[None]:
    """Turn whatever a file raises that is damaged or no back-up into one ConfigInvalid; nothing has changed yet."""
    try:
        yield
    except OtherRelease as error:
        raise _other_release(file, error.revision) from error
    except ConfigInvalid:
        raise
    except Exception as error:
        said, *_ = (error.message if isinstance(error, PhonedeskError) else str(error)).splitlines() or [repr(error)]
        raise ConfigInvalid(
            f"{file} is no back-up that can be used: {said}.",
            advice="Nothing was changed.",
            key="backup_unusable",
            name=file,
            why=_why(error),
        ) from error


def _other_release(file: Path, revision: str) -> ConfigInvalid:
    said = f"{file} was made by another release of phonedesk (version {revision})."
    advice = "Nothing was changed. Update phonedesk first if that release was a later one."
    return ConfigInvalid(said, advice=advice, key="backup_other_release", name=file, revision=revision)


def _unpack(file: Path, folder: Path) -> Manifest:
    """Unpack the database into ``folder``. Raises an error of any kind if something is wrong with the file."""
    if not file.is_file():
        raise OSError(EISDIR if file.is_dir() else ENOENT, "no file")
    with zipfile.ZipFile(file) as archive:
        found = archive.infolist()
        if any(info.compress_type not in PACKINGS for info in found):
            raise ValueError("it is packed as no back-up is")
        if archive.getinfo(MANIFEST).file_size > MOST_OF_MANIFEST:
            raise ValueError("its manifest is too long")
        written = json.loads(archive.read(MANIFEST))
        if isinstance(written, dict) and isinstance(form := written.get("form"), int) and form > FORM:
            raise _other_release(file, str(written.get("release"))[:LONGEST_REVISION])
        told = Manifest.model_validate(written)
        if told.form != FORM or told.parts != (DATABASE,):
            raise ValueError("its manifest is none of phonedesk")
        if sorted(archive.namelist()) != sorted((MANIFEST, DATABASE)):
            raise ValueError("it does not hold what its manifest says")
        needed, free = sum(info.file_size for info in found), shutil.disk_usage(folder).free
        if needed + ROOM_LEFT > free:
            raise OSError(ENOSPC, f"it takes {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free")
        _unpack_database(archive, folder / DATABASE)
    return told


def _unpack_database(archive: zipfile.ZipFile, to: Path) -> None:
    with archive.open(DATABASE) as packed, to.open("wb") as out:
        start = packed.read(len(SQLITE))
        if start != SQLITE:  # checked before the rest is unpacked, which may be a zip bomb
            raise ValueError(f"{DATABASE} is no database")
        out.write(start)
        shutil.copyfileobj(packed, out)
    check(to)
    found = schema(to)
    if not found.keys() >= OURS or not set(found.values()) <= {"table", "index"}:
        raise ValueError(f"{DATABASE} is of another program")  # ours has no triggers or views


async def _settled(db: Database, file: Path | None = None) -> Sequence[HeldRun]:
    """Hold the runs of a restored database, and return them. If it came as ``file``, migrate and check it first."""
    try:
        restored = Restored(db)
        if file:
            await db.migrate()
            await restored.check()
            await EmbeddedKnowledge(db).list()
        return await restored.settle()
    finally:
        await db.close()
        if file:
            await asyncio.to_thread(alone, file)


def _queues(settings: Settings) -> list[Path]:
    url = make_url(settings.queue_url)
    own = [Path(url.database)] if url.get_backend_name() == "sqlite" and url.database else []
    return sorted({*own, *settings.data_dir.glob("queue*.sqlite3")})


def _only_user(files: Sequence[Path]) -> None:
    """Raise ConfigInvalid if another process has a file open: ``serve --no-phones`` and commands take no lock."""
    for file in files:
        try:
            alone(file)
        except InUse:
            raise ConfigInvalid(
                f"Another process has {file.name} open.",
                advice="End what runs of phonedesk before you restore.",
                key="restore_file_open",
                name=file.name,
            ) from None


def _exchange(settings: Settings, new: dict[Path, Path], now: datetime) -> Path | None:
    """Move the old files aside and the new ones into their place. Return the folder of the old ones, None without any.

    SQLite's files beside a database move with it, because a log left by a broken database would be replayed into the
    new one. Raises ConfigInvalid if a file cannot be moved; then nothing has changed.
    """
    files = (*new, *_queues(settings))
    beside = [path.with_name(path.name + end) for path in files for end in ("", "-wal", "-shm", "-journal")]
    old = [path for path in beside if path.exists()]
    aside = settings.data_dir / f"before-restore-{now:%Y%m%d-%H%M%S}"
    moves = [*((path, aside / path.name) for path in old), *((made, target) for target, made in new.items())]
    with ExitStack() as back:
        try:
            if old:
                aside.mkdir()
                back.callback(aside.rmdir)
            for source, target in moves:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(source, target)
                back.callback(shutil.move, target, source)
        except OSError as error:
            raise ConfigInvalid(
                f"The back-up could not be put into its place: {error}.",
                advice="Nothing was changed.",
                key="restore_unwritten",
                why=error,
            ) from error
        back.pop_all()
    return aside if old else None
