"""The client for any OpenAI-compatible chat endpoint: streams, and closes the stream at the first complete call."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeVar

import httpx2
from PIL import Image, ImageDraw, ImageFont

from agent_core import errors
from agent_core.actions.parse import Dialect
from agent_core.errors import MODEL_NAMES, ModelNames
from agent_core.model.api_types import ApiChoice, ApiCompletion, ApiMessage, Chunks, Models, read_answer
from agent_core.model.base import Completion, OnThinking
from agent_core.model.endpoint import MODEL_PROXY, ModelEndpoint, Parameters, estimated_if_cut_off, time_limits
from agent_core.model.failures import REQUEST_ERRORS, Failures, tried
from agent_core.model.prompt import data_url
from agent_core.model.stream import ReplyDeadline, ReplyReader, plain_text, usage_of
from agent_core.model.usage import Meter
from agent_core.proxies import ProxySetting
from agent_core.retry import Sleep

# After the call is complete, wait this long for an endpoint that is about to end, because it then counts the tokens.
GRACE_SECONDS = 0.1
# If a server asks for a longer pause than this, do not wait for it.
LONGEST_PAUSE = 120.0
# Errors that may be over in a moment, or at another endpoint.
MAY_PASS = (errors.ModelTimeout, errors.ModelUnreachable, errors.ModelQuota)
# Finish reasons of a model that has said all that it wanted to. The last two are TGI's and gateways'.
ENDED = frozenset({"stop", "tool_calls", "eos_token", "end_turn"})
REMEMBERED = 32  # requests that were refused for their content

CHECK_NUMBER = "4719"
CHECK_INSTRUCTION = "Read the number in this picture. Answer with the digits only."

_Message = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of ``check``.

    models: the names that the endpoint lists.
    can_see: None if it was not tried, because vision is off.
    problem: why the endpoint is not reachable, cannot see or lists no models.
    """

    reachable: bool
    models: tuple[str, ...] = ()
    name_known: bool = False
    can_see: bool | None = None
    problem: errors.ModelError | None = None


def _checked(max_tokens: int, temperature: float, top_p: float, frequency_penalty: float, timeout: float) -> None:
    rules = (
        ("max_tokens", max_tokens, max_tokens > 0, "greater than 0"),
        ("temperature", temperature, 0 <= temperature <= 2, "between 0 and 2"),
        ("top_p", top_p, 0 <= top_p <= 1, "between 0 and 1"),
        ("frequency_penalty", frequency_penalty, -2 <= frequency_penalty <= 2, "between -2 and 2"),
        ("timeout", timeout, timeout > 0, "greater than 0"),
    )
    for name, value, good, rule in rules:
        if not good:
            said = f"The model setting {name} is {value}, it must be {rule}."
            raise errors.ConfigInvalid(said, key="model_number", name=name, value=value)


