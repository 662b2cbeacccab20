"""``phonedesk eval``: runs scenarios through the whole product and reports the results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import SecretStr

from agent_core.errors import ConfigError, ConfigMissing
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.common import Exit, fail, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, err, print_json, watched
from bot.channels.cli.terminal.language import texts

if TYPE_CHECKING:
    from bot.tools.eval.result import Case, CaseResult
    from bot.tools.eval.suite import Options

KEY_NAME = "PHONEDESK_EVAL_MODEL_KEY"


def evaluate(
    paths: Annotated[list[Path] | None, typer.Argument()] = None,
    mode: Literal["tree", "pictures", "both"] = "both",
    look: Annotated[
        str,
        typer.Option(),
    ] = "",
    match: str = "",
    jobs: Annotated[int, typer.Option(min=1, max=64)] = 1,
    model_url: str = "",
    model_name: str = "",
    model_key: Annotated[str, typer.Option(envvar=KEY_NAME)] = "",
    keep: Path | None = None,
    as_json: Json = False,
) -> None:
    """Run scenarios on virtual phones and report the results; with a model's address, measure that model."""
    from bot.tools.eval.bench import RealModel
    from bot.tools.eval.result import results_json, show_results
    from bot.tools.eval.scenario import Mode
    from bot.tools.eval.suite import BrokenFiles, Options, find_cases

    words = texts(settings_from().lang)
    try:
        if bool(model_url) != bool(model_name):
            raise ConfigMissing(
                "A model has an address and a name.", advice="Give --model-url and --model-name.", key="eval_model"
            )
        cases = find_cases(paths or [], mode=None if mode == "both" else Mode(mode), match=match, looks=_looks(look))
    except BrokenFiles as error:
        err.print(words.get("error.config.scenario"), style="red")
        for line in error.message.splitlines():
            err.print(words.get("common.detail", text=line), style="red")
        err.print(words.get("advice.config.scenario"))
        raise typer.Exit(Exit.USAGE) from None
    except ConfigError as error:
        fail(error)
    real = RealModel(model_url, model_name, SecretStr(model_key or "EMPTY")) if model_url else None
    begun = time.monotonic()
    results: list[CaseResult] = []
    stopped = None
    try:
        run_async(lambda: _run(cases, Options(real, keep, jobs), results, words))
    except typer.Exit as ending:  # somebody has seen enough: report the results up to now
        if ending.exit_code != Exit.STOPPED:
            raise
        stopped = ending
    order = {case.key: index for index, case in enumerate(cases)}
    results.sort(key=lambda result: order[result.key])
    seconds, model = time.monotonic() - begun, model_name or "scripted"
    if as_json:
        print_json(results_json(results, model, seconds))
    else:
        show_results(Console(), results, model, seconds, words)
    if stopped is not None:
        err.print(words.get("eval.stopped", left=len(cases) - len(results), count=len(cases)))
        raise stopped
    raise typer.Exit(Exit.OK if all(result.passed for result in results) else Exit.FAILED)


def _looks(words: str) -> list[str]:
    """Return the looks that ``--look`` names, separated by commas."""
    from simulator.phone.apps.looks import LOOKS

    return list(LOOKS) if words.strip() == "all" else [part.strip() for part in words.split(",") if part.strip()]


async def _run(cases: Sequence[Case], options: Options, results: list[CaseResult], words: Texts) -> None:
    """Add the results as they come. Progress is shown on standard error if that is a terminal."""
    from bot.tools.eval.case import Interrupted
    from bot.tools.eval.suite import run_cases

    console = watched()
    with console.status(f"0/{len(cases)}") as status:
        try:
            async with aclosing(run_cases(cases, options)) as coming:
                async for result in coming:
                    results.append(result)
                    failed = sum(not one.passed for one in results)
                    name = f"{Path(result.file).stem} {result.mode} {result.look}".rstrip()
                    done = words.get("eval.progress", done=len(results), count=len(cases), failed=failed, name=name)
                    status.update(done)
                    if not result.passed:
                        console.print(words.get("eval.failed", name=name, problem=result.problems[0]), style="red")
        except Interrupted:
            raise asyncio.CancelledError from None
