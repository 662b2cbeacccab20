"""The owner's folder ``phonedesk.d``: prompts, profiles and planner tools beside those that come with the package.

A loader asks ``sources`` for the files of its kind, the shipped ones and the owner's, and reads both by the same code;
an owner's file takes the place of the shipped one with its name. The folder is only ever read, at the start of a
process. Whoever can write to it decides what models are told and what code runs here, so a file that others may write
is refused.

    models/NAME.toml        model profiles (``agent_core.model.profile``)
    prompts/NAME.LANG.txt   system prompts, NAME being a model profile (``agent_core.model.words``)
    apps/KEY.toml           app profiles (``agent_core.apps.profile``)
    apps/map.toml           names of apps (``agent_core.apps.names``)
    planner/LANG.txt        how the planner is to plan (``agent_core.planner.words``)
    tools/*.py              tools of the planner (``agent_core.planner.tools``)
"""

from __future__ import annotations

import os
import re
import stat
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agent_core.errors import ConfigInvalid
from agent_core.texts import Listed, toml_problem

FOLDER = "phonedesk.d"
LONGEST_FILE = 256 * 1024  # bytes
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_LINE = re.compile(r"at line (\d+)")

T = TypeVar("T")


class Part(StrEnum):
    """A kind of files: the name of its folder."""

    MODELS = "models"
    PROMPTS = "prompts"
    APPS = "apps"
    PLANNER = "planner"
    TOOLS = "tools"

    @property
    def suffix(self) -> str:
        return {Part.MODELS: ".toml", Part.APPS: ".toml", Part.TOOLS: ".py"}.get(self, ".txt")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a file, or of one of its fields.

    kind: names the text for it, filled in with ``values``; ``message`` says the same in English.
    line: from 1; None if it is not known.
    path: of the field, in a TOML file.
    """

    file: Path
    kind: str
    message: str
    line: int | None = None
    path: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The location of the fault, as ``FILE:LINE``."""
        return f"{self.file}:{self.line}" if self.line else str(self.file)


class OwnWrong(ConfigInvalid):
    """A file of the owner's folder cannot be used. ``faults``: everything that is wrong with it."""

    def __init__(self, *faults: Fault) -> None:
        told = "; ".join(f"{fault.place}: {fault.message}" for fault in faults)
        super().__init__(told, advice="Correct the file; phonedesk config check lists all that is wrong.")
        self.faults = faults


@dataclass(frozen=True, slots=True)
class OwnerSource:
    """A file that a loader reads. ``file`` is None if it came with the package."""

    name: str
    text: str
    file: Path | None = None

    def check_named(self, field_name: str, said: object) -> None:
        """Raise OwnWrong if a field that is to be the file's name says something else."""
        if said != self.name:
            message = f"it must be {self.name}, as the file is named"
            raise OwnWrong(Fault(self._place, "own_key", message, path=(field_name,), values={"name": self.name}))

    def wrong(self, kind: str, message: str, *, line: int | None = None, **values: str) -> OwnWrong:
        """Return the error for something that is wrong with an owner's file."""
        return OwnWrong(Fault(self._place, kind, message, line, values=values))

    @property
    def _place(self) -> Path:
        return self.file or Path(self.name)


# Which folder it is ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Used:
    folder: Path | None = None


_used = _Used()
_looked_at: ContextVar[tuple[Path | None] | None] = ContextVar("looked_at", default=None)


def use(folder: Path | None) -> None:
    """Have this process read the owner's files in ``folder``; None: there are none."""
    _used.folder = folder


@contextmanager
def looking_at(folder: Path | None) -> Iterator[None]:
    """Read another folder meanwhile, to check it."""
    token = _looked_at.set((folder,))
    try:
        yield
    finally:
        _looked_at.reset(token)


def folder() -> Path | None:
    """Return the owner's folder; None if there is none."""
    looked_at = _looked_at.get()
    return looked_at[0] if looked_at is not None else _used.folder


def key() -> Path | None:
    """Return the key for caches of the owner's files: a folder is read once in a process."""
    own = folder()
    return own.absolute() if own is not None else None


# Reading --------------------------------------------------------------------------------------------------------------


def sources(part: Part, package: str = "", *inside: str) -> dict[str, OwnerSource]:
    """Return the files of a kind by name: the shipped ones in ``package``, and the owner's in their place or beside.

    Raises OwnWrong if an owner's file may be written by others, or is not text.
    """
    found: dict[str, OwnerSource] = {}
    if package:
        for item in sorted(resources.files(package).joinpath(*inside).iterdir(), key=lambda item: item.name):
            if item.name.endswith(part.suffix):
                name = item.name.removesuffix(part.suffix)
                found[name] = OwnerSource(name, item.read_text("utf-8"))
    for file in files(part):
        found[file.name.removesuffix(part.suffix)] = source(part, file)
    return found


