"""The demo model: an OpenAI-compatible server on this machine that answers by rules, from the request alone."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from agent_core.model.usage import text_tokens
from agent_core.perception.ocr import OcrEngine
from simulator.model import rules
from simulator.model.reading import BadRequest, ChatRequest, View, read_picture, read_request
from simulator.model.transcription import transcribe

MODEL_NAME = "phonedesk-demo"
CHUNK = 12  # characters
_MAX_BODY = 16 * 2**20


@dataclass(frozen=True, slots=True)
class RunningDemoModel:
    """``url`` is the base URL for a client, with ``/v1``."""

    url: str
    port: int
    _runner: web.AppRunner

    async def close(self) -> None:
        await self._runner.cleanup()


async def start_demo_model(port: int = 0, *, model: DemoModel | None = None) -> RunningDemoModel:
    """Serve ``model``, by default the demo's, on 127.0.0.1; port 0 takes a free one. OSError if the port is taken."""
    if model is None:
        model = DemoModel(OcrEngine() if OcrEngine.available() else None)
    app = web.Application(client_max_size=_MAX_BODY)
    app.router.add_post("/v1/chat/completions", model.complete)
    app.router.add_get("/v1/models", _models)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
    except OSError:
        await runner.cleanup()
        raise
    bound = int(runner.addresses[0][1])
    return RunningDemoModel(f"http://127.0.0.1:{bound}/v1", bound, runner)


async def run_demo_model(port: int, up: Callable[[str], object]) -> None:
    """Serve until cancelled; ``up`` gets the base URL once it listens."""
    running = await start_demo_model(port)
    try:
        up(running.url)
        await asyncio.Event().wait()
    finally:
        await running.close()


async def _models(_: web.Request) -> web.Response:
    model = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "phonedesk"}
    return web.json_response({"object": "list", "data": [model]})


class DemoModel:
    """A model that answers chat completions by the demo's rules; a subclass may replace its replies."""

    def __init__(self, engine: OcrEngine | None) -> None:
        self._engine = engine

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Handle ``/v1/chat/completions``."""
        body = await request.text()
        try:
            asked = ChatRequest.model_validate_json(body)
            text = await self.reply(request, asked, read_request(asked))
        except ValidationError as error:
            return _error(f"{error.error_count()} fields are not as they must be: {error.errors()[0]['loc']}")
        except BadRequest as error:
            return _error(str(error))
        prompt = sum(text_tokens(message.text) for message in asked.messages)
        usage = {"prompt_tokens": prompt, "completion_tokens": text_tokens(text)}
        usage["total_tokens"] = sum(usage.values())
        if asked.stream:
            wanted = bool((asked.stream_options or {}).get("include_usage"))
            return await _stream(request, asked.model, text, usage if wanted else None)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return web.json_response({**_head("chat.completion", asked.model), "choices": [choice], "usage": usage})

    async def reply(self, request: web.Request, asked: ChatRequest, view: View) -> str:
        """Return the reply to ``asked``, which ``view`` is read from. Raises BadRequest if it cannot be answered."""
        if view.instruction:
            return await self._plain(view)
        if view.seen or (view.seen is not None and view.picture is None):
            return rules.decide(view).text
        if view.picture is None or self._engine is None:
            return rules.blind(view.lang).text
        seen = await read_picture(self._engine, view.picture)
        return rules.decide(replace(view, seen=seen, picture=None)).text

    async def _plain(self, view: View) -> str:
        if view.picture is None:
            return "OK"
        if self._engine is None:
            raise BadRequest("this model cannot read pictures: install the extra [ocr]")
        seen = await read_picture(self._engine, view.picture)
        return transcribe(view.instruction, seen, view.picture.size)


def _head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _error(message: str) -> web.Response:
    data = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    return web.json_response(data, status=400)


async def _stream(request: web.Request, model: str, text: str, usage: dict[str, int] | None) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    head = _head("chat.completion.chunk", model)

    async def send(choices: list[dict[str, Any]], **more: object) -> None:
        data = json.dumps({**head, "choices": choices, **more}, ensure_ascii=False)
        await response.write(f"data: {data}\n\n".encode())

    def part(delta: dict[str, str], reason: str | None = None) -> list[dict[str, Any]]:
        return [{"index": 0, "delta": delta, "finish_reason": reason}]

    try:
        for start in range(0, len(text), CHUNK):
            await send(part({"role": "assistant", "content": text[start : start + CHUNK]}))
        await send(part({}, "stop"))
        if usage is not None:
            await send([], usage=usage)
        await response.write(b"data: [DONE]\n\n")
    except ConnectionResetError:
        pass  # the client had what it wanted
    return response
