"""Plans with the library ``agents``. Importing this takes seconds, so it is imported for the first plan only.

Nothing is sent to anybody but the model's endpoint: the library's tracing is off.
"""

from __future__ import annotations

import asyncio
import json
import string
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

import httpx2
import structlog
from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    set_trace_provider,
)
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.memory import SessionSettings
from agents.result import RunResultStreaming
from agents.tool_context import ToolContext
from agents.tracing.provider import DefaultTraceProvider
from openai import (
    APIConnectionError,
    APIError,
    APIResponseValidationError,
    APIStatusError,
    AsyncOpenAI,
    BadRequestError,
    OpenAIError,
    UnprocessableEntityError,
)
from openai.types.responses import ResponseUsage

from agent_core.errors import PhonedeskError
from agent_core.model.base import Usage
from agent_core.model.endpoint import AnswerRefused, EndpointError, StatusError
from agent_core.model.stream import ReplyDeadline
from agent_core.model.usage import Meter, text_tokens
from agent_core.planner.base import (
    CallResult,
    Executor,
    Memory,
    PlanEvent,
    PlanMessage,
    PlannerTask,
    ToolCalled,
    ToolReturned,
)
from agent_core.planner.tools import PlannerTool
from agent_core.planner.words import instructions, texts
from agent_core.texts import Lang

log = structlog.get_logger(__name__)

RETRIES = 2  # of a request that was not answered, or was refused for the moment
MOST_SAID = 8_000  # characters of one answer
MOST_REMEMBERED = 400  # items of the conversation that the model is shown

Tell = Callable[[PlanEvent], Awaitable[None]]

# A disabled provider of our own without an exporter: the library's has one with an HTTP client, which uses the
# environment's proxies and fails if one of them is unusable.
_untraced = DefaultTraceProvider()
_untraced.set_disabled(True)
set_trace_provider(_untraced)


@dataclass(frozen=True, slots=True)
class Work:
    """The context of one plan's tools."""

    executor: Executor
    tell: Tell
    order: PlannerTask


def make_client(url: str, api_key: str, http: httpx2.AsyncClient) -> AsyncOpenAI:
    """Return the library's client of an endpoint; its requests go through ``http``, which stays the caller's."""
    # A placeholder key, because the client refuses to be built without one, and local servers need none.
    return AsyncOpenAI(
        base_url=url, api_key=api_key or "none", max_retries=RETRIES, timeout=http.timeout, http_client=http
    )


def request_error(error: OpenAIError) -> Exception:
    """Return an error of the library's client as ``ModelEndpoint`` raises it."""
    match error:
        case APIConnectionError():  # a timeout, too
            return error.__cause__ if isinstance(error.__cause__, Exception) else httpx2.ConnectError(error.message)
        case APIResponseValidationError():
            return ValueError(error.message)
        case APIStatusError():
            return StatusError(error.response)
        case APIError():
            return EndpointError({"error": error.body or error.message})
        case _:
            return error


def make_agent(
    name: str,
    client: AsyncOpenAI,
    meter: Meter,
    tools: tuple[PlannerTool, ...],
    lang: Lang,
    *,
    steps: int,
    timeout: float,
) -> Agent[Work]:
    """Return a planner that speaks ``lang``.

    meter: is told of each call.
    steps: the most steps of an executor call, for the prompt.
    timeout: seconds without a word from the model.
    """

    def told(context: RunContextWrapper[Work], _: Agent[Work]) -> str:
        return instructions(lang, context.context.order.date, steps)

    return Agent(
        name="planner",
        instructions=told,
        model=_Model(name, client, meter, timeout),
        model_settings=ModelSettings(include_usage=True),
        tools=[_function(tool, lang) for tool in tools],
    )


async def follow(agent: Agent[Work], work: Work, memory: Memory, *, max_turns: int) -> str:
    """Run until the model calls no more tools; return what it says then."""
    order = work.order
    message = order.message
    if order.only:
        message = f"{message}\n{string.Template(texts(order.lang).only).substitute(phone=order.only)}"
    running = Runner.run_streamed(
        agent,
        message,
        context=work,
        max_turns=max_turns,
        session=_Remembered(memory),
        run_config=RunConfig(
            tracing_disabled=True,
            trace_include_sensitive_data=False,
            tool_not_found_behavior="return_error_to_model",  # it may choose another tool
        ),
    )
    try:
        async for event in running.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_item.done":
                said = _said(event.data.item)
                if said:
                    await work.tell(PlanMessage(said))
    finally:
        await _ended(running)
    if running.run_loop_exception is not None:
        raise running.run_loop_exception
    return str(running.final_output or "").strip()


