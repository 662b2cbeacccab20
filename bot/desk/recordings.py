"""The records of a run's steps: the saved session, the requests to the model, and both kinds of pictures."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from agent_core.loop.trajectory import Message, ModelRequest, whole_messages
from agent_core.session import Session
from bot.desk.history_views import RecordedStep
from storage.engine import Database
from storage.events import Events
from storage.trajectories import Trajectories, TrajectoryRow


async def recorded_steps(db: Database, session: Session, events: Mapping[int, int]) -> tuple[RecordedStep, ...]:
    """Return the steps in their order. ``events``: by step, the id of the picture that people were shown of it."""
    rows = Trajectories(db)
    asked = _requests(await rows.of(session.run_id))
    found = []
    for step in session.steps:
        row, request, messages = asked.get(step.index, (None, None, []))
        # This step was decided without the model; the request is of the same step in an attempt that died.
        if not step.reply and not step.model:
            row, request, messages = None, None, []
        picture = await rows.picture(session.run_id, request.picture) if request and request.picture else None
        shown = None
        if picture is None and step.index in events:
            shown = await Events(db).picture(events[step.index])
        found.append(
            RecordedStep(
                record=step,
                asked=request,
                messages=tuple(messages),
                picture=picture,
                shown=shown,
                at=row.created_at if row else None,
                stored=row.stored if row else 0,
            )
        )
    return tuple(found)


def _requests(rows: list[TrajectoryRow]) -> dict[int, tuple[TrajectoryRow, ModelRequest, list[Message]]]:
    """Return the requests by step. Leaves out a request that this release cannot read, and all that follow it."""
    read: list[tuple[TrajectoryRow, ModelRequest]] = []
    for row in rows:
        try:
            request = ModelRequest.model_validate_json(row.data)
        except ValidationError:
            break
        if read or not request.kept:  # otherwise it builds on a row that is gone
            read.append((row, request))
    whole = whole_messages([request for _, request in read])
    return {row.step: (row, request, messages) for (row, request), messages in zip(read, whole, strict=True)}
