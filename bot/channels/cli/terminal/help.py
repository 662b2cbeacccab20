"""Commands that print their help, and problems with the command line, in the person's language.

Texts are in ``bot.channels.cli.terminal.texts``, by the command's words (``kb import``) and the parameter's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.cells import cell_len
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from agent_core.texts import Lang, Listed, filled
from bot.app.release import NAME, program
from bot.channels.cli.terminal.console import Console, Text, err
from bot.channels.cli.terminal.language import spoken_language
from bot.channels.cli.terminal.texts import catalogue, typed

USAGE = 2  # exit code
WIDEST = 100  # columns: longer lines are hard to read
LEFT_MOST = 26  # columns of an option's name; the text of a longer one is below it
INDENT = "  "
_LIST_OR_RANGE = re.compile(r"^list\[|\]$| range$")  # around the name of a type, as Typer shows it
_RANGE = re.compile(r"(?:(?P<least>[\d.]+)<=)?x(?:<=(?P<most>[\d.]+)|>=(?P<above>[\d.]+))?")

_NUMBERS = {"id", "number", "run"}  # arguments that people copy from output, perhaps with a # in front


class _Spoken:
    """The help of commands and groups."""

    parent_name = ""  # of the group that contains the command

    @property
    def key(self) -> str:
        """The command's words, which are the key of its texts."""
        return f"{self.parent_name} {self.name}".strip()  # type: ignore[attr-defined]

    def get_help(self, ctx: Any) -> str:
        return help_text(self, ctx, spoken_language())

    def get_usage(self, ctx: Any) -> str:
        return usage_line(self, ctx, spoken_language())

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the summary for a shell's completion. ``limit`` is for texts without a bound of their own."""
        return catalogue(spoken_language()).get(f"{self.key}.summary", "")


class HelpedCommand(_Spoken, TyperCommand):
    """One command."""


class Group(_Spoken, TyperGroup):
    """Commands under one word."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._name_commands()

    def _name_commands(self) -> None:
        """Tell the commands, and those of groups inside, the words before their own."""
        for command in self.commands.values():
            command.parent_name = "" if self.name == NAME else self.key  # type: ignore[attr-defined]
            if isinstance(command, Group):
                command._name_commands()

    def headings(self, ctx: Any) -> dict[str, list[str]]:
        """Return the names of the commands that the help lists, by the keys of their headings."""
        return {"": self.list_commands(ctx)} if self.commands else {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            err.print(Text(self.get_help(ctx)))
            raise typer.Exit(USAGE)
        return super().parse_args(ctx, args)


class Root(Group):
    """All commands. Reports problems with a command line."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with our own words for Typer's option that installs completion."""
        params = super().get_params(ctx)
        for param in params:
            if param.name == "install_completion":
                param.callback = _install_completion
        return params

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _told():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _told():
            return super().invoke(ctx)


def _install_completion(ctx: Any, param: Any, value: Any) -> None:
    """Install completion for the shell that started us, and say where."""
    if not value or ctx.resilient_parsing:
        return
    from typer.completion import install  # type: ignore[attr-defined]  # its one place

    shell, file = install()
    words = catalogue(spoken_language())
    Console().print(Text(words["usage.completed"].format(shell=shell, file=file)), soft_wrap=True)
    raise typer.Exit


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        _tell(error)
        raise typer.Exit(error.exit_code) from None
    except typer.Abort:
        err.print("\n" + catalogue(spoken_language())["usage.aborted"])
        raise typer.Exit(1) from None


def _tell(error: TyperException) -> None:
    """Print the problem with the command line, its usage and where help is."""
    lang = spoken_language()
    words, ctx = catalogue(lang), getattr(error, "ctx", None)
    if ctx is not None:
        err.print(Text(ctx.get_usage()))
        err.print(Text(words["usage.try_help"].format(command=_called(ctx)) + "\n"))
    param = getattr(error, "param", None)
    if param is not None and param.param_type_name == "argument":
        error.param_hint = f"'{_value(param, ctx, words)}'"  # type: ignore[attr-defined]
    message = error.format_message()
    err.print(Text(words["usage.error"].format(message=said(message, lang))))
    if param is not None and is_missing(message) and (param.metavar or param.name).lower() in _NUMBERS:
        err.print(Text(words["usage.no_sign"]))
    above = "" if ctx is None or ctx.command.key == NAME else ctx.command.key
    for name in meant(message, above):
        does = words[f"{name}.summary"]
        err.print(Text(typed(words["usage.perhaps"].format(command=f"{NAME} {name}", does=does))))
    if ctx is not None and is_like_none(message):
        err.print(Text(filled(words["usage.there_are"], {"names": _takes(ctx)}, lang)))