class _Model(OpenAIChatCompletionsModel):
    """The library's model with our limits and counts.

    Each tool call gets a unique name, because some endpoints count from 0 again in each answer. An endpoint that
    refuses to count tokens is asked without; they are then estimated.
    """

    def __init__(self, name: str, client: AsyncOpenAI, meter: Meter, timeout: float) -> None:
        super().__init__(name, client)
        self._name = name
        self._timeout = timeout
        self._meter = meter
        self._counts = True  # until the endpoint refuses stream_options

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        names: dict[str, str] = {}
        said: list[str] = []  # not counted yet
        await self._meter.admit(self._name)
        try:
            async for event in self._paced(self._streamed(*args, **kwargs)):
                if event.type in ("response.output_item.added", "response.output_item.done"):
                    _rename(event.item, names)
                elif event.type == "response.completed":
                    said.clear()
                    for item in event.response.output:
                        _rename(item, names)
                    usage = _usage(event.response.usage, asked=args[:2], said=event.response.output)
                    await self._meter.count(self._name, usage)
                elif isinstance(delta := getattr(event, "delta", None), str):
                    said.append(delta)
                yield event
        finally:
            if said:  # an answer that broke off, or was stopped, costs tokens, too
                await self._meter.count(self._name, _usage(None, asked=args[:2], said="".join(said)))

    async def _paced(self, events: AsyncGenerator[TResponseStreamEvent]) -> AsyncIterator[TResponseStreamEvent]:
        """Pass the events on; raise TimeoutError if the model says next to nothing for ``timeout`` seconds.

        Raises AnswerRefused if it says too much, or something that cannot be read.
        """
        pace, size = ReplyDeadline(self._timeout), 0
        async with aclosing(events):
            while True:
                try:
                    async with asyncio.timeout_at(pace.deadline):
                        event = await anext(events, None)
                except (ValueError, RecursionError):  # of the library's JSON reader
                    raise AnswerRefused("it is not in the chat completions form", "model_other_form") from None
                if event is None:
                    return
                await asyncio.sleep(0)  # hundreds of events may arrive at once
                if isinstance(delta := getattr(event, "delta", None), str):
                    size += len(delta)
                    pace.heard(size)
                    if size > MOST_SAID:
                        raise AnswerRefused(
                            f"it is longer than {MOST_SAID} characters", "model_said_much", most=MOST_SAID
                        )
                yield event

    async def _streamed(
        self, instructions: Any, items: Any, settings: ModelSettings, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[TResponseStreamEvent]:
        settings = replace(settings, include_usage=self._counts or None)
        try:
            async for event in super().stream_response(instructions, items, settings, *args, **kwargs):
                yield event
        except (BadRequestError, UnprocessableEntityError) as error:  # an older endpoint; nothing was said yet
            if not self._counts or "stream_options" not in error.message:
                raise
            self._counts = False
            async for event in self._streamed(instructions, items, settings, *args, **kwargs):
                yield event


def _usage(told: ResponseUsage | None, *, asked: object, said: object) -> Usage:
    if told is None or not told.total_tokens:
        return Usage(tokens_in=text_tokens(str(asked)), tokens_out=text_tokens(str(said)), guessed=True)
    cached = told.input_tokens_details.cached_tokens if told.input_tokens_details else 0
    return Usage(tokens_in=told.input_tokens, tokens_out=told.output_tokens, tokens_cached=cached)


def _rename(item: Any, names: dict[str, str]) -> None:
    """Give a tool call its unique name. Several events may hold the same item."""
    if getattr(item, "type", "") == "function_call" and item.call_id not in names.values():
        item.call_id = names.setdefault(item.call_id, f"call_{uuid4().hex}")


async def _ended(running: RunResultStreaming) -> None:
    """End the run and wait until no part of it is at work, even if cancelled meanwhile: phones are released."""
    if not running.is_complete:
        running.cancel()
    task = running.run_loop_task
    cancelled = False
    while task is not None and not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _said(item: Any) -> str:
    """Return the words of an item of the model's answer; "" if it has none."""
    if getattr(item, "type", "") != "message":
        return ""
    return "".join(getattr(part, "text", "") for part in item.content).strip()


def _function(tool: PlannerTool, lang: Lang) -> FunctionTool:
    """Return the tool as the library wants it. It tells its call and its result as they happen."""

    async def invoked(context: ToolContext[Work], arguments: str) -> str:
        work = context.context
        given = _given(arguments)
        await work.tell(ToolCalled(context.tool_call_id, tool.name, given))
        result, ok = await _result(tool, work, given)
        await work.tell(ToolReturned(context.tool_call_id, tool.name, result, ok))
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    return FunctionTool(
        name=tool.name,
        description=tool.description(lang),
        params_json_schema=tool.schema(lang),
        on_invoke_tool=invoked,
        strict_json_schema=False,  # not every endpoint knows it; the arguments are checked here
    )


def _given(arguments: str) -> dict[str, Any]:
    with suppress(ValueError):
        given = json.loads(arguments or "{}")
        if isinstance(given, dict):
            return given
    return {}


async def _result(tool: PlannerTool, work: Work, given: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the message for the model, and whether the tool did what it was asked to do."""
    words = texts(work.order.lang)
    wanted = tool.arguments(given)
    if wanted is None:
        names = ", ".join(one.said for one in tool.parameters)
        return string.Template(words.bad_arguments).substitute(names=names), False
    try:
        result = await tool.call(work.executor, wanted)
    except PhonedeskError as error:
        return string.Template(words.tool_failed).substitute(why=str(error)), False
    except Exception as error:  # noqa: BLE001 - a bug in one tool: the planner may go on without it
        # The error's text may hold anything; the place that raised it holds only code.
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = type(error).__name__
        log.error("plan_tool_crashed", tool=tool.name, error=kind, at=f"{place.name}:{place.lineno}")
        return string.Template(words.tool_failed).substitute(why=kind), False
    if isinstance(result, CallResult):
        return result.data(), result.success
    return result, True


class _Remembered:
    """A ``Memory`` with the interface that the library wants."""

    session_id = "plan"
    session_settings: SessionSettings | None = None

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        items = await self._memory.items(limit or MOST_REMEMBERED)
        if len(items) >= MOST_REMEMBERED:  # a conversation begins with a person's words
            begins = next((n for n, item in enumerate(items) if item.get("role") == "user"), 0)
            items = items[begins:]
        return cast("list[TResponseInputItem]", items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._memory.add(cast("list[dict[str, Any]]", items))

    async def pop_item(self) -> TResponseInputItem | None:
        return cast("TResponseInputItem | None", await self._memory.pop())

    async def clear_session(self) -> None:
        await self._memory.clear()
