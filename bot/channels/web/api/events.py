"""The event log over HTTP, as server-sent events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from bot.channels.web.api.models import Shown, Wish
from bot.channels.web.api.operations import ApiCall, JpegPicture, Operations, Stream
from bot.desk.actors import NotFound

operations = Operations("events")
_DIGITS = 18
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
