"""What the commands share: settings from options, exit codes, output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

import typer
from rich.console import Console

from agent_core.errors import ConfigError, InputRejected, PhonedeskError
from agent_core.session import Session, Status
from bot import logs
from bot.desk.port import BadRequest, NotFound
from bot.settings import Settings, load

T = TypeVar("T")


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

BAD_USE = (ConfigError, InputRejected, BadRequest, NotFound)

err = Console(stderr=True)


def settings_from(*, quiet: bool = True, **overrides: Any) -> Settings:
    """The settings with the command line's values on top; logging is set up by them (``quiet``: warnings only)."""
    logs.configure("warning")  # what is said while they are read goes to standard error too
    try:
        settings = load(**overrides)
    except PhonedeskError as error:
        fail(error)
    level = settings.log_level
    logs.configure("warning" if quiet and level == "info" else level, secrets=settings.secrets())
    return settings


def fail(error: PhonedeskError) -> NoReturn:
    """Say what is wrong and leave with the fitting code."""
    err.print(logs.mask(str(error)), style="red", markup=False, highlight=False)
    raise typer.Exit(Exit.USAGE if isinstance(error, BAD_USE) else Exit.FAILED)


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Run a command's coroutine; our errors become a line and an exit code, Ctrl-C 130."""
    try:
        return asyncio.run(_as_coroutine(work))
    except PhonedeskError as error:
        fail(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(Exit.STOPPED) from None


async def _as_coroutine(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def print_json(data: object) -> None:
    """One JSON value on standard output, Chinese as it is."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2, default=str) + "\n")
    sys.stdout.flush()


def result_of(session: Session, seconds: float) -> dict[str, Any]:
    """A run's result as the JSON outputs show it."""
    return {
        "status": session.status.value,
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
        "questions": [question.model_dump(mode="json") for question in session.questions],
        "notes": session.notes,
        "message": session.message,
        "seconds": round(seconds, 3),
    }
