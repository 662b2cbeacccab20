"""``phonedesk apps``: the look of QQ and WeChat on a phone, and the apps that were found by their icon."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from zoneinfo import ZoneInfo

import typer

from agent_core.errors import PhonedeskError, TreeUnavailable
from bot.app import logs
from bot.channels.cli.commands.common import app_profile, fail, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.files import write
from bot.channels.cli.terminal.console import Console, Text, err, print_json
from bot.channels.cli.terminal.language import spoken_language, texts
from bot.desk.actors import BadRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_core.apps.profile import AppProfile
    from agent_core.devices.base import Frame, Node
    from agent_core.kits import Kit
    from agent_core.perception.page_report import PageReport
    from bot.app.settings.layers import Settings
    from bot.desk.phonebook import PhoneBook
    from storage.learnt import AppLabel, AppLabels

T = TypeVar("T")

AppName = Annotated[str, typer.Option("--app")]
Serial = Annotated[str, typer.Option("--device")]

apps = typer.Typer(no_args_is_help=True)


@apps.command()
def export(
    picture: Annotated[Path | None, typer.Argument()] = None,
    app: AppName = "",
    out: Path | None = None,
    tree: Path | None = None,
    device: Serial = "",
    as_json: Json = False,
) -> None:
    """Write a screen as a kit that can be shared: places and colours, other words, no faces, no pictures."""
    from agent_core.kits import differences, kit_text

    try:
        profile = app_profile(app)
        place = out or Path(f"{profile.key}.kit.json")
        if device and picture is not None:
            raise _of_what()
        kit, read_back = _from_device(device, profile) if device else _from_file(picture, tree, profile)
        write(place, kit_text(kit).encode())
    except PhonedeskError as error:
        fail(error)
    found = differences(kit.page, read_back)
    if as_json:
        print_json({"file": str(place), "texts": len(kit.texts), "page": kit.page.page.value, "differs": found})
        return
    _tell(kit, place, found)


def _of_what() -> Exception:
    return BadRequest(
        "It is not said of which screen the kit is to be.",
        advice="Give a screenshot or --device, and not both.",
        key="kit_of_what",
    )


def _from_file(picture: Path | None, tree: Path | None, profile: AppProfile) -> tuple[Kit, PageReport]:
    from agent_core.perception.page_files import load_dump, load_picture

    logs.configure("warning")
    if picture is None:
        raise _of_what()
    frame = load_picture(picture)
    nodes = load_dump(tree, frame.size) if tree is not None else None
    return run_async(lambda: _exported(frame, nodes, profile))


def _from_device(serial: str, profile: AppProfile) -> tuple[Kit, PageReport]:
    settings = settings_from()
    return run_async(lambda: _of_phone(settings, serial, profile))


async def _of_phone(settings: Settings, serial: str, profile: AppProfile) -> tuple[Kit, PageReport]:
    """Export the phone's present screen; it is only read, so no lease is taken."""
    from bot.app.core import open_core

    async with open_core(settings) as core:
        device = await core.attached.device(serial)
        try:
            frame = await device.screenshot()
            window = await device.window()
            nodes: Sequence[Node] | None
            try:
                nodes = await device.tree()
            except TreeUnavailable:
                nodes = None
            version = await device.app_version(window.package) if window.package in profile.packages else None
        finally:
            await device.close()
    return await _exported(frame, nodes, profile, version=version or "", activity=window.activity or "")


async def _exported(
    frame: Frame, nodes: Sequence[Node] | None, profile: AppProfile, *, version: str = "", activity: str = ""
) -> tuple[Kit, PageReport]:
    """Return the kit, and the reading of it when it is drawn again."""
    from agent_core.kits.export import export_kit
    from agent_core.kits.kit import read_kit

    kit = await export_kit(frame, nodes, profile, version=version, activity=activity)
    return kit, await read_kit(kit)


