"""Files that a user asks for by name: for this user alone, whole or not there, never over another one by mistake."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from typing import BinaryIO

from bot.desk.actors import BadRequest


def check_new(files: Sequence[Path], *, force: bool) -> None:
    """BadRequest where one of these is there already, or its folder is not; before any work is done for them."""
    for file in files:
        if file.is_dir() or (file.exists() and not force):
            raise BadRequest(
                f"{file} is there already.", advice="Give another name, or --force.", key="file_there", name=str(file)
            )
        if not file.absolute().parent.is_dir():
            raise _unwritable(file, OSError(ENOENT, "no such folder"))


@contextmanager
def written(file: Path) -> Iterator[BinaryIO]:
    """Open a file that only this user may read; it is there, whole, once the block has ended.

    A link stays one: what it leads to is written. A device or a pipe is written as it is. Raises BadRequest if the file
    cannot be written; then what was there before is still there.
    """
    part: Path | None = None
    try:
        if file.exists() and not file.is_file():
            with file.open("wb") as out:
                yield out
            return
        place = file.resolve()
        # What a run shows is what customers wrote: a name that nobody has taken, for this user alone.
        descriptor, made = tempfile.mkstemp(prefix=f".{file.name[:50]}.", suffix=".part", dir=place.parent)
        part = Path(made)
        with os.fdopen(descriptor, "wb") as out:
            yield out
        part.replace(place)
    except OSError as error:
        raise _unwritable(file, error) from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def write(file: Path, data: bytes) -> None:
    """The whole file at once, as ``written``."""
    with written(file) as out:
        out.write(data)


def folder(path: Path) -> None:
    """Make a folder for this user alone, where it is not there yet. BadRequest."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(file: Path, why: OSError) -> BadRequest:
    return BadRequest(
        f"{file} cannot be written: {why.strerror or why}.",
        advice="Give another place.",
        key="file_unwritable",
        name=str(file),
        why=why,
    )
