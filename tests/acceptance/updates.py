"""Updates by the thousand, repeated, out of order and broken, while the server is killed again and again.

    .venv/bin/python -m tests.acceptance.updates --updates 10000 --restart-every 500 --seed 1 [--mode webhook] [--json]

``phonedesk serve`` as a process over one database, in front of it the stand-in Bot API (polling), or eight connections
that call the webhook as Telegram does: until it is answered with 200. People of all roles write commands, tap buttons
and answer questions; strangers, forwarded, edited and made-up things come between. The server gets ``kill -9`` at a
random instant after every so many deliveries, with work in its hands, and is started again. At the end everything is
counted in the database against what was sent. Exits with 1 where a command took effect twice, or not at all.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Literal

import aiohttp
import sqlalchemy as sa

from agent_core.session import Choice, Question, QuestionKind, Session
from bot.channels.telegram.adapter import SECRET_HEADER, WEBHOOK_PATH
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs.human import StoredHuman
from simulator.telegram import FakeUser
from simulator.telegram.world import Content, command_entities
from storage.engine import Database
from storage.people import People
from storage.runs import ACTIVE, NewRun, Runs
from storage.tables import audit, inbox, outbox, question_answers, questions, runs, schedules
from tests.acceptance.stage import Server, Stage, stage

Mode = Literal["polling", "webhook"]
Raw = dict[str, Any]
_TASK = re.compile(r"打开设置，第\d+次")
OPERATORS = 24  # those among them who are owners come first
OWNERS = 6
GROUPS = 4
NOWHERE = "nowhere"  # the phone that is meant: none, so that runs wait in the line and are stopped there
SECRET = "what-telegram-sends-along"
BLOCK = 40  # updates that come together: what is out of order is so within one
CONNECTIONS = 8
PATIENCE = 300.0  # seconds without any progress
SHOTS = 1200  # numbers of updates begin here
AT = "at 2099-01-01 09:00"


@dataclass
class Figures:
    """``sent`` and ``effects`` by kind of command; ``deliveries`` are all, with repetitions and what is broken."""

    mode: Mode
    deliveries: int = 0
    distinct: int = 0
    repeated: int = 0
    broken: int = 0
    tricks: int = 0
    restarts: int = 0
    seconds: float = 0.0
    sent: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    audited_again: int = 0  # audit rows of commands that were handled again after a kill
    replies: int = 0
    said_twice: int = 0  # a kill between Telegram's answer and our note of it
    problems: list[str] = field(default_factory=list)

    def data(self) -> Raw:
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**known, "sent": dict(self.sent), "effects": dict(self.effects), "seconds": round(self.seconds, 1)}

    def as_table(self) -> str:
        rows = [f"{kind:<12} sent {self.sent[kind]:>6}   took effect {self.effects[kind]:>6}" for kind in self.sent]
        return "\n".join(
            [
                *rows,
                f"{self.deliveries} deliveries by {self.mode} of {self.distinct} updates",
                f"{self.repeated} repeated, {self.broken} broken, {self.tricks} tricks",
                f"{self.restarts} kills; {self.seconds:.0f} s",
                f"{self.replies} replies, {self.said_twice} said twice; {self.audited_again} audit rows again",
                *(f"PROBLEM {problem}" for problem in self.problems),
            ]
        )


class Trial:
    """What is sent, and what is to come of it."""

    def __init__(self, on: Stage, db: Database, figures: Figures, seed: int) -> None:
        self.on = on
        self.db = db
        self.mode = figures.mode
        self.chance = random.Random(seed)
        self.figures = figures
        self.operators: list[FakeUser] = []
        self.viewer: FakeUser
        self.stranger: FakeUser
        self._runs: set[str] = set()  # tasks
        self._schedules: set[str] = set()
        self._entries: set[str] = set()
        self._asked: list[str] = []  # questions that nobody has answered yet
        self._answered: set[str] = set()
        self._stopped: set[str] = set()
        self._written: dict[tuple[int, int], str] = {}  # chat, message → kind: what is to be answered once
        self._tasks: dict[tuple[int, int], str] = {}  # the same of runs → what they do
        self._old: deque[Raw] = deque(maxlen=2000)
        self._ids = count(SHOTS)
        self._numbers: Iterator[int] = count(1)
        self._server: Server | None = None

    # -- the house

    async def open(self) -> None:
        self.groups = [self.on.telegram.group(-1001 - number, f"店铺{number}") for number in range(GROUPS)]
        for number in range(OPERATORS + 1):
            role = "owner" if number < OWNERS else "operator" if number < OPERATORS else "viewer"
            await People(self.db).add_code(f"CODE{number}", role=role, lifetime=timedelta(hours=1))
            await People(self.db).pair(f"CODE{number}", telegram_id=20_000 + number, name=f"P{number}", lang="zh")
        everybody = [self.on.telegram.user(20_000 + number, f"P{number}", "zh") for number in range(OPERATORS + 2)]
        *self.operators, self.viewer, self.stranger = everybody
        for user in everybody:
            user.chat.started = True

    async def up(self) -> Server:
        if self._server is None:
            mode = {
                "PHONEDESK_TELEGRAM__MODE": "webhook",
                "PHONEDESK_TELEGRAM__WEBHOOK_URL": "https://desk.example",
                "PHONEDESK_TELEGRAM__WEBHOOK_SECRET": SECRET,
            }
            self._server = await self.on.serve(
                PHONEDESK_KNOWLEDGE__SAMPLE="false",
                PHONEDESK_DEVICE__SERIAL=NOWHERE,
                PHONEDESK_DEVICE__CONNECT="[]",
                PHONEDESK_TELEGRAM__PER_MINUTE="0",
                **(mode if self.mode == "webhook" else {}),
            )
        return self._server

    async def kill(self) -> None:
        if self._server is not None:
            await asyncio.sleep(self.chance.uniform(0.0, 0.4))
            await self._server.kill()
            self._server = None
            self.figures.restarts += 1
            self.on.telegram.world.webhook.url = ""

    # -- what comes

    def _anybody(self) -> FakeUser:
        return self.chance.choice(self.operators)

    def _update(self, kind: str, value: Raw) -> Raw:
        self.figures.distinct += 1
        return {"update_id": next(self._ids), kind: value}

    def _message(self, who: FakeUser, text: str, *, grouped: bool = False, kind: str = "", **more: Any) -> Raw:
        """What somebody writes, standing in their chat. ``kind``: of what is to be answered once."""
        chat = self.chance.choice(self.groups) if grouped else who.chat
        content = Content(text).with_entities(command_entities(text))
        message = self.on.telegram.world.post(chat, who.member, content)
        if kind:
            self._written[chat.id, message.id] = kind
            self.figures.sent[kind] += 1
        return {**message.json(), **more}

    def _command(self, kind: str, text: str, known: set[str], what: str) -> Raw:
        known.add(what)
        grouped = self.chance.random() < 0.06
        who = self.chance.choice(self.operators[:OWNERS]) if kind == "schedule" else self._anybody()
        return self._update("message", self._message(who, text, grouped=grouped, kind=kind))

    def _run(self) -> Raw:
        task = f"打开设置，第{next(self._numbers)}次"
        made = self._command("run", f"/run {task}", self._runs, task)
        self._tasks[made["message"]["chat"]["id"], made["message"]["message_id"]] = task
        return made

    def _schedule(self) -> Raw:
        task = f"打开设置，定时{next(self._numbers)}"
        return self._command("schedule", f"/schedule add {AT} {task}", self._schedules, task)

    def _entry(self) -> Raw:
        question = f"第{next(self._numbers)}号货架放什么？"
        return self._command("entry", f"/kb add {question} | 放手机壳。", self._entries, question)

    def _look(self) -> Raw:
        return self._command("look", self.chance.choice(["/whoami", "/help", "/status@desk_bot"]), set(), "")

    def _tap(self, who: FakeUser, data: str) -> Raw:
        query_id = self.on.telegram.world.serial("query")
        self.on.telegram.world.toasts[query_id] = asyncio.get_running_loop().create_future()
        bot = self.on.telegram.world.bot.json()
        message = {"message_id": 7, "date": 1_700_000_000, "chat": who.chat.json(), "from": bot, "text": "…"}
        query = {"id": query_id, "from": who.member.json(), "chat_instance": "1", "message": message, "data": data}
        return self._update("callback_query", query)

    def _answers(self) -> list[Raw]:
        """Two people answer one question at the same time: whoever is first."""
        question = self._asked.pop()
        self._answered.add(question)
        self.figures.sent["answer"] += 1
        return [self._tap(who, f"q:{question}:{n}") for n, who in enumerate(self.chance.sample(self.operators, 2))]

    def _trick(self) -> Raw:
        """A command that is none: it must do nothing."""
        self.figures.tricks += 1
        who, text = self._anybody(), f"/run 不该有{next(self._numbers)}"
        origin = {"type": "user", "date": 1, "sender_user": self.operators[0].member.json()}
        other = {"id": 99, "is_bot": True, "first_name": "Other", "username": "other_bot"}
        own_name = {"first_name": self.operators[0].member.name}
        tricks: Sequence[Callable[[], Raw]] = (
            lambda: self._update("message", self._message(self.stranger, text)),
            lambda: self._update("message", self._message(self.viewer, text)),
            lambda: self._update("message", self._message(who, text, forward_origin=origin)),
            lambda: self._update("message", self._message(who, text, via_bot=other)),
            lambda: self._update("message", self._message(who, text, grouped=True, sender_chat=self.groups[0].json())),
            lambda: self._update("edited_message", self._message(who, text, edit_date=2)),
            lambda: self._update("message", self._message(who, text) | {"from": {**other, **own_name}}),
            lambda: self._update("channel_post", self._message(who, text)),
            lambda: self._update("business_message", self._message(who, text)),
            lambda: self._tap(self.stranger, f"q:{self._asked[-1] if self._asked else 'q1'}:0"),
            lambda: self._tap(self.viewer, "stop:none"),
            lambda: self._tap(who, "q:none:0"),
        )
        return self.chance.choice(tricks)()

    def _broken(self) -> Raw:
        """What is no update, though it has a number."""
        self.figures.broken += 1
        made = self._update("message", self._message(self._anybody(), f"/run 坏的{next(self._numbers)}"))
        message = made["message"]
        match self.chance.randrange(8):
            case 0:
                del message[self.chance.choice(["chat", "date", "message_id", "from"])]
            case 1:
                message[self.chance.choice(["chat", "from", "date", "entities"])] = self.chance.choice([7.5, "x", [1]])
            case 2:
                message["text"] = {"text": "/run x"}
            case 3:
                message["chat"] = {**message["chat"], "id": 2**70}
            case 4:
                message["from"] = {**message["from"], "id": str(message["from"]["id"])}
            case 5:
                made = {"update_id": made["update_id"], "message": "no message", "callback_query": [None]}
            case 6:
                made = {"update_id": made["update_id"], f"kind_{self.chance.randrange(9)}": {"from": message["from"]}}
            case _:
                message["text"] = "\ud83d\x00" + "长" * 5000
        return made

    async def _ask(self) -> None:
        """A run that waits for an answer, as a worker leaves it."""
        number = next(self._numbers)
        chat = {"channel": "telegram", "chat_id": str(self._anybody().id), "thread_id": "", "kind": "private"}
        run_id = await Runs(self.db).create(NewRun(f"QQ回复联系人{number}", NOWHERE, requested_by="1", chat=chat))
        assert run_id is not None
        await Runs(self.db).begin_attempt(run_id, 1, serial=NOWHERE)
        choices = [Choice(value="send", label="发送"), Choice(value="skip", label="跳过")]
        question = Question(id=f"q{number}", kind=QuestionKind.NO_SURE_ANSWER, text=f"问{number}", choices=choices)
        await StoredHuman(self.db, hold_seconds=0).ask(Session(run_id=run_id, task="QQ"), question)
        await Runs(self.db).park_attempt(run_id, 1)
        self._asked.append(question.id)

    async def stops(self) -> list[Raw]:
        """The Stop buttons of what stands in the line, each once."""
        asked = {*self._asked, *self._answered}  # a Stop would overtake an answer that is on its way
        waiting = {row.run_id for row in await self._rows(sa.select(questions).where(questions.c.id.in_(asked)))}
        going = [run.id for run in await Runs(self.db).find(statuses=ACTIVE, limit=500)]
        going = [run_id for run_id in going if run_id not in self._stopped | waiting]
        self._stopped.update(going)
        self.figures.sent["stop"] += len(going)
        return [self._tap(self._anybody(), f"stop:{run_id}") for run_id in going]

    async def block(self) -> list[Raw]:
        """Some new updates, some again, in an order of their own."""
        chance = self.chance
        new = await self.stops()
        while len(new) < BLOCK:
            roll = chance.random()
            if roll < 0.08:
                await self._ask()
                new += self._answers() if len(self._asked) > 3 else []
            elif roll < 0.5:
                new.append(chance.choice([self._run, self._schedule, self._entry, self._look])())
            else:
                new.append(self._trick() if roll < 0.7 else self._broken() if roll < 0.85 else self._look())
        again = chance.sample(new, len(new) // 4) + [old for old in self._old if chance.random() < 4 / len(self._old)]
        self.figures.repeated += len(again)
        self._old.extend(new)
        every = new + [copy.deepcopy(update) for update in again]
        chance.shuffle(every)
        return every

    # -- how it comes

    async def bring(self, updates: Sequence[Raw], *, kill: bool) -> None:
        """All of them are taken when this ends; the server is killed meanwhile where that is wished."""
        await self.up()
        self.figures.deliveries += len(updates)
        if self.mode == "polling":
            world = self.on.telegram.world
            for update in updates:
                world.push_raw(update)
            if kill:
                await self.kill()
                await self.up()
            await world.wait_until(lambda: not world.updates, PATIENCE)
            return
        calls = asyncio.gather(*(self._call(line) for line in _shared(updates, CONNECTIONS)))
        if kill:
            await self.kill()
            await self.up()
        await calls

    async def _call(self, updates: Sequence[Raw]) -> None:
        """One of Telegram's connections to the webhook: each update again until it is taken."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            for update in updates:
                while not await self._taken(session, update):
                    await asyncio.sleep(0.05)

    async def _taken(self, session: aiohttp.ClientSession, update: Raw) -> bool:
        if self._server is None:
            return False
        try:
            url, headers = f"{self._server.url}{WEBHOOK_PATH}", {SECRET_HEADER: SECRET}
            async with session.post(url, json=update, headers=headers) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    # -- what came of it

    async def _rows(self, statement: sa.Select[Any]) -> Sequence[Any]:
        async with self.db.read() as connection:
            found: Sequence[Any] = (await connection.execute(statement)).all()
            return found

    async def settled(self) -> None:
        """Everything is dealt with, and all that was to be said is said. TimeoutError where nothing goes on."""
        left, since = -1, time.monotonic()
        while True:
            waiting = len(await self._rows(sa.select(inbox.c.update_id).where(inbox.c.state == "new")))
            unsaid = len(await self._rows(sa.select(outbox.c.id).where(outbox.c.state == "pending")))
            if not waiting + unsaid:
                return
            if waiting + unsaid != left:
                left, since = waiting + unsaid, time.monotonic()
            if time.monotonic() - since > PATIENCE:
                raise TimeoutError(f"{waiting} updates and {unsaid} messages are left")
            await asyncio.sleep(0.1)

    async def count(self) -> None:
        """Compare what is in the database with what was sent."""
        made = Counter(row.task for row in await self._rows(sa.select(runs.c.task).where(runs.c.task.like("打开%"))))
        self._once("run", made, self._runs)
        planned = Counter(row.task for row in await self._rows(sa.select(schedules.c.task)))
        self._once("schedule", planned, self._schedules)
        entries = await EmbeddedKnowledge(self.db).list()
        self._once("entry", Counter(entry.question for entry in entries), self._entries)
        given = sa.select(question_answers.c.question_id).where(question_answers.c.late.is_(False))
        self._once("answer", Counter(row.question_id for row in await self._rows(given)), self._answered)
        ended = await self._rows(sa.select(runs.c.id, runs.c.status).where(runs.c.id.in_(self._stopped)))
        # The phone that is nowhere ends a run, too, after a while: one that was, in the moment of its Stop, is over.
        over = Counter(row.id for row in ended if row.status in {"stopped", "failed"})
        self._once("stop", over, self._stopped)
        await self._strange()
        await self._audited()
        self._said()

    def _once(self, kind: str, found: Counter[str], wanted: set[str]) -> None:
        self.figures.effects[kind] = found.total()
        for what, times in found.items():
            if what not in wanted:
                self.figures.problems.append(f"{kind}: nobody asked for {what!r}")
            elif times != 1:
                self.figures.problems.append(f"{kind}: {times} times {what!r}")
        lost = wanted - set(found)
        self.figures.problems.extend(f"{kind}: lost {what!r}" for what in sorted(lost))

    async def _strange(self) -> None:
        tricked = await self._rows(
            sa.select(runs.c.task).where(runs.c.task.like("%不该%") | runs.c.task.like("%坏的%"))
        )
        self.figures.problems.extend(f"got in: {row.task}" for row in tricked)
        people = await People(self.db).count()
        if people != OPERATORS + 1:
            self.figures.problems.append(f"{people} people are in")
        given_up = await self._rows(sa.select(inbox.c.update_id, inbox.c.error).where(inbox.c.state == "failed"))
        sound = [row for row in given_up if row.error.startswith(("OperationalError", "TimeoutError", "Timeout"))]
        self.figures.problems.extend(f"given up: {row.update_id} {row.error}" for row in sound)

    async def _audited(self) -> None:
        """Each run that was asked for stands in the log; again only where a kill came before it was noted as done."""
        allowed = sa.select(audit.c.detail).where(audit.c.command == "run", audit.c.allowed.is_(True))
        noted = Counter(str(row.detail.get("task")) for row in await self._rows(allowed))
        self.figures.audited_again = noted.total() - len(noted)
        self.figures.problems += [f"not in the audit log: {task!r}" for task in sorted(self._runs - set(noted))]
        if not await self._rows(sa.select(audit.c.id).where(audit.c.allowed.is_(False)).limit(1)):
            self.figures.problems.append("no refusal is in the audit log")

    def _said(self) -> None:
        """Every command has its answer, and one."""
        answered: Counter[tuple[int, int]] = Counter()
        cards: Counter[str] = Counter()
        for chat in (*(user.chat for user in self.operators), *self.groups):
            answered.update((chat.id, m.reply_to.id) for m in chat.from_bot if m.reply_to is not None)
            cards.update(task for m in chat.from_bot for task in _TASK.findall(m.words))
        # A run's card may be drawn from its events before the answer to the command is sent: it is the answer then.
        runs_of = {place: task for place, task in self._tasks.items() if not answered[place]}
        answered.update({place: cards[task] for place, task in runs_of.items()})
        looks = [place for place, kind in self._written.items() if kind == "look"]
        self.figures.effects["look"] = sum(1 for place in looks if answered[place])
        self.figures.replies = sum(answered[place] for place in self._written)
        self.figures.said_twice = sum(max(0, answered[place] - 1) for place in self._written)
        silent = [kind for place, kind in self._written.items() if not answered[place]]
        if silent:
            self.figures.problems.append(f"not answered: {dict(Counter(silent))}")
        # A kill finds one message a chat, at most, that Telegram has and we have not noted yet: it comes again.
        if self.figures.said_twice > (OPERATORS + GROUPS) * self.figures.restarts:
            self.figures.problems.append(f"said twice: {self.figures.said_twice}")


