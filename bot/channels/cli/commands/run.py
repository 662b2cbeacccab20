"""``phonedesk run``: does a task now, in this terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent_core.errors import MODEL_NAMES, InputRejected, PhonedeskError
from agent_core.loop.tasks import TaskRules
from agent_core.session import Session
from bot.app.logs import mask
from bot.app.settings.layers import Settings
from bot.channels.cli.commands.common import BY_STATUS, fail, log_of_terminal, result_of, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.commands.sweep import sweep_for
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.tools.replay.timings import timings_of

if TYPE_CHECKING:
    from scheduler.sweeps.order import SweepOrder


def run(
    task: str,
    device: str = "",
    max_steps: Annotated[int | None, typer.Option(min=1, max=1000)] = None,
    policy: Annotated[
        Literal["reply", "careful", "open"] | None,
        typer.Option(),
    ] = None,
    app: list[str] | None = None,
    lang: Literal["zh", "en"] | None = None,
    model: str | None = None,
    endpoint: str | None = None,
    log_level: Literal["debug", "info", "warning", "error"] | None = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    as_json: Json = False,
) -> None:
    """Do a task on a phone and show each step. A task that answers several contacts or everybody is a sweep."""
    settings = settings_from(
        quiet=log_level is None, lang=lang, log_level=log_level, model=_given(name=model, base_url=endpoint)
    )
    if log_level is None:
        log_of_terminal(settings)
    if policy in (None, "reply") and (order := _sweep_in(task)) is not None:
        if dry_run:
            advice = "Name one, for example: phonedesk run 'reply to 11 on QQ' --dry-run"
            said = "A sweep cannot be rehearsed: a dry run is of one contact."
            fail(InputRejected(said, advice=advice, key="sweep_no_rehearsal"))
        from bot.channels.chat.sweeps import means_line

        if said := means_line(task, texts(settings.lang)).text:
            Console(stderr=as_json).print(Text(said, "yellow"))
        sweep_for(settings, order, task, device, as_json=as_json)
    rules = TaskRules(policy or "", tuple(app or ()))
    started = time.monotonic()
    # An error of the model names the options that were given here, with their values, instead of other settings.
    options = {"base_url": f"--endpoint {mask(endpoint)}"} if endpoint else {}
    options |= {"name": f"--model {mask(model)}"} if model else {}
    session = run_async(lambda: _run(settings, task, device, max_steps, rules, dry_run, as_json, options))
    if as_json:
        timings = {phase.name: asdict(phase) for phase in timings_of([session.steps]).phases}
        print_json(result_of(session, time.monotonic() - started) | {"timings": timings})
    raise typer.Exit(BY_STATUS[session.comes_to])


def _given(**options: str | None) -> dict[str, str] | None:
    """Return the options that were given, as a section of the settings; None if there are none."""
    return {name: value for name, value in options.items() if value is not None} or None


def _sweep_in(task: str) -> SweepOrder | None:
    """Return the sweep that the task orders: to answer several contacts, or everybody; None for other tasks."""
    from scheduler.sweeps.order import read_task

    try:
        return read_task(task)
    except PhonedeskError as error:
        fail(error)


async def _run(
    settings: Settings,
    task: str,
    device: str,
    max_steps: int | None,
    rules: TaskRules,
    dry_run: bool,
    as_json: bool,
    options: Mapping[str, str],
) -> Session:
    # A run's modules take a second to import, and `--help` does not need them.
    from bot.app.core import open_core
    from bot.app.run_here import run_here
    from bot.channels.cli.terminal.ask import TerminalHuman
    from bot.channels.cli.terminal.live import (
        LiveRuns,
        WaitedFor,
        learnt_line,
        left_open,
        outcome_line,
        timings_line,
        waiting_line,
    )
    from scheduler.runs.human import StoredHuman

    words = texts(settings.lang)
    console = Console(stderr=as_json)
    async with open_core(settings, replace(MODEL_NAMES, **options)) as core:
        core.model = WaitedFor(core.model, lambda seconds: console.print(waiting_line(seconds, settings, words)))
        store = LiveRuns(core.runs(attempt=1), console, words, core.attached.name, core.db)
        human = StoredHuman(core.db, hold_seconds=0, attempt=1) if as_json else TerminalHuman(core.db, console, words)
        session = await run_here(
            core,
            task,
            serial=device,
            human=human,
            store=store,
            max_steps=max_steps,
            rules=rules,
            dry_run=dry_run,
        )
        console.print(outcome_line(session, words))
        learnt = await learnt_line(core.db, session, words)
        for line in (learnt, timings_line(session, words), left_open(session, words)):
            if line.plain:
                console.print(line, soft_wrap=True)  # a command that is broken in two cannot be copied
        return session
