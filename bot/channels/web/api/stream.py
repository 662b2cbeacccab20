"""Server-sent events: the event log for a program or a page, from where it was.

The format is that of the HTML standard, section 9.2: ``id``, ``event``, ``data``, and comments that keep the connection
open. A client that comes back sends the id of the last event it has as ``Last-Event-ID``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import aclosing
from contextvars import Context

from aiohttp import hdrs, web

from agent_core.lru import keep_newest
from bot.channels.web.api.events import ApiEvent
from bot.channels.web.callers import caller_of
from bot.desk.desk import Desk
from bot.desk.views import EventBatches, EventView

HEARTBEAT_SECONDS = 15.0
REMEMBERED = 50  # events as they are sent
MOST_STREAMS = 500  # at a time; each has a connection open


class EventStreams:
    """Answers requests with events until the client leaves, its key or session ends, or the server ends."""

    def __init__(self, desk: Desk, *, heartbeat: float = HEARTBEAT_SECONDS) -> None:
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
