"""Where ``phonedesk`` begins: the program is loaded without being searched for garbage.

What a command loads stays to its end. Python's collector looks through it again and again meanwhile, and once more when
the process ends: together that was four tenths of a start (2.4 s of the processor for ``serve``, 1.5 s without it).
"""

from __future__ import annotations

import atexit
import gc

COLLECT_AFTER = 20_000  # new objects; Python's own 700 is met every few lines of a module


def main() -> None:
    """The command line."""
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    atexit.register(gc.freeze)  # what is left then goes with the process
    from bot.cli import app

    gc.freeze()
    app()
