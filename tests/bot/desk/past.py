"""Runs that were, as the agent and the worker leave them behind."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from agent_core.devices.base import Window
from agent_core.geometry import Box
from agent_core.loop.trajectory import ModelRequest
from agent_core.perception.readings import Reading, Source
from agent_core.ports import AnswerEvent, Event, ReplyState
from agent_core.session import Session, Status, StepRecord
from scheduler.runs.executor import StoredRuns
from storage.engine import Database
from storage.model_calls import Trajectories
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
    sent: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    schedule_id: int | None = None,
    chat: Mapping[str, Any] | None = None,
    size: tuple[int, int] = (108, 240),
    secret: str | None = None,
    thinking: str = "想法",
) -> str:
    """A run that is over, with a picture a step, and one of each answer (``sent``: contact and text). Its id.

    ``secret``: what the model was asked is recorded, raw, with this text on each screen; "" for none.
    """
    store = StoredRuns(db)
    made = await Runs(db).create(
        NewRun(task, serial, requested_by=by, schedule_id=schedule_id, chat=chat, options={"lang": "zh"}, begun=True)
    )
    assert made is not None
    session = Session(run_id=made, task=task, serial=serial)
    for number in range(1, steps + 1):
        action = {"kind": "tap", "element": [500, number]}
        step = StepRecord(index=number, thinking=f"{thinking} {number}", action=action, asked=action)
        if secret is not None:
            step.reply = f'<think>想法 {number}</think><answer>do(action="Tap", element=[500,{number}])</answer>'
            step.timings, step.tokens_in, step.tokens_out = {"model": 0.5 * number, "step": float(number)}, 100, 20
            await record(db, made, number, secret, size)
        session.steps.append(step)
        await store.event(made, Event("step", step.model_dump(exclude={"reply"})), picture=screen(number, size))
    for number, (contact, text) in enumerate(sent.items() if isinstance(sent, Mapping) else sent, start=1):
        row = int.from_bytes(made[-4:].encode()) * 10 + number  # a row of the ledger for each
        for state in (ReplyState.PLANNED, ReplyState.SENT):
            event = AnswerEvent(row, "qq", contact, "几天发货", state, "q", (), text, "knowledge", "r7", "e:r7", 0.9)
            await store.event(made, Event("answer", event.data()), picture=screen(100 + number, size))
    session.end(Status(status), message)
    await store.save(session)
    await store.event(made, Event("outcome", {"status": status, "message": message}))
    await Runs(db).end_attempt(made, 1, status=status, message=message)
    return made


async def record(db: Database, run_id: str, step: int, secret: str, size: tuple[int, int]) -> None:
    """What the model was asked at a step: the task, and a screen with a button and, in the middle, the secret."""
    button = Reading("<按钮>", Box(0, 0, size[0], 20), Source.TREE, role="button")
    hidden = Reading(secret, Box(20, 100, 80, 120), Source.TREE)
    picture = screen(step, size)
    newest = [
        {"type": "image_url", "image_url": {"url": f"picture:p{step}"}},
        {"type": "text", "text": f"第 {step} 屏 <按钮> {secret}"},
    ]
    prompt = [] if step > 1 else [{"role": "system", "content": "怎样回答"}]
    request = ModelRequest(
        step=step,
        model="scripted",
        profile="autoglm-phone",
        dialect="autoglm",
        kept=1 if step > 1 else 0,
        messages=[*prompt, {"role": "user", "content": newest}],
        window=Window("com.tencent.mobileqq"),
        size=size,
        readings=[button, hidden] if secret else [button],
        picture=f"p{step}",
        covered=[hidden.box] if secret else [],
        raw=bool(secret),
    )
    await Trajectories(db).asked(run_id, step, request.model_dump_json(), digest=f"p{step}", picture=picture)
