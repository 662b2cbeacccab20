"""The MCP server on the official SDK's low-level one: calls in, results out, for both kinds of the protocol.

Until version 2025-11-25 a client that can be asked is asked while its call waits; from 2026-07-28 on the call ends with
``input_required``, and the client repeats it with the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError

from agent_core.errors import PhonedeskError
from bot.app.logs import mask
from bot.app.release import NAME, release
from bot.channels.chat.command_names import for_programs
from bot.channels.mcp import arguments as given
from bot.channels.mcp.acts import Acts, ShownScreen
from bot.channels.mcp.client import Asks, Client, form_of, words_of
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.results import IS_ERROR, JPEG, ResultPicture, StopReason, TaskResult
from bot.channels.mcp.stopping import Stopper
from bot.channels.mcp.tasks import Tasks
from bot.channels.mcp.tools import INSTRUCTIONS, McpTool, tools
from bot.desk.actors import Actor, Role
from storage.people import TERMINAL

log = structlog.get_logger(__name__)

REPLY = "reply"  # the key of the one request of an input_required result
Context = ServerRequestContext[Any, Any]
WhoAsks = Callable[[Context], Actor]
Answered = types.CallToolResult | types.InputRequiredResult


def make_server(shared: ToolContext, who: WhoAsks) -> Server[dict[str, Any]]:
    """Return the server. ``who`` tells whose call it is."""
    offered = tools(low_level=shared.settings.low_level)
    calls = _Calls(shared, offered)

    async def listed(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.listed() for tool in offered.values()])

    async def called(context: Context, params: types.CallToolRequestParams) -> Answered:
        tool = offered.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:64]}.")
        actor = who(context)
        session = context.request.headers.get(MCP_SESSION_ID_HEADER, "") if context.request is not None else ""
        return await shared.calls.apart(lambda stopper: calls.answer(context, tool, actor, params, stopper), session)

    return Server(NAME, version=release(), instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called)


async def serve_stdio(context: ToolContext, ended: asyncio.Event) -> bool:
    """Serve over standard input and output: for the program that started us, with the rights of its user.

    Returns True when the client closes its end, False when ``ended`` is set; then running calls are stopped. After
    False the reader of standard input hangs, and nobody can cancel it: the process has to exit.
    """
    lang = context.core.settings.lang
    me = Actor(TERMINAL, TERMINAL, TERMINAL, TERMINAL, lang, Role.OWNER)
    server = make_server(context, lambda _: me)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    serving = asyncio.create_task(serve(), name="mcp-stdio")
    ending = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
            return True
        await context.calls.stop()
        return False
    finally:
        ending.cancel()


class _Calls:
    def __init__(self, shared: ToolContext, offered: Mapping[str, McpTool]) -> None:
        self._shared = shared
        self._offered = offered
        self._acts = Acts(shared)
        self._tasks = Tasks(shared)

    async def answer(
        self, context: Context, tool: McpTool, actor: Actor, params: types.CallToolRequestParams, stopper: Stopper
    ) -> Answered:
        """Return the result of a call; an error is a result, too, for the client program to read."""
        try:
            arguments = tool.arguments.read(params.arguments)
            if isinstance(arguments, given.AskAgent | given.StartTask | given.ContinueTask):
                arguments = given.task_call(arguments)
            if isinstance(arguments, given.TaskCall):
                return await self._task(context, actor, arguments, params, stopper)
            if isinstance(arguments, given.Act):
                return _plain(await self._acts.act(actor, tool.name, arguments, stopper))
            if isinstance(arguments, given.Screenshot):
                return _picture(await self._acts.screenshot(actor, arguments.device_id))
            return _plain({"devices": await self._acts.phones(actor, for_tasks=not tool.low_level)})
        except PhonedeskError as error:
            return _refused(error, tool)
        except Exception as error:
            log.exception("mcp_call_failed", tool=tool.name, error=repr(error))
            return _refused(PhonedeskError("This failed inside the server; its log says why."), tool)

    async def _task(
        self,
        context: Context,
        actor: Actor,
        call: given.TaskCall,
        params: types.CallToolRequestParams,
        stopper: Stopper,
    ) -> Answered:
        client = _client(context)
        round_ = _Round.read(params)
        if round_ is None:
            begin = self._tasks.begin if call.task is not None else self._tasks.go_on
            result = await begin(actor, call, client, stopper)
            before, answered = result.global_steps - result.local_steps, True
        else:
            before = round_.before
            again = call.model_copy(
                update={"task": None, "session_id": round_.session_id, "reply_from_client": round_.words}
            )
            answered, result = await self._answered(actor, again, client, stopper, before)
            result = replace(result, task=call.task, reply=call.reply_from_client)  # whatever later rounds brought
        question = result.question
        may_ask = call.reply_mode is given.ReplyMode.PASS_TO_CLIENT and client.asks is Asks.AGAIN
        if question is None or not may_ask or not result.client_may_answer or not answered:
            return _done(result)
        form = types.ElicitRequestFormParams(message=question.text, requested_schema=form_of(question))
        state = json.dumps({"session_id": result.session_id, "before": before})
        return types.InputRequiredResult(input_requests={REPLY: types.ElicitRequest(params=form)}, request_state=state)

    async def _answered(
        self, actor: Actor, call: given.TaskCall, client: Client, stopper: Stopper, before: int
    ) -> tuple[bool, TaskResult]:
        """Continue the session with a round's answer.

        Return False if it still waits, and the result says what was wrong.
        """
        why = ""
        if call.reply_from_client:
            try:
                checked = given.TaskCall.read(call.model_dump(exclude_none=True))
                return True, await self._tasks.go_on(actor, checked, client, stopper, before=before)
            except PhonedeskError as error:
                why = mask(str(error))
        return False, await self._tasks.waits(actor, call, before=before, why=why)


class _Round:
    """A call that is repeated with the answer to its question. ``words`` is "" if nobody wanted to answer.

    The state comes from outside: the session that it names is checked like a session_id from the client itself.
    """

    def __init__(self, session_id: str, before: int, words: str) -> None:
        self.session_id, self.before, self.words = session_id, before, words

    @classmethod
    def read(cls, params: types.CallToolRequestParams) -> _Round | None:
        if not params.request_state:
            return None
        try:
            state = json.loads(params.request_state)
            session_id, before = str(state["session_id"]), max(0, int(state["before"]))
        except (ValueError, KeyError, TypeError):
            raise MCPError(types.INVALID_PARAMS, "request_state is not one of this server.") from None
        given_back = (params.input_responses or {}).get(REPLY)
        accepted = isinstance(given_back, types.ElicitResult) and given_back.action == "accept"
        content = given_back.content if isinstance(given_back, types.ElicitResult) and accepted else None
        return cls(session_id, before, words_of(dict(content) if content else None))


def _client(context: Context) -> Client:
    session = context.session

    async def report(progress: float, total: float, message: str) -> None:
        await session.report_progress(progress, total, message)

    async def elicit(message: str, schema: dict[str, Any]) -> str:
        result = await session.elicit_form(message, schema, related_request_id=context.request_id)
        accepted = result.action == "accept" and result.content
        return words_of(dict(result.content)) if accepted and result.content else ""

    capabilities = session.client_capabilities
    asked = capabilities.elicitation if capabilities else None
    # A client that names no kind supports forms: it predates other kinds.
    if asked is None or (asked.form is None and asked.url is not None):
        return Client(report)
    return Client(report, Asks.NOW, elicit) if session.can_send_request else Client(report, Asks.AGAIN)


def _plain(data: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    words = types.TextContent(text=json.dumps(data, ensure_ascii=False))
    return types.CallToolResult(content=[words], structured_content=data, is_error=is_error)


def _picture(shown: ShownScreen) -> types.CallToolResult:
    data = {"device_id": shown.device_id, "device_wm_size": list(shown.size)}
    result = _plain(data)
    return result.model_copy(update={"content": [_image(ResultPicture(shown.jpeg)), *result.content]})


def _image(shot: ResultPicture) -> types.ImageContent:
    return types.ImageContent(data=shot.base64, mime_type=JPEG)


def _done(result: TaskResult) -> types.CallToolResult:
    words = types.TextContent(text=json.dumps(result.in_words(), ensure_ascii=False))
    return types.CallToolResult(
        content=[words, *map(_image, result.shots)],
        structured_content=result.data(),
        is_error=result.stop_reason in IS_ERROR,
    )


def _refused(error: PhonedeskError, tool: McpTool) -> types.CallToolResult:
    said, advice = (for_programs(text, devices="list_connected_devices") for text in (mask(str(error)), error.advice))
    data: dict[str, Any] = {"error": {"kind": error.kind, "message": mask(error.message), "advice": advice}}
    if not tool.low_level and tool.acts:
        data = {"stop_reason": StopReason.NOT_STARTED.value, "message": said, **data}
    return types.CallToolResult(content=[types.TextContent(text=said)], structured_content=data, is_error=True)
