"""``phonedesk sweep``: checks cheaply who has written, and answers them in this terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from agent_core.errors import InputRejected
from agent_core.session import Session, Status
from agent_core.texts import Listed
from bot.app.settings.layers import Settings
from bot.channels.cli.commands.common import (
    BY_STATUS,
    fail,
    log_of_terminal,
    result_of,
    run_async,
    settings_from,
    words_of_contacts,
)
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import NotFound

if TYPE_CHECKING:
    from scheduler.sweeps.order import SweepOrder
    from storage.runs import RunRow


def sweep(
    contacts: Annotated[list[str] | None, typer.Argument()] = None,
    tag: list[str] | None = None,
    unread: Annotated[bool, typer.Option("--unread")] = False,
    app: Annotated[str | None, typer.Option(show_default="qq")] = None,
    device: str = "",
    as_json: Json = False,
) -> None:
    """Check for new messages and answer them, one contact after the other. Without new ones no model is asked."""
    settings = settings_from()
    log_of_terminal(settings)

    async def named() -> tuple[SweepOrder, str]:
        from scheduler.sweeps.order import read_order

        words = _words(contacts or [], tag or [], unread, app)
        return read_order(words), f"{texts(settings.lang).get('sweep.word')} {words}"

    order, task = run_async(named)
    sweep_for(settings, order, task, device, as_json=as_json)


def sweep_for(settings: Settings, order: SweepOrder, task: str, device: str, *, as_json: bool) -> NoReturn:
    """Do the sweep that ``task`` describes, show the result, and exit."""
    started = time.monotonic()
    done = run_async(lambda: _sweep(settings, order, task, device, as_json))
    if as_json:
        print_json({**done, "seconds": round(time.monotonic() - started, 3)})
    if _nobody_known(done):
        names = Listed(done["unknown"])
        fail(NotFound(f"Not found: {names}.", advice="Check the name.", key="no_such_contact", names=names))
    raise typer.Exit(BY_STATUS[Status(done["status"])])


def _words(contacts: list[str], tags: list[str], unread: bool, app: str | None) -> str:
    """Return the order as it would be written in a chat.

    Raises InputRejected for an app that cannot be swept, and for an app's name as a contact unless the app is named,
    too.
    """
    from agent_core.apps.names import is_app_name
    from agent_core.apps.profile import profile
    from scheduler.sweeps.order import chat_app, no_chat_app

    meant = chat_app(app or "qq")
    if app is not None and not meant:
        raise no_chat_app(app)
    if app is None and contacts and chat_app(contacts[0]):
        raise InputRejected(
            f"{contacts[0]} is an app: write --app {chat_app(contacts[0])}.",
            key="contact_is_app",
            name=contacts[0],
            app=chat_app(contacts[0]),
        )
    if app is None and contacts and is_app_name(contacts[0]):
        raise no_chat_app(contacts[0])
    if unread and (contacts or tags):
        raise InputRejected("--unread is everybody: it goes with no contact and no tag.", key="unread_alone")
    return " ".join([profile(meant).name, *words_of_contacts(contacts, tags)])


async def _sweep(settings: Settings, order: SweepOrder, task: str, device: str, as_json: bool) -> dict[str, Any]:
    # A run's modules take a second to import, and `--help` does not need them.
    from bot.app.core import open_core
    from bot.app.run_here import sweep_here
    from bot.channels.chat.sweeps import left_lines
    from bot.channels.cli.terminal.ask import TerminalHuman
    from bot.channels.cli.terminal.live import LiveRuns, learnt_line, left_open, outcome_line
    from scheduler.runs.human import StoredHuman

    said = texts(settings.lang)
    console = Console(stderr=as_json)
    async with open_core(settings) as core:
        store = LiveRuns(core.runs(attempt=1), console, said, core.attached.name, core.db)
        human = StoredHuman(core.db, hold_seconds=0, attempt=1) if as_json else TerminalHuman(core.db, console, said)

        async def looks(row: RunRow) -> None:
            await store.began(row.task, row.serial, row.id)

        async def ended(session: Session) -> None:
            console.print(outcome_line(session, said))
            for line in (await learnt_line(core.db, session, said), left_open(session, said)):
                if line.plain:
                    console.print(line, soft_wrap=True)  # a command that is broken in two cannot be copied

        done = await sweep_here(core, order, task, serial=device, human=human, store=store, looks=looks, ended=ended)
    details = done.look.details
    unknown = details.get("unknown") or []
    found = {
        "status": "waiting" if done.status == "succeeded" and details["questions"] else done.status,
        "run_id": done.run_id,
        "outcome": done.look.outcome,
        "looked": done.look.contacts,
        "round_trips": done.look.calls,
        "contacts": [{"contact": contact, **result_of(session, 0)} for contact, session in done.sessions],
        "quiet": [name for name in details["quiet"] if name not in unknown],
        "unknown": unknown,
        "left": [{"contact": contact, "why": why} for contact, why in details["left"]],
        "questions": [{"contact": contact, "id": question} for contact, question in details["questions"]],
        "aside": [{"name": name, "why": why} for name, why in details["aside"]],
    }
    if not _nobody_known(found):  # that is reported as an error
        if not done.sessions and not details["left"]:
            console.print(Text(said.get("sweep.nothing"), style="bold"))
        for line in left_lines(details, said, looked=done.look.contacts, started=len(done.sessions)):
            console.print(Text(line))
        for _, question in details["questions"]:
            console.print(Text(said.get("question.left_open", id=question)), soft_wrap=True)
    return found


def _nobody_known(done: dict[str, Any]) -> bool:
    return bool(done["unknown"]) and len(done["unknown"]) == done["looked"]
