"""Measures a process's resources, and names the machine."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MIB = 2**20


class Say(Protocol):
    """Reports progress, by a key of the texts (``bench.KEY``) and its values."""

    def __call__(self, key: str, /, **values: object) -> None: ...


def say_nothing(key: str, /, **values: object) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The resources that a process uses.

    cpu: seconds of a core since the process began.
    resident, peak: MiB of memory, 0 on Windows.
    descriptors, threads: how many are open and alive; 0 if the system does not say.
    """

    cpu: float
    resident: float
    peak: float
    descriptors: int
    threads: int


def usage() -> ProcessUsage:
    """Measure this process without its children."""
    most = _peak()
    return ProcessUsage(time.process_time(), _resident() or most, most, _many("fd"), _many("task"))


def own_cpu() -> float:
    """Return the seconds of a core that this process and its children that ended have taken."""
    return time.process_time() + children_cpu()


def children_cpu() -> float:
    """Return the seconds of a core that the children of this process that ended have taken, and theirs."""
    times = os.times()
    return times.children_user + times.children_system


def busy_seconds() -> float:
    """Return the seconds that all cores were busy since the machine began; NaN if the system does not say.

    Time that the host took from a virtual machine is among it (``/proc/stat``, proc(5)).
    """
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except (OSError, ValueError):
        return math.nan
    user, nice, system, _idle, _waiting, hard, soft, stolen = map(int, fields)
    return (user + nice + system + hard + soft + stolen) / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _peak() -> float:
    try:
        import resource
    except ImportError:  # Windows has none
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MIB if sys.platform == "darwin" else peak / 1024  # bytes there, KiB elsewhere


def _resident() -> float:
    """Return the resident memory in MiB; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def _many(kind: str) -> int:
    """Count the entries of a folder of ``/proc/self``."""
    try:
        return sum(1 for _ in Path("/proc/self", kind).iterdir())
    except OSError:
        return 0


def machine() -> str:
    """Describe the machine: ``Linux x86_64, 2 cores of …, Python 3.11.2``."""
    name = _processor()
    python = platform.python_version()
    return f"{platform.system()} {platform.machine()}, {cores()} cores{f' ({name})' if name else ''}, Python {python}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
