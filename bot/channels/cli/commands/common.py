"""Shared parts of the commands: settings from options, exit codes, results."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from zoneinfo import ZoneInfo

import structlog
import typer

from agent_core.errors import ConfigError, ConfigInvalid, InputRejected, PhonedeskError
from agent_core.owner import folder as own
from agent_core.session import Session, Status
from agent_core.texts import Listed
from bot.app import logs
from bot.app.settings.files import files_there
from bot.app.settings.layers import Settings
from bot.app.settings.loading import SettingsWrong, load, own_folder, own_found, passed_over
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Text, err, watched
from bot.channels.cli.terminal.language import speak, spoken_language, texts
from bot.channels.cli.terminal.notices import Notices
from bot.desk.actors import BadRequest, NotFound

if TYPE_CHECKING:
    from agent_core.apps.profile import AppProfile

log = structlog.get_logger(__name__)

T = TypeVar("T")


TERMINAL_LOG = "terminal.log"  # in the data directory
_PASSED_OVER = {"unknown": "setting_unknown", "seconds": "setting_is_no_number", "line": "line_unreadable"}


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    STOPPED = 130


BY_STATUS = {
    Status.SUCCEEDED: Exit.OK,
    Status.FAILED: Exit.FAILED,
    Status.WAITING: Exit.WAITING,
    Status.RUNNING: Exit.WAITING,
    Status.STOPPED: Exit.STOPPED,
}

LANG = "PHONEDESK_LANG"  # says nothing of a phone or a model
BAD_USE = (ConfigError, InputRejected, BadRequest, NotFound)


def settings_from(*, quiet: bool = True, **overrides: Any) -> Settings:
    """Return the settings with the command line's values on top, and set up logging (``quiet``: warnings only)."""
    sys.excepthook = logs.uncaught
    logs.configure("warning")  # messages during the reading go to standard error too
    speak(overrides.get("lang"))
    _tell_passed_over()
    try:
        settings = load(**overrides)
    except PhonedeskError as error:
        fail(error)
    own.use(own_folder(settings))
    speak(settings.lang)
    level = settings.log_level
    logs.configure("warning" if quiet and level == "info" else level, secrets=settings.secrets())
    return settings


def _tell_passed_over() -> None:
    """Warn of settings that set nothing: in the log, or in words if a person sees standard error."""
    console = watched()
    for one in passed_over():
        if console.quiet:
            log.warning(_PASSED_OVER[one.kind], name=one.name, **({"did_you_mean": one.meant} if one.meant else {}))
        else:
            key = "setting_near" if one.meant else _PASSED_OVER[one.kind]
            said = texts(spoken_language()).get(f"log.{key}", name=one.name, meant=one.meant)
            console.print(Text(said, "yellow"), soft_wrap=True)


def log_to_file(settings: Settings) -> Path | None:
    """Have long-running commands log to a file too; return its path, None if there is none.

    Standard error gets the same, unless it is a terminal: there a person reads notices in their language, and the log
    is only in its file, in the data directory if the settings name none.
    """
    console = watched()
    path = settings.log_path
    if path is None and not console.quiet:
        path = settings.data_dir / f"{settings.queue.executor_id}.log"
        with suppress(OSError):  # an unwritable path is reported below
            path.parent.mkdir(parents=True, exist_ok=True)
    if path is None:
        return None
    notice = None
    if not console.quiet:
        notice = Notices(console, texts(settings.lang), ZoneInfo(settings.timezone), path)
    file = logs.LogFile(path, settings.log_file_mb, settings.log_files_kept)
    try:
        logs.configure(settings.log_level, secrets=settings.secrets(), file=file, notice=notice)
    except PhonedeskError as error:
        fail(same_host(settings) or error)
    return path


def log_of_terminal(settings: Settings) -> None:
    """Keep log lines out of the terminal in which a person follows a task.

    Important events are shown there in words, and the log is in the data directory. If another terminal uses that file,
    or it cannot be written, the lines stay on standard error, as they do for a program.
    """
    console = watched()
    if console.quiet:
        return
    path = settings.data_dir / TERMINAL_LOG
    file = logs.LogFile(path, settings.log_file_mb, settings.log_files_kept)
    without = ("phone_not_connected",)  # a task that needs that phone ends with the reason
    notice = Notices(console, texts(settings.lang), ZoneInfo(settings.timezone), path, without=without)
    with suppress(OSError, ConfigInvalid):
        path.parent.mkdir(parents=True, exist_ok=True)
        logs.configure(settings.log_level, secrets=settings.secrets(), file=file, notice=notice)


