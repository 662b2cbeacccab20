"""Files that a user asks for by name."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from bot.channels.cli.files import write
from bot.desk.actors import BadRequest


def test_a_new_file_is_for_this_user_alone(tmp_path: Path) -> None:
    write(tmp_path / "new.csv", b"new")
    assert (tmp_path / "new.csv").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o600


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_bytes(b"old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write(tmp_path / "link.csv", b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes() == b"new"


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"new")
    reader.join(timeout=10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", [".", "missing/new.csv"])
def test_what_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRequest, match="cannot be written"):
        write(tmp_path / name, b"new")
    assert list(tmp_path.iterdir()) == []
