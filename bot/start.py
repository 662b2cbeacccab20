"""The entry point of ``phonedesk``. The program is loaded without garbage collection.

The objects that a command loads live to its end. Python's collector searches them again and again meanwhile, and once
more when the process ends: together that was four tenths of a start (2.4 s of the processor for ``serve``, 1.5 s
without it).
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

STOPPED = 130  # exit code after Ctrl-C
COLLECT_AFTER = 20_000  # new objects; Python's own 700 is met every few lines of a module


def main() -> None:
    """Run the command line. Ctrl-C ends it without a word, from the first moment on."""
    heard = signal.getsignal(signal.SIGINT)
    if heard is signal.default_int_handler:  # not if it is ignored, as in a background job
        signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))  # nothing is begun that could be left undone
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    atexit.register(gc.freeze)  # the remaining objects go with the process
    from bot.channels.cli.terminal.greeting import greet, withdraw

    greet(sys.argv[1:])

    def end(*_: object) -> None:
        withdraw()
        os._exit(STOPPED)

    if heard is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    from bot.channels.cli.main import app

    gc.freeze()
    try:
        signal.signal(signal.SIGINT, heard)
        app()
    except KeyboardInterrupt:
        sys.exit(STOPPED)
