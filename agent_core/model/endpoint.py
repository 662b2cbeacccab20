"""The HTTP client for OpenAI-compatible endpoints: limits answers as they arrive, and sends the key to no other host.

Source of paths and forms: https://platform.openai.com/docs/api-reference/chat

A call that is given up before its answer has come is counted, because the endpoint may have done, and may charge for,
all of it. ``Parameters`` learns which parameters an endpoint refuses, and leaves them out of later requests.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import httpx2
import structlog

from agent_core.model.base import Usage
from agent_core.model.usage import Meter, request_tokens
from agent_core.proxies import ProxySetting, Route

log = structlog.get_logger(__name__)

MODEL_PROXY = ProxySetting("PHONEDESK_MODEL__PROXY")  # for callers that set no proxy: the environment decides
MOST_BYTES = 8 * 2**20  # of one answer
_MOST_ERROR_BYTES = 64 * 2**10  # of an answer with an error status; the rest is cut off, it is only words
_LONGEST_LINE = 2**20  # bytes, in a stream of events
# Objects and lists in the JSON of one answer, or of the part of a stream that arrives at once. A long list of models
# holds about 4,000 of them; each costs up to a kilobyte and 50 µs as a Python object. Ten plain values of a list count
# as one.
_MOST_OBJECTS = 10_000
T = TypeVar("T")

_INSTEAD = {"max_tokens": "max_completion_tokens"}
# Parameters that may be left out, the least important first, because an error may name more than one.
_SAMPLING = ("frequency_penalty", "top_p", "temperature", "max_tokens", "max_completion_tokens")
_UNPROCESSED = frozenset({400, 422})  # the statuses of a request that is refused as such
_UNSUPPORTED = re.compile(
    r"(?i)unsupported|(?:not|n't) (?:be )?(?:supported?|permitted|allowed|accepted)"
    r"|un(?:known|recogni[sz]ed|expected)|deprecated|cannot both|extra (?:inputs?|fields?)|only the default"
    r"|不支持|未知|不允许"
)


class AnswerRefused(httpx2.TransportError):
    """A server's answer that is not read; the message says why, and so does the text of ``key`` with ``values``."""

    def __init__(self, message: str, key: str, *, request: httpx2.Request | None = None, **values: object) -> None:
        super().__init__(message, request=request)
        self.key, self.values = key, values


def bounded_client(timeout: httpx2.Timeout, route: Route) -> httpx2.AsyncClient:
    """Return a client that raises AnswerRefused for answers that no honest endpoint sends.

    It follows no redirects, requests uncompressed answers and refuses others, because a few kilobytes may unpack to any
    size. It goes by ``route``, whatever proxies the environment names.
    """
    return httpx2.AsyncClient(
        timeout=timeout,
        proxy=route.proxy or None,
        trust_env=False,
        verify=httpx2.create_ssl_context(),  # reads the location of the certificates from the environment
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_bound]},
    )


class EndpointError(Exception):
    """An error that an endpoint reports, as a status or inside a stream.

    sent: the JSON that it sent, or a text. Its words are those of the fields that are for words: another field may hold
    the request again.

    words: the message; "" if there is none.
    code, type: what the endpoint calls the error; "" if it does not say.
    param: the parameter that it is about, "" if it does not say.
    codes: all its names of the error.
    """

    def __init__(self, sent: object) -> None:
        if isinstance(sent, list) and len(sent) == 1:  # Gemini
            sent = sent[0]
        outer: dict[str, Any] = sent if isinstance(sent, dict) else {}
        error = outer.get("error")
        fields: dict[str, Any] = error if isinstance(error, dict) else outer
        inner = fields.get("innererror")  # Azure
        self.code, self.type, self.param = (_name(fields.get(name)) for name in ("code", "type", "param"))
        self.code = self.code or _name(outer.get("error_code"))  # Baidu, as error_msg
        self.codes = {self.code, self.type, _name(inner.get("code")) if isinstance(inner, dict) else ""}
        told = (
            *(sent, fields.get("message"), fields.get("msg"), outer.get("error_msg")),
            *(_details(outer.get("detail")), _details(outer.get("errors")), error),
        )
        self.words = next((words for words in told if isinstance(words, str) and words), "")
        metadata = fields.get("metadata")  # OpenRouter: what the provider behind it said
        if isinstance(metadata, dict) and isinstance(raw := metadata.get("raw"), str):
            behind = EndpointError(_read(raw))
            self.words, self.codes = f"{self.words}: {behind.words}", self.codes | behind.codes
            self.code, self.param = self.code or behind.code, self.param or behind.param
        super().__init__(self.words)