def same_host(settings: Settings) -> ConfigInvalid | None:
    """Return the error for a process that finds another one with our name; None if there is none."""
    from scheduler.runs.queue import ProcessLock

    return ProcessLock(settings.data_dir / f"{settings.queue.executor_id}.lock").busy()


def fail(error: PhonedeskError) -> NoReturn:
    """Print the problem and what to do about it in the user's language, and exit.

    An error without its own text uses the text of its kind, with its own words included.
    """
    words = texts(spoken_language())
    if isinstance(error, own.OwnWrong):
        error = SettingsWrong(error.message, own_found(error.faults))
    if isinstance(error, SettingsWrong):
        from bot.channels.cli.commands.wrong import refusal

        err.print(refusal(words, error), style="red")
        raise typer.Exit(Exit.USAGE)
    shown = words.error(error) if words.find(f"errors.{error.key}", "") else _by_kind(error, words)
    err.print(logs.mask(shown), style="red")
    if not isinstance(error, BAD_USE) and _has_no_settings():
        err.print(words.get("common.no_settings"), style="dim")
    raise typer.Exit(Exit.USAGE if isinstance(error, BAD_USE) else Exit.FAILED)


def _has_no_settings() -> bool:
    """Tell whether no settings are given here: most likely the folder is the wrong one, or nothing was set up."""
    return not files_there() and not any(name.startswith("PHONEDESK_") for name in os.environ if name != LANG)


def _by_kind(error: PhonedeskError, words: Texts) -> str:
    """Return the text of the error's kind, with its own words, which are English, included."""
    from bot.channels.chat.run_cards import error_lines

    said, *advice = error_lines(error.kind, words)
    if error.kind == ConfigInvalid.kind and error.advice != error.default_advice:
        advice = []  # `config check` would not show this problem
    # Advice given for this very case says more than the general advice for its kind, so it stays.
    detail = error.message if advice and error.advice == error.default_advice else str(error)
    return "\n".join((said, words.get("common.detail", text=words.advice(detail)), *advice))


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Run a command's coroutine; turn our errors into a line and an exit code, Ctrl-C into 130."""
    try:
        return asyncio.run(_as_coroutine(work))
    except PhonedeskError as error:
        fail(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(Exit.STOPPED) from None


async def _as_coroutine(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def app_profile(key: str) -> AppProfile:
    """Return the profile that ``--app`` names. Raises BadRequest for another word."""
    from agent_core.apps.profile import profiles

    known = profiles()
    found = next((profile for profile in known if profile.key == key.strip().lower()), None)
    if found is None:
        names = Listed(profile.key for profile in known)
        said = f"There is no profile for the app {key!r}." if key else "It is not said which app this is of."
        raise BadRequest(
            said,
            advice=f"Give --app with one of {names}.",
            key="read_unknown_app" if key else "read_which_app",
            name=key,
            known=names,
        )
    return found


def result_of(session: Session, seconds: float) -> dict[str, Any]:
    """Return a run's result as the JSON outputs show it."""
    return {
        "status": session.comes_to.value,
        "run_id": session.run_id,
        "steps": len(session.steps),
        "replies": [
            {
                "contact": reply.contact,
                "question": reply.question,
                "text": reply.text,
                "provenance": reply.provenance,
                "delivered": reply.delivered,
                "record_id": reply.record_id,
                "record_source": reply.record_source,
                "score": reply.score,
            }
            for reply in session.replies
        ],
        "questions": [*(question.model_dump(mode="json") for question in session.questions), *_of_another(session)],
        "notes": [note.model_dump() for note in session.notes],
        "message": session.message,
        "spent": session.spent.model_dump(),
        "seconds": round(seconds, 3),
    }


def _of_another(session: Session) -> list[dict[str, Any]]:
    """Return the question of another run that keeps this one from answering its customer."""
    other = session.elsewhere
    if other is None or other.question is None:
        return []
    return [{**other.question.model_dump(mode="json"), "run_id": other.run_id}]


def words_of_contacts(contacts: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return contacts and tags as they would be written in a chat."""
    names = [f'"{name}"' if '"' not in name else f"「{name}」" for name in contacts]
    return [*names, *(f"#{tag.lstrip('#')}" for tag in tags)]
