"""The stage on which the product is run as its users run it: real processes, real HTTP, a real adb server.

The phone, Telegram and the model stand in the test's own process, so that a test sees at once what happened in them;
the product, ``phonedesk``, is a process of its own, told everything by its environment.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from simulator.model import rules
from simulator.model.reading import ChatRequest, read_request
from simulator.phone.assembly import CHECKED
from simulator.phone.phone import VirtualPhone
from simulator.phone.report import Report
from simulator.phone.scenario import Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import RunningPhone, serve
from simulator.telegram import Chat, FakeTelegram, FakeUser, Message
from storage.answers import AnswerRow, Answers
from storage.engine import Database
from storage.messages import Cards
from storage.runs import RunRow, Runs
from storage.tables import replies
from tests.support import forked
from tests.support.adb import AdbServerProcess, adb_server
from tests.support.forked import ForkedProcess
from tests.support.model_server import Reply, ScriptedModel, Text

PHONEDESK = Path(sys.executable).parent / "phonedesk"
TASK = "QQ回复联系人11"
QUICK_TASK = "打开设置"
QUESTION = "你好，请问几天能发货？"
ANSWER = "现货订单在付款后48小时内发出，一般当天16点前付款的当天就能寄出。"
SOURCE = "embedded:delivery-time"
OPEN_QUESTION = "充电宝能带上高铁吗？"  # the base has only something like it
CANDIDATE = "10000毫安和20000毫安的都低于100瓦时，机身有3C标志，可以随身带上飞机，不能托运。"
ZONE = "Asia/Shanghai"
WITH_OCR = {"PHONEDESK_OBSERVE__OCR": "auto"}  # as shipped; off elsewhere, since each process needs 2 s to load it
PATIENCE = 60.0  # seconds; machines may be slow, and nothing here waits longer than it has to

T = TypeVar("T")


def known_answers() -> set[str]:
    """Every answer of the sample shop's knowledge, word for word."""
    file = resources.files("knowledge").joinpath("sample", "phone_accessories.zh.jsonl")
    return {json.loads(line)["answer"] for line in file.read_text(encoding="utf-8").splitlines() if line.strip()}


def asked(text: str) -> Scenario:
    """The shipped world, in which contact 11 has asked this instead."""
    scenario = default_scenario()
    eleven = next(contact for contact in scenario.contacts if contact.key == "11")
    eleven.history[-1].text = text
    return scenario


async def until(met: Callable[[], T], *, seconds: float = PATIENCE, what: str = "") -> T:
    """What ``met`` gives once it is true; looked at every few milliseconds. TimeoutError otherwise."""
    try:
        async with asyncio.timeout(seconds):
            while not (value := met()):
                await asyncio.sleep(0.003)
            return value
    except TimeoutError:
        raise TimeoutError(f"not met within {seconds:g} s: {what or met}") from None


async def until_async(met: Callable[[], Awaitable[T | None]], *, seconds: float = PATIENCE, what: str = "") -> T:
    """The same for what has to be asked for."""
    try:
        async with asyncio.timeout(seconds):
            while not (value := await met()):
                await asyncio.sleep(0.05)
            return value
    except TimeoutError:
        raise TimeoutError(f"not met within {seconds:g} s: {what or met}") from None


