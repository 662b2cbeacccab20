"""``phonedesk devices``: the phones, and how they are connected, paired, named and set up."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.table import Column, Table

from agent_core.devices.adb.brands import owner_steps
from agent_core.errors import DeviceError, PhonedeskError
from agent_core.texts import Listed
from bot.channels.cli.commands.common import Exit, fail, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.files import check_new, write
from bot.channels.cli.terminal.console import Console, Text, err, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import BadRequest

if TYPE_CHECKING:
    from agent_core.devices.adb.setup import SetupReport
    from agent_core.devices.base import DeviceInfo, DeviceServer
    from bot.app.phones import OwnPhones
    from bot.app.settings.layers import Settings
    from bot.channels.chat.devices import Mode
    from bot.channels.chat.texts import Texts
    from bot.desk.phonebook import PhoneBook
    from bot.desk.views import PhoneKept
    from storage.engine import Database

T = TypeVar("T")
LEAST = ("size", "sdk")  # left out of the table if it does not fit
WIDEST = 1000  # columns of a table that needs not fit a terminal

Phone = Annotated[str, typer.Argument(metavar="SERIAL")]
Tags = Annotated[list[str], typer.Argument(metavar="TAG")]

devices = typer.Typer()


@devices.callback(invoke_without_command=True)
def list_(ctx: typer.Context, tag: str = "", as_json: Json = False) -> None:
    """List the attached phones."""
    if ctx.invoked_subcommand is not None:
        if tag or as_json:
            said, advice = "These options are for the list.", "Write them behind the command, or leave them out."
            fail(BadRequest(said, advice=advice, key="options_of_list"))
        return
    settings = settings_from()
    found, waited_for, book = run_async(lambda: _attached(settings))
    tags = book.by_serial(settings.device.tags)
    if wanted := tag.lstrip("#"):
        found = [info for info in found if wanted in tags.get(info.serial, ())]
    rows = [
        {
            "serial": info.serial,
            "name": book.names.get(info.serial, ""),
            "tags": list(tags.get(info.serial, ())),
            "system": info.system.value,
            "model": info.model,
            "status": info.status,
            "connection": info.connection,
            "transports": list(info.transports or (info.serial,)),
            "battery": asdict(info.battery),
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
        err.print(words.get("attached.none_tagged", tag=wanted) if wanted else words.get("attached.none"))
        return
    _table(found, book.names, tags, words)


def _table(
    found: Sequence[DeviceInfo], names: Mapping[str, str], tags: Mapping[str, Sequence[str]], words: Texts
) -> None:
    named = any(info.serial in names for info in found)
    tagged = any(tags.get(info.serial) for info in found)
    extra = [*(["name"] if named else []), *(["tags"] if tagged else [])]
    heads, rows = ["serial", *extra, "model", "status", "connection"], []
    for info in found:
        size = f"{info.size[0]}×{info.size[1]}" if all(info.size) else ""  # a phone that cannot be asked has none
        status = words.find(f"attached.is_{info.status}", info.status)
        if info.battery.is_low():
            status += words.get("attached.low", percent=info.battery.percent)
        if info.battery.is_hot(was=True) and info.battery.celsius is not None:
            status += words.get("attached.hot", celsius=f"{info.battery.celsius:.0f}")
        connection = words.find(f"attached.by_{info.connection}", info.connection)
        if info.transports:  # a phone that is reached in several ways, or by another name than its serial
            connection = f"{connection} ({', '.join(info.transports)})"
        cells = {"serial": info.serial, "name": names.get(info.serial, ""), "tags": " ".join(tags.get(info.serial, ()))}
        cells |= {"model": info.model, "status": status, "connection": connection, "size": size}
        rows.append({**cells, "sdk": str(info.sdk or "")})

    def table(heads: Sequence[str]) -> Table:
        """Return the rows with these columns. Serials are in one piece, because people type them."""
        columns = (Column(words.get(f"attached.{head}"), no_wrap=head == "serial", overflow="fold") for head in heads)
        made = Table(*columns)
        for row in rows:
            made.add_row(*(Text(row[head]) for head in heads))
        return made

    console, whole = Console(), table([*heads, *LEAST])
    fits = console.measure(whole, options=console.options.update(width=WIDEST)).maximum <= console.width
    console.print(whole if fits else table(heads))


async def _attached(settings: Settings) -> tuple[list[DeviceInfo], list[str], PhoneBook]:
    """Return the attached phones of every system, the serials of missing ones that queued runs wait for, and names."""
    from agent_core.devices.adb.discovery import connect, list_devices
    from bot.app.attached import AttachedPhones
    from bot.app.database import open_database

    words = texts(settings.lang)
    db = await open_database(settings)
    attached = AttachedPhones(db, lambda: settings.device)
    try:
        server = await attached.adb()
        for address in await attached.addresses():
            try:
                await connect(server, address)
            except DeviceError as error:
                why = words.error(error)
                if address not in why:
                    why = words.get("attached.not_connected", phone=address, why=why)
                err.print(why, style="yellow")
        entries = await attached.of_adb()

        async def listed(other: DeviceServer) -> list[DeviceInfo]:
            try:
                return await list_devices(other)
            except PhonedeskError as error:  # the phones of the other tools are listed all the same
                err.print(words.error(error), style="yellow")
                return []

        lists = await asyncio.gather(list_devices(server, entries), *map(listed, attached.other_servers().values()))
        found = [info for infos in lists for info in infos]
        usable = {info.serial for info in found if info.status == "device"}
        return found, await _waited_for(db, usable), await attached.book(entries)
    finally:
        await attached.close()
        await db.close()


async def _waited_for(db: Database, usable: Collection[str]) -> list[str]:
    from storage.hosts import Hosts
    from storage.runs import Runs

    wanted = {run.wanted for run in await Runs(db).due() if run.wanted}
    if not wanted:
        return []
    elsewhere = {phone.serial for phone in await Hosts(db).phones() if phone.usable}
    return sorted(wanted - set(usable) - elsewhere)


# Connecting -----------------------------------------------------------------------------------------------------------


def _with_phones(settings: Settings, call: Callable[[OwnPhones], Awaitable[T]]) -> T:
    """Run ``call`` with the phones of this machine."""
    from bot.app.core import open_core
    from bot.app.phones import OwnPhones

    async def called() -> T:
        async with open_core(settings) as core:
            return await call(OwnPhones(core))

    return run_async(called)


@devices.command()
def connect(address: Annotated[str, typer.Argument(metavar="HOST:PORT")], as_json: Json = False) -> None:
    """Connect to a phone on the network, now and at each start."""
    _kept("attached.connected", lambda phones: phones.connect(address), as_json)


@devices.command()
def disconnect(address: Annotated[str, typer.Argument(metavar="HOST:PORT")], as_json: Json = False) -> None:
    """Disconnect a phone of the network, and connect to it no more at a start."""
    _kept("attached.disconnected", lambda phones: phones.disconnect(address), as_json)


@devices.command()
def name(serial: Phone, name: str, as_json: Json = False) -> None:
    """Call a phone by a name; an empty one takes the name away."""
    key = "attached.named" if name.strip() else "attached.unnamed"
    _kept(key, lambda phones: phones.name(serial, name.strip()), as_json, name=name.strip())


@devices.command()
def tag(serial: Phone, tags: Tags, as_json: Json = False) -> None:
    """Add tags to a phone."""
    _kept(
        "attached.tagged",
        lambda phones: phones.tag(serial, tags),
        as_json,
        tags=Listed(one.lstrip("#") for one in tags),
    )


@devices.command()
def untag(
    serial: Phone,
    tags: Annotated[list[str] | None, typer.Argument(metavar="TAG")] = None,
    as_json: Json = False,
) -> None:
    """Take tags off a phone; all of them if none is named."""
    _kept("attached.untagged", lambda phones: phones.tag(serial, tags or [], away=True), as_json)


def _kept(key: str, call: Callable[[OwnPhones], Awaitable[PhoneKept]], as_json: bool, **values: object) -> None:
    """Do something that the settings file keeps, and say so."""
    settings = settings_from()
    kept = _with_phones(settings, call)
    if as_json:
        print_json(asdict(kept))
        return
    words, console = texts(settings.lang), Console(soft_wrap=True)
    console.print(Text(words.get(key, phone=kept.serial, **values)))
    if kept.again:
        console.print(Text(words.get("attached.again", setting=kept.again, phone=kept.serial), "yellow"))
    elif kept.hidden:
        console.print(Text(words.get("attached.hidden", file=kept.file), "yellow"))
    else:
        console.print(Text(words.get("attached.kept", file=kept.file), "dim"))


@devices.command()
def pair(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT")] = "",
    code: str = "",
    picture: Annotated[Path | None, typer.Option("--picture")] = None,
    as_json: Json = False,
) -> None:
    """Pair with a phone by wireless debugging: by its address and code, or by a QR code that it scans."""
    settings = settings_from()
    words = texts(settings.lang)
    if bool(address) != bool(code):
        said, advice = "Address and code belong together.", "Give both, or neither for a QR code."
        fail(BadRequest(said, advice=advice, key="pair_both"))
    console = err if as_json else Console(soft_wrap=True)

    async def paired(phones: OwnPhones) -> str:
        if address:
            return await phones.pair(address, code)
        from agent_core.devices.adb.pairing import SCAN_SECONDS, new_offer

        await phones.can_scan()
        offer = new_offer()
        _show_code(console, offer.payload, picture)
        console.print(words.get("attached.scan", seconds=round(SCAN_SECONDS)))
        return await phones.pair_by_scan(offer)

    serial = _with_phones(settings, paired)
    if as_json:
        print_json({"serial": serial})
        return
    console.print(Text(words.get("attached.paired", phone=serial), "green"))


def _show_code(console: Console, payload: str, picture: Path | None) -> None:
    from bot.channels.chat.devices import qr_lines, qr_picture

    if picture is not None:
        write(picture, qr_picture(payload))
    for line in qr_lines(payload):
        console.print(Text(line, "#000000 on #ffffff"))


# The screen -----------------------------------------------------------------------------------------------------------


@devices.command()
def screenshot(
    serial: Annotated[str, typer.Argument(metavar="SERIAL")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o")] = None,
    force: Annotated[bool, typer.Option("--force")] = False,
    as_json: Json = False,
) -> None:
    """Write a picture of a phone's screen, with secrets covered as the settings say."""
    from bot.app.core import open_core
    from bot.app.phones import OwnPhones

    settings = settings_from()
    place = out or Path(f"screen-{datetime.now().astimezone():%Y%m%d-%H%M%S}.png")
    kind = {".jpg": "JPEG", ".jpeg": "JPEG"}.get(place.suffix.lower(), "PNG")

    async def taken() -> tuple[str, tuple[int, int]]:
        check_new([place], force=force)
        async with open_core(settings) as core:
            device = await core.attached.device(await OwnPhones(core).known(serial) if serial else "")
            try:
                shown = await core.picture(device)
            finally:
                await device.close()
            data = io.BytesIO()
            await asyncio.to_thread(shown.save, data, kind)
            write(place, data.getvalue())
            return device.serial, shown.size

    phone, size = run_async(taken)
    if as_json:
        print_json({"serial": phone, "file": str(place), "size": list(size)})
        return
    said = texts(settings.lang).get("attached.screenshot", phone=phone, file=place, size=f"{size[0]}×{size[1]}")
    Console(soft_wrap=True).print(Text(said))


