"""The event log over HTTP, as server-sent events: for a program or a page, from where it was.

The format is that of the HTML standard, section 9.2: ``id``, ``event``, ``data``, and comments that keep the connection
open. A client that comes back sends the id of the last event it has as ``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import aclosing
from contextvars import Context
from datetime import datetime
from typing import Annotated, Any

from aiohttp import hdrs, web
from pydantic import Field

from agent_core.lru import keep_newest
from bot.channels.web.api.operations import ApiCall, JpegPicture, Operations, Shown, Stream, Wish
from bot.channels.web.callers import caller_of
from bot.desk.actors import NotFound
from bot.desk.desk import Desk
from bot.desk.views import EventBatches, EventView

operations = Operations("events")
_DIGITS = 18
HEARTBEAT_SECONDS = 15.0
REMEMBERED = 50  # events as they are sent
MOST_STREAMS = 500  # at a time; each has a connection open
AFTER = (
    "The id of an event: the stream begins after it. An id above the newest one means from now on. For clients that "
    "cannot send `Last-Event-ID`, which counts if both are given."
)


class ApiEventsQuery(Wish):
    """The query of a stream of events, which says where it begins."""

    after: Annotated[int | None, Field(ge=0, le=2**62, description=AFTER)] = None


class ApiEvent(Shown):
    """A row of the event log. ``data`` depends on ``kind``. ``picture``: whether there is one."""

    id: int
    run: str = Field(validation_alias="run_id")
    kind: str
    data: Mapping[str, Any]
    picture: bool = Field(validation_alias="pictured")
    at: datetime | None = Field(validation_alias="created_at")


@operations.get("/events")
async def follow_events(call: ApiCall, query: ApiEventsQuery) -> Stream:
    """Follow what happens: new events as they come.

    With `Last-Event-ID` or `after` it begins after that event, else now. It stays open; if the key is removed, it ends
    within 15 seconds.
    """
    return Stream(await call.desk.log.follow(call.actor, after=_after(call, query)))


@operations.get("/runs/{run_id}/events")
async def follow_run(call: ApiCall, run_id: str, query: ApiEventsQuery) -> Stream:
    """Follow a run: its events so far, and new ones as they come.

    With `Last-Event-ID` or `after` it begins after that event. It stays open, also when the run is over; if the key is
    removed, it ends within 15 seconds.
    """
    return Stream(await call.desk.log.follow(call.actor, after=_after(call, query), run_id=run_id))


@operations.get("/events/{event_id}/picture")
async def get_event_picture(call: ApiCall, event_id: str) -> JpegPicture:
    """Show the screen of an event."""
    if not event_id.isascii() or not event_id.isdecimal() or len(event_id) > _DIGITS:
        raise NotFound(f"There is no event {event_id}.", key="no_event", name=event_id[:_DIGITS])
    return JpegPicture(await call.desk.log.picture(call.actor, int(event_id)))


def _after(call: ApiCall, query: ApiEventsQuery) -> int | None:
    """Return the event after which to go on: a client that comes back says it in the header."""
    return query.after if call.last_event is None else call.last_event


# Streams --------------------------------------------------------------------------------------------------------------


class EventStreams:
    """Answers requests with events until the client leaves, its key or session ends, or the server ends."""

    def __init__(self, desk: Desk, *, heartbeat: float) -> None:
        self._desk = desk
        self._heartbeat = heartbeat
        self._open: set[asyncio.Task[None]] = set()
        self._written: OrderedDict[int, tuple[EventView, bytes]] = OrderedDict()  # by identity

    async def answer(self, request: web.Request, events: EventBatches) -> web.StreamResponse:
        """Answer with ``events``; those that come together are sent together."""
        if len(self._open) >= MOST_STREAMS:
            raise web.HTTPServiceUnavailable(reason=f"There are {MOST_STREAMS} streams of events already.")
        response = web.StreamResponse(
            headers={
                hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8",
                hdrs.CACHE_CONTROL: "no-store",
                "X-Accel-Buffering": "no",  # a proxy in between must pass each event on at once
            }
        )
        try:
            await response.prepare(request)
        except ConnectionResetError:
            return response  # the client has left already
        # In contexts of their own: they go on for hours, and begin to read the log for others, so they are no guests.
        streaming = asyncio.create_task(self._stream(response, events), name="event-stream", context=Context())
        beating = asyncio.create_task(self._beat(request, response, streaming), name="event-beat", context=Context())
        self._open.add(streaming)
        try:
            await asyncio.wait([streaming])
        finally:
            self._open.discard(streaming)
            streaming.cancel()
            beating.cancel()
            for done in await asyncio.gather(streaming, beating, return_exceptions=True):
                if isinstance(done, Exception) and not isinstance(done, ConnectionResetError):
                    raise done
        return response

    async def end(self, _: web.Application) -> None:
        """End all streams: the server would wait for them."""
        for streaming in self._open:
            streaming.cancel()

    async def _stream(self, response: web.StreamResponse, events: EventBatches) -> None:
        await response.write(b": here\n\n")
        async with aclosing(events):
            async for some in events:
                await response.write(b"".join(map(self._bytes_of, some)))

    async def _beat(self, request: web.Request, response: web.StreamResponse, streaming: asyncio.Task[None]) -> None:
        """Keep the connection open. End the stream if the client has left, or may no longer see the events."""
        try:
            while True:
                await asyncio.sleep(self._heartbeat)
                if await caller_of(request, self._desk) is None:
                    return
                await response.write(b": still here\n\n")
        finally:
            streaming.cancel()

    def _bytes_of(self, event: EventView) -> bytes:
        """Return an event as it is sent. It is written once for all streams that send the same object."""
        kept = self._written.get(id(event))
        if kept is None:
            kept = (event, _written(event))  # while the event is kept, its identity is its own
            keep_newest(self._written, id(event), kept, REMEMBERED)
        return kept[1]


def _written(event: EventView) -> bytes:
    data = ApiEvent.of(event).model_dump_json()
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n".encode()