class Brain:
    """The demo model's rules, with what a test puts in their place.

    ``instead`` maps a part of the call that the rules would make (``Launch``, ``GET_KNOWLEDGE_DATA``) to what is
    answered in its place, every time, or in turn by an iterator; the empty name stands for any call. ``calls`` are
    those the rules made.
    ``delay`` is the pause in seconds between two pieces of a reply, about fifteen of them.
    """

    def __init__(self) -> None:
        self.instead: dict[str, Reply | Iterator[Reply]] = {}
        self.calls: list[str] = []
        self.delay = 0.0

    def __call__(self, body: dict[str, Any]) -> Reply:
        move = rules.decide(read_request(ChatRequest.model_validate(body)))
        self.calls.append(move.call)
        for part, reply in self.instead.items():
            if part in move.call:
                return next(reply) if isinstance(reply, Iterator) else reply
        return Text(move.text, delay=self.delay)


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Running:
    """A ``phonedesk`` process that runs. Its standard error goes to ``log``, for whoever looks at a failed test."""

    def __init__(self, process: ForkedProcess, log: Path, all_running: list[Running]) -> None:
        self._process = process
        self.log = log
        all_running.append(self)

    async def line(self) -> str:
        """Its next line on standard output. AssertionError with its log where it has ended."""
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
        assert line, f"phonedesk ended with {await self._process.wait()}:\n{self.complaints()}"
        return line.decode().rstrip()

    def complaints(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self, *, seconds: float = PATIENCE) -> Done:
        """Wait for its end; its exit code and all it said."""
        async with asyncio.timeout(seconds):
            out, _ = await self._process.communicate()
        return Done(self._process.returncode or 0, out.decode(), self.complaints())

    async def kill(self) -> None:
        """``kill -9``."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()  # somebody else may be reading what it says


class Server(Running):
    """``phonedesk serve`` that is up at ``url``."""

    url = ""

    async def up(self) -> None:
        said = await self.line()
        assert "http://" in said, said
        self.url = "http" + said.partition("http")[2]

    async def pairing_code(self) -> str:
        """The code that it prints for the first person, read from its output as a person reads it."""
        while "/start " not in (said := await self.line()):  # that the bot is there comes before it
            pass
        return said.partition("/start ")[2].split()[0]

    async def end(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return (await self.ended(seconds=30)).code


@dataclass
class Stage:
    """Everything around the product. ``environment`` is what each ``phonedesk`` is given."""

    folder: Path
    phone: RunningPhone
    adb: AdbServerProcess
    telegram: FakeTelegram
    model: ScriptedModel
    brain: Brain
    environment: dict[str, str]
    started: list[Running] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    # -- the product

    async def start(self, *arguments: str, **settings: str) -> Running:
        """``phonedesk ARGUMENTS`` as a process; ``settings`` are further variables of its environment."""
        return Running(*await self._process(arguments, settings), self.started)

    async def serve(self, **settings: str) -> Server:
        """``phonedesk serve``, up."""
        server = Server(*await self._process(("serve",), settings), self.started)
        await server.up()
        return server

    async def _process(self, arguments: Sequence[str], settings: Mapping[str, str]) -> tuple[ForkedProcess, Path]:
        log = self.folder / f"phonedesk-{next(self._numbers)}.log"
        with log.open("wb") as errors:
            process = await forked.start(arguments, {**self.environment, **settings}, self.folder, errors)
        return process, log

    async def command(self, *arguments: str, **settings: str) -> Done:
        """``phonedesk ARGUMENTS`` to its end."""
        return await (await self.start(*arguments, **settings)).ended()

    async def close(self) -> None:
        for running in self.started:
            await running.kill()

    # -- people

    async def owner(self, server: Server, *, user_id: int = 11001, name: str = "店主") -> FakeUser:
        """A person who has paired with the code that the server printed; the first one is the owner."""
        user = self.telegram.user(user_id, name, "zh")
        await user.send(f"/start {await server.pairing_code()}")
        await self.sees(user, "配对成功")
        return user

    async def colleague(self, *, user_id: int = 11002, name: str = "同事") -> FakeUser:
        """One more person, paired with a code of ``phonedesk pair``."""
        code = (await self.command("pair", "--json")).json["code"]
        user = self.telegram.user(user_id, name, "zh")
        await user.send(f"/start {code}")
        await self.sees(user, "配对成功")
        return user

    async def sees(self, user: FakeUser, words: str, *, chat: Chat | None = None, count: int = 1) -> Message:
        """The newest message of the bot with these words, once there are ``count`` of them."""
        messages = await user.sees(
            lambda where: found if len(found := where.saying(words)) >= count else [], timeout=PATIENCE, chat=chat
        )
        return messages[-1]

    async def run(self, user: FakeUser, task: str = TASK, *, chat: Chat | None = None) -> Message:
        """Write ``/run TASK``; the run's card, which comes after it."""
        asked = await user.send(f"/run {task}", chat=chat)
        shown = task.rpartition(" ")[2]  # without the phone
        cards = await user.sees(
            lambda where: [m for m in where.saying(f"任务：{shown}") if m.id > asked.id], timeout=PATIENCE, chat=chat
        )
        return cards[0]

    async def shows(self, user: FakeUser, card: Message, words: str) -> str:
        """Wait until this very message shows ``words``; all that it shows."""
        await user.sees(lambda _: words in card.words, timeout=PATIENCE, chat=card.chat)
        return card.words

    # -- what happened

    @property
    def report(self) -> Report:
        """What really happened in the phone."""
        return self.phone.phone.report()

    @property
    def sent(self) -> dict[str, list[str]]:
        return self.report["sent"]

    def at_rest(self) -> None:
        """The phone is as it was found: its owner's keyboard, nothing of ours left in an input."""
        report = self.report
        assert report["drafts"] == {}
        assert report["input_method"].startswith("com.sohu.inputmethod.sogou"), report["input_method"]

    def untouched_by_words(self) -> None:
        """Nothing was typed into any chat, nothing left, nobody's AI was asked, nothing paid."""
        report = self.report
        assert report["sent"] == {}
        assert report["drafts"] == {}
        assert [typed for typed in report["typed"] if typed["field"] != "search"] == []
        assert report["ai_asked"] == []
        assert report["pay_taps"] == []

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        """The product's database, looked into from outside."""
        db = Database(f"sqlite:///{self.folder / 'data' / 'phonedesk.sqlite3'}")
        try:
            yield db
        finally:
            await db.close()

    async def runs(self) -> list[RunRow]:
        async with self.database() as db:
            return await Runs(db).find(limit=100)

    async def console_link(self, server: Server) -> str:
        """A log-in link as the terminal prints it, at the port that the server has chosen itself."""
        link = (await self.command("console", "--json")).json["link"]
        return f"{server.url}/console/login#{link.partition('#')[2]}"

    async def stored(self, card: Message) -> None:
        """Wait until the product has written down that ``card`` is the run's card.

        Killed before, it cannot know that Telegram had taken the card, and posts another one.
        """
        async with self.database() as db:
            cards = Cards(db)
            chat, number = str(card.chat.id), str(card.id)
            await until_async(lambda: cards.at("run", channel="telegram", chat_id=chat, message_id=number))

    async def answers(self) -> list[AnswerRow]:
        async with self.database() as db:
            return await Answers(db).find()

    async def ledger(self, run_id: str) -> Sequence[sa.Row[Any, Any]]:
        """``state`` and ``text`` of each reply of the run, as they are stored."""
        statement = sa.select(replies.c.state, replies.c.text).where(replies.c.run_id == run_id)
        async with self.database() as db, db.read() as connection:
            return (await connection.execute(statement)).all()


