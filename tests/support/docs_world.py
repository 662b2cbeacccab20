"""One world for every command of the docs: a phone, a model, knowledge services, and a desk with some history.

The servers run in a thread with a loop of its own; the commands are run by the test, in its process.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner

from agent_core.session import QuestionKind
from bot.channels.cli.main import app
from bot.desk.actors import Actor, Role
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from simulator.model.server import MODEL_NAME, DemoModel, start_demo_model
from simulator.phone.assembly import CHECKED
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.server import RunningPhone, serve
from storage.chats import TopicTable
from storage.engine import Database
from tests.support.adb import AdbServerProcess, adb_server
from tests.support.database import empty_sqlite
from tests.support.environment import without_settings
from tests.support.knowledge_servers import FakeDify, FakeRagflow, Item, KnowledgeServer
from tests.support.lab import QQ, on_a_small_phone
from tests.support.process import process_kept
from tests.support.proxies import free_port
from tests.support.stage import Stage
from tests.support.webhook_receiver import Receiver, receiver

T = TypeVar("T")

PATIENCE = 60.0  # seconds
CUSTOMERS = ("11", "12", "小王")
OWNER = 1  # the user id of the first person
GROUP = "-1001234567890"  # a chat that the bot is in
ANSWER = "七天内可退，请把订单号发给我"


def shop() -> Scenario:
    """Customers in QQ, one of whom waits for an answer, and a chat of the shop's own in WeChat."""
    told = [MessagePart(text="在吗", ago=9000)]
    asked = [*told, MessagePart(text="怎么退货", ago=240, unread=True)]
    qq = [ContactPart(name=name, number=f"2011{place:04}", history=told) for place, name in enumerate(CUSTOMERS)]
    qq[0] = qq[0].model_copy(update={"history": asked})
    wechat = [ContactPart(app="wechat", name="小号", history=told)]
    return on_a_small_phone(Scenario(contacts=[*qq, *wechat]))


class _Loop:
    """A thread with an event loop, in which servers live."""

    def __enter__(self) -> _Loop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._stack = AsyncExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def enter(self, context: Any) -> Any:
        """Enter an asynchronous context, which ends with this one."""
        return self.do(self._stack.enter_async_context(context))

    def ends(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._stack.push_async_callback(close)


@dataclass(frozen=True)
class Done:
    """A command that has ended; ``out`` is what it printed, on both streams."""

    code: int
    out: str


def call(arguments: Sequence[str], *, typed: str = "", **settings: str) -> Done:
    """Call ``phonedesk`` in this process, to its end."""
    done = CliRunner().invoke(app, list(arguments), input=typed, env=settings)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.output)


def served(arguments: Sequence[str], meanwhile: Callable[[], object], **settings: str) -> Done:
    """Call ``phonedesk`` in this process, and press Ctrl-C once it has said that it is up and ``meanwhile`` is over."""
    told: list[BaseException] = []
    over = threading.Event()
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)

    def watch() -> None:
        try:
            deadline = time.monotonic() + PATIENCE
            while not over.is_set() and not _is_up() and time.monotonic() < deadline:
                time.sleep(0.01)
            if not over.is_set():
                meanwhile()
        except BaseException as error:  # noqa: BLE001 - it is raised by the one who waits
            told.append(error)
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    watching = threading.Thread(target=watch)

    def started() -> Done:
        watching.start()
        try:
            return call(arguments, **settings)
        finally:
            over.set()

    try:
        done = started()
        watching.join()
    finally:
        signal.signal(signal.SIGINT, ours)
    if told:
        raise told[0]
    return done


def _is_up() -> bool:
    """Whether the command of this process has printed a line."""
    streams = (getattr(stream, "buffer", None) for stream in (sys.stdout, sys.stderr))
    return any(b"\n" in written.getvalue() for written in streams if isinstance(written, io.BytesIO))