def _takes(ctx: Any) -> Listed:
    """Return the possible next words: the commands of a group, the options of a command."""
    if isinstance(ctx.command, Group):
        return Listed(ctx.command.list_commands(ctx))
    return Listed(name for param in ctx.command.get_params(ctx) for name in param.opts if name.startswith("--"))


def usage_line(command: Any, ctx: Any, lang: Lang) -> str:
    """Return how the command is written: ``Usage: phonedesk run [OPTIONS] TASK``."""
    words = catalogue(lang)
    pieces = " ".join(command.collect_usage_pieces(ctx))
    for param in command.get_params(ctx):
        if param.param_type_name == "argument":
            pieces = pieces.replace(param.get_usage_pieces(ctx)[0], _written(param, ctx, words), 1)
    for key, theirs in (("options_metavar", "[OPTIONS]"), ("command_metavar", "COMMAND [ARGS]...")):
        pieces = pieces.replace(theirs, words[f"usage.{key}"])
    return words["usage.usage"].format(command=f"{_called(ctx)} {pieces}")


def _called(ctx: Any) -> str:
    """Return the command's words as they are typed here: ``.venv/bin/phonedesk kb import`` in a checkout."""
    path, name = str(ctx.command_path), str(ctx.find_root().info_name)
    return program() + path.removeprefix(name) if name == NAME else path


def help_text(command: Any, ctx: Any, lang: Lang) -> str:
    """Return the whole help of a command."""
    words = catalogue(lang)
    width = min(ctx.terminal_width or Console().width, WIDEST)
    blocks = [usage_line(command, ctx, lang), *_wrapped(words.get(f"{command.key}.summary", ""), width)]
    blocks += _wrapped(words.get(f"{command.key}.more", ""), width)
    if example := words.get(f"{command.key}.example", ""):
        blocks.append(f"{words['usage.example']}\n{INDENT}{typed(example)}")
    for kind in ("argument", "option"):
        rows = [_row(command, one, ctx, lang) for one in command.get_params(ctx) if one.param_type_name == kind]
        blocks += _block(words[f"usage.{kind}s"], rows, width)
    for heading, rows in _listed(command, ctx, lang):
        blocks += _block(heading, rows, width)
    if command.key == NAME:
        blocks.append(typed(words["usage.other_language"]))
    return "\n\n".join(blocks)


def _listed(command: Any, ctx: Any, lang: Lang) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the commands of a group with their summaries, under the headings of their groups."""
    words = catalogue(lang)
    above = "" if command.key == NAME else command.key
    for name, commands in (command.headings(ctx) if isinstance(command, Group) else {}).items():
        heading = words.get(f"groups.{name}", words["usage.commands"]).rstrip(":：") + words["usage.commands"][-1]
        yield heading, [(one, words.get(f"{above} {one}.summary".strip(), "")) for one in commands]


def _row(command: Any, param: Any, ctx: Any, lang: Lang) -> tuple[str, str]:
    """Return a parameter as it is written, and its purpose with its default."""
    words = catalogue(lang)
    left, more = param.get_help_record(ctx)
    if param.param_type_name == "argument":
        left = _value(param, ctx, words) + ("" if param.nargs == 1 else "...")
    elif not param.is_flag:
        left = left.removesuffix(param.display_type_rich(ctx)) + _value(param, ctx, words)
    more = more.removeprefix(param.help or "")  # the library's own options have one
    text = words.get(f"{command.key}.{param.name}", words.get(f"common.{param.name}", ""))
    facts = [_fact(one, words) for one in more.strip().removeprefix("[").removesuffix("]").split("; ") if one]
    return left, f"{text} [{'; '.join(facts)}]" if facts else text


def _written(argument: Any, ctx: Any, words: Mapping[str, str]) -> str:
    """Return an argument as the usage shows it: ``TASK``, optional ``[RUN]``, repeated ``FILE...``."""
    name = _value(argument, ctx, words)
    return (name if argument.required else f"[{name}]") + ("" if argument.nargs == 1 else "...")


def _value(param: Any, ctx: Any, words: Mapping[str, str]) -> str:
    """Return the placeholder of a parameter's value: an argument's name, an option's choices or kind of value."""
    if param.param_type_name == "argument" or param.metavar:
        name = param.metavar or param.name
        return words.get(f"values.{name.lower()}", name)
    kind = _LIST_OR_RANGE.sub("", param.display_type(ctx).removeprefix("<").removesuffix(">"))
    return words.get(f"values.{kind.lower()}", kind)


def _fact(said_so: str, words: Mapping[str, str]) -> str:
    """Return one of the library's remarks on a parameter: its default, that it is required, its range."""
    name, _, value = said_so.partition(": ")
    if name == "default" and value:
        return words["usage.default"].format(value=value.removeprefix("(").removesuffix(")"))
    if name == "env var":
        return words["usage.environment"].format(name=value)
    if found := _RANGE.fullmatch(said_so):
        least, most = found["least"] or found["above"], found["most"]
        key = "from_to" if least and most else "least" if least else "most"
        return words[f"usage.{key}"].format(least=least, most=most)
    return words["usage.required"] if said_so == "required" else said_so


