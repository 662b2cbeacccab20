"""``phonedesk`` processes that begin with its modules loaded.

Loading them is most of what a command costs, two seconds of the processor for ``serve``. So one process of a test run
loads them once, and each command is a fork of it: a process of its own, with its own environment, folder and streams,
which signals reach and which can be killed. How a process starts from nothing is tried in ``tests/bot/test_start.py``,
``tests/bot/test_windows.py`` and wherever ``phonedesk`` is executed.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

# What serving and running load on their way.
LOADED = (
    *(
        "alembic.command",
        "mako.template",
        "anyio._backends._asyncio",
        "h11",
        "httpcore",
        "httpcore2",
        "truststore",
        "PIL.JpegImagePlugin",
        "PIL.PngImagePlugin",
    ),
    *("agent_core.model.prompt", "agent_core.perception.chat", "storage.knowledge_index"),
    *("bot.app.run_here", "bot.app.server", "bot.channels.telegram.adapter", "bot.channels.cli.main"),
    *("simulator.model.server", "simulator.phone.server", "bot.tools.eval.scenario"),
    *(
        f"bot.channels.cli.commands.{name}"
        for name in ("console", "demo", "devices", "doctor", "replay", "run", "serve", "servers", "sweep", "wrong")
    ),
    *(f"bot.channels.cli.terminal.{name}" for name in ("ask", "greeting", "live", "render")),
)
_BEGIN = "from tests.support.forked import fork_commands; fork_commands({})"
_END = b"\n"  # of a message; there is none in JSON


class ForkedProcess:
    """As ``asyncio.subprocess.Process``, of one command."""

    def __init__(self, stdout: asyncio.StreamReader, status: asyncio.StreamReader, pid: int) -> None:
        self.stdout, self.pid = stdout, pid
        self.returncode: int | None = None
        self._over = asyncio.create_task(self._reaped(status))

    async def _reaped(self, status: asyncio.StreamReader) -> None:
        self.returncode = int(await status.readline())

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        await asyncio.shield(self._over)
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, None]:
        out = await self.stdout.read()
        await self.wait()
        return out, None


async def start(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, errors: IO[bytes]
) -> ForkedProcess:
    """Begin ``phonedesk ARGUMENTS`` with nothing on its standard input; its standard error goes to ``errors``."""
    asked = json.dumps([[*arguments], dict(environment), str(folder)]).encode() + _END
    out, its_out = os.pipe()
    told, its_told = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        forker = _forker()
        sent = socket.send_fds(forker, [asked], [nothing, its_out, errors.fileno(), its_told])
        forker.sendall(asked[sent:])
    finally:
        for number in (nothing, its_out, its_told):
            os.close(number)
    stdout, status = await _reader(out), await _reader(told)
    pid = await status.readline()
    assert pid, "the process that forks has ended; what it said is in the output of this test"
    return ForkedProcess(stdout, status, int(pid))


async def _reader(number: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(number, "rb", 0)
    )
    return reader


_kept: list[socket.socket] = []


def _forker() -> socket.socket:
    """The process that forks, begun at the first command; it ends with this one."""
    if not _kept:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-X", "utf8", "-c", _BEGIN.format(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
            )
        _kept.append(ours)

        def end() -> None:
            ours.close()
            process.wait()

        atexit.register(end)
    return _kept[0]


def fork_commands(number: int) -> None:
    """Load the product; then begin a process for each message at the socket ``number``, until it is closed.

    A process has told its number and its exit code when it is over; those left at the end are killed.
    """
    from bot.start import COLLECT_AFTER

    gc.set_threshold(10 * COLLECT_AFTER, 10, 10)
    for name in LOADED:
        import_module(name)
    for lang in import_module("agent_core.texts").LANGUAGES:
        import_module("bot.channels.chat.texts").texts(lang)
    sys.path.remove("")  # a command finds its modules where they are installed, not in its folder
    gc.freeze()
    running: dict[int, int] = {}

    def reap(*_: Any) -> None:
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            told = running.pop(ended[0])
            os.write(told, b"%d\n" % os.waitstatus_to_exitcode(ended[1]))
            os.close(told)

    signal.signal(signal.SIGCHLD, reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the tests is for them; they close the socket
    with socket.socket(fileno=number) as commands:
        while (message := socket.recv_fds(commands, 1 << 16, 4))[0]:
            asked, streams = message[:2]
            while not asked.endswith(_END):
                asked += commands.recv(1 << 16)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # it is noted before it is reaped
            pid = os.fork()
            if not pid:
                commands.close()
                for told in running.values():
                    os.close(told)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
                _become(streams, *json.loads(asked))
                return
            running[pid] = streams.pop()
            os.write(running[pid], b"%d\n" % pid)
            for stream in streams:
                os.close(stream)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for pid in list(running):
        os.kill(pid, signal.SIGKILL)


def _become(streams: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
    """Be the process of a command to its end."""
    from bot.start import main

    for place, stream in enumerate(streams[:3]):
        os.dup2(stream, place)
    for stream in streams:
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["phonedesk", *arguments]
    _end(main)


def _end(main: Callable[[], None]) -> NoReturn:
    """Call ``main``, and end the process as Python ends it, but for the taking apart of all modules.

    That writes to every page that is shared with the process that forks: 0.2 s of the processor for each command.
    """
    code: object = None
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - told as Python tells it
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    with suppress(OSError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
