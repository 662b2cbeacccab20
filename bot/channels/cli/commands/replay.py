"""``phonedesk replay``: shows a run again as steps, a film, a page or lines of JSON, and repeats its requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agent_core.texts import Listed
from bot.channels.cli.commands.common import fail
from bot.channels.cli.commands.output import Json
from bot.desk.actors import BadRequest


@dataclass(frozen=True)
class ReplayOptions:
    """The options of the command line."""

    run: str = ""
    gif: Path | None = None
    sheet: Path | None = None
    html: Path | None = None
    jsonl: str = ""
    embed: bool = False
    step: int | None = None
    timings: bool = False
    last: int | None = None
    since: str = ""
    dry_run: bool = False
    model_url: str = ""
    model_name: str = ""
    profile: str = ""
    key_env: str = ""
    least: int | None = None
    raw: bool = False
    force: bool = False
    as_json: bool = False

    @property
    def many(self) -> bool:
        """True if several runs are meant."""
        return self.last is not None or bool(self.since)


def replay(
    run: Annotated[str, typer.Argument(metavar="RUN")] = "",
    gif: Annotated[Path | None, typer.Option("--gif")] = None,
    sheet: Annotated[Path | None, typer.Option("--sheet")] = None,
    html: Annotated[Path | None, typer.Option("--html")] = None,
    jsonl: Annotated[str, typer.Option("--jsonl", metavar="FILE")] = "",
    embed: Annotated[bool, typer.Option("--embed")] = False,
    step: Annotated[int | None, typer.Option("--step", min=1)] = None,
    timings: Annotated[bool, typer.Option("--timings")] = False,
    last: Annotated[
        int | None,
        typer.Option("--last", min=1, max=10_000),
    ] = None,
    since: Annotated[str, typer.Option("--since")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    model_url: str = "",
    model_name: str = "",
    profile: str = "",
    key_env: str = "",
    least: Annotated[
        int | None,
        typer.Option("--least", min=0, max=100),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw")] = False,
    force: Annotated[bool, typer.Option("--force")] = False,
    as_json: Json = False,
) -> None:
    """Show a run again, step by step."""
    wanted = ReplayOptions(
        run, gif, sheet, html, jsonl, embed, step, timings, last, since, dry_run,
        model_url, model_name, profile, key_env, least, raw, force, as_json,
    )  # fmt: skip
    _check(wanted)
    # Modules are loaded only when needed, so that the list and the help come at once.
    if wanted.timings:
        from bot.channels.cli.commands.replay_steps import show_timings

        show_timings(wanted)
    elif wanted.dry_run:
        from bot.channels.cli.commands.replay_dry_run import ask_again

        ask_again(wanted)
    elif wanted.jsonl:
        from bot.channels.cli.commands.replay_steps import write_lines

        write_lines(wanted)
    elif wanted.run:
        from bot.channels.cli.commands.replay_run import show_run

        show_run(wanted)
    else:
        from bot.channels.cli.commands.replay_run import show_list

        show_list(wanted.as_json)


def _check(wanted: ReplayOptions) -> None:
    """Refuse options that do not go together with exit code 2."""
    modes = {"--timings": wanted.timings, "--dry-run": wanted.dry_run, "--jsonl": bool(wanted.jsonl)}
    modes |= {"--step": wanted.step is not None}
    one = [name for name, on in modes.items() if on]
    if len(one) > 1:
        _refuse("replay_one", f"{one[0]} and {one[1]} cannot be used together.", options=Listed(one))
    several = wanted.timings or bool(wanted.jsonl)
    only = {
        "--last": (wanted.last is not None, several, "--timings, --jsonl"),
        "--since": (bool(wanted.since), several, "--timings, --jsonl"),
        "--embed": (wanted.embed, bool(wanted.jsonl), "--jsonl"),
        "--least": (wanted.least is not None, wanted.dry_run, "--dry-run"),
        "--model-url": (bool(wanted.model_url), wanted.dry_run, "--dry-run"),
        "--model-name": (bool(wanted.model_name), wanted.dry_run, "--dry-run"),
        "--profile": (bool(wanted.profile), wanted.dry_run, "--dry-run"),
        "--key-env": (bool(wanted.key_env), wanted.dry_run, "--dry-run"),
    }
    for name, (given, fits, others) in only.items():
        if given and not fits:
            _refuse("replay_only_with", f"{name} goes with {others} only.", option=name, other=others)
    if wanted.run and wanted.many:
        _refuse("replay_one", "A run and --last cannot be used together.", options=f"{wanted.run}, --last, --since")
    files = wanted.gif or wanted.sheet or wanted.html
    if files and one:
        _refuse("replay_one", "These cannot be used together.", options=f"{one[0]}, --html, --gif, --sheet")
    if not wanted.run and (files or one) and not (wanted.many or wanted.timings):
        _refuse("replay_which", "Which run is meant?")


def _refuse(key: str, said: str, **values: object) -> None:
    fail(BadRequest(said, advice="See phonedesk replay --help.", key=key, **values))