def _name(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def _details(detail: object) -> object:
    """Return the faults of a request as one text, as FastAPI (vLLM) and Cloudflare list them.

    ``detail`` itself if it is no list.
    """
    if not isinstance(detail, list):
        return detail
    faults = [fault for fault in detail if isinstance(fault, dict)]
    told = [(_place(fault.get("loc")), fault.get("msg") or fault.get("message")) for fault in faults]
    return "; ".join(f"{place}{words}" for place, words in told if isinstance(words, str))


def _place(parts: object) -> str:
    return ".".join(map(_name, parts)) + ": " if isinstance(parts, list) and parts else ""


def _read(text: str) -> object:
    """Return the JSON in ``text``, or the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class StatusError(EndpointError):
    """An answer whose status is no success: also a redirect, which is not followed. Its body has been read."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status, self.headers = response.status_code, response.headers
        super().__init__(_read(response.content.decode("utf-8-sig", errors="replace")))


class ModelEndpoint:
    """An endpoint's address, and requests to it.

    Requests raise StatusError, ``http.REQUEST_ERRORS``, and ValueError for what JSON or a header cannot hold.

    timeout: of connecting, and of each wait for bytes.
    """

    def __init__(self, url: str, api_key: str, timeout: httpx2.Timeout, route: Route) -> None:
        self.url = httpx2.URL(url)
        self._api_key = api_key
        self._http = bounded_client(timeout, route)

    async def close(self) -> None:
        await self._http.aclose()

    async def models(self) -> bytes:
        """Return the body of the list of models."""
        return await _body(await self._send("GET", "/models"))

    async def complete(self, request: Mapping[str, Any]) -> bytes:
        """Return the body of a whole completion."""
        return await _body(await self.open(request))

    async def open(self, request: Mapping[str, Any]) -> httpx2.Response:
        """Return the response of a completion, not read yet; the caller closes it."""
        return await self._send("POST", "/chat/completions", request)

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx2.Response:
        base, mark, query = self.url.raw_path.partition(b"?")
        url = self.url.copy_with(raw_path=base.rstrip(b"/") + path.encode() + mark + query)
        headers = {"Accept": "application/json, text/event-stream", "User-Agent": "phonedesk"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        response = await self._http.send(self._http.build_request(method, url, json=body, headers=headers), stream=True)
        if not response.is_success:
            await _body(response)
            raise StatusError(response)
        return response


async def _body(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    finally:
        await response.aclose()


async def _bound(response: httpx2.Response) -> None:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity"}:
        raise AnswerRefused(
            "it is compressed, although that was not asked for", "model_packed", request=response.request
        )
    stream = cast("httpx2.AsyncByteStream", response.stream)
    if response.status_code >= 300:
        response.stream = _Cut(stream)
    elif "json" in response.headers.get("content-type", ""):
        response.stream = _Bounded(stream)
    else:
        response.stream = _Lines(stream)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of one answer. Raises AnswerRefused if there are too many of them, or of objects in them."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._bytes = self._objects = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._count(piece)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _count(self, piece: bytes) -> None:
        self._bytes += len(piece)
        self._objects += piece.count(b"{") + piece.count(b"[") + piece.count(b",") // 10
        if self._bytes > MOST_BYTES:
            most = MOST_BYTES // 2**20
            raise AnswerRefused(f"it is longer than {most} MB", "model_too_long", most=most)
        if self._objects > _MOST_OBJECTS:
            raise AnswerRefused(f"it holds more than {_MOST_OBJECTS} objects", "model_too_many", most=_MOST_OBJECTS)


class _Cut(_Bounded):
    """The beginning of an error's text."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece[: _MOST_ERROR_BYTES - self._bytes]
            self._bytes += len(piece)
            if self._bytes >= _MOST_ERROR_BYTES:
                return


class _Lines(_Bounded):
    """The complete lines of an event stream: joining a line from thousands of pieces takes quadratic time."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = bytearray()
        async for piece in self._stream:
            self._count(piece)
            begun += piece
            end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if not end:
                if len(begun) > _LONGEST_LINE:
                    most = _LONGEST_LINE // 2**20
                    raise AnswerRefused(f"a line of it is longer than {most} MB", "model_long_line", most=most)
                continue
            whole = len(begun) - (len(piece) - end)
            yield bytes(begun[:whole])
            del begun[:whole]
            self._objects = 0
        if begun:
            yield bytes(begun)


CONNECTING = 0.9  # of the time for an answer: a call without a connection by then was not sent
_NOT_SENT = (httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.WriteTimeout)


def time_limits(seconds: float) -> httpx2.Timeout:
    """Return the limits of a client whose calls are each limited as a whole to ``seconds``, or longer."""
    return httpx2.Timeout(seconds, connect=CONNECTING * seconds, pool=CONNECTING * seconds)


@asynccontextmanager
async def estimated_if_cut_off(
    meter: Meter, name: str, sent: Sequence[Mapping[str, Any]], most: int
) -> AsyncIterator[None]:
    """Count a call by an estimate if our own time limit or a cancellation ends it after it was sent.

    A timeout that the endpoint itself reports costs nothing.

    most: the longest possible answer, in tokens.
    """
    try:
        yield
    except (TimeoutError, httpx2.TimeoutException, asyncio.CancelledError) as error:
        if not isinstance(error, _NOT_SENT):
            guess = Usage(tokens_in=request_tokens(sent), tokens_out=most, guessed=True)
            await meter.count(name, guess)
        raise


class Parameters:
    """The parameters that one model at one endpoint has refused up to now."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def takes(self, name: str) -> bool:
        return name not in self._refused

    async def ask(self, send: Callable[[Mapping[str, Any]], Awaitable[T]], request: Mapping[str, Any]) -> T:
        """Return what ``send`` returns for ``request``, sending it again without a parameter that is refused.

        ``max_tokens`` becomes ``max_completion_tokens``; others are left out. Raises the errors of ``send``. An
        omission is remembered once it has helped, because an error may name a parameter and mean something else.
        """
        refused: set[str] = set()
        while True:
            sent = _taken(request, self._refused | refused)
            try:
                answer = await send(sent)
            except StatusError as error:
                name = _refused(error, sent) if error.status in _UNPROCESSED else None
                if name is None:
                    raise
                refused.add(name)
                continue
            for name in sorted(refused - self._refused):
                log.info("model_parameter_refused", model=request.get("model"), parameter=name)
            self._refused |= refused
            return answer


def _taken(request: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    taken = {_INSTEAD.get(name, name) if name in refused else name: request[name] for name in request}
    return {name: value for name, value in taken.items() if name not in refused}


def _refused(error: StatusError, sent: Mapping[str, Any]) -> str | None:
    """Return the parameter of ``sent`` that is refused as such, not for its value; None if there is none."""
    words = error.words
    if _UNSUPPORTED.search(f"{words} {error.code}".replace("_", " ")):
        if error.param in _SAMPLING and error.param in sent:
            return error.param
        for name in _SAMPLING:
            if name in sent and re.search(rf"(?<!\w){name}(?!\w)", words):
                return name
    if "stream_options" in sent and "stream_options" in words:  # an older endpoint; it does not count tokens then
        return "stream_options"
    if "tools" in sent and "tool" in words.lower():  # answers are read in any form
        return "tools"
    return None
