"""Reading lines that a person types, so that waiting for one can be cancelled."""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO

from rich.console import Console


async def read_line(console: Console, stdin: TextIO | None = None) -> str | None:
    """A line from the terminal, or None at its end. Can be cancelled, which a thread in ``input`` cannot."""
    source = stdin or sys.stdin
    console.print("> ", end="", markup=False)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(source.fileno(), ready.set)
    except (OSError, NotImplementedError, ValueError):
        return source.readline() or None  # a plain file is always ready
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source.fileno())
    return source.readline() or None
