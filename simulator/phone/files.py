"""The files of the virtual phone: a tree in memory, reached by the file service and the shell. Nothing is on the host.

Paths are absolute POSIX paths of the phone; ``..`` ends at the root. ``/storage/emulated/0`` is ``/sdcard``. Failures
are ``OSError`` with the errno that the phone's own system would give.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MAX_TREE_BYTES = 512 * 1024 * 1024
MAX_ENTRIES = 20_000
MAX_PATH_CHARACTERS = 1024

_FOLDERS = (
    "/",
    "/data",
    "/data/local",
    "/data/local/tmp",
    "/dev",
    "/sdcard",
    "/sdcard/Download",
    "/storage",
    "/system",
)
_WRITABLE = ("/sdcard", "/data/local/tmp")
_ALIASES = ("/storage/emulated/0", "/storage/self/primary", "/mnt/sdcard")
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_DEVICES = ("/dev/null", "/dev/tty")


@dataclass(frozen=True, slots=True)
class FileStat:
    """``mode`` with the file type, ``size`` in bytes, ``mtime`` in seconds since 1970."""

    mode: int
    size: int
    mtime: int

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    mode: int
    mtime: int


def refusal(code: int, path: str) -> OSError:
    """Return the error of this errno; its ``strerror`` is printed by a phone."""
    return OSError(code, os.strerror(code), path)


def normal(path: str, folder: str = "/") -> str:
    """Return ``path`` as seen from ``folder``: absolute, without ``.`` and ``..``, aliases of the shared storage
    resolved.
    """
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{folder}/{path}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in {"", "."}:
            parts.append(part)
    whole = "/" + "/".join(parts)
    for alias in _ALIASES:
        if whole == alias or whole.startswith(alias + "/"):
            return "/sdcard" + whole.removeprefix(alias)
    return whole


class FileTree:
    def __init__(self, *, clock: Callable[[], float] = time.time, max_bytes: int = MAX_TREE_BYTES) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._bytes = 0
        started = int(clock())
        self._folders = dict.fromkeys(_FOLDERS, started)  # path → time of making
        # A phone draws it at each start. Servers of one phone share their files.
        self._files: dict[str, _File] = {BOOT_ID: _File(f"{uuid.uuid4()}\n".encode(), 0o444, started)}

    def now(self) -> int:
        return int(self._clock())

    def stat(self, path: str) -> FileStat | None:
        """Return the status of a path; None if there is nothing."""
        path = normal(path)
        if path in self._folders:
            return FileStat(stat.S_IFDIR | 0o771, 4096, self._folders[path])
        if path in _DEVICES:
            return FileStat(stat.S_IFCHR | 0o666, 0, 0)
        found = self._files.get(path)
        return FileStat(found.mode, len(found.data), found.mtime) if found else None

    def read(self, path: str) -> bytes:
        path = normal(path)
        if path in self._folders:
            raise refusal(errno.EISDIR, path)
        if path in _DEVICES:
            return b""
        if path not in self._files:
            raise refusal(errno.ENOENT, path)
        return self._files[path].data

    def check_writable(self, path: str) -> None:
        """Raise OSError if a file cannot be written here."""
        path = normal(path)
        if path in _DEVICES:
            return
        if len(path) > MAX_PATH_CHARACTERS:
            raise refusal(errno.ENAMETOOLONG, path)
        if path in self._folders:
            raise refusal(errno.EISDIR, path)
        self._check_place(path)
        if path not in self._files and len(self._files) + len(self._folders) >= MAX_ENTRIES:
            raise refusal(errno.ENOSPC, path)

    def write(
        self, path: str, data: bytes, *, mode: int = 0o660, mtime: int | None = None, parents: bool = False
    ) -> None:
        """Make or replace a file; with ``parents`` the folders above it too."""
        path = normal(path)
        self.check_writable(path)
        if path in _DEVICES:
            return
        above = path.rpartition("/")[0]
        if above not in self._folders:
            if not parents:
                raise refusal(errno.ENOENT, path)
            self.make_folder(above, parents=True)
        before = len(self._files[path].data) if path in self._files else 0
        if not self.has_room(len(data) - before):
            raise refusal(errno.ENOSPC, path)
        self._bytes += len(data) - before
        self._files[path] = _File(data, stat.S_IFREG | (mode & 0o777), self.now() if mtime is None else mtime)

    def has_room(self, size: int) -> bool:
        return self._bytes + size <= self._max_bytes

    def append(self, path: str, data: bytes) -> None:
        self.write(path, (self.read(path) if self.stat(path) else b"") + data)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        path = normal(path)
        if path in self._folders:
            if not recursive:
                raise refusal(errno.EISDIR, path)
            self._check_place(path)
            for name in [p for p in self._files if p.startswith(path + "/")]:
                self._forget(name)
            for name in [p for p in self._folders if p == path or p.startswith(path + "/")]:
                del self._folders[name]
        elif path in self._files:
            self._forget(path)
        else:
            raise refusal(errno.EACCES if path in _DEVICES else errno.ENOENT, path)

    def make_folder(self, path: str, *, parents: bool = False) -> None:
        path = normal(path)
        if path in self._folders and parents:
            return
        if self.stat(path) is not None:
            raise refusal(errno.EEXIST, path)
        if len(path) > MAX_PATH_CHARACTERS:
            raise refusal(errno.ENAMETOOLONG, path)
        self._check_place(path)
        if len(self._files) + len(self._folders) >= MAX_ENTRIES:
            raise refusal(errno.ENOSPC, path)
        above = path.rpartition("/")[0] or "/"
        if above in self._files:
            raise refusal(errno.ENOTDIR, path)
        if above not in self._folders:
            if not parents:
                raise refusal(errno.ENOENT, path)
            self.make_folder(above, parents=True)
        self._folders[path] = self.now()

    def names(self, path: str) -> Sequence[tuple[str, FileStat]]:
        """Return the content of a folder, by name. Raises OSError if it is not a folder."""
        path = normal(path)
        if path not in self._folders:
            raise refusal(errno.ENOTDIR if self.stat(path) else errno.ENOENT, path)
        start = path.rstrip("/") + "/"
        found = []
        for whole in sorted({*self._folders, *self._files, *_DEVICES}):
            name = whole.removeprefix(start)
            state = self.stat(whole)
            if whole.startswith(start) and name and "/" not in name and state:
                found.append((name, state))
        return found

    def glob(self, pattern: str, folder: str = "/") -> Sequence[str]:
        """Return the whole paths that match; ``*`` and ``?`` stay within one name. Empty if none matches."""
        wanted = normal(pattern, folder).split("/")
        found = []
        for whole in sorted({*self._folders, *self._files}):
            parts = whole.split("/")
            if len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted)):
                found.append(whole)
        return found

    def _check_place(self, path: str) -> None:
        if any(path.startswith(place + "/") for place in _WRITABLE):
            return
        raise refusal(errno.EACCES if path.startswith(("/data", "/sdcard", "/storage")) else errno.EROFS, path)

    def _forget(self, path: str) -> None:
        self._bytes -= len(self._files.pop(path).data)