def environment(folder: Path, adb: AdbServerProcess, settings: Mapping[str, str]) -> dict[str, str]:
    """A person's environment without anything of ours, and the settings of the product."""
    names = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SSL_CERT_FILE")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    own = {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONUTF8": "1"}
    return {**kept, **own, "PHONEDESK_DEVICE__ADB_PORT": str(adb.port), **settings}


@asynccontextmanager
async def stage(
    folder: Path, scenario: Scenario | Path | None = None, *, own_phone: VirtualPhone | None = None
) -> AsyncIterator[Stage]:
    """A stage of its own: phone, adb server, Telegram, model. What still runs of the product at the end is killed.

    ``own_phone`` in place of one made of the scenario.
    """
    async with AsyncExitStack() as stack:
        phone = await stack.enter_async_context(serve(scenario, phone=own_phone))
        adb = await stack.enter_async_context(adb_server())
        telegram = await stack.enter_async_context(FakeTelegram())
        brain = Brain()
        model = await stack.enter_async_context(ScriptedModel([brain], repeat_last=True))
        settings = {
            "PHONEDESK_DATA_DIR": str(folder / "data"),
            "PHONEDESK_LANG": "zh",
            "PHONEDESK_KNOWLEDGE__SAMPLE": "true",
            "PHONEDESK_TIMEZONE": ZONE,
            "PHONEDESK_TELEGRAM__TOKEN": telegram.token,
            "PHONEDESK_TELEGRAM__API_BASE_URL": telegram.root,
            "PHONEDESK_MODEL__BASE_URL": model.url,
            "PHONEDESK_MODEL__NAME": "scripted",
            "PHONEDESK_DEVICE__SERIAL": phone.address,
            "PHONEDESK_DEVICE__CONNECT": json.dumps([phone.address]),
            "PHONEDESK_WEB__PORT": "0",
            "PHONEDESK_OBSERVE__OCR": "off",
            "PHONEDESK_RUN__CHECKED_VERSIONS": json.dumps(CHECKED),
        }
        made = Stage(folder, phone, adb, telegram, model, brain, environment(folder, adb, settings))
        stack.push_async_callback(made.close)
        yield made
        assert model.invalid == []  # every request was a chat completion
        for running in made.started:
            assert "Traceback" not in running.complaints(), running.complaints()
