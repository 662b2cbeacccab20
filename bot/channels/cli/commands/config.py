"""``phonedesk config``: shows every setting with its value and origin, and changes the file."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from agent_core.errors import ConfigError, ConfigInvalid
from agent_core.texts import Listed
from bot.app import logs
from bot.app.escapes import escaped
from bot.app.settings.files import config_file, files_there
from bot.app.settings.layers import Settings
from bot.app.settings.loading import SettingsWrong, passed_over, try_settings, variables_set
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.common import Exit, fail, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, err, print_json
from bot.channels.cli.terminal.language import speak, spoken_language, texts

if TYPE_CHECKING:
    from bot.app.settings.names import Name
    from bot.app.settings.origin import SettingPlace, ShownSetting
    from bot.app.settings.writing import Written

STDIN = "-"
NAME_CELLS, VALUE_CELLS = 18, 40  # width of the columns: at least, at most
REACHED = ("database", "model", "model_name", "knowledge", "token")  # the doctor's checks for --reach
LONGEST_SECRET = 65536  # characters that are read from standard input

NameOf = Annotated[str, typer.Argument(metavar="NAME")]
File = Annotated[Path | None, typer.Option("--file")]

config = typer.Typer(no_args_is_help=True)


@config.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME")] = "",
    changed: Annotated[bool, typer.Option("--changed")] = False,
    as_json: Json = False,
) -> None:
    """Show every setting with its value and origin; secrets are hidden."""
    from bot.app.settings.origin import survey, survey_of_wrong
    from bot.channels.cli.commands.wrong import refusal

    _, problems = try_settings()
    if problems:
        logs.configure("error")
        settings, every, problems = survey_of_wrong(problems)
        speak(settings.lang)
    else:
        settings = settings_from()
        every = survey(settings)
    found = [one for one in _of(every, name) if one.changed or not changed]
    words = texts(settings.lang)
    if as_json:
        print_json([_plain(one) for one in found])
    else:
        _show_settings(words, found, right=not problems, said=bool(name))
    if problems:
        err.print(refusal(words, SettingsWrong("", problems)), style="red")
        raise typer.Exit(Exit.USAGE)


def _show_settings(words: Texts, found: Sequence[ShownSetting], *, right: bool, said: bool) -> None:
    """Print the settings by section. said: with what each of them is, in words."""
    console = Console()
    if not found and right:
        console.print(words.get("config.all_default"))
    for section in dict.fromkeys(one.name.path[:-1] for one in found):
        _show_section(console, words, section, [one for one in found if one.name.path[:-1] == section], said=said)


def _of(every: Sequence[ShownSetting], name: str) -> list[ShownSetting]:
    """Return the settings in the section of this name, or the one setting with it; all for ""."""
    from bot.app.settings.names import find

    section = tuple(name.lower().split("."))
    inside = [one for one in every if one.name.path[: len(section)] == section]
    if not name or inside:
        return inside or list(every)
    try:
        wanted, _ = find(name)
    except ConfigError as error:
        fail(error)
    return [one for one in every if one.name == wanted]


def _plain(shown: ShownSetting) -> dict[str, Any]:
    first, *over = shown.places
    return {
        "name": shown.name.key,
        "environment": shown.name.environment,
        "value": shown.value,
        "source": first.layer,
        "where": first.where,
        "over": [{"source": place.layer, "where": place.where} for place in over],
        "changed": shown.changed,
        "secret": shown.name.is_secret,
        "live": shown.name.is_live,
        "wrong": shown.wrong,
    }


def _show_section(
    console: Console, words: Texts, section: tuple[str, ...], rows: Iterable[ShownSetting], *, said: bool
) -> None:
    from bot.app.settings.origin import as_text
    from bot.app.settings.texts import setting_words

    if section:
        console.print(Text(f"\n[{'.'.join(section)}]", "bold"))
    lines = [(shown, escaped(as_text(shown.value)) or "—") for shown in rows]
    names = max(NAME_CELLS, *(cell_len(shown.name.path[-1]) for shown, _ in lines)) + 2
    values = min(VALUE_CELLS, max(cell_len(value) for _, value in lines)) + 2
    for shown, value in lines:
        _show_one(console, words, shown, value, names, values)
        if said:
            console.print(Text("  " + setting_words(shown.name, words.lang), "dim"), soft_wrap=True)


def _show_one(console: Console, words: Texts, shown: ShownSetting, value: str, names: int, values: int) -> None:
    """Print name, value and origin on a line, the origin below if the line gets too long.

    Nothing is cut, because people copy it.
    """
    first, *over = shown.places
    style = "bold red" if shown.wrong else "bold" if shown.changed else ""
    place = Text(_told(words, first), "" if shown.changed else "dim")
    line = Text(_padded(shown.name.path[-1], names) + _padded(("✗ " if shown.wrong else "") + value, values), style)
    if line.cell_len + place.cell_len <= console.width:
        indent = line.cell_len
        console.print(line.append_text(place), soft_wrap=True)
    else:
        indent = names + 2
        line.rstrip()
        console.print(line, soft_wrap=True)
        console.print(Text(" " * indent).append_text(place), soft_wrap=True)
    for hidden in over:
        told = words.get("config.over", place=_told(words, hidden))
        console.print(Text(" " * indent + told, "dim"), soft_wrap=True)


def _padded(text: str, cells: int) -> str:
    return text + " " * max(cells - cell_len(text), 2)


def _told(words: Texts, place: SettingPlace) -> str:
    return words.get(f"config.from_{place.layer}", where=place.where)


@config.command()
def check(
    reach: Annotated[bool, typer.Option("--reach")] = False,
    as_json: Json = False,
) -> None:
    """Check every setting, in all places. Exit code 0 if all are right, else 2."""
    from bot.app.config_check import incomplete
    from bot.app.settings.origin import Places, survey_of_wrong
    from bot.channels.cli.commands.wrong import told

    logs.configure("error")
    settings, problems = try_settings()
    if settings is None:
        _, _, problems = survey_of_wrong(problems)
    speak(settings.lang if settings else None)
    words = texts(spoken_language())
    if settings is not None:
        problems = incomplete(settings)
    places = Places()
    wrong = [told(words, problem, places) for problem in problems]
    doubtful = [
        {"name": one.name, "where": "", "message": words.get(f"config.{one.kind}"), "meant": one.meant}
        for one in passed_over()
    ]
    unreached = _unreached(settings, words) if settings and reach else []
    if as_json:
        read = {"files": list(map(str, files_there())), "environment": variables_set()}
        print_json({"wrong": wrong, "doubtful": doubtful, "unreached": unreached, "read": read})
    else:
        _show_check(words, wrong, doubtful, unreached, settings)
    raise typer.Exit(Exit.USAGE if wrong or unreached else Exit.OK)


def _show_check(
    words: Texts,
    wrong: Sequence[dict[str, str]],
    doubtful: Sequence[dict[str, str]],
    unreached: Sequence[dict[str, str]],
    settings: Settings | None,
) -> None:
    console = Console()
    for mark, style, found in (("✗", "bold red", [*wrong, *unreached]), ("!", "yellow", doubtful)):
        for one in found:
            name = one["name"] + (f"  ({one['where']})" if one["where"] else "")
            message = one["message"]
            console.print(Text(f"{mark} {name or message}", style))
            if name:
                console.print(Text(f"  {message}"))
            if one.get("meant"):
                console.print(Text("  " + words.get("config.meant", name=one["meant"])))
    if settings and not wrong and not unreached:
        said = words.get("config.right_but", count=len(doubtful)) if doubtful else words.get("config.right")
        console.print(Text(said), soft_wrap=True)
    console.print(Text(_read(words)), soft_wrap=True)
    if settings and not wrong and not unreached and (told := _own_files(settings, words)):
        console.print(told)
    console.print(words.get("config.doctor"), style="dim")


def _read(words: Texts) -> str:
    """Print the sources that the settings were read from."""
    files, variables = list(map(str, files_there())), variables_set()
    if not files and not variables:
        return words.get("config.read_nothing", file=config_file())
    between = words.get("common.between")
    lines = [words.get("config.read_files", files=between.join(files))] if files else []
    lines += [words.get("config.read_variables", names=between.join(variables))] if variables else []
    return "\n".join(lines)


def _own_files(settings: Settings, words: Texts) -> str:
    """Say how many files of each kind the owner's folder has, and which of its tools the planner does not get."""
    from agent_core.owner import folder as own
    from agent_core.planner.tools import declared
    from bot.app.settings.loading import own_folder

    folder = own_folder(settings)
    with own.looking_at(folder):
        counts = [f"{part} {len(files)}" for part in own.Part if (files := own.files(part))]
        unused = [tool.name for tool in declared() if tool.name not in settings.planner.tools]
    lines = [words.get("config.own", folder=folder, files=Listed(counts))] if counts else []
    if unused:
        lines.append(words.get("config.own_unused", tools=Listed(unused)))
    return "\n".join(lines)


