"""What makes the suite quick and changes nothing of what is tested."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import certifi
import hypothesis
import pytest

from agent_core.perception.ocr import use_threads
from bot.start import COLLECT_AFTER
from tests.support import tiers
from tests.support.days import day, due, examples

# A shell starts what runs in the background with SIGINT ignored, and programs pass that on to those they start: the
# tests that press Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Every database waits for the disk at each transaction, two milliseconds and more: in memory the tests do not, if there
# is room for all that they write and programs may be started there.
_MEMORY = Path("/dev/shm")
ROOM = 4 << 30  # bytes; all that a run wrote, with nothing removed, was 1.6 of it
if "TMPDIR" not in os.environ and _MEMORY.is_dir():
    _room = os.statvfs(_MEMORY)
    if _room.f_bavail * _room.f_frsize >= ROOM and not _room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # pytest has looked for it before

use_threads(1)  # the workers share few cores: a screen takes a third less of them

# How long an example, or the making of one, takes says how busy the machine is.
hypothesis.settings.register_profile(
    "shared", max_examples=examples(100), deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared")

# Every client of HTTP reads the authorities that it would trust, 17 ms for the whole bundle, and there are hundreds
# of them here. All of them speak to 127.0.0.1 without TLS: one authority is enough.
_END = "-----END CERTIFICATE-----\n"
_FOLDER = Path(tempfile.mkdtemp(prefix="phonedesk-tests-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
_authority = _FOLDER / "authority.pem"
_authority.write_text(Path(certifi.where()).read_text("ascii", "ignore").partition(_END)[0] + _END, "ascii")
os.environ["SSL_CERT_FILE"] = str(_authority)


def pytest_configure(config: pytest.Config) -> None:
    """The workers, which are started after this, keep the memory that they have: pictures of 10 MB come and go all the
    time, and fresh pages for each were four tenths of the system's own time where it was measured (glibc)."""
    config.addinivalue_line(
        "markers", "rotating(parts): each day another part of the cases; all come round in so many days"
    )
    for name, needs in tiers.MARKS.items():
        config.addinivalue_line("markers", f"{name}: {needs}")
    config.pluginmanager.register(tiers.Guard())
    if not hasattr(config, "workerinput"):
        os.environ.setdefault("TEST_DAY", str(datetime.now(UTC).timetuple().tm_yday))  # the same for every worker
        os.environ.setdefault("MALLOC_ARENA_MAX", "1")
        os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 30))
        os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 32))


gc.set_threshold(10 * COLLECT_AFTER, 10, 10)  # while the tests are collected: all that is made then stays


def pytest_collection_finish() -> None:
    """As ``phonedesk`` itself does (``bot.start``): what is loaded is not searched for garbage again and again."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    atexit.register(gc.freeze)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are not today's turn (``rotating(parts)``).

    If tests are chosen by marks, mark each by what it needs; each worker looks at all of them, which takes seconds.
    """
    if config.option.markexpr:
        for item in items:
            for tier in tiers.tiers_of(item) - {mark.name for mark in item.iter_markers()}:
                item.add_marker(tier)
    today = day()
    if today is None or any("[" in name for name in config.args):
        return
    marks = [item.get_closest_marker("rotating") for item in items]
    cases = [
        (item.nodeid.partition("[")[0], mark.kwargs["parts"] if mark else 1)
        for item, mark in zip(items, marks, strict=True)
    ]
    turns = list(zip(items, due(cases, today), strict=True))
    items[:] = [item for item, now in turns if now]
    config.hook.pytest_deselected(items=[item for item, now in turns if not now])


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Two more than cores: tests wait for adb, for pictures and for other processes. None: its own variable says.

    Measured on two cores: 9:00 minutes with one more, 8:27 with two. Units wait for nothing, and each worker loads all
    tests for itself.
    """
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if config.option.markexpr == tiers.UNIT else cores + 2
