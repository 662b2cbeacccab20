"""Reads what a person types at the terminal: a line, so that waiting for it can be cancelled, and forms."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from agent_core.errors import ConfigInvalid
from bot.channels.cli.terminal.console import Console, Text

Check = Callable[[str], str]  # returns the problem with a value, in the person's words; "" for none


def drop_typed(stdin: TextIO | None) -> None:
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


class TerminalForm:
    """A form that asks each question until its answer is usable. Raises EOFError at the end of the input."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style), soft_wrap=True)

    def choose(self, question: str, options: Sequence[str], *, usual: int, wrong: str) -> int:
        """Return the index of the chosen option.

        It is typed as its number or in its own words.

        usual: chosen by Enter.
        wrong: the reply to any other input.
        """
        named = [option.casefold() for option in options]
        self.say(f"\n{question}", "bold")
        for number, option in enumerate(options, 1):
            self.say(f"  {number}  {option}")
        while True:
            typed = self._line(f"[{usual + 1}] > ")
            if not typed:
                return usual
            if typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(options):
                return int(typed) - 1
            if typed.casefold() in named:
                return named.index(typed.casefold())
            self.say(wrong, "red")

    def text(self, question: str, *, usual: str = "", check: Check) -> str:
        """Return the typed text, or ``usual`` for Enter."""
        self.say(f"\n{question}", "bold")
        while True:
            typed = self._line(f"[{usual}] > " if usual else "> ") or usual
            if not (problem := check(typed)):
                return typed
            self.say(problem, "red")

    def secret(self, question: str, *, check: Check) -> str:
        """Return the typed text, without showing it; "" for Enter."""
        self.say(f"\n{question}", "bold")
        while True:
            typed = getpass.getpass("> ").strip()  # shows the prompt when typing is no longer echoed
            if not (problem := check(typed)):
                return typed
            self.say(problem, "red")

    def _line(self, prompt: str) -> str:
        try:
            return self._console.input(prompt, markup=False, emoji=False).strip()
        except UnicodeDecodeError as error:
            raise ConfigInvalid(f"The terminal's input is no UTF-8: {error.reason}.", key="input_no_text") from None
