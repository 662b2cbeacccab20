"""``phonedesk devices``, and the stand-ins as servers of their own: ``virtual-phone`` and ``demo-model``."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from agent_core.devices.base import DeviceInfo
from agent_core.errors import ConfigInvalid, DeviceError, InputRejected
from agent_core.texts import Listed
from bot.app.settings.layers import Settings
from bot.channels.cli.commands.common import fail, run_async, settings_from
from bot.channels.cli.terminal.console import Console, Text, err, print_json
from bot.channels.cli.terminal.language import texts

if TYPE_CHECKING:
    from simulator.phone.phone import VirtualPhone
    from simulator.phone.scenario import Scenario
    from simulator.phone.server import RunningPhone

Port = Annotated[int, typer.Option(min=0, max=65535)]


def devices(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """List the phones that are attached."""
    settings = settings_from()
    found, waited_for = run_async(lambda: _devices(settings))
    rows = [
        {
            "serial": info.serial,
            "model": info.model,
            "status": info.status,
            "connection": info.connection,
            "size": list(info.size),
            "sdk": info.sdk,
        }
        for info in found
    ]
    if as_json:
        print_json(rows)
        return
    words = texts(settings.lang)
    if waited_for:
        err.print(Text(words.get("attached.waited_for", phones=Listed(waited_for)), "yellow"), soft_wrap=True)
    if not rows:
        err.print(words.get("status.no_phones"))
        return
    heads = ("serial", "model", "status", "connection", "size", "sdk")
    table = Table(*(words.get(f"attached.{head}") for head in heads))
    for info in found:
        size = f"{info.size[0]}×{info.size[1]}"
        status = words.find(f"attached.is_{info.status}", info.status)
        connection = words.find(f"attached.by_{info.connection}", info.connection)
        table.add_row(*map(Text, (info.serial, info.model, status, connection, size, str(info.sdk))))
    Console().print(table)


async def _devices(settings: Settings) -> tuple[list[DeviceInfo], list[str]]:
    """Return the attached phones, and the serials of missing ones that runs in the line wait for."""
    from agent_core.devices.adb.discovery import connect, list_devices
    from agent_core.devices.adb.server import open_adb

    device = settings.device
    async with await open_adb(device.adb_path or None, device.adb_host, device.adb_port) as server:
        for address in device.connect:
            try:
                await connect(server, address)
            except DeviceError as error:
                words = texts(settings.lang)
                err.print(words.get("attached.not_connected", phone=address, why=words.error(error)), style="yellow")
        found = await list_devices(server)
    usable = {info.serial for info in found if info.status == "device"}
    return found, await _waited_for(settings, usable)


async def _waited_for(settings: Settings, usable: Collection[str]) -> list[str]:
    from bot.app.database import open_database
    from storage.hosts import Hosts
    from storage.runs import Runs

    db = await open_database(settings)
    try:
        wanted = {run.wanted for run in await Runs(db).due() if run.wanted}
        if not wanted:
            return []
        elsewhere = {phone.serial for phone in await Hosts(db).phones() if phone.usable}
        return sorted(wanted - set(usable) - elsewhere)
    finally:
        await db.close()


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
) -> None:
    """Serve a phone that needs no phone, to any adb client, until Ctrl-C."""
    from simulator.phone.phone import VirtualPhone
    from simulator.phone.server import run_virtual_phone

    words = texts(settings_from().lang)
    if kit is not None and (scenario is not None or look):
        said, advice = "A kit is one page; it goes with no --scenario and no --look.", "Leave --kit or the others out."
        fail(InputRejected(said, advice=advice, key="kit_alone"))
    phone = _kit_phone(kit) if kit is not None else VirtualPhone(_world(scenario, look or []))

    def up(running: RunningPhone) -> None:
        _say(words.get("served.phone", address=running.address))
        _say(words.get("served.state", url=running.state_url))
        _say(words.get("served.stop"))

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
    """Load a scenario, which may also say what is tried in it, and give its chat apps other ``looks``."""
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
    from agent_core.errors import InputRejected
    from agent_core.kits import load_kit
    from simulator.phone.kit import KitPhone

    try:
        return KitPhone(load_kit(file))
    except InputRejected as error:
        fail(error)


async def _taken(port: int, server: Coroutine[Any, Any, None]) -> None:
    """Run one of the two servers until Ctrl-C or SIGTERM.

    The loop itself takes the signals: Python's own handler may not wake a loop that is about to wait, and a server to
    which nobody speaks would then stay. Raises ConfigInvalid if the port cannot be used.
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
