"""The event log over HTTP, as server-sent events."""

from __future__ import annotations

from bot.channels.web.api.models import ApiEventsQuery
from bot.channels.web.api.operations import ApiCall, JpegPicture, Operations, Stream
from bot.desk.actors import NotFound

operations = Operations("events")
_DIGITS = 18


@operations.get("/events")
async def follow_events(call: ApiCall, query: ApiEventsQuery) -> Stream:
    """Follow what happens: new events as they come, or all after `Last-Event-ID`."""
    return Stream(await call.desk.log.follow(call.actor, after=_after(call, query)))


@operations.get("/runs/{run_id}/events")
async def follow_run(call: ApiCall, run_id: str, query: ApiEventsQuery) -> Stream:
    """Follow a run: its events so far, and new ones as they come."""
    return Stream(await call.desk.log.follow(call.actor, after=_after(call, query), run_id=run_id))


@operations.get("/events/{event_id}/picture")
async def get_event_picture(call: ApiCall, event_id: str) -> JpegPicture:
    """Show the screen of an event."""
    if not event_id.isascii() or not event_id.isdecimal() or len(event_id) > _DIGITS:
        raise NotFound(f"There is no event {event_id}.", key="no_event", name=event_id[:_DIGITS])
    return JpegPicture(await call.desk.log.picture(call.actor, int(event_id)))


def _after(call: ApiCall, query: ApiEventsQuery) -> int | None:
    """Return the event after which to go on: a client that comes back says it in the header."""
    seen = call.last_event
    if seen.isascii() and seen.isdecimal() and len(seen) <= _DIGITS:
        return int(seen)
    return query.after
