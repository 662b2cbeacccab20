"""``kill -9`` at random instants across a reply, again and again, in one world that goes on.

    .venv/bin/python -m tests.acceptance.kills --kills 200 --seed 1 [--mode pictures] [--look LOOK,LOOK|all] [--json]

One phone behind one adb server, ``phonedesk serve`` as a process over one database. A customer writes, a run is put
into the line, the server is killed at an instant between the run's first and last moment, drawn evenly over what such
a run usually takes, and started again. Once the run is over: has the customer every answer exactly once and in full, is
the phone as it was found and free, does the ledger say what happened? Exits with 1 where anything is not so.
With several looks the kills are shared out: each look has a world of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from agent_core.ports import LedgerRow, ReplyState
from agent_core.reply.planning import in_parts
from agent_core.session import QuestionKind
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from scheduler.runs.service import RunService
from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS, Look
from simulator.phone.report import MessageReport
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.world import Side
from storage.engine import Database
from storage.leases import Leases
from storage.ledger import StoredLedger
from storage.questions import Questions
from storage.runs import WAITING, RunRow
from tests.acceptance.stage import WITH_OCR, Server, Stage, stage

Mode = Literal["tree", "pictures"]
TASKS = {"qq": "QQ回复联系人", "wechat": "微信回复联系人"}
CONTACTS = ("11", "110", "12", "21")
PART_CHARS = 120
PATIENCE = 300.0  # seconds for a run to be over: only what hangs takes so long
LOOK_SECONDS = 0.01
RECENT = 12  # so many of the newest questions are not asked again
MEASURE_EVERY = 9  # kills, after which it is measured anew how long a reply of each kind takes
ADB_KEYBOARD = "com.android.adbkeyboard"

GOODS = ("蓝牙耳机", "充电宝", "手机壳", "钢化膜", "数据线", "车载支架", "无线鼠标", "音箱", "手表带", "读卡器")
ASKED = {
    "{}几天能发货？": "{}付款后48小时内发出，一般两三天送到。",
    "{}能开发票吗？": "{}可以开电子发票，下单时备注抬头就行。",
    "{}保修多久？": "{}保修一年，人为损坏的除外。",
    "{}有黑色的吗？": "{}有黑色和白色，页面上选颜色就可以。",
    "{}能便宜一点吗？": "{}已经是活动价，满两件再减五元。",
}
STEP = "第{}步，把{}和盒子一起放好，拍一张照片，在订单里选择申请售后，再写上遇到的问题和买的时间。"
LONG = "{}坏了怎么退换？"
OPEN = "{}能带上高铁吗？"
WRITTEN = "{}可以带上车，放在随身的包里就好，编号{}。"


class Kind(StrEnum):
    ONE = "one question"
    TWO = "two questions"
    LONG = "a long answer"
    PERSON = "a person writes"


@dataclass(frozen=True)
class Reply:
    """What a customer writes, and what they are to get: ``texts`` as they stand in the chat, ``questions`` rows."""

    kind: Kind
    contact: str
    messages: Sequence[str]
    texts: Sequence[str]
    written: str = ""


class Shop:
    """Questions of customers in the app of ``look``, drawn by ``chance``, and the entries that answer them."""

    def __init__(self, chance: random.Random, look: Look) -> None:
        self._chance = chance
        self._look = look
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._numbers: Iterator[int] = iter(range(1, 10_000))
        self._answers = {q.format(thing): a.format(thing) for thing in GOODS for q, a in ASKED.items()}
        self._long = {
            LONG.format(thing): "".join(STEP.format(n, thing) for n in range(1, 5 + 2 * (i % 3)))
            for i, thing in enumerate(GOODS)
        }

    @property
    def entries(self) -> list[Entry]:
        known = {**self._answers, **self._long}
        return [Entry(id=f"k{n}", question=q, answer=a) for n, (q, a) in enumerate(known.items(), start=1)]

    @property
    def world(self) -> Scenario:
        said = [MessagePart(text="在吗", ago=7200), MessagePart(side=Side.ME, text="在的，您说。", ago=7100)]
        contacts = [ContactPart(name=name, app=self._look.app, history=said) for name in CONTACTS]
        return Scenario(look=self._look.key, contacts=contacts)

    def key(self, contact: str) -> str:
        """The contact as the phone's report names it."""
        return ContactPart(name=contact, app=self._look.app).key

    def reply(self, kind: Kind) -> Reply:
        contact = self._chance.choice(CONTACTS)
        if kind is Kind.PERSON:
            thing = self._chance.choice(GOODS)
            text = WRITTEN.format(thing, next(self._numbers))
            return Reply(kind, contact, [OPEN.format(thing)], [text], text)
        known = self._long if kind is Kind.LONG else self._answers
        asked = self._drawn(known, 2 if kind is Kind.TWO else 1)
        texts = [part for question in asked for part in in_parts(known[question], PART_CHARS) or [known[question]]]
        return Reply(kind, contact, asked, texts)

    def _drawn(self, known: dict[str, str], count: int) -> list[str]:
        fresh = [question for question in known if question not in self._recent]
        asked = self._chance.sample(fresh or list(known), count)
        self._recent.extend(asked)
        return asked


