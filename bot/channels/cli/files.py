"""Writes files that a user names: readable by this user alone, complete or absent, never over another by mistake."""

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
    """Raise BadRequest if a file already exists, or its folder does not; called before any work is done for them."""
    for file in files:
        if file.is_dir() or (file.exists() and not force):
            raise BadRequest(
                f"{file} is there already.", advice="Give another name, or --force.", key="file_there", name=str(file)
            )
        if not file.absolute().parent.is_dir():
            raise _unwritable(file, OSError(ENOENT, "no such folder"))


@contextmanager
def written(file: Path) -> Iterator[BinaryIO]:
    """Open a file that only this user may read; it exists, complete, once the block has ended.

    A link stays one: its target is written. A device or a pipe is written as it is. Raises BadRequest if the file
    cannot be written; then an earlier file is still there.
    """
    part: Path | None = None
    try:
        if file.exists() and not file.is_file():
            with file.open("wb") as out:
                yield out
            return
        place = file.resolve()
        # A run holds customers' texts: use a new name, readable by this user only.
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
    """Write a whole file at once, as ``written`` does."""
    with written(file) as out:
        out.write(data)


def folder(path: Path) -> None:
    """Make a folder for this user alone, if it does not exist. Raises BadRequest."""
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
