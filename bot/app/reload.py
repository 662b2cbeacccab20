"""Taking over settings that change while a process runs. An active attempt keeps its settings.

The files are checked every second, and at once on SIGHUP. If the new settings are wrong, that is logged once, and the
old ones stay.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import structlog
from pydantic import BaseModel

from agent_core.errors import ConfigInvalid, PhonedeskError
from agent_core.ports import KnowledgeBase
from bot.app import logs
from bot.app.core import Core, build_reader
from bot.app.knowledge import build_knowledge
from bot.app.models import Close, build_chooser, build_model
from bot.app.settings.files import ENV_FILE, config_file
from bot.app.settings.layers import Settings
from bot.app.settings.names import SettingPath, names, value_at
from knowledge.factory import ChainKnowledge
from scheduler.jobs.alerts import Probe
from scheduler.jobs.periodic import Periodic
from storage.people import Audit
from storage.signals import Signal

LOOK_SECONDS = 1.0  # between looks; a file that is being written is read one look later

log = structlog.get_logger(__name__)

Read = Callable[[], Settings]
Mark = tuple[tuple[int, int, int], ...]


class Reloader:
    """The loop that takes over changed settings from ``start`` until ``stop``.

    read: returns the settings as they are written now, with those of the command line on top.
    problem: why the newest settings were refused; "" if they were not.
    """

    def __init__(self, core: Core, read: Read, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._core = core
        self._read = read
        self._asked = False
        self._hurry = Signal()
        self._loop = Periodic("settings-watch", self._turn, look_seconds, waiter=self._hurry.waiter)
        self._mark = self._seen = _mark()
        self._content = _content()
        self._refused = b""  # the content whose problem is logged already
        self._file = config_file().is_file()
        self._waiting: tuple[str, ...] = ()
        self._hears = False
        self.problem = ""

    async def start(self) -> None:
        """Begin to look at the files, the first time at once."""
        self._asked = True  # the settings may have changed since they were read
        await self._loop.start()
        if not sys.stderr.isatty():  # noqa: TID251 - only asked; in a terminal SIGHUP means that it was closed
            # Windows has no SIGHUP.
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._ask)
                self._hears = True

    async def stop(self) -> None:
        """Stop looking at the files and listening to SIGHUP."""
        if self._hears:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
            self._hears = False
        await self._loop.stop()

    @property
    def probe(self) -> Probe:
        """The check for alerts, which tell of a problem that lasts."""

        async def ask(_: bool) -> str:
            return self.problem

        return Probe(ask, "settings.")

    async def look(self, *, asked: bool = False) -> None:
        """Take over changes, once the files have stayed the same for one look. ``asked``: read them in any case."""
        seen, self._seen = self._seen, _mark()
        if not asked and (self._seen == self._mark or self._seen != seen):
            return  # nothing is new, or it is still being written
        self._mark = self._seen
        content, self._content = self._content, _content()
        if asked or self._content != content:
            await self._take_over()

    def _ask(self) -> None:
        self._asked = True
        self._hurry.notify()

    async def _turn(self) -> None:
        asked, self._asked = self._asked, False
        await self.look(asked=asked)

    async def _take_over(self) -> None:
        core = self._core
        try:
            self._still_there()
            new = self._read()
            logs.know(new.secrets())
            change = taken_over(core.settings, new)
            if change.live:
                await renew(core, change.settings)
        except PhonedeskError as error:
            if self.problem != error.message or self._refused != self._content:
                log.error("settings_refused", kind=error.kind, error=str(error))
            self.problem, self._refused = error.message, self._content
            return
        if self.problem:
            log.info("settings_usable_again")
        self.problem = ""
        if change.live:
            log.info("settings_taken_over", names=change.live)
            await Audit(core.db).write("", "settings", "settings", {"changed": list(change.live)}, allowed=True)
        if change.waiting and change.waiting != self._waiting:
            log.warning("settings_need_restart", names=change.waiting)
        self._waiting = change.waiting

    def _still_there(self) -> None:
        """Raise ConfigInvalid if the file has disappeared: somebody is replacing it, or it was lost."""
        file = config_file()
        self._file = self._file or file.is_file()
        if self._file and not file.is_file():
            raise ConfigInvalid(
                f"{file} is not there any more; its settings are kept.",
                advice="Put it back. To work without it, restart.",
                key="file_vanished",
                file=file,
            )


async def renew(core: Core, settings: Settings) -> None:
    """Use ``settings`` for all attempts that begin from now on.

    Raises ConfigError if a part cannot be built with them; then nothing has changed.
    """
    old = core.settings
    model, knowledge, chooser = core.model, core.knowledge, core.chooser
    reader = core.reader
    replaced: list[Close] = []
    async with AsyncExitStack() as built:  # closed again if a later part cannot be built
        if settings.knowledge != old.knowledge:
            knowledge = await build_knowledge(settings, core.store)
            for close in _closes(core, knowledge):
                built.push_async_callback(close)
            replaced += _closes(core, core.knowledge)
        if settings.model != old.model:
            model = build_model(settings, core.meter)
            built.push_async_callback(model.close)
            replaced.append(core.model.close)
        if settings.chooser != old.chooser or settings.model_proxy != old.model_proxy:
            chooser = build_chooser(settings, core.meter)
            if chooser is not None:
                built.push_async_callback(chooser.close)
            replaced += [core.chooser.close] if core.chooser is not None else []
        if model is not core.model or settings.observe != old.observe:
            reader = build_reader(settings, model)
        built.pop_all()
    core.settings, core.model, core.knowledge, core.chooser = settings, model, knowledge, chooser
    core.reader = reader
    if settings.log_level != old.log_level:
        logs.set_level(settings.log_level)
    for follow in core.followers:
        follow(settings)
    await core.client_rotation.replaced(replaced)


def _closes(core: Core, base: KnowledgeBase) -> Sequence[Close]:
    """Return the function that closes the knowledge base.

    The store of the shop's own entries stays open: others use it.
    """
    parts = base.providers if isinstance(base, ChainKnowledge) else (base,)
    return [part.close for part in parts if part is not core.store]


def _mark() -> Mark:
    return tuple(_mark_of(file) for file in (Path(ENV_FILE), config_file()))


def _mark_of(file: Path) -> tuple[int, int, int]:
    try:
        seen = file.stat()
    except OSError:
        return (0, 0, 0)
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)


def _content() -> bytes:
    digest = blake2b()
    for file in (Path(ENV_FILE), config_file()):
        with suppress(OSError):
            digest.update(file.read_bytes())
        digest.update(b"\0")
    return digest.digest()


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """The old settings with the new live ones.

    live: the keys that were taken over. waiting: those that need a restart.
    """

    settings: Settings
    live: tuple[str, ...]
    waiting: tuple[str, ...]


def taken_over(old: Settings, new: Settings) -> SettingsChange:
    """Take the new values of live settings into the old ones."""
    changed = [name for name in names() if value_at(old, name.path) != value_at(new, name.path)]
    merged: Any = old
    for name in changed:
        if name.is_live:
            merged = _with(merged, name.path, value_at(new, name.path))
    live = tuple(name.key for name in changed if name.is_live)
    return SettingsChange(merged, live, tuple(name.key for name in changed if not name.is_live))


def _with(settings: BaseModel, path: SettingPath, value: Any) -> BaseModel:
    if len(path) > 1:
        value = _with(getattr(settings, path[0]), path[1:], value)
    return settings.model_copy(update={path[0]: value})
