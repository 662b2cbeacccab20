"""A strict OpenAI-compatible endpoint that answers by a script: one reply a request, in order.

    async with ScriptedModel(["<answer>finish(message=\\"好了\\")</answer>", Status(429)]) as server:
        model = ChatModel(server.url, "scripted", "key")
        ...
        assert server.requests[0]["messages"][0]["role"] == "system"

A reply is a text, one of the classes below, or a function from the request's body to one of these. A request that is
no valid chat completion is answered with 400 and kept in ``invalid``.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from aiohttp import web
from PIL import Image
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError


@dataclass(frozen=True)
class Text:
    """A whole reply, cut into chunks of ``size`` characters with ``delay`` seconds between them."""

    text: str
    size: int = 7
    delay: float = 0.0
    reasoning: str = ""  # sent as reasoning_content before the text
    usage: tuple[int, int] | None = (100, 20)
    finish: str = "stop"


@dataclass(frozen=True)
class Chunks:
    """Parts as they are: a text is a chunk, a number is a pause in seconds, a mapping is a delta."""

    parts: Sequence[str | float | dict[str, Any]]
    usage: tuple[int, int] | None = (100, 20)
    finish: str = "stop"


@dataclass(frozen=True)
class Hang:
    """Says ``parts``, then nothing more until the client goes. ``pings``: SSE comments every so many seconds."""

    parts: Sequence[str] = ()
    pings: float | None = None
    headers_too: bool = False  # not even the status line comes


@dataclass(frozen=True)
class Break:
    """Says ``parts``, then cuts the connection."""

    parts: Sequence[str] = ()


@dataclass(frozen=True)
class Status:
    """An HTTP status with a JSON error, or ``body`` as it is."""

    code: int
    message: str = "scripted"
    error_code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True)
class Raw:
    """200 with any body: HTML, garbage, nothing."""

    body: str
    content_type: str = "text/html"


@dataclass(frozen=True)
class Whole:
    """One JSON completion, whether a stream was asked for or not."""

    text: str | None
    reasoning: str = ""
    finish: str = "stop"
    refusal: str | None = None
    tool_calls: Sequence[dict[str, Any]] = ()


Reply = str | Text | Chunks | Hang | Break | Status | Raw | Whole
Script = Reply | Callable[[dict[str, Any]], Reply]


def _picture_url(url: str) -> str:
    head, _, data = url.partition(",")
    if head not in {"data:image/jpeg;base64", "data:image/png;base64"}:
        raise ValueError("not a data URL of a JPEG or PNG")
    with Image.open(io.BytesIO(base64.b64decode(data, validate=True))) as image:
        image.load()
    return url


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ImageUrl(_Strict):
    url: Annotated[str, AfterValidator(_picture_url)]
    detail: Literal["auto", "low", "high"] | None = None


class _ImagePart(_Strict):
    type: Literal["image_url"]
    image_url: _ImageUrl


class _TextPart(_Strict):
    type: Literal["text"]
    text: str = Field(min_length=1)


class _Message(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    role: Literal["system", "user", "assistant", "tool", "developer"]
    content: str | list[_TextPart | _ImagePart] | None = None


class _Parameters(_Strict):
    type: Literal["object"]
    properties: dict[str, dict[str, Any]]
    required: list[str] = []
    additionalProperties: bool = False  # noqa: N815 - as JSON Schema calls it


class _Function(_Strict):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = Field(default="", max_length=1024)
    parameters: _Parameters
    strict: bool = False


class _Tool(_Strict):
    type: Literal["function"]
    function: _Function


class _Request(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    model: str = Field(min_length=1)
    messages: list[_Message] = Field(min_length=1)
    stream: bool = False
    max_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    stream_options: dict[str, bool] | None = None
    tools: list[_Tool] | None = Field(default=None, min_length=1)


class ScriptedModel:
    """``url`` ends with ``/v1``. ``repeat_last``: the last reply is given again and again."""

    def __init__(
        self,
        script: Sequence[Script],
        *,
        models: Sequence[str] = ("scripted",),
        api_key: str | None = None,
        repeat_last: bool = False,
    ) -> None:
        self.script = list(script)
        self.models = tuple(models)
        self.api_key = api_key
        self.repeat_last = repeat_last
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.queries: list[str] = []  # of every request
        self.times: list[float] = []
        self.invalid: list[str] = []
        self.disconnects = 0
        self.disconnected = asyncio.Event()
        self._served = 0
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> ScriptedModel:
        app = web.Application(client_max_size=32 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _list(self, request: web.Request) -> web.Response:
        if not self._may(request):
            return _error(401, "no such key", "invalid_api_key")
        return web.json_response({"object": "list", "data": [{"id": m, "object": "model"} for m in self.models]})

    def _may(self, request: web.Request) -> bool:
        self.queries.append(request.rel_url.raw_query_string)
        self.headers.append(dict(request.headers))
        return self.api_key is None or request.headers.get("Authorization") == f"Bearer {self.api_key}"

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if not self._may(request):
            return _error(401, "no such key", "invalid_api_key")
        body = await request.text()
        try:
            _Request.model_validate_json(body)
        except ValidationError as error:
            self.invalid.append(str(error))
            return _error(400, f"not a chat completion: {error}", "invalid_request_error")
        data: dict[str, Any] = json.loads(body)
        self.requests.append(data)
        self.times.append(time.monotonic())
        if self._served >= len(self.script) and not (self.repeat_last and self.script):
            self.invalid.append("more requests than the script has replies")
            return _error(400, "the script has no more replies", "script_end")
        item = self.script[min(self._served, len(self.script) - 1)]
        self._served += 1
        reply = item(data) if callable(item) else item
        try:
            return await self._say(request, Text(reply) if isinstance(reply, str) else reply, bool(data.get("stream")))
        except (ConnectionResetError, asyncio.CancelledError):
            self.disconnects += 1
            self.disconnected.set()
            raise

    async def _say(self, request: web.Request, reply: Reply, stream: bool) -> web.StreamResponse:
        if isinstance(reply, Status):
            if reply.body is not None:
                return web.Response(status=reply.code, body=reply.body.encode(), headers=reply.headers)
            return _error(reply.code, reply.message, reply.error_code, reply.headers)
        if isinstance(reply, Raw):
            return web.Response(text=reply.body, content_type=reply.content_type)
        if isinstance(reply, Hang) and reply.headers_too:
            await asyncio.Event().wait()
        if isinstance(reply, Whole) or (isinstance(reply, Text) and not stream):
            return web.json_response(_whole(reply))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        await self._stream(request, response, reply)
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, reply: Reply) -> None:
        await _send(response, {"role": "assistant", "content": ""})
        if isinstance(reply, Text):
            for start in range(0, len(reply.reasoning), reply.size):
                await _send(response, {"reasoning_content": reply.reasoning[start : start + reply.size]})
            for start in range(0, len(reply.text), reply.size):
                await _send(response, {"content": reply.text[start : start + reply.size]})
                if reply.delay:
                    await asyncio.sleep(reply.delay)
        elif isinstance(reply, Chunks | Hang | Break):
            for part in reply.parts:
                if isinstance(part, str):
                    await _send(response, {"content": part})
                elif isinstance(part, dict):
                    await _send(response, part)
                else:
                    await asyncio.sleep(part)
        if isinstance(reply, Hang):
            while True:
                await asyncio.sleep(reply.pings or 3600)
                await response.write(b": ping\n\n")
        if isinstance(reply, Break):
            if request.transport is not None:
                request.transport.abort()
            return
        assert isinstance(reply, Text | Chunks)
        await _send(response, {}, finish=reply.finish)
        if reply.usage is not None:
            await _event(response, {"choices": [], "usage": _usage(reply.usage)})
        await response.write(b"data: [DONE]\n\n")


def _error(
    status: int, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
) -> web.Response:
    data = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return web.json_response(data, status=status, headers=headers)


def _usage(pair: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": pair[0], "completion_tokens": pair[1], "total_tokens": sum(pair)}


def _whole(reply: Whole | Text) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if isinstance(reply, Whole) and reply.refusal:
        message["refusal"] = reply.refusal
    if isinstance(reply, Whole) and reply.tool_calls:
        message["tool_calls"] = list(reply.tool_calls)
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": _usage((100, 20)),
    }


async def _send(response: web.StreamResponse, delta: dict[str, Any], *, finish: str | None = None) -> None:
    await _event(response, {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


async def _event(response: web.StreamResponse, data: dict[str, Any]) -> None:
    whole = {"id": "scripted", "object": "chat.completion.chunk", "created": 1, "model": "scripted", **data}
    await response.write(f"data: {json.dumps(whole, ensure_ascii=False)}\n\n".encode())