def _shared(updates: Sequence[Raw], among: int) -> list[Sequence[Raw]]:
    return [updates[start::among] for start in range(among)]


@asynccontextmanager
async def trial(folder: Path, figures: Figures, seed: int) -> AsyncIterator[Trial]:
    async with stage(folder) as on, on.database() as db:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        await db.migrate()
        made = Trial(on, db, figures, seed)
        await made.open()
        yield made


async def updates(
    folder: Path, wanted: int, *, restart_every: int, mode: Mode, seed: int, say: bool = False
) -> Figures:
    """About ``wanted`` deliveries, a kill after each ``restart_every``; what was seen."""
    figures = Figures(mode)
    try:
        await _tried(folder, wanted, restart_every, seed, figures, say=say)
    except AssertionError as error:  # the server's log has a traceback
        figures.problems.append(str(error)[-2000:])
    return figures


async def _tried(folder: Path, wanted: int, restart_every: int, seed: int, figures: Figures, *, say: bool) -> None:
    begun = time.monotonic()
    async with trial(folder, figures, seed) as world:
        next_kill = restart_every
        try:
            while figures.deliveries < wanted:
                block = await world.block()
                due = figures.deliveries + len(block) >= next_kill
                next_kill += restart_every if due else 0
                await world.bring(block, kill=due)
                if say and due:
                    sys.stderr.write(f"{figures.deliveries}/{wanted}, {time.monotonic() - begun:.0f} s\n")
            await world.bring(await world.stops(), kill=False)
            await world.settled()
        except (AssertionError, TimeoutError) as error:  # the server did not come up, or stands: what was seen counts
            figures.problems.append(f"ended by {error!r}")
        await world.count()
        figures.seconds = time.monotonic() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description="Updates by the thousand, with kills.")
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--restart-every", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["polling", "webhook"], default="polling")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="updates-"))
    figures = asyncio.run(
        updates(
            folder, options.updates, restart_every=options.restart_every, mode=options.mode, seed=options.seed, say=True
        )
    )
    said = json.dumps(figures.data(), ensure_ascii=False, indent=2) if options.json else figures.as_table()
    sys.stdout.write(said + "\n")
    if figures.problems:
        sys.stderr.write(f"What was left is in {folder}.\n")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
