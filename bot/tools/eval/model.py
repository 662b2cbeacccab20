"""The model's side of a case: an endpoint that follows the file or the demo's rules, and a record of its calls."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web
from PIL import Image

from agent_core.model.base import Completion, Message, Model, ModelWrapper, OnThinking
from agent_core.perception.ocr import OcrEngine
from bot.tools.eval.scenario import ChooserPart, ReplyPart
from simulator.model.reading import BadRequest, ChatRequest, View
from simulator.model.server import DemoModel
from simulator.phone.phone import VirtualPhone

HOST = "127.0.0.1"
MOST_BYTES = 16 * 2**20  # of a request
OVER = "the file's replies are over"


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