def _unreached(settings: Settings, words: Texts) -> list[dict[str, str]]:
    """Return the services that cannot be reached, as the doctor finds them."""
    from bot.app.doctor.examine import CHECKS, examine
    from bot.app.doctor.report import CheckStatus

    # Their requirements are met: the settings could be read.
    checks = [check for check in CHECKS if check.key in REACHED]

    async def ask() -> list[dict[str, str]]:
        return [
            {"name": result.title, "where": "", "message": f"{result.seen} {result.advice}".strip(), "meant": ""}
            async for result in examine(settings, lang=words.lang, checks=checks)
            if result.status is CheckStatus.FAILED
        ]

    return run_async(ask)


# A value may begin with a minus, such as the id of a group.
@config.command("set", context_settings={"ignore_unknown_options": True})
def set_(
    name: NameOf,
    value: str,
    file: File = None,
    as_json: Json = False,
) -> None:
    """Write a setting into phonedesk.toml; the rest of the file stays."""
    from bot.app.config_check import incomplete
    from bot.app.settings.masking import secrets_given
    from bot.app.settings.names import find
    from bot.app.settings.writing import set_value

    _speak()
    try:
        found, inside = find(name)
        text = _from_stdin(found.key) if value == STDIN else value
        secrets = [text] if found.is_secret else secrets_given(inside, text)
        logs.know(secrets)
        written = set_value(found, inside, text, file or config_file(), incomplete)
    except ConfigError as error:
        fail(error)
    if secrets and value != STDIN:
        whole = f"{found.key}.{inside}" if inside else found.key
        Console(stderr=True).print(texts(spoken_language()).get("config.history", name=whole))
    _say(found, inside, "config.written", written, file, as_json)


