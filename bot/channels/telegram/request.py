"""Requests to the Bot API: every request goes out, and every answer comes in, through this class.

An answer is limited in bytes, in values and in time, is not decompressed, and is checked before Telegram's library
makes objects of it. Redirects are not followed: the token, which is part of the address, goes only to the host of the
settings. Refusals of strangers are logged so rarely that a flood of them fills no disk.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal

import httpx
from PIL import UnidentifiedImageError
from pydantic import BaseModel, Field, field_validator
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from telegram import Bot
from telegram.error import BadRequest, InvalidToken, NetworkError, RetryAfter, TelegramError, TimedOut
from telegram.request import BaseRequest, HTTPXRequest, RequestData

from agent_core.proxies import ProxySetting, Route

MOST_BYTES = 8 * 1024 * 1024
MOST_VALUES = 200_000  # of JSON: 8 MB of "{}," took 200 MB as objects
MOST_PIECES = 20_000  # pieces of a body; each costs 30 µs
LONGEST_REFUSAL = 500  # characters of Telegram's words about an error
LONGEST_WAIT = 24 * 3600  # seconds that Telegram may have a chat wait
BEYOND_SECONDS = 5.0  # for connecting and sending, besides the time for the answer
UPLOAD_SECONDS = 300.0  # for a file in the request
TURN = 200  # pieces after which other tasks of the event loop run


class UnfitAnswer(NetworkError):
    """The answer does not come from Telegram, or is too large for one."""


class AnswerTooLarge(UnfitAnswer):
    """The answer has more bytes than allowed."""


class BotRequest(HTTPXRequest):
    """An HTTP request with limits.

    route: how Telegram is reached, whatever proxies the environment names.
    seconds: how long an answer may take, from the first byte to the last.
    pool_seconds: how long to wait for a free connection.
    most: bytes of an answer's body.
    """

    def __init__(
        self,
        route: Route,
        seconds: float,
        *,
        connect_seconds: float = 5.0,
        pool_seconds: float = 1.0,
        connections: int = 4,
        most: int = MOST_BYTES,
    ) -> None:
        self._most = most
        super().__init__(
            connection_pool_size=connections,
            read_timeout=seconds,
            connect_timeout=connect_seconds,
            pool_timeout=pool_seconds,
            media_write_timeout=30,
            proxy=route.proxy or None,
            httpx_kwargs={
                "trust_env": False,
                "verify": httpx.create_ssl_context(),  # reads the location of the certificates from the environment
                "follow_redirects": False,
                "headers": {"Accept-Encoding": "identity"},
                "event_hooks": {"response": [self._bound]},
            },
        )

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """Do the request as the library does, but limit the total time: the library limits only each read."""
        answer = read_timeout if isinstance(read_timeout, int | float) else self.read_timeout or 0.0
        upload = UPLOAD_SECONDS if request_data is not None and request_data.contains_files else 0.0
        try:
            async with asyncio.timeout(answer + BEYOND_SECONDS + upload):
                code, payload = await super().do_request(
                    url, method, request_data, read_timeout, write_timeout, connect_timeout, pool_timeout
                )
        except TimeoutError:
            raise TimedOut from None
        return code, payload if 200 <= code <= 299 else _refusal(payload)

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Read an answer's body. Raises TelegramError if it is none."""
        try:
            return answer_of(payload)
        except (ValueError, RecursionError) as error:
            raise TelegramError("Invalid server response") from error

    async def _bound(self, response: httpx.Response) -> None:
        """Limit an answer. Called when its head has come, before its body is read."""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            raise UnfitAnswer("The answer is compressed, though that was declined.")
        response.stream = _Bounded(response.stream, self._most)


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = pieces = 0
        async for piece in self._stream:
            size += len(piece)
            pieces += 1
            if size > self._most:
                raise AnswerTooLarge(f"The answer has more than {self._most / 1e6:.1f} MB.")
            if pieces > MOST_PIECES:
                raise UnfitAnswer("The answer comes in too many pieces.")
            if pieces % TURN == 0:
                await asyncio.sleep(0)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def answer_of(payload: bytes) -> dict[str, Any]:
    """Return a successful answer as plain data, with its ``result``.

    Raises as ``read_json`` does, and ValueError if there is no ``result``.
    """
    answer = read_json(payload)
    if not isinstance(answer, dict) or "result" not in answer:
        raise ValueError("no result")
    return answer


