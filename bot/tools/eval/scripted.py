"""The other sides of a case, as its file writes them: the model, which may follow the demo's rules instead, the
knowledge base, and the people.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web
from PIL import Image

from agent_core.errors import (
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.model.base import Completion, Message, Model, ModelWrapper, OnThinking
from agent_core.perception.ocr import OcrEngine
from agent_core.ports import KnowledgeBase, Record
from agent_core.session import Answer, Question, Session
from bot.channels.chat.answering import read_answer
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk
from bot.desk.views import QuestionView
from bot.tools.eval.scenario import ChooserPart, KnowledgeFaultsPart, PersonPart, ReplyPart
from scheduler.runs.human import StoredHuman
from simulator.model.reading import BadRequest, ChatRequest, View
from simulator.model.server import DemoModel
from simulator.phone.phone import VirtualPhone
from storage.engine import MISSED_SECONDS, Database

HOST = "127.0.0.1"
MOST_BYTES = 16 * 2**20  # of a request
HOLD_SECONDS = 30.0  # a question that will be answered holds the phone: longer than any answer takes
OVER = "the file's replies are over"
ERRORS: dict[str, type[KnowledgeError]] = {
    "unreachable": KnowledgeUnreachable,
    "quota": KnowledgeQuota,
    "auth": KnowledgeAuth,
    "not_found": KnowledgeNotFound,
    "not_ready": KnowledgeNotReady,
}


class Script:
    """The replies of one case, each given as often as it says."""

    def __init__(self, replies: Sequence[ReplyPart]) -> None:
        self._replies = list(replies)
        self._left = [reply.times for reply in self._replies]
        self._demo_after = not self._replies or self._replies[-1].then_demo

    def next(self, newest: str) -> str | None:
        """Return the raw reply to a request whose newest message is ``newest``; None means the demo model's rules.

        Raises BadRequest if nothing is left to say.
        """
        for index, reply in enumerate(self._replies):
            if (reply.times and not self._left[index]) or reply.when not in newest:
                continue
            self._left[index] -= 1
            return reply.raw
        if self._demo_after:
            return None
        raise BadRequest(OVER)


class Picks:
    """The text model of one case."""

    def __init__(self, part: ChooserPart) -> None:
        self._part = part
        self._asked = 0

    def next(self, data: str) -> str:
        """Return its reply to ``data``: candidates to pick from, or one record to check."""
        if "records" not in json.loads(data):
            return self._part.checked()
        self._asked += 1
        return self._part.answer(self._asked - 1)


class EvalModel(DemoModel):
    """An OpenAI-compatible endpoint for many cases: each has a base URL, under which its script answers."""

    def __init__(self, engine: OcrEngine | None) -> None:
        super().__init__(engine)
        self._scripts: dict[str, Script | Picks] = {}
        self._root = ""

    def add(self, replies: Sequence[ReplyPart]) -> str:
        """Add a case; return its base URL."""
        return self._add(Script(replies))

    def add_chooser(self, part: ChooserPart) -> str:
        """Add a case's text model; return its base URL."""
        return self._add(Picks(part))

    def _add(self, script: Script | Picks) -> str:
        name = f"case-{len(self._scripts) + 1}"
        self._scripts[name] = script
        return f"{self._root}/{name}/v1"

    async def reply(self, request: web.Request, asked: ChatRequest, view: View) -> str:
        script = self._scripts.get(request.match_info["case"])
        if script is None:
            raise BadRequest("there is no such case")
        if isinstance(script, Picks):
            return script.next(asked.messages[-1].text)
        # A request to read a picture is not a step of the run: the script has no words for it.
        said = None if view.instruction else script.next(asked.messages[-1].text)
        return await super().reply(request, asked, view) if said is None else said

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve on a free port of this machine."""
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post("/{case}/v1/chat/completions", self.complete)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, 0)
            await site.start()
            self._root = f"http://{HOST}:{site.port}"
            yield
        finally:
            await runner.cleanup()


class WatchedModel(ModelWrapper):
    """A model that tells the phone's world when it is asked, and counts. Seconds and tokens are sums."""

    def __init__(self, model: Model, phone: VirtualPhone) -> None:
        super().__init__(model)
        self.phone = phone
        self.calls = 0
        self.readings = 0  # pictures that it was given to read
        self.seconds = 0.0
        self.tokens_in = 0
        self.tokens_out = 0

    async def complete(self, messages: Sequence[Message], *, on_thinking: OnThinking | None = None) -> Completion:
        self.calls += 1
        self.phone.model_asked()
        with self._timed():
            completion = await super().complete(messages, on_thinking=on_thinking)
        return self._counted(completion)

    async def ask(self, messages: Sequence[Message]) -> Completion:
        self.calls += 1
        with self._timed():
            completion = await super().ask(messages)
        return self._counted(completion)

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        self.readings += 1
        with self._timed():
            return await super().transcribe(picture, instruction)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - begun

    def _counted(self, completion: Completion) -> Completion:
        self.tokens_in += completion.usage.tokens_in
        self.tokens_out += completion.usage.tokens_out
        return completion


