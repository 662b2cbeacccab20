"""A program at a terminal of its own: what a person types, and what they see."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
PATIENCE = 60.0


class Terminal:
    """Runs ``command`` at a pseudo-terminal. ``seen`` is all that was printed, without control sequences."""

    def __init__(self, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self._process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=dict(environment),
            pass_fds=[theirs],
            preexec_fn=partial(os.login_tty, theirs),  # noqa: PLW1509 - its controlling terminal, so that Ctrl-C is a signal
        )
        os.close(theirs)
        self._raw = b""
        self._read = 0  # of ``seen``, what was waited for already

    @property
    def seen(self) -> str:
        return _CONTROL.sub("", self._raw.decode("utf-8", "replace"))

    def waits(self, words: str, prompt: str = "> ") -> str:
        """Wait until ``words`` and then ``prompt`` were printed; what was since the last wait."""
        deadline = time.monotonic() + PATIENCE
        while (at := self.seen.find(words, self._read)) < 0 or (end := self.seen.find(prompt, at + len(words))) < 0:
            if not self._more(deadline):
                raise AssertionError(f"{words!r} was not shown:\n{self.seen[self._read :]}")
        said, self._read = self.seen[self._read : end + len(prompt)], end + len(prompt)
        return said

    def type(self, line: str) -> None:
        os.write(self._own, line.encode() + b"\n")

    def answers(self, words: str, line: str) -> None:
        """Type a line once ``words`` are asked."""
        self.waits(words)
        self.type(line)

    def interrupt(self) -> int:
        """Press Ctrl-C until the program has ended; return its exit code.

        Once is not enough: a signal between the prompt and the read after it wakes nobody until a key is pressed.
        """
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # it has ended
                os.write(self._own, b"\x03")
            pressed = time.monotonic()
            while self._more(min(pressed + 5.0, deadline)):
                pass
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(5)
        raise AssertionError(f"Ctrl-C did not end it:\n{self.seen[self._read :]}")

    def ended(self) -> int:
        """Wait for its end; return its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._more(deadline):
            pass
        return self._process.wait(60)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._own)

    def _more(self, deadline: float) -> bool:
        """Read on; False at the end, or when the patience is over."""
        ready, _, _ = select.select([self._own], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            piece = os.read(self._own, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self._raw += piece
        return bool(piece)
