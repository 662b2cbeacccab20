"""The layered agent over HTTP: a plan as a stream of server-sent events, its abort, and resetting its session.

Each event is ``data: {…}``, see ``agent_core.planner``; comments between them keep the connection open. A client that
closes the stream before the plan is over aborts it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated
from uuid import uuid4

import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.errors import PhonedeskError
from agent_core.planner import PlanDone, PlanEvent, PlanFailed
from bot.app.escapes import to_json
from bot.app.request_body import body_of
from bot.channels.chat.command_names import for_programs
from bot.channels.web.app import MAX_BODY
from bot.channels.web.problems import CHALLENGE, status_of, what_is_wrong
from bot.desk.actors import Actor
from bot.desk.desk import Desk
from bot.desk.keys import actor_of_key
from storage.engine import Database
from storage.repository import run_shielded

log = structlog.get_logger(__name__)

PATH = "/api/layered-agent"
SESSION_HEADER = "X-Session-Id"
LOOK_SECONDS = 0.25  # how soon a disconnected client is noticed
HEARTBEAT_SECONDS = 15.0

SessionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")  # a misspelt device_id would mean every phone


class ChatAsked(_Asked):
    """``device_id``: the one phone that it is about. ``session_id``: the conversation, begun where there is none."""

    message: Annotated[str, Field(min_length=1)]
    device_id: Annotated[str, Field(max_length=200)] | None = None
    session_id: SessionId | None = None


class SessionAsked(_Asked):
    session_id: SessionId


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_routes(app: web.Application, desk: Desk, db: Database, *, heartbeat: float = HEARTBEAT_SECONDS) -> None:
    """Add the routes. ``heartbeat``: seconds between two comments if nothing else is sent."""

    async def actor_of(request: web.Request) -> Actor:
        header = request.headers.get("Authorization", "")
        actor = await actor_of_key(db, header)
        if actor is None:
            said = "This API key is not known: it is wrong, or was removed." if header else "An API key is needed."
            raise web.HTTPUnauthorized(
                headers=CHALLENGE,
                text=json.dumps({"error": "unauthorized", "message": said}),
                content_type="application/json",
            )
        return actor

    async def chat(request: web.Request) -> web.StreamResponse:
        actor = await actor_of(request)
        asked = ChatAsked.model_validate_json(await body_of(request, MAX_BODY))
        session = asked.session_id or uuid4().hex
        run = await desk.plans.start(actor, asked.message, serial=asked.device_id or "", session=session)
        over = False
        try:
            response = web.StreamResponse(
                headers={
                    "Content-Type": "text/event-stream; charset=utf-8",
                    "Cache-Control": "no-cache",
                    "X-Accel-Buffering": "no",  # a proxy in between must pass each event on at once
                    SESSION_HEADER: session,
                }
            )
            await response.prepare(request)
            over = await _streamed(request, response, desk.plans.follow(run.id), heartbeat)
        finally:
            if not over:
                log.info("plan_left", run_id=run.id)
                await run_shielded(desk.plans.leave(run.id))
        return response

    async def abort(request: web.Request) -> web.Response:
        actor = await actor_of(request)
        session = SessionAsked.model_validate_json(await body_of(request, MAX_BODY)).session_id
        return web.json_response({"success": True, "aborted": await desk.plans.stop(actor, session)})

    async def reset(request: web.Request) -> web.Response:
        actor = await actor_of(request)
        session = SessionAsked.model_validate_json(await body_of(request, MAX_BODY)).session_id
        await desk.plans.forget(actor, session)
        return web.json_response({"success": True})

    async def end_all(_: web.Application) -> None:
        if desk.context.planning is not None:
            await desk.context.planning.close()  # otherwise the server would wait for streams that wait for plans

    app.on_shutdown.append(end_all)
    for name, handler in (("chat", chat), ("abort", abort), ("reset", reset)):
        app.router.add_post(f"{PATH}/{name}", _told(handler))


def _told(handler: Handler) -> Handler:
    """Return the handler with its errors as JSON, as long as no stream has begun."""

    async def handled(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ValidationError as error:
            return _error(400, "invalid_request", ": ".join(filter(None, what_is_wrong(error))))
        except PhonedeskError as error:
            return _error(status_of(error), error.kind, for_programs(str(error)))

    return handled


def _error(status: int, kind: str, message: str) -> web.Response:
    return web.json_response({"error": kind, "message": message}, status=status)


async def _streamed(
    request: web.Request, response: web.StreamResponse, events: AsyncIterator[PlanEvent], heartbeat: float
) -> bool:
    """Pass the events on; return whether the plan ended before the client disconnected."""
    loop = asyncio.get_running_loop()
    beaten = loop.time()
    following = asyncio.ensure_future(anext(events))
    try:
        while True:
            await asyncio.wait([following], timeout=min(LOOK_SECONDS, heartbeat))
            if request.transport is None or request.transport.is_closing():
                return False
            if following.done():
                event = following.result()
                await response.write(f"data: {to_json(event.data())}\n\n".encode())
                beaten = loop.time()
                if isinstance(event, PlanDone | PlanFailed):
                    await response.write_eof()
                    return True
                following = asyncio.ensure_future(anext(events))
            elif loop.time() - beaten >= heartbeat:
                await response.write(b": still at work\n\n")
                beaten = loop.time()
    except ConnectionResetError:
        return False
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
