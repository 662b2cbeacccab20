"""Run a program until standard input closes.

Standard input closes when the process that started this one ends, even by ``kill -9``.

It is started by its path in its own interpreter, so it imports nothing of ours. It is portable: Linux's parent-death
signal would do without this process, but needs code between fork and exec, and macOS and Windows have no such signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

STDIN = 0
END_SECONDS = 3.0  # from the request to end to the kill


def main(command: list[str]) -> int:
    """Run ``command`` and return its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - a list, from our own process

    def end() -> None:
        child.terminate()
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()

    def follow() -> None:
        while os.read(STDIN, 1):
            pass
        end()

    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    threading.Thread(target=follow, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # at once: a thread waits at standard input