# Setting up -----------------------------------------------------------------------------------------------------------


@devices.command()
def setup(
    serial: Annotated[str, typer.Argument(metavar="SERIAL")] = "",
    keyboard_apk: Annotated[Path | None, typer.Option("--keyboard-apk")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    undo: Annotated[bool, typer.Option("--undo")] = False,
    as_json: Json = False,
) -> None:
    """Set up an Android phone for the desk as far as adb may, or undo it, and say what only its owner can do."""
    from bot.channels.chat.devices import setup_lines

    settings = settings_from()
    if undo and (dry_run or keyboard_apk is not None):
        said, advice = "--undo goes with no other option.", "Leave the other options out."
        fail(BadRequest(said, advice=advice, key="undo_alone"))

    async def done(phones: OwnPhones) -> tuple[SetupReport, str]:
        if undo:
            report = await phones.undo(serial)
        else:
            report = await (phones.plan if dry_run else phones.set_up)(serial, keyboard_apk)
        return report, await phones.called(report.serial)

    report, phone = _with_phones(settings, done)
    steps = owner_steps(report.brand, settings.lang)
    mode: Mode = "undo" if undo else "plan" if dry_run else "done"
    if as_json:
        print_json(_plain(report, steps))
    else:
        words, console = texts(settings.lang), Console(soft_wrap=True)
        for line in setup_lines(report, phone, steps, words, mode=mode):
            console.print(Text(line))
        if mode == "done" and report.changes:
            console.print(Text(words.get("attached.undo_by")))
    left_to_owner = not undo and not (report.keyboard and not report.input_denied)
    raise typer.Exit(Exit.WAITING if left_to_owner else Exit.OK)


def _plain(report: SetupReport, steps: Sequence[str]) -> dict[str, Any]:
    return {
        "serial": report.serial,
        "brand": report.brand,
        "changes": [asdict(change) for change in report.changes],
        "left": [asdict(change) for change in report.left],
        "keyboard": report.keyboard,
        "input_denied": report.input_denied,
        "owner": list(steps),
    }
