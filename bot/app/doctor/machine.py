"""The checks of this machine: settings, database, reading pictures, the clock."""

from __future__ import annotations

import asyncio
import importlib
import os
import stat
import tempfile
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from sqlalchemy.engine.url import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_core import extras
from agent_core.perception.ocr import OcrEngine
from agent_core.texts import Listed
from bot.app.doctor.exam import Exam
from bot.app.doctor.report import DoctorVerdict, failed, ok, skipped, warning
from bot.app.limits import limits_a_day
from bot.app.settings.files import ENV_FILE, config_file, written
from bot.app.settings.layers import ALIAS_PREFIX
from bot.app.settings.loading import unknown_names
from bot.app.settings.names import names
from bot.app.settings.writing import holds_secret
from storage.engine import Database
from storage.hosts import Phones
from storage.learnt import LearntApps
from storage.ledger import StoredLedger
from storage.migrations import OtherRelease
from storage.model_calls import UsageTotals

_TOKENS = ("TOKEN", "AUTH_TOKEN")
UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "Etc/GMT", "GMT", "Universal", "Zulu"})


# -- settings


async def settings(exam: Exam) -> DoctorVerdict:
    exam.settings  # noqa: B018 - where they cannot be used, this raises the error that says why
    return await asyncio.to_thread(_settings)


def _settings() -> DoctorVerdict:
    unknown = unknown_names()
    if unknown:
        name, meant = next(iter(unknown.items()))
        names = Listed(unknown)
        return warning("unknown", names=names, name=name, meant=meant) if meant else warning("unlike", names=names)
    if readable := open_secrets():
        return warning("readable", files=Listed(map(str, readable)))
    file, has_env = config_file(), Path(ENV_FILE).is_file()
    if file.is_file():
        return ok("file", files=Listed([str(file), *([ENV_FILE] if has_env else [])]))
    return ok("only_env", file=file, env=ENV_FILE) if has_env else ok("no_file_needed", file=file)


def open_secrets() -> list[Path]:
    """Return the files of the settings that hold a secret and can be read by other users of this machine."""
    if os.name != "posix":
        return []
    secret = {name.environment for name in names() if name.is_secret} | {f"{ALIAS_PREFIX}{one}" for one in _TOKENS}
    toml = config_file()
    found = [Path(ENV_FILE)] if Path(ENV_FILE).is_file() and secret & written().keys() else []
    found += [toml] if toml.is_file() and holds_secret(toml.read_text(encoding="utf-8")) else []
    return [file for file in found if file.stat().st_mode & stat.S_IROTH]


# -- database


async def database(exam: Exam) -> DoctorVerdict:
    """Check the database. Nothing is made or migrated, because the commands that work with it do that."""
    data_dir = exam.settings.data_dir
    if not await asyncio.to_thread(_writable, data_dir):
        return failed("not_writable", folder=data_dir.absolute())
    try:
        url = make_url(exam.settings.url)
        shown = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite":
            verdict = await asyncio.to_thread(_file, Path(url.database or ""), shown)
            if verdict is not None:
                return verdict
        elif not extras.installed("postgres"):
            return failed("no_driver", command=extras.install_command("postgres"))
        return await _open_database(exam, shown)
    except DBAPIError as error:
        return failed("error", error=str(error.orig or error).splitlines()[0])
    except (SQLAlchemyError, ValueError, OSError) as error:
        return failed("error", error=(str(error) or type(error).__name__).splitlines()[0])


def _file(file: Path, shown: str) -> DoctorVerdict | None:
    """Return the verdict on a database's file before it is opened; None if it can be opened."""
    folder = file.absolute().parent
    if not _writable(folder):
        return failed("not_writable", folder=folder)
    if not file.is_file():
        return ok("new", url=shown)
    return None if os.access(file, os.R_OK | os.W_OK) else failed("not_writable", folder=file.absolute())


async def _open_database(exam: Exam, shown: str) -> DoctorVerdict:
    db = Database(exam.settings.url)
    try:
        try:
            current = await db.revision()
        except OtherRelease as error:
            return failed("other_release", url=shown, current=error.revision)
        if not current:
            return ok("empty", url=shown)
        exam.has_database = True
        exam.known = await Phones(db).identities()
        known = await LearntApps(db).all()
        looked_at = frozenset(key for key, learnt in known.items() if learnt.looks)
        exam.learnt = looked_at | await StoredLedger(db).known_versions()
        if limits_a_day(exam.settings.limits):
            today = db.now().astimezone(ZoneInfo(exam.settings.timezone)).date()
            exam.used_today = await UsageTotals(db).of_day(today)
        return ok("current", url=shown, current=current)
    finally:
        await db.close()


def _writable(folder: Path) -> bool:
    """Tell whether files can be made in ``folder``, or ``folder`` itself can be made if it does not exist."""
    folder = folder.absolute()
    if not folder.exists():
        nearest = next(parent for parent in folder.parents if parent.exists())
        return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


# -- reading pictures


async def ocr(exam: Exam) -> DoctorVerdict:
    if exam.settings.observe.ocr == "off":
        return skipped("off")
    if not OcrEngine.available():
        return warning("missing", command=extras.install_command("ocr"))
    try:
        # Installed is not enough: the libraries under it may be missing.
        await asyncio.to_thread(importlib.import_module, "rapidocr")
    except (ImportError, OSError) as error:
        return warning("broken", error=error, command=extras.install_command("ocr"))
    return ok("installed")


# -- the clock


async def timezone(exam: Exam) -> DoctorVerdict:
    name = exam.settings.timezone
    now = datetime.now(ZoneInfo(name))
    values = {"name": name, "now": f"{now:%Y-%m-%d %H:%M}", "offset": f"{now:%z}"}
    return warning("utc", **values) if name in UTC_NAMES else ok("set", **values)