@dataclass
class World:
    """See the module. ``key`` is an API key and ``run_id`` names a run, once a command has made one."""

    folder: Path
    adb: AdbServerProcess
    phone: RunningPhone
    model_url: str
    services: dict[str, KnowledgeServer]  # by the name of the provider
    receiver: Receiver
    web_port: int
    stage: Stage
    do: Callable[[Coroutine[Any, Any, Any]], Any]  # in the loop of the servers
    key: str = ""
    run_id: str = ""
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(100))

    def settings_of(self, provider: str) -> dict[str, str]:
        """The settings for one of the knowledge services; none for the desk's own entries."""
        service = self.services.get(provider)
        if service is None:
            return {}
        names = {"PROVIDER": provider, "BASE_URL": service.base_url, "DATASET_ID": service.dataset_id}
        return {f"PHONEDESK_KNOWLEDGE__{name}": value for name, value in {**names, "TOKEN": service.token}.items()}

    # -- what the docs' commands name

    def question(self) -> str:
        """Return the id of a question that is open."""

        async def asked() -> str:
            run = await self.stage.desk.runs.start(await self._somebody(), "QQ回复联系人12", chat=None)
            return await self.stage.ask(run.id, QuestionKind.NO_SURE_ANSWER, ("skip", "跳过"))

        return str(self.do(asked()))

    def person(self) -> str:
        """Return the number of somebody who is in."""
        return str(self.do(self._somebody()).id)

    def entry(self, *, live: bool) -> str:
        """Return the id of an entry of the knowledge base, or of one that waits for approval."""
        entry = Entry(question=f"问题{next(self._count)}", answer="答案", live=live)
        return str(self.do(EmbeddedKnowledge(self.stage.db).add(entry)).id)

    async def _somebody(self) -> Actor:
        return await self.stage.join(next(self._count), "小李")

    def run_with_steps(self) -> str:
        """Return the number of a run that has answered somebody."""
        runs = enumerate(self.do(self.stage.runs()), 1)
        return next(str(number) for number, run in runs if run.steps > 2 and run.status == "succeeded")

    def open_chat(self, name: str) -> None:
        """Have the phone's owner open a chat in QQ."""

        async def opened() -> None:
            await self.phone.phone.launch(QQ)
            row = next(node for node in await self.phone.phone.tree() if node.text == name)
            await self.phone.phone.tap(row.box.center.x, row.box.center.y)

        self.do(opened())

    def screen(self, picture: str, tree: str) -> None:
        """Write the phone's picture into ``PICTURE.png``, and its accessibility tree into ``TREE.xml``."""
        self.adb.connect_sync(self.phone.adb_port)
        on_it = ("-s", self.phone.address)
        self.adb.run_sync(*on_it, "shell", "uiautomator", "dump", "/sdcard/dump.xml")
        (self.folder / f"{picture}.png").write_bytes(self.adb.run_sync(*on_it, "exec-out", "screencap", "-p").out)
        (self.folder / f"{tree}.xml").write_bytes(self.adb.run_sync(*on_it, "exec-out", "cat", "/sdcard/dump.xml").out)


@contextmanager
def docs_world(folder: Path, environment: pytest.MonkeyPatch) -> Iterator[World]:
    """Start it all in ``folder``, where the commands are called then, with settings of their own."""
    with process_kept(), _Loop() as loop, adb_server() as adb:
        phone = loop.enter(serve(shop()))
        model = loop.do(start_demo_model(model=DemoModel(None)))
        loop.ends(model.close)
        items = [Item("怎么退货", ANSWER, 0.9)]
        services = {"dify": loop.enter(FakeDify(items)), "ragflow": loop.enter(FakeRagflow(items))}
        (folder / "data").mkdir()
        db = Database(loop.do(empty_sqlite(folder / "data" / "phonedesk.sqlite3")))
        loop.ends(db.close)
        stage = Stage(db)
        loop.do(stage.join(OWNER, "店主", Role.OWNER))
        loop.do(TopicTable(db).put(GROUP, "S1", thread_id="9", name="S1"))
        port = free_port()
        without_settings(environment, folder)
        for name, value in {
            "LANG": "en",
            "TIMEZONE": "Asia/Shanghai",
            "DEVICE__ADB_PORT": str(adb.port),
            "DEVICE__SERIAL": phone.address,
            "MODEL__BASE_URL": model.url,
            "MODEL__NAME": MODEL_NAME,
            "OBSERVE__OCR": "off",
            "RUN__CHECKED_VERSIONS": json.dumps(CHECKED),
            "WEB__PORT": str(port),
            "WEBHOOKS__ALLOW_PRIVATE": "127.0.0.1",
            "MCP__PORT": str(free_port()),
        }.items():
            environment.setenv(f"PHONEDESK_{name}", value)
        yield World(folder, adb, phone, model.url, services, loop.enter(receiver()), port, stage, loop.do)
