"""Runs that were, as the agent and the worker leave them behind."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from PIL import Image

from agent_core.ports import AnswerEvent, Event, ReplyState
from agent_core.session import Session, Status, StepRecord
from scheduler.ports import StoredRuns
from storage.engine import Database
from storage.runs import NewRun, Runs


def screen(number: int = 0, size: tuple[int, int] = (108, 240)) -> bytes:
    """A picture that differs from those of other numbers."""
    image = Image.new("RGB", size, (20 * number % 256, 90, 160))
    image.paste("white", (10, 10 + 3 * number % 180, 60, 30 + 3 * number % 180))
    out = io.BytesIO()
    image.save(out, "JPEG")
    return out.getvalue()


async def past_run(
    db: Database,
    task: str = "QQ回复联系人11",
    *,
    steps: int = 3,
    status: str = "succeeded",
    message: str = "",
    serial: str = "S1",
    by: str = "",
    sent: Mapping[str, str] | None = None,
    schedule_id: int | None = None,
    chat: Mapping[str, Any] | None = None,
    size: tuple[int, int] = (108, 240),
) -> str:
    """A run that is over, with a picture a step, and one of each answer (``sent``: contact → text). Its id."""
    store = StoredRuns(db)
    made = await Runs(db).create(
        NewRun(task, serial, requested_by=by, schedule_id=schedule_id, chat=chat, options={"lang": "zh"}, begun=True)
    )
    assert made is not None
    session = Session(run_id=made, task=task, serial=serial)
    for number in range(1, steps + 1):
        action = {"kind": "tap", "element": [500, number]}
        step = StepRecord(index=number, thinking=f"想法 {number}", action=action, asked=action)
        session.steps.append(step)
        await store.event(made, Event("step", step.model_dump(exclude={"reply"})), picture=screen(number, size))
    for number, (contact, text) in enumerate((sent or {}).items(), start=1):
        row = int.from_bytes(made[-4:].encode()) * 10 + number  # a row of the ledger for each
        for state in (ReplyState.PLANNED, ReplyState.SENT):
            event = AnswerEvent(row, "qq", contact, "几天发货", state, "q", (), text, "knowledge", "r7", "e:r7", 0.9)
            await store.event(made, Event("answer", event.data()), picture=screen(100 + number, size))
    session.end(Status(status), message)
    await store.save(session)
    await store.event(made, Event("outcome", {"status": status, "message": message}))
    await Runs(db).end_leg(made, 1, status=status, message=message)
    return made