@dataclass
class Figures:
    """What was seen. ``hits``: at which state of the ledger the kills came, by the kind of reply."""

    kills: int = 0
    doubles: int = 0
    lost: int = 0
    asked: int = 0  # whether a reply had arrived
    hits: Counter[tuple[str, str]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    usual: dict[str, float] = field(default_factory=dict)

    def as_data(self) -> dict[str, object]:
        return {
            "kills": self.kills,
            "doubles": self.doubles,
            "lost": self.lost,
            "delivery_unknown": self.asked,
            "seconds": round(self.seconds, 1),
            "seconds_a_kill": round(self.seconds / max(1, self.kills), 2),
            "usual_seconds": {kind: round(value, 2) for kind, value in self.usual.items()},
            "hits": [{"kind": k, "state": s, "count": n} for (k, s), n in sorted(self.hits.items())],
            "problems": self.problems,
        }

    def as_table(self) -> str:
        states = sorted({state for _, state in self.hits}, key=_place)
        rows = [["the kill came", *(kind.value for kind in Kind), "all"]]
        for state in states:
            counts = [self.hits[kind.value, state] for kind in Kind]
            rows.append([state, *map(str, counts), str(sum(counts))])
        rows.append(["all", *(str(sum(n for (k, _), n in self.hits.items() if k == kind)) for kind in Kind), ""])
        rows[-1][-1] = str(sum(self.hits.values()))
        rows.append(["usual length, s", *(f"{self.usual.get(kind.value, 0):.2f}" for kind in Kind), ""])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        each = self.seconds / max(1, self.kills)
        lines += [
            "",
            f"{self.kills} kills, {each:.1f} s each",
            f"{self.doubles} answers doubled, {self.lost} lost",
            f"{self.asked} times asked whether a reply had arrived",
            *(f"PROBLEM {problem}" for problem in self.problems),
        ]
        return "\n".join(lines)


STATES = (
    "before the question was read",
    "planned",
    "a person was asked",
    "typing",
    "sending, not left",
    "sending, left",
    "between two parts",
    "between two answers",
    "unknown",
    "sent, not over",
    "over",
)


def _place(state: str) -> int:
    return STATES.index(state)


class Killing:
    """Replies in one world, each with a kill in it."""

    def __init__(self, on: Stage, db: Database, mode: Mode, seed: int, look: Look) -> None:
        self._on = on
        self._db = db
        self._service = RunService(db)
        self._questions = Questions(db)
        self._ledger = StoredLedger(db)
        self._chance = random.Random(seed)
        self._look = look
        self.shop = Shop(self._chance, look)
        self._mode = mode
        self._usual: dict[Kind, float] = {}
        self._server: Server | None = None
        self.figures = Figures()

    async def kill(self, kind: Kind) -> None:
        """One reply of this kind, killed once."""
        figures, server = self.figures, await self._up()
        if not self._usual:
            await self._measured(kind)  # the first one of all opens the app, too
        if kind not in self._usual or figures.kills % MEASURE_EVERY == 0:
            self._usual[kind] = await self._measured(kind)
            figures.usual[kind.value] = self._usual[kind]
        reply, before, run = await self._asked(kind)
        instant = time.monotonic() + self._chance.uniform(0.0, self._usual[kind])
        run = await self._followed(run, reply, before, until=instant)
        await server.kill()
        self._server = None
        state = await self._state(run, reply, before)
        figures.hits[kind.value, state] += 1
        figures.kills += 1
        await self._up()
        await self._over(run, reply, before, f"kill {figures.kills} ({kind}, {state}, {server.log.name})")

    async def _measured(self, kind: Kind) -> float:
        """How long such a reply takes that nobody kills."""
        reply, before, run = await self._asked(kind)
        begun = time.monotonic()
        run = await self._over(run, reply, before, f"no kill ({kind})")
        return time.monotonic() - begun

    async def _up(self) -> Server:
        if self._server is None:
            seen = WITH_OCR if self._mode == "pictures" or self._look.hidden_tree else {}
            if self._mode == "pictures":
                seen = seen | {"PHONEDESK_OBSERVE__TREE": "off"}
            self._server = await self._on.serve(
                PHONEDESK_TELEGRAM__TOKEN="",
                PHONEDESK_KNOWLEDGE__SAMPLE="false",
                PHONEDESK_RUN__PART_CHARS=str(PART_CHARS),
                **seen,
            )
        return self._server

    async def _asked(self, kind: Kind) -> tuple[Reply, int, RunRow]:
        """A customer has written, and the run that answers is at work. The second is what stood in the chat before."""
        reply = self.shop.reply(kind)
        before = len(self._chat(reply.contact))
        for message in reply.messages:
            self._on.phone.phone.receive(self.shop.key(reply.contact), message)
        task = f"{TASKS[self._look.app]}{reply.contact}"
        run_id = await self._service.submit(task, serial=self._on.phone.address)
        async with asyncio.timeout(PATIENCE):
            while (run := await self._service.get(run_id)) is None or run.started_at is None:
                await asyncio.sleep(LOOK_SECONDS)
        return reply, before, run

    async def _followed(self, run: RunRow, reply: Reply, before: int, *, until: float) -> RunRow:
        """The run at ``until``, or when it is over; people answer meanwhile."""
        while time.monotonic() < until and not run.final:
            await self._answered(run, reply, before)
            await asyncio.sleep(LOOK_SECONDS)
            run = await self._service.get(run.id) or run
        return run

    async def _answered(self, run: RunRow, reply: Reply, before: int) -> None:
        """A person writes the answer that is missing, and says truthfully whether a reply stands in the chat."""
        for question in await self._questions.find(run_id=run.id, state="open"):
            if question.kind == QuestionKind.NO_SURE_ANSWER and reply.written:
                answer = {"text": reply.written}
            elif question.kind == QuestionKind.DELIVERY_UNKNOWN:
                self.figures.asked += 1
                arrived = question.payload["data"]["answer"] in self._ours(reply.contact, before)
                answer = {"choice": "arrived" if arrived else "not_arrived"}
            else:
                self.figures.problems.append(f"{question.kind} was asked: {run.id}, {question.payload['text']!r}")
                await self._service.request_stop(run.id)
                continue
            await self._service.answer(question.id, answer, by="店长")

    # -- what is seen

    def _chat(self, contact: str) -> list[MessageReport]:
        return self._on.report["chats"][self.shop.key(contact)]

    def _ours(self, contact: str, before: int) -> list[str]:
        """What left from the phone since."""
        return [message["text"] for message in self._chat(contact)[before:] if message["from_here"]]

    async def _rows(self, run: RunRow, contact: str) -> list[LedgerRow]:
        rows = await self._ledger.recent(self._on.phone.address, self._look.app, contact)
        return [row for row in reversed(rows) if row.run_id == run.id]

    async def _state(self, run: RunRow, reply: Reply, before: int) -> str:
        """What a kill hit: the furthest row that is not done, and whether its text has left."""
        run = await self._service.get(run.id) or run
        rows = await self._rows(run, reply.contact)
        if run.final:
            return "over"
        if not rows:
            return "before the question was read"
        left = [row for row in rows if row.state is not ReplyState.SENT]
        if not left:
            return "sent, not over"
        row = next((row for row in left if row.state is not ReplyState.PLANNED), left[0])
        if row.state is ReplyState.SENDING:
            here = self._ours(reply.contact, before)
            text = row.parts[row.part] if row.parts else row.text
            return "sending, left" if text in here else "sending, not left"
        if row.state is ReplyState.PLANNED and row.part:
            return "between two parts"
        if row.state is ReplyState.PLANNED and len(left) < len(rows):
            return "between two answers"
        if row.state is ReplyState.PLANNED and (run.status == WAITING or await self._questions.find(run_id=run.id)):
            return "a person was asked" if not row.text else "planned"
        return row.state.value if row.state.value in STATES else "unknown"

    async def _over(self, run: RunRow, reply: Reply, before: int, name: str) -> RunRow:
        """The run at its end, and everything looked at."""
        run = await self._followed(run, reply, before, until=time.monotonic() + PATIENCE)
        wrong = [problem async for problem in self._wrong(run, reply, before)]
        if wrong:
            asked = " ".join(reply.messages)
            self.figures.problems.append(f"{name}: run {run.id} for {reply.contact}, {asked!r}: {'; '.join(wrong)}")
        return run

    async def _wrong(self, run: RunRow, reply: Reply, before: int) -> AsyncIterator[str]:
        got, wanted = Counter(self._ours(reply.contact, before)), Counter(reply.texts)
        if doubled := got - wanted:
            self.figures.doubles += doubled.total()
            yield f"doubled {dict(doubled)}"
        if lost := wanted - got:
            self.figures.lost += lost.total()
            yield f"lost {dict(lost)}"
        if not doubled and not lost and reply.kind is Kind.LONG and self._ours(reply.contact, before) != reply.texts:
            yield "parts in another order"
        if run.status != "succeeded":
            yield f"{run.status}: {run.message}"
        states = [row.state for row in await self._rows(run, reply.contact)]
        if states != [ReplyState.SENT] * len(reply.messages):
            yield f"the ledger says {states}"
        await self._released()
        if held := [lease.serial for lease in await Leases(self._db).held()]:
            yield f"still held: {held}"
        if still := await self._questions.find(run_id=run.id, state="open"):
            yield f"still open: {[question.kind for question in still]}"
        report = self._on.report
        if report["drafts"]:
            yield f"drafts {report['drafts']}"
        if ADB_KEYBOARD in report["input_method"]:
            yield "the keyboard is still ours"
        if strange := [key for _, key in self._on.phone.phone.settings if key.startswith("phonedesk")]:
            yield f"settings are left: {strange}"

    async def _released(self) -> None:
        """The lease goes directly after the run's end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                while await Leases(self._db).held():
                    await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def killing(folder: Path, *, mode: Mode, seed: int, look: Look) -> AsyncIterator[Killing]:
    """A world of its own in ``folder``; the phone is learnt to send by Enter if its app never shows a Send."""
    shop = Shop(random.Random(seed), look)
    async with stage(folder, shop.world) as on, on.database() as db:
        await db.migrate()
        await EmbeddedKnowledge(db).add_all(shop.entries)
        if look.enter_sends:
            await StoredLedger(db).learn(on.phone.address, look.learnt())
        yield Killing(on, db, mode, seed, look)


async def kills(
    folder: Path,
    count: int,
    *,
    mode: Mode,
    seed: int,
    look: str,
    kinds: Sequence[Kind] = tuple(Kind),
    say: bool = False,
) -> Figures:
    """Kill ``count`` times in one look, these kinds of replies in turn."""
    begun = time.monotonic()
    async with killing(folder, mode=mode, seed=seed, look=LOOKS[look]) as world:
        figures = world.figures
        for number in range(count):
            try:
                await world.kill(kinds[number % len(kinds)])
            except (AssertionError, TimeoutError) as error:  # the server did not come up: what was seen counts
                figures.problems.append(f"ended by {error!r}")
                break
            figures.seconds = time.monotonic() - begun
            if say:
                told = f"{look}: {figures.kills}/{count}, {figures.seconds:.0f} s, {len(figures.problems)} problems"
                sys.stderr.write(told + "\n")
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill the server at random instants across a reply.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["tree", "pictures"], default="tree")
    parser.add_argument("--look", default=DEFAULT_LOOKS["qq"], help="Looks of QQ and WeChat, with commas; or all.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    options = parser.parse_args()
    looks = list(LOOKS) if options.look == "all" else options.look.split(",")
    if unknown := [look for look in looks if look not in LOOKS]:
        parser.error(f"there is no look {unknown[0]!r}; there are {', '.join(LOOKS)}")
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    found: dict[str, Figures] = {}
    for number, look in enumerate(looks):
        share = options.kills // len(looks) + (number < options.kills % len(looks))
        found[look] = asyncio.run(
            kills(folder / look, share, mode=options.mode, seed=options.seed + number, look=look, say=True)
        )
    if options.json:
        told = json.dumps({look: figures.as_data() for look, figures in found.items()}, ensure_ascii=False, indent=2)
    else:
        told = "\n\n".join(f"{look}\n{figures.as_table()}" for look, figures in found.items())
    sys.stdout.write(told + "\n")
    if any(figures.problems for figures in found.values()):
        sys.stderr.write(f"What was left is in {folder}.\n")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