@config.command()
def unset(name: NameOf, file: File = None, as_json: Json = False) -> None:
    """Remove a setting from phonedesk.toml, so that its default applies."""
    from bot.app.config_check import incomplete
    from bot.app.settings.names import find
    from bot.app.settings.writing import unset as take_out

    _speak()
    try:
        found, inside = find(name)
        written = take_out(found, inside, file or config_file(), incomplete)
    except ConfigError as error:
        fail(error)
    _say(found, inside, "config.taken_out", written, file, as_json)


def _speak() -> None:
    """Speak the settings' language if they can be read: this command may be used to repair them."""
    settings, _ = try_settings()
    speak(settings.lang if settings else None)


def _from_stdin(name: str) -> str:
    """Read one line; typing in a terminal is not shown."""
    text = getpass.getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.read(LONGEST_SECRET + 1)
    if len(text) > LONGEST_SECRET:
        raise ConfigInvalid("Standard input holds too much for a value.", key="value_too_long")
    text = text.rstrip("\r\n")
    if not text.strip():
        # Usually the failed output of a pipe; it must not erase a secret.
        raise ConfigInvalid("Standard input holds no value.", key="no_value_given", name=name)
    if len(text.splitlines()) > 1:
        raise ConfigInvalid("Standard input holds more than one line.", key="one_line_only")
    return text


def _say(name: Name, inside: str, key: str, written: Written, asked: Path | None, as_json: bool) -> None:
    """Print the change, and when it takes effect."""
    whole = f"{name.key}.{inside}" if inside else name.key
    file = asked or config_file()
    elsewhere = file.expanduser().resolve() != config_file().resolve()
    if as_json:
        hidden_by = [{"source": place.layer, "where": place.where} for place in written.over]
        told = {
            "name": whole,
            "file": str(file),
            "changed": written.changed,
            "over": hidden_by,
            "live": name.is_live,
        }
        print_json({**told, "read": not elsewhere})
        return
    words, console = texts(spoken_language()), Console()
    console.print(Text(words.get(key if written.changed else "config.same", name=whole, file=file)))
    for place in written.over:
        console.print(Text(words.get("config.hidden", place=_told(words, place)), "yellow"))
    if elsewhere:
        console.print(Text(words.get("config.elsewhere", file=config_file()), "yellow"))
    elif written.changed and not written.over:
        console.print(Text(words.get("config.live" if name.is_live else "config.restart"), "dim"))