def read_json(payload: bytes) -> Any:
    """Parse JSON.

    Raises ValueError or RecursionError if it is none, UnfitAnswer if it has more than MOST_VALUES values.
    """
    if sum(payload.count(sign) for sign in (b"[", b"{", b",")) > MOST_VALUES:
        raise UnfitAnswer("The answer has too many values.")
    return json.loads(payload.decode("utf-8", "replace"))


class _Parameters(BaseModel):
    """https://core.telegram.org/bots/api#responseparameters"""

    migrate_to_chat_id: int | None = Field(default=None, ge=-(2**52), le=2**52)
    retry_after: int | None = Field(default=None, ge=0)

    @field_validator("retry_after")
    @classmethod
    def _within_a_day(cls, seconds: int | None) -> int | None:
        return None if seconds is None else min(seconds, LONGEST_WAIT)


class _Refusal(BaseModel):
    """https://core.telegram.org/bots/api#making-requests"""

    description: str = ""
    parameters: _Parameters | None = None

    @field_validator("description")
    @classmethod
    def _short(cls, text: str) -> str:
        return text[:LONGEST_REFUSAL]


def _refusal(payload: bytes) -> bytes:
    """Return an error answer reduced to the fields that the Bot API defines; empty if it is anything else."""
    try:
        told = _Refusal.model_validate(read_json(payload))
    except (UnfitAnswer, ValueError, RecursionError):
        told = _Refusal()
    return json.dumps({"result": None, **told.model_dump(exclude_none=True)}).encode()


async def introduce(bot: Bot) -> None:
    """Learn the bot's name, which its library needs. Raises TelegramError, also if no Bot API answers."""
    try:
        await bot.initialize()
    except TelegramError:
        raise
    except Exception as error:
        raise UnfitAnswer(f"What answers is no Bot API: {type(error).__name__}.") from error


Failure = Literal["silent", "not_reached", "refused", "no_api"]


def failure_of(error: TelegramError) -> Failure:
    """Return why a call failed. The library's own words name classes of its HTTP client.

    silent: no answer in time; not_reached: no way to the server (or it says that it is down); refused: the token;
    no_api: the answer is none of the Bot API's.
    """
    if isinstance(error, TimedOut):
        return "silent"
    if isinstance(error, InvalidToken):
        return "refused"
    if isinstance(error, NetworkError) and not isinstance(error, UnfitAnswer | BadRequest):
        return "not_reached"
    return "no_api"


@asynccontextmanager
async def bot_at(token: str, api_base_url: str, proxy: ProxySetting, seconds: float) -> AsyncIterator[Bot]:
    """Give a bot for a few questions, each answered within ``seconds``. Raises ConfigInvalid if its proxy is none."""
    base = api_base_url.rstrip("/")
    route = proxy.route(base)
    requests = [BotRequest(route, seconds, connect_seconds=seconds, pool_seconds=seconds) for _ in range(2)]
    try:
        yield Bot(token, f"{base}/bot", f"{base}/file/bot", request=requests[0], get_updates_request=requests[1])
    finally:
        for request in requests:
            await request.shutdown()


def pause_of(error: RetryAfter) -> float:
    """Return the seconds for which Telegram asks us to wait."""
    after = error.retry_after
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


def is_away(error: Exception) -> bool:
    """Tell whether the database was not reached, but will be later.

    Data that it refuses, or a picture that is none, stays wrong.
    """
    if isinstance(error, DBAPIError):
        return not isinstance(error, IntegrityError | DataError | ProgrammingError)
    return isinstance(error, OSError | PoolTimeout) and not isinstance(error, UnidentifiedImageError)


QUIET_SECONDS = 15 * 60


class RateLimitedLog:
    """The counter of a rate-limited log, in this process: a restart begins again from 0."""

    def __init__(self) -> None:
        self._since = 0
        self._told_at: float | None = None

    def count(self, now: float) -> int:
        """Count one more at ``now`` (seconds of any clock); return how many to log, 0 to log nothing."""
        self._since += 1
        if self._told_at is not None and now - self._told_at < QUIET_SECONDS:
            return 0
        self._told_at = now
        told, self._since = self._since, 0
        return told


def public(address: str | None) -> str:
    """Return a public address; "" for one of the shop's own network, or of the reverse proxy before us."""
    try:
        return address if address and ipaddress.ip_address(address).is_global else ""
    except ValueError:
        return ""