def files(part: Part) -> list[Path]:
    """Return the owner's files of a kind, by name. Raises OwnWrong if others may write the folder."""
    own = folder()
    if own is None or not (own / part).is_dir():
        return []
    for place in (own, own / part):
        _check_closed(place, place.stat())
    return [file for file in _entries(own / part) if file.suffix == part.suffix]


def _entries(inside: Path) -> list[Path]:
    """Return the content of a folder, by name. Names that begin with a dot, an underscore or README are ignored."""
    try:
        found = sorted(inside.iterdir())
    except OSError as error:
        raise _unread(inside, str(error.strerror)) from None
    return [item for item in found if not item.name.upper().startswith((".", "_", "README"))]


def _unread(file: Path, why: str) -> OwnWrong:
    return OwnWrong(Fault(file, "own_unread", f"it cannot be read: {why}", values={"why": why}))


def source(part: Part, file: Path) -> OwnerSource:
    """Read an owner's file. Raises OwnWrong if others may write it, or if it is not text of a usual length."""
    name = file.name.removesuffix(part.suffix)
    if not _NAME.fullmatch(name):
        raise OwnWrong(Fault(file, "own_name", "a file's name has letters, digits, dots, hyphens and underscores only"))
    try:
        with file.open("rb") as opened:
            seen = os.fstat(opened.fileno())
            _check_closed(file, seen)
            if part is Part.TOOLS:
                _check_owner(file, seen)
            text = opened.read(LONGEST_FILE + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
        raise _unread(file, why) from None
    if len(text.encode()) > LONGEST_FILE:
        raise OwnWrong(Fault(file, "own_long", f"it is longer than {LONGEST_FILE // 1024} KB"))
    return OwnerSource(name, text.replace("\r\n", "\n"), file)


def made(read: OwnerSource, make: Callable[[dict[str, Any]], T]) -> T:
    """Make something of the table in a TOML file. Raises OwnWrong, with each wrong field, if it is an owner's."""
    try:
        return make(tomllib.loads(read.text))
    except tomllib.TOMLDecodeError as error:
        if read.file is None:
            raise
        line = _LINE.search(str(error))
        raise read.wrong(
            "own_toml", f"it is no TOML: {error}", line=int(line[1]) if line else None, why=toml_problem(error)
        ) from None
    except ValidationError as error:
        if read.file is None:
            raise
        raise OwnWrong(*(_fault(read.file, wrong) for wrong in error.errors(include_url=False))) from None


def template(read: OwnerSource, known: frozenset[str]) -> str:
    """Return a text with ``$names`` in it. Raises OwnWrong if it is blank, or has an unknown name."""
    if not read.text.strip():
        raise read.wrong("own_blank", "it is empty")
    for number, line in enumerate(read.text.splitlines(), 1):
        found = string.Template(line)
        unknown = set(found.get_identifiers()) - known if found.is_valid() else {line[line.find("$") :][:20]}
        if unknown:
            names = Listed(f"${name}" for name in sorted(known))
            message = f"{min(unknown)} is no placeholder; there are {names}, and $$ is a dollar sign"
            raise read.wrong("own_placeholder", message, line=number, said=min(unknown), known=names)
    return read.text.strip()


def _fault(file: Path, wrong: Any) -> Fault:
    values = {name: str(value) for name, value in wrong.get("ctx", {}).items()}
    said = wrong["msg"].removeprefix("Value error, ")
    return Fault(file, wrong["type"], said, path=tuple(map(str, wrong["loc"])), values=values)


def strays() -> Iterator[Fault]:
    """Find files that no loader would read: other names, other places."""
    own = folder()
    if own is None:
        return
    parts = {str(part): part for part in Part}
    for item in _entries(own):
        if item.name not in parts or not item.is_dir():
            known = Listed(f"{part}/" for part in Part)
            yield Fault(item, "own_stray", f"nothing reads it; there are the folders {known}", values={"known": known})
            continue
        suffix = parts[item.name].suffix
        for file in _entries(item):
            if file.suffix != suffix or file.is_dir():
                yield Fault(file, "own_suffix", f"nothing reads it; files end in {suffix}", values={"suffix": suffix})


# Write permissions ----------------------------------------------------------------------------------------------------

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def _check_closed(file: Path, seen: os.stat_result) -> None:
    """Raise OwnWrong if the group or others may write the file. Windows has no such bits."""
    if os.name == "posix" and seen.st_mode & _OTHERS:
        how = f"chmod go-w {file}"
        raise OwnWrong(Fault(file, "own_open", f"others may write it; run {how}", values={"how": how}))


def _check_owner(file: Path, seen: os.stat_result) -> None:
    """Raise OwnWrong if code belongs to somebody else than who runs it, or root."""
    if os.name == "posix" and seen.st_uid not in (0, os.geteuid()):
        how = f"chown {os.geteuid()} {file}"
        raise OwnWrong(Fault(file, "own_owner", f"it belongs to another user; run {how}", values={"how": how}))
