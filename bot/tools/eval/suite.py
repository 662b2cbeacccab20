"""Runs many cases: the files of a folder, one after the other or in several processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from importlib import resources
from itertools import count
from pathlib import Path

from agent_core.devices.adb.server import open_adb
from agent_core.errors import ConfigInvalid, ConfigMissing, PhonedeskError
from agent_core.perception.ocr import use_threads
from agent_core.texts import Listed
from bot.app.logs import configure
from bot.tools.eval.bench import RealModel, open_bench
from bot.tools.eval.case import Interrupted, run_case
from bot.tools.eval.result import Case, CaseResult
from bot.tools.eval.scenario import EvalScenario, Mode
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario_file import load_scenario

FORMS = (".toml", ".json")
LOOK_SECONDS = 0.5  # how often to check that a process has died


class BrokenFiles(ConfigInvalid):
    """Invalid scenario files: a line for each fault, ``FILE:LINE: field: what is wrong``."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options for running the cases.

    real: the model that is measured; None for the files' own.
    keep: the folder for traces of failed cases.
    """

    real: RealModel | None = None
    keep: Path | None = None
    jobs: int = 1


def shipped() -> Path:
    """Return the folder with our own scenarios."""
    return Path(str(resources.files("bot.tools.eval"))) / "scenarios"


def find_cases(
    paths: Sequence[Path], *, mode: Mode | None = None, match: str = "", looks: Sequence[str] = ()
) -> list[Case]:
    """Return the cases of files and folders (with the folders in them), in the order of their names.

    Raises ConfigInvalid if there is no such look, ConfigMissing if no case is left, and BrokenFiles, which names every
    fault in the files.

    mode: the only one to run each file in.
    match: a part of the file's name or title, ignoring case.
    looks: of a file's chat app, one case for each look of that app; files about none of these apps are left out. If
    empty, each file's own looks, else the default ones.
    """
    known_looks(looks)
    files = _placed(paths or [shipped()])
    if not files:
        where = ", ".join(map(str, paths))
        raise ConfigMissing(
            f"There is no scenario in {where}.",
            advice="Scenarios are .toml and .json files.",
            key="no_scenario",
            where=where,
        )
    cases: list[Case] = []
    broken: list[str] = []
    for file in files:
        try:
            scenario = load_scenario(file, EvalScenario)
        except ConfigInvalid as error:
            broken.append(error.message)
            continue
        modes = [one for one in scenario.modes if mode in (None, one)]
        cases += [Case(file, world, one, files[file]) for world in in_looks(scenario, looks) for one in modes]
    if broken:
        raise BrokenFiles("\n".join(broken), advice="Correct the fields that are named, or leave them out.")
    wanted = [case for case in cases if match.casefold() in f"{case.path.stem} {case.title}".casefold()]
    if not wanted:
        raise ConfigMissing(
            f"None of {len(files)} scenarios is left.",
            advice="Look at --match, at --look, and at --mode and the files' modes.",
            key="none_left",
            count=len(files),
        )
    return wanted


def known_looks(looks: Sequence[str]) -> None:
    """Raise ConfigInvalid if one of ``looks`` is unknown."""
    if unknown := [look for look in looks if look not in LOOKS]:
        raise ConfigInvalid(
            f"There is no look {unknown[0]!r}.",
            advice=f"There are {', '.join(LOOKS)}.",
            key="no_look",
            name=unknown[0],
            known=Listed(LOOKS),
        )


def in_looks(scenario: EvalScenario, looks: Sequence[str]) -> list[EvalScenario]:
    """Return the scenario once for each of ``looks`` of an app in it; unchanged if none is requested."""
    if not looks:
        return [scenario]
    chosen = [LOOKS[key] for key in dict.fromkeys(looks) if LOOKS[key].app in scenario.chat_apps]
    worlds = [scenario.looks | {look.app: look.key} for look in chosen]
    return [scenario.model_copy(update={"look": list(world.values())}) for world in worlds]


def _placed(paths: Sequence[Path]) -> dict[Path, str]:
    """Return every file with a unique name: its place in the folder, with a number added to duplicates."""
    named: dict[Path, str] = {}
    for path in paths:
        for file in _files(path):
            place = (file.relative_to(path) if file != path else Path(file.name)).with_suffix("").as_posix()
            taken = {name for other, name in named.items() if other != file}
            named[file] = next(name for n in count(1) if (name := place if n == 1 else f"{place}-{n}") not in taken)
    return named


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix.lower() in FORMS and file.is_file())


async def run_cases(cases: Sequence[Case], options: Options) -> AsyncGenerator[CaseResult, None]:
    """Yield the results as they come; with several jobs not in the cases' order.

    Close it (``aclosing``) to end early.
    """
    if options.jobs > 1 and len(cases) > 1:
        async with aclosing(_in_processes(cases, options)) as results:
            async for result in results:
                yield result
        return
    async with open_bench(real=options.real) as bench:
        for case in cases:
            yield await run_case(bench, case, keep=options.keep)


# -- several processes: a reader of pictures is large, but works on one core at a time


async def _in_processes(cases: Sequence[Case], options: Options) -> AsyncGenerator[CaseResult, None]:
    context = multiprocessing.get_context("spawn")
    waiting: multiprocessing.Queue[Case | None] = context.Queue()
    done: multiprocessing.Queue[CaseResult | str] = context.Queue()
    jobs = min(options.jobs, len(cases))
    for case in [*cases, *[None] * jobs]:
        waiting.put(case)
    async with AsyncExitStack() as stack:
        adb = await stack.enter_async_context(await open_adb(port=0, usb=False))
        workers = [context.Process(target=_work, args=(waiting, done, options, adb.port)) for _ in range(jobs)]
        stack.callback(_end, workers)
        for worker in workers:
            worker.start()
        left = {case.key: case for case in cases}
        why = ""
        while left and (result := await asyncio.to_thread(_next, done, workers)) is not None:
            if isinstance(result, str):
                why = result
                continue
            del left[result.key]
            yield result
        if why and len(left) == len(cases):
            raise PhonedeskError(why)
        for lost in left.values():
            problem = f"its process ended: {why}" if why else "its process ended"
            yield lost.result(problem)


def _next(
    done: multiprocessing.Queue[CaseResult | str], workers: Sequence[multiprocessing.process.BaseProcess]
) -> CaseResult | str | None:
    """Return the next result; None if none will come, because every process has ended."""
    while True:
        # before reading the queue: its last results are still taken
        alive = any(worker.is_alive() for worker in workers)
        try:
            return done.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            if not alive:
                return None


def _end(workers: Sequence[multiprocessing.process.BaseProcess]) -> None:
    for worker in workers:
        worker.terminate()
        worker.join()


def _work(
    waiting: multiprocessing.Queue[Case | None],
    done: multiprocessing.Queue[CaseResult | str],
    options: Options,
    adb_port: int,
) -> None:
    """Run cases in a separate process until there are no more."""
    configure("warning")
    use_threads(1)
    try:
        asyncio.run(_work_off(waiting, done, options, adb_port))
    except (Interrupted, KeyboardInterrupt):
        return
    except PhonedeskError as error:
        done.put(str(error))


async def _work_off(
    waiting: multiprocessing.Queue[Case | None],
    done: multiprocessing.Queue[CaseResult | str],
    options: Options,
    adb_port: int,
) -> None:
    async with open_bench(real=options.real, adb_port=adb_port) as bench:
        while (case := await asyncio.to_thread(waiting.get)) is not None:
            done.put(await run_case(bench, case, keep=options.keep))
