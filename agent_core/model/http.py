"""The HTTP client for models' endpoints: an answer is bounded as it arrives, and the key goes to no other host.

A call that is given up before its answer has come is counted: the endpoint may have done, and charges for, all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import openai

from agent_core.model.base import Usage
from agent_core.model.usage import Meter, request_tokens
from agent_core.proxies import ProxySetting, Route

MODEL_PROXY = ProxySetting("PHONEDESK_MODEL__PROXY")  # of whoever says nothing of proxies: the environment decides
MOST_BYTES = 8 * 2**20  # of one answer
_MOST_ERROR_BYTES = 64 * 2**10  # of an answer with an error status; what follows is cut off, it is only words
_LONGEST_LINE = 2**20  # bytes, in a stream of events
# Objects and lists in the JSON of one answer, or of what arrives of a stream at once. A long list of models holds
# about 4,000 of them; each costs up to a kilobyte and 50 µs when a library makes Python objects of it. Ten plain values
# of a list count as one.
_MOST_OBJECTS = 10_000


class AnswerRefused(httpx2.TransportError):
    """What a server answered is not read; the message says why, and so does the text of ``key`` with ``values``."""

    def __init__(self, message: str, key: str, *, request: httpx2.Request | None = None, **values: object) -> None:
        super().__init__(message, request=request)
        self.key, self.values = key, values


def bounded_client(timeout: httpx2.Timeout, route: Route) -> httpx2.AsyncClient:
    """Return a client for ``AsyncOpenAI`` that raises AnswerRefused for what no honest endpoint sends.

    It follows no redirect, asks for answers that are not compressed and refuses others: what a few kilobytes unpack to
    has no bounds. It goes by ``route``, whatever proxies the environment names.
    """
    return httpx2.AsyncClient(
        timeout=timeout,
        proxy=route.proxy or None,
        trust_env=False,
        verify=httpx2.create_ssl_context(),  # of the environment it reads where the certificates are
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_bound]},
    )


def refusal_in(error: BaseException) -> AnswerRefused | None:
    """Return why the answer was not read, if that is what ``error`` of a library comes from."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, AnswerRefused):
        cause = cause.__cause__
    return cause


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
    """The bytes of one answer. AnswerRefused if they, or the objects in them, are too many."""

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
    """The beginning of the words about an error."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece[: _MOST_ERROR_BYTES - self._bytes]
            self._bytes += len(piece)
            if self._bytes >= _MOST_ERROR_BYTES:
                return


class _Lines(_Bounded):
    """The whole lines of a stream of events: to join a line from thousands of pieces costs the square of its length."""

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


CONNECTING = 0.9  # of the time for an answer: what has no connection by then was sent to nobody
_NOT_SENT = (httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.WriteTimeout)


def time_limits(seconds: float) -> httpx2.Timeout:
    """For a client each of whose calls is bounded by ``seconds`` as a whole, or longer."""
    return httpx2.Timeout(seconds, connect=CONNECTING * seconds, pool=CONNECTING * seconds)


@asynccontextmanager
async def counted_unheard(meter: Meter, name: str, sent: Sequence[Mapping[str, Any]], most: int) -> AsyncIterator[None]:
    """Around a call whose answer is ``most`` tokens long at most: where our own time limit or a cancel ends it after it
    was sent, it is counted by a guess from above. What an endpoint says of its own time limits costs nothing.
    """
    try:
        yield
    except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException, asyncio.CancelledError) as error:
        if not isinstance(error, _NOT_SENT) and not isinstance(error.__cause__, _NOT_SENT):
            guess = Usage(tokens_in=request_tokens(sent), tokens_out=most, guessed=True)
            await meter.count(name, guess)
        raise