class FaultyKnowledge:
    """A knowledge base, ``base``, with scripted faults in front of it."""

    def __init__(self, base: KnowledgeBase, faults: KnowledgeFaultsPart) -> None:
        self._base = base
        self._faults = faults
        self._failed = 0

    @property
    def name(self) -> str:
        return self._base.name

    async def retrieve(self, query: str) -> Sequence[Record]:
        faults = self._faults
        if faults.slow_seconds:
            await asyncio.sleep(faults.slow_seconds)
        if faults.fail and (not faults.times or self._failed < faults.times):
            self._failed += 1
            raise ERRORS[faults.fail](f"The scenario's knowledge base is {faults.fail}.")
        return await self._base.retrieve(query)

    async def close(self) -> None:
        await self._base.close()


class ScriptedPeople:
    """A ``Human`` of ``agent_core.ports``: a question that will be answered holds the phone; others park the run."""

    def __init__(self, db: Database, desk: Desk, parts: Sequence[PersonPart]) -> None:
        self._db = db
        self._desk = desk
        self._parts = list(parts)
        self._left = [part.times for part in self._parts]
        self._held = StoredHuman(db, hold_seconds=HOLD_SECONDS, attempt=1)
        self._parked = StoredHuman(db, hold_seconds=0, attempt=1)
        self._promised: dict[str, PersonPart] = {}  # by the question's id
        self.refused: list[str] = []  # answers that the desk did not accept

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        part = self._take(question)
        if part is None:
            return await self._parked.ask(session, question, picture=picture)
        self._promised[question.id] = part
        return await self._held.ask(session, question, picture=picture)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        working = asyncio.create_task(self._answer_all(), name="eval-people")
        try:
            yield
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    @property
    def unused(self) -> list[str]:
        """Answers that no question asked for."""
        return [
            f"{part.on.value}: {part.choice or part.text}"
            for part, left in zip(self._parts, self._left, strict=True)
            if left > 0
        ]

    def _take(self, question: Question) -> PersonPart | None:
        for index, part in enumerate(self._parts):
            if part.on is not question.kind or (part.times and not self._left[index]):
                continue
            self._left[index] -= 1
            if part.text:
                # Read as a channel reads it. An unacceptable answer, such as a number without a choice, leaves the
                # question open.
                said = read_answer(question, part.text)
                if said is not None:
                    return part.model_copy(update={"choice": said.choice, "text": said.text})
                if question.free_text:
                    continue
            elif question.accepts(Answer(choice=part.choice)):
                return part
            choices = ", ".join(choice.value for choice in question.choices)
            self.refused.append(f"{part.choice or part.text!r} is no answer to {part.on.value}: {choices}")
            return None
        return None

    async def _answer_all(self) -> None:
        while True:
            waiter = self._db.signal("questions").waiter()
            for view in await self._desk.questions.seen_by(None):
                part = self._promised.pop(view.id, None)
                if part is not None:
                    await self._answer(view, part)
            await waiter.wait(MISSED_SECONDS)

    async def _answer(self, view: QuestionView, part: PersonPart) -> None:
        actor = Actor(id="eval", channel="eval", user_id=part.by, name=part.by, lang=view.lang, role=Role.OPERATOR)
        await self._desk.questions.answer(actor, view.id, choice=part.choice, text=part.text)