class ChatModel:
    """A client of one model at one endpoint; implements ``agent_core.model.base.Model``.

    timeout: limits the wait in seconds for the connection, for the first token and between tokens; a longer reply has
    to keep the speed of ``ReplyDeadline``.
    vision: False removes pictures from requests, and ``transcribe`` fails.
    extra_body: added to each request as it is, in place of what is there by the same name.
    tools: offered with each request for an action (see ``model.prompt``). An endpoint that refuses tools or one of the
    numbers is asked without them.
    alone: False if other models are asked when this one cannot be reached, is too slow or is rate limited; such errors
    are then not retried here.
    meter: gets every call.
    proxy: decides how ``base_url`` is reached: that is ``route``.
    names: of its settings, for errors.

    Raises ConfigMissing if the name is empty, and ConfigInvalid if the address or the proxy is malformed or a number is
    out of range.
    """

    def __init__(
        self,
        base_url: str,
        name: str,
        api_key: str = "",
        *,
        max_tokens: int = 3000,
        temperature: float = 0.0,
        top_p: float = 0.85,
        frequency_penalty: float = 0.2,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        dialect: Dialect = "autoglm",
        vision: bool = True,
        tools: Sequence[Mapping[str, Any]] = (),
        alone: bool = True,
        meter: Meter | None = None,
        proxy: ProxySetting = MODEL_PROXY,
        names: ModelNames = MODEL_NAMES,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        _checked(max_tokens, temperature, top_p, frequency_penalty, timeout)
        if not name.strip():
            raise errors.ConfigMissing(f"{names.name} is empty.", key="model_no_name", name=names.name)
        if not base_url.startswith(("http://", "https://")):
            said = f"{names.base_url} must begin with http:// or https://."
            raise errors.ConfigInvalid(said, key="model_no_address", base_url=names.base_url)
        self._name = name
        self._dialect = dialect
        self._vision = vision
        self._timeout = timeout
        self._alone = alone
        self._meter = meter or Meter()
        self._sleep = sleep
        self._sampling: dict[str, Any] = {"temperature": temperature, "top_p": top_p}
        self._sampling["frequency_penalty"] = frequency_penalty
        self._max_tokens = max_tokens
        self._extra_body = dict(extra_body or {})
        self._parameters = Parameters()
        self._tools = list(tools)
        self.route = proxy.route(base_url)
        self._failures = Failures(base_url, name, api_key, self.route, names)
        self._refused: deque[str] = deque(maxlen=REMEMBERED)  # digests of requests
        self._endpoint = ModelEndpoint(base_url, api_key, time_limits(timeout), self.route)

    def __repr__(self) -> str:
        url = self._endpoint.url
        return f"ChatModel({url.scheme}://{url.netloc.decode().rpartition('@')[2]}{url.path}, {self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def vision(self) -> bool:
        return self._vision

    async def close(self) -> None:
        await self._endpoint.close()

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        """Return the next reply, up to the end of its first complete call; the whole reply if it holds none.

        Raises ModelError after the retries of ``agent_core.retry``.

        on_thinking: gets the thinking so far each time it has grown (from the start again after a retry).
        """
        sent = list(messages) if self._vision else [_without_pictures(message) for message in messages]
        return await self._retried(sent, lambda: self._stream_once(sent, on_thinking))

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        """Return plain text in answer to ``messages``, not read as an action, without tools.

        Raises as ``complete`` does.
        """
        sent = list(messages) if self._vision else [_without_pictures(message) for message in messages]
        completion = await self._retried(sent, lambda: self._stream_once(sent, None, plain=True))
        return replace(completion, text=plain_text(completion.text))

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        """Return the model's answer to ``instruction`` about ``picture``, without thinking or box tokens."""
        if not self._vision:
            raise self._failures.blind()
        parts = [
            {"type": "image_url", "image_url": {"url": data_url(picture)}},
            {"type": "text", "text": instruction},
        ]
        sent = [{"role": "user", "content": parts}]
        return await self._retried(sent, lambda: self._plain_once(sent))

    async def check(self) -> ModelCheck:
        """Check that the endpoint is there, knows the model and can see. Never raises ModelError; does not retry."""
        models: tuple[str, ...] = ()
        listing: errors.ModelError | None = None
        try:
            models = await self._models()
        except (errors.ModelUnreachable, errors.ModelTimeout, errors.ModelAuth) as error:
            return ModelCheck(reachable=False, problem=error)
        except errors.ModelError as error:
            listing = error  # many endpoints have no list of models; an answer is what counts
        known = self._name in models
        try:
            problem = await self._look()
        except errors.ModelError as error:
            return ModelCheck(reachable=bool(models), models=models, name_known=known, problem=error)
        can_see = problem is None if self._vision else None
        return ModelCheck(True, models, known, can_see, problem or listing)

    async def unreachable(self) -> errors.ModelError | None:
        """Return why the endpoint cannot be used, None if it answers.

        Requests its list of models, which costs no tokens.

        An endpoint without such a list counts as answering, too. Never raises ModelError; does not retry.
        """
        try:
            await self._models()
        except (errors.ModelUnreachable, errors.ModelTimeout, errors.ModelAuth) as error:
            return error
        except errors.ModelError:
            return None
        return None

    async def _models(self) -> tuple[str, ...]:
        """Return the names that the endpoint lists."""
        async with self._mapped(), asyncio.timeout(self._timeout):
            body = await self._endpoint.models()
            return tuple(model.id for model in Models.model_validate_json(body).data or ())

    async def _look(self) -> errors.ModelError | None:
        """Ask about a test picture; return the problem with the model's sight.

        Raises ModelError if it does not answer.
        """
        if not self._vision:
            await self._plain_once([{"role": "user", "content": "Answer with OK."}])
            return None
        parts = [
            {"type": "image_url", "image_url": {"url": data_url(_check_picture())}},
            {"type": "text", "text": CHECK_INSTRUCTION},
        ]
        answer = await self._plain_once([{"role": "user", "content": parts}])
        if CHECK_NUMBER in "".join(filter(str.isdigit, answer)):
            return None
        return self._failures.misread(answer[:60], CHECK_NUMBER)

    async def _retried(self, sent: Sequence[_Message], call: Callable[[], Awaitable[T]]) -> T:
        """Run ``call`` with its retries; a request that was refused for its content is not sent again."""
        if self._refused and _digest(sent) in self._refused:
            raise self._failures.refused("")
        try:
            return await self._tried(call)
        except errors.ModelRefused:
            self._refused.append(_digest(sent))
            raise

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        def failed(error: errors.ModelError) -> None:
            self._meter.failed(self._name, error)
            if not self._alone and isinstance(error, MAY_PASS):
                error.retried = True

        return await tried(call, sleep=self._sleep, patience=lambda: LONGEST_PAUSE, failed=failed)

    @asynccontextmanager
    async def _mapped(self) -> AsyncIterator[None]:
        """Turn the errors of a request into ours.

        They are not chained: the HTTP library's errors hold the request with its key.
        """
        try:
            yield
        except (*REQUEST_ERRORS, ValueError, RecursionError) as error:
            raise self._failures.of(error) from None

    async def _plain_once(self, messages: list[dict[str, Any]]) -> str:
        """Return the words of one answer that is not streamed."""
        given_up = estimated_if_cut_off(self._meter, self._name, messages, self._max_tokens)
        async with self._mapped(), given_up, asyncio.timeout(self._timeout):
            body = await self._ask(self._endpoint.complete, self._request(messages))
            answer = read_answer(body, self._failures)
        usage = usage_of(answer.usage, messages, lambda: _words(answer))
        await self._meter.count(self._name, usage)
        return plain_text(self._whole(answer).text)

    def _request(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "model": self._name,
            "messages": messages,
            "max_tokens": self._max_tokens,
            **self._sampling,
        }

    async def _stream_once(
        self, messages: list[dict[str, Any]], on_thinking: OnThinking | None, *, plain: bool = False
    ) -> Completion:
        """Stream one reply. ``plain``: read the whole reply, even if its text holds calls."""
        await self._meter.admit(self._name)
        started, pace = time.monotonic(), ReplyDeadline(self._timeout)
        async with self._mapped(), asyncio.timeout_at(pace.deadline):
            response = await self._open(messages, plain=plain)
        offered = bool(self._tools) and self._parameters.takes("tools")
        reader = ReplyReader(self._dialect, started, whole=plain or offered)
        try:
            kind = response.headers.get("content-type", "")
            if "json" in kind or "html" in kind:  # the request for a stream was ignored
                async with self._mapped(), asyncio.timeout_at(pace.deadline):
                    answer = read_answer(await response.aread(), self._failures)
                await self._unstreamed(answer, reader, on_thinking)
            else:
                # Closed here, because the garbage collector closes a generator in any thread, and then two threads may
                # run it at once.
                async with aclosing(response.aiter_bytes()) as pieces:
                    await self._read(Chunks(pieces), reader, pace, on_thinking)
        finally:
            await response.aclose()
            if reader.counted or not reader.empty:  # a reply that broke off, or was stopped, costs tokens, too
                completion = reader.completion(self._name, messages)
                await self._meter.count(self._name, completion.usage)
        return completion

    async def _open(self, messages: list[dict[str, Any]], *, plain: bool) -> httpx2.Response:
        request = {**self._request(messages), "stream": True, "stream_options": {"include_usage": True}}
        if self._tools and not plain:
            request["tools"] = self._tools
        return await self._ask(self._endpoint.open, request)

    async def _ask(self, send: Callable[[_Message], Awaitable[T]], request: _Message) -> T:
        return await self._parameters.ask(lambda sent: send({**sent, **self._extra_body}), request)

    async def _unstreamed(self, answer: ApiCompletion, reader: ReplyReader, on_thinking: OnThinking | None) -> None:
        reader.counted = answer.usage
        message = self._whole(answer)
        reader.ended = answer.choices is not None and answer.choices[0].finish_reason in ENDED
        grown = reader.feed(message.text, message.thought)
        for index, call in enumerate(message.tool_calls or ()):
            if call.function is not None:
                reader.feed_call(index, call.function.name or "", call.function.arguments or "")
        if reader.empty:
            raise self._failures.empty()
        if grown and on_thinking is not None:
            await on_thinking(reader.thinking)

    def _whole(self, answer: ApiCompletion) -> ApiMessage:
        choice = answer.choices[0] if answer.choices else None
        message = choice.message if choice else None
        if choice is None or message is None:
            raise self._failures.empty()
        self._failures.check_ending(choice.finish_reason, message.refusal)
        if not (message.text or message.thought or message.tool_calls):
            raise self._failures.empty()
        return message

    async def _read(
        self, chunks: Chunks, reader: ReplyReader, pace: ReplyDeadline, on_thinking: OnThinking | None
    ) -> None:
        finished = False
        grace = math.inf
        while not reader.overlong(self._max_tokens):
            deadline = min(pace.deadline, grace)
            chunk = await self._next(chunks, deadline, heard=finished or reader.end is not None)
            if chunk is None:
                break
            reader.counted = chunk.usage or reader.counted
            for choice in (chunk.choices or ())[:1]:
                finished = finished or choice.finish_reason is not None
                reader.ended = reader.ended or choice.finish_reason in ENDED
                await self._take(choice, reader, on_thinking)
            pace.heard(reader.size)
            if reader.end is not None:
                if reader.counted is not None or reader.talks_on:
                    break
                grace = reader.end_time + GRACE_SECONDS
            elif finished:
                grace = min(grace, _now() + GRACE_SECONDS)
        else:
            finished = True
        if reader.end is not None:
            _hear_out(chunks, reader)
        if reader.empty:
            raise self._failures.not_json(chunks.strange) if chunks.strange else self._failures.empty()
        if not finished and reader.end is None:
            raise self._failures.broke_off()

    async def _next(self, chunks: Chunks, deadline: float, *, heard: bool) -> ApiCompletion | None:
        """Return the next chunk; None at the end, or after an error if ``heard`` (nothing more is needed)."""
        try:
            async with self._mapped(), asyncio.timeout_at(deadline):
                return await chunks.next()
        except errors.ModelError:
            if heard:
                return None
            raise

    async def _take(self, choice: ApiChoice, reader: ReplyReader, on_thinking: OnThinking | None) -> None:
        delta = choice.delta
        if reader.end is None:
            self._failures.check_ending(choice.finish_reason, delta.refusal if delta else None)
        if _feed(choice, reader) and on_thinking is not None:
            await on_thinking(reader.thinking)


def _feed(choice: ApiChoice, reader: ReplyReader) -> bool:
    """Pass a choice to the reader; True if the thinking has grown."""
    if choice.delta is None:
        return False
    grown = reader.feed(choice.delta.text, choice.delta.thought)
    for call in choice.delta.tool_calls or ():
        if call.function is not None:
            reader.feed_call(call.index or 0, call.function.name or "", call.function.arguments or "")
    return grown


def _hear_out(chunks: Chunks, reader: ReplyReader) -> None:
    """Read the chunks that came after the answer. The stream is closed next."""
    for chunk in chunks.arrived():
        reader.counted = chunk.usage or reader.counted
        for choice in (chunk.choices or ())[:1]:
            _feed(choice, reader)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _words(answer: ApiCompletion) -> str:
    said = [choice.message for choice in answer.choices or () if choice.message is not None]
    return "".join(f"{message.thought}{message.text}" for message in said)


def _digest(sent: Sequence[_Message]) -> str:
    return sha256(json.dumps(list(sent), ensure_ascii=False).encode()).hexdigest()


def _without_pictures(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with its words as one text: endpoints of models without vision refuse a list of parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": "\n\n".join(part["text"] for part in content if part.get("type") == "text")}


def _check_picture() -> Image.Image:
    image = Image.new("RGB", (320, 120), "white")
    font = ImageFont.load_default(size=64)
    ImageDraw.Draw(image).text((160, 60), CHECK_NUMBER, fill="black", font=font, anchor="mm")
    return image