def _block(heading: str, rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return rows in two columns under a heading; nothing if there are none."""
    if not rows:
        return []
    left = min(max(cell_len(name) for name, _ in rows), LEFT_MOST) + 2
    lines = [heading]
    for name, text in rows:
        folded = "\n\n".join(_wrapped(text, width - left - len(INDENT))).splitlines() or [""]
        beside = cell_len(name) + 2 <= left
        lines.append(f"{INDENT}{name}{' ' * (left - cell_len(name))}{folded[0]}" if beside else f"{INDENT}{name}")
        lines += [" " * (left + len(INDENT)) + line for line in folded[1 if beside else 0 :]]
    return ["\n".join(line.rstrip() for line in lines)]


def _wrapped(text: str, width: int) -> list[str]:
    """Return paragraphs folded to ``width`` columns; a Chinese character takes two."""
    console = Console(width=width)
    parts = [Text(part) for part in typed(text).split("\n\n") if part]
    return ["\n".join(str(line).rstrip() for line in part.wrap(console, width)) for part in parts]


# Problems with a command line -----------------------------------------------------------------------------------------

# Typer describes them in English, mostly in complete sentences: these are recognised by their wording.
# The wording of Typer 0.29 and of pydantic, which checks its values. The first match counts.
_WORDING = {
    "no_option_did": "No such option: {name} (Possible options: {names})",
    "no_option": "No such option: {name}",
    "no_command_did": "No such command {name}. Did you mean {names}?",
    "no_command": "No such command {name}.",
    "no_command_at_all": "Missing command.",
    "missing_choice": "Missing {kind} {name}. Choose from:{names}",
    "missing": "Missing {kind} {name}.",
    "extra": "Got unexpected extra argument(s) ({names})",
    "no_value": "Option {name} does not take a value.",
    "needs_one": "Option {name} requires an argument.",
    "invalid_for": "Invalid value for {name}: {why}",
    "invalid": "Invalid value: {why}",
    "not_integer": "Input should be a valid integer{more}",
    "not_number": "Input should be a valid number{more}",
    "too_small": "Input should be greater than or equal to {least}",
    "too_large": "Input should be less than or equal to {most}",
    "not_one_of": "Value error, {value} is not one of {names}.",
    "file_missing": "{kind} {name} does not exist.",
    "is_folder": "{kind} {name} is a directory.",
    "unreadable": "{kind} {name} is not readable.",
}
# Words that people type for commands that have another name here.
_EXPECTED = (
    ({"kb list", "kb ls", "kb lst", "kb show", "kb all"}, ("kb search", "kb export")),
    ({"history", "log", "logs", "runs", "tasks", "jobs"}, ("replay", "answers")),
    ({"start", "up", "server", "bot"}, ("serve",)),
    ({"setup", "configure", "install"}, ("init",)),
    ({"ask", "question"}, ("questions",)),
)
_HOLE = re.compile(r"\\{(\w+)\\}")
_FORMS = {key: re.compile(_HOLE.sub(r"(?P<\1>.*?)", re.escape(text)), re.DOTALL) for key, text in _WORDING.items()}


def said(message: str, lang: Lang) -> str:
    """Return the library's ``message`` in the person's language; an unknown one unchanged."""
    key, values = _recognised(message)
    return filled(catalogue(lang)[f"wrong.{key}"], _values(values, lang), lang) if key else message


def is_like_none(message: str) -> bool:
    """Tell whether the message is about an unknown command or option without a similar known one."""
    return _recognised(message)[0] in {"no_command", "no_option"}


def meant(message: str, above: str) -> tuple[str, ...]:
    """Return the commands that do what an unknown command is expected to do; usually none.

    above: the words of the group in which it was looked up, "" for the outermost.
    """
    key, found = _recognised(message)
    name = f"{above} {found.get('name', '').strip(chr(39))}".strip()
    return next((commands for names, commands in _EXPECTED if name in names), ()) if "no_command" in key else ()


def is_missing(message: str) -> bool:
    """Tell whether the message is about a missing argument or option."""
    return _recognised(message)[0] == "missing"


def _recognised(message: str) -> tuple[str, dict[str, str]]:
    """Return the key of the wording and the values in its placeholders; "" if none matches."""
    for key, form in _FORMS.items():
        if found := form.fullmatch(message):
            return key, found.groupdict()
    return "", {}


def _values(found: Mapping[str, str], lang: Lang) -> dict[str, str]:
    values = {name: " ".join(value.split()) for name, value in found.items()}
    if "names" in values:
        values["names"] = Listed(re.split(r", *(?:or )?", values["names"]))
    return values | ({"why": said(found["why"], lang)} if "why" in found else {})
