"""The simulators as separate servers: ``virtual-phone`` and ``demo-model``."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent_core.errors import ConfigInvalid, InputRejected
from agent_core.texts import Listed
from bot.channels.cli.commands.common import fail, run_async, settings_from
from bot.channels.cli.terminal.console import Console
from bot.channels.cli.terminal.language import texts

if TYPE_CHECKING:
    from simulator.phone.phone import VirtualPhone
    from simulator.phone.scenario import Scenario
    from simulator.phone.server import RunningPhone
    from simulator.phone.wda.server import RunningIPhone

Port = Annotated[int, typer.Option(min=0, max=65535)]


def virtual_phone(
    port: Port = 0,
    scenario: Path | None = None,
    state_port: Port = 0,
    look: Annotated[
        list[str] | None,
        typer.Option(),
    ] = None,
    kit: Path | None = None,
    auth: Literal["none", "key", "unauthorized", "mute"] = "none",
    system: Literal["android", "harmonyos", "ios"] = "android",
) -> None:
    """Serve a virtual phone to adb, to a program hdc, or as an iPhone with WebDriverAgent, until Ctrl-C."""
    from simulator.phone.phone import VirtualPhone
    from simulator.phone.server import run_virtual_phone

    words = texts(settings_from().lang)
    if kit is not None and (scenario is not None or look):
        said, advice = "A kit is one page; it goes with no --scenario and no --look.", "Leave --kit or the others out."
        fail(InputRejected(said, advice=advice, key="kit_alone"))
    if system != "android" and auth != "none":
        said, advice = "--auth says how adb clients are let in; only Android has them.", "Leave --auth out."
        fail(InputRejected(said, advice=advice, key="auth_is_adbs"))
    phone = _kit_phone(kit) if kit is not None else VirtualPhone(_world(scenario, look or []))

    def up(running: RunningPhone | RunningIPhone) -> None:
        _say(words.get("served.phone" if system == "android" else "served.iphone", address=running.address))
        _say(words.get("served.state", url=running.state_url))
        _say(words.get("served.stop"))

    def up_harmonyos(program: Path, serial: str, state_url: str) -> None:
        _say(words.get("served.harmonyos", program=program, serial=serial))
        _say(words.get("served.state", url=state_url))
        _say(words.get("served.stop"))

    match system:
        case "harmonyos":
            from simulator.phone.hdc.host import run_harmonyos_phone

            run_async(lambda: _taken(port, run_harmonyos_phone(port, phone, state_port, up=up_harmonyos)))
        case "ios":
            from simulator.phone.wda.server import run_virtual_iphone

            run_async(lambda: _taken(port, run_virtual_iphone(port, phone, state_port, up=up)))
        case _:
            run_async(lambda: _taken(port, run_virtual_phone(port, phone, state_port, auth, up=up)))


def demo_model(port: Port = 0) -> None:
    """Serve the demo model, an OpenAI-compatible endpoint that works by rules, until Ctrl-C."""
    from simulator.model.server import run_demo_model

    words = texts(settings_from().lang)

    def up(url: str) -> None:
        _say(words.get("served.model", url=url))
        _say(words.get("served.stop"))

    run_async(lambda: _taken(port, run_demo_model(port, up)))


def _world(file: Path | None, looks: Sequence[str]) -> Scenario:
    """Load a scenario, which may also contain an evaluation, and give its chat apps other ``looks``."""
    from bot.tools.eval.scenario import EvalScenario
    from simulator.phone.apps.looks import LOOKS
    from simulator.phone.scenario import looks_by_app
    from simulator.phone.scenario_file import default_scenario, load_scenario

    try:
        world = load_scenario(file, EvalScenario) if file else default_scenario()
    except ConfigInvalid as error:
        fail(error)
    try:
        chosen = world.looks | looks_by_app(looks)
    except ValueError as error:
        known = Listed(LOOKS)
        said, advice = Listed(looks), f"The looks: {known}."
        fail(InputRejected(f"{error}.", advice=advice, key="bad_looks", said=said, known=known, why=str(error)))
    return world.model_copy(update={"look": list(chosen.values())})


def _kit_phone(file: Path) -> VirtualPhone:
    from agent_core.kits import load_kit
    from simulator.phone.kit import KitPhone

    try:
        return KitPhone(load_kit(file))
    except InputRejected as error:
        fail(error)


async def _taken(port: int, server: Coroutine[Any, Any, None]) -> None:
    """Run one of the two servers until Ctrl-C or SIGTERM.

    The loop itself handles the signals: Python's own handler may not wake a loop that is about to wait, and a server
    without clients would then stay. Raises ConfigInvalid if the port cannot be used.
    """
    from bot.app.shutdown import on_signals

    serving = asyncio.ensure_future(server)

    def end() -> None:
        serving.cancel()

    try:
        with on_signals(end):
            await serving
    except OSError as error:
        said, advice = f"Port {port} cannot be used: {error.strerror}.", "Choose another --port."
        raise ConfigInvalid(said, advice=advice, key="port_used", port=port, why=error) from None


def _say(line: str) -> None:
    Console(soft_wrap=True).print(line)