def _tell(kit: Kit, place: Path, found: Sequence[str]) -> None:
    words, console = texts(spoken_language()), Console(soft_wrap=True)
    size = max(1, place.stat().st_size // 1024)
    console.print(words.get("kit.written", file=str(place), size=size, texts=len(kit.texts)))
    page = kit.page
    console.print(words.get(f"kit.page_{page.page.value}", messages=len(page.messages), rows=len(page.rows)))
    for one in found:
        err.print(words.get("kit.differs", what=one), style="yellow")


@apps.command()
def labels(device: Serial = "", as_json: Json = False) -> None:
    """List the apps that were found by their icon, and are opened by the label at once from then on."""
    from rich.table import Table

    settings = settings_from()
    zone = ZoneInfo(settings.timezone)

    async def named(labels: AppLabels, book: PhoneBook) -> list[tuple[AppLabel, str]]:
        serial = book.serial(device)
        return [(one, book.name(one.serial)) for one in await labels.all() if serial in ("", one.serial)]

    found = _with_labels(settings, named)
    if as_json:
        print_json([{**asdict(one), "seen_at": one.seen_at.astimezone(zone).isoformat()} for one, _ in found])
        return
    words = texts(settings.lang)
    table = Table(*(words.get(f"labels.{head}") for head in ("label", "package", "phone", "seen")))
    for one, phone in found:
        seen = f"{one.seen_at.astimezone(zone):%Y-%m-%d %H:%M}"
        table.add_row(*map(Text, (one.label, one.package, phone, seen)))
    Console().print(table if found else words.get("labels.none"))


@apps.command()
def forget(
    label: Annotated[str, typer.Argument(metavar="NAME")],
    device: Serial = "",
    as_json: Json = False,
) -> None:
    """Forget the app that an icon with this label opened. The icon is searched for again the next time."""
    from agent_core.apps.names import bare

    settings = settings_from()
    count = _with_labels(settings, lambda labels, book: labels.forget(bare(label), book.serial(device)))
    if not count:
        said, advice = f"No app is remembered by the label {label}.", "phonedesk apps labels lists them."
        fail(NotFound(said, advice=advice, key="no_label", name=label))
    if as_json:
        print_json({"label": bare(label), "forgotten": count})
        return
    Console().print(Text(texts(settings.lang).get("labels.forgotten", label=label, count=count)))


def _with_labels(settings: Settings, call: Callable[[AppLabels, PhoneBook], Awaitable[T]]) -> T:
    from bot.app.database import open_database
    from bot.desk.phonebook import book_of
    from storage.learnt import AppLabels

    async def called() -> T:
        db = await open_database(settings)
        try:
            return await call(AppLabels(db), await book_of(db, settings.device.names))
        finally:
            await db.close()

    return run_async(called)


@apps.command()
def learn(
    app: AppName = "",
    chat: Annotated[str, typer.Option(metavar="NAME")] = "",
    here: Annotated[bool, typer.Option("--here")] = False,
    device: Serial = "",
    allow_send: Annotated[bool, typer.Option("--allow-send")] = False,
    marks: Path | None = None,
    as_json: Json = False,
) -> None:
    """Learn QQ or WeChat on a phone: read a chat of yours, have you confirm it, and find the control that sends."""
    from bot.channels.cli.commands.learning import learn_in_terminal

    try:
        profile = app_profile(app)
        if not chat and not here:
            raise BadRequest(
                "It is not said which chat may be opened.",
                advice="Name one of your own with --chat, or open it on the phone and use --here.",
                key="learn_which_chat",
            )
    except PhonedeskError as error:
        fail(error)
    settings = settings_from()
    code, told = run_async(
        lambda: learn_in_terminal(
            settings,
            profile,
            chat,
            serial=device,
            here=here,
            allow_send=allow_send,
            marks=marks,
            quiet=as_json,
        )
    )
    if as_json:
        print_json(told)
    raise typer.Exit(code)
