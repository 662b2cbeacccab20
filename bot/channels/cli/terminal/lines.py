"""Reads lines that a person types, so that waiting for one can be cancelled."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TextIO

from bot.channels.cli.terminal.console import Console


def drop_typed(stdin: TextIO | None = None) -> None:
    """Discard text typed before a question was shown, because it is not an answer. A file is never discarded."""
    source = stdin or sys.stdin
    try:
        import termios

        if source.isatty():
            termios.tcflush(source.fileno(), termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):  # not such a terminal
        return


async def read_line(console: Console, stdin: TextIO | None = None) -> str | None:
    """Read a line from the terminal; None at its end. Can be cancelled, unlike a thread in ``input``.

    It takes no more than the line, so that further typed text stays.
    """
    source = stdin or sys.stdin
    console.print("> ", end="")
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(source.fileno(), ready.set)
    except (OSError, NotImplementedError, ValueError):
        return source.readline() or None  # a plain file is always ready
    line = bytearray()
    try:
        while not line.endswith(b"\n"):
            await ready.wait()
            ready.clear()
            byte = os.read(source.fileno(), 1)
            if not byte:
                break
            line += byte
    finally:
        loop.remove_reader(source.fileno())
    return line.decode(source.encoding or "utf-8", "replace") or None
