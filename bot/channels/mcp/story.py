"""A run as its client hears of it: stored like every run, reported step by step, with captions of its screens, and kept
for the result.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from PIL import Image

from agent_core.loop.defaults import NoStore
from agent_core.model.base import Model
from agent_core.ports import Event, RunStore
from agent_core.session import Session, StepRecord
from agent_core.texts import Lang
from bot.channels.mcp.arguments import TaskCall
from bot.channels.mcp.client import News
from bot.channels.mcp.results import LoggedStep, ResultPicture, agent_action
from bot.channels.mcp.texts import say
from storage.engine import Database
from storage.events import Events

log = structlog.get_logger(__name__)

MAX_NEWS = 300  # characters of a step's message to the client
MOST_EVENTS = 5000  # of a run, that are searched for the pictures of its steps
CAPTION_SECONDS = 60.0
AT_ONCE = 2  # captions of one call that are made side by side


class Captions:
    """The captions of screens, made while the agent continues; a screen that cannot be described has none."""

    def __init__(self, model: Model, lang: Lang) -> None:
        self._model = model
        self._lang = lang
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tasks: list[asyncio.Task[str | None]] = []

    def begin(self, jpeg: bytes) -> asyncio.Task[str | None]:
        task = asyncio.create_task(self._caption(jpeg), name="mcp-caption")
        self._tasks.append(task)
        return task

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _caption(self, jpeg: bytes) -> str | None:
        try:
            async with self._turns, asyncio.timeout(CAPTION_SECONDS):
                picture = await asyncio.to_thread(opened, jpeg)
                return (await self._model.transcribe(picture, say(self._lang, "ask.caption"))).strip() or None
        except Exception as error:  # noqa: BLE001 - whatever it is, the task is done, and its client hears of it
            log.warning("caption_missing", error=repr(error))
            return None


def opened(jpeg: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(jpeg))
    picture.load()
    return picture


@dataclass(frozen=True, slots=True)
class _Seen:
    step: StepRecord
    jpeg: bytes | None
    caption: asyncio.Task[str | None] | None


class Story:
    """The store and report of a run; implements ``agent_core.ports.RunStore``.

    call: which parts of the steps the client wants to see.
    before: the number of steps that the session had when this call began.
    """

    def __init__(self, news: News, captions: Captions, call: TaskCall, *, lang: Lang, before: int) -> None:
        self._store: RunStore = NoStore()
        self._news = news
        self._captions = captions
        self._call = call
        self._lang = lang
        self._before = before
        self._seen: list[_Seen] = []

    def stored_in(self, store: RunStore) -> None:
        self._store = store

    async def begin_with(self, db: Database, session: Session) -> None:
        """Load the steps that an earlier round of this call took, with their stored pictures."""
        steps = session.steps[self._before :]
        if not steps or not self._call.enable_intermediate_logs:
            return
        kept = {}
        if self._call.enable_intermediate_screenshots or self._call.enable_intermediate_image_caption:
            rows = await Events(db).after(0, run_id=session.run_id, limit=MOST_EVENTS)
            kept = {row.data.get("index"): row.picture_id for row in rows if row.kind == "step"}
        for step in steps:
            number = kept.get(step.index)
            self._keep(step, None if number is None else await Events(db).picture(number))

    async def save(self, session: Session) -> None:
        await self._store.save(session)

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        await self._store.event(run_id, event, picture=picture, session=session)
        if event.kind == "step":
            self._saw(StepRecord.model_validate(dict(event.data)), picture)

    def _saw(self, step: StepRecord, picture: bytes | None) -> None:
        done = agent_action(step)
        told = " ".join(filter(None, (str(done["action"]), step.thinking)))
        self._news.tell(
            step.index - self._before, say(self._lang, "progress.step", step=step.index, action=told)[:MAX_NEWS]
        )
        if self._call.enable_intermediate_logs:
            self._keep(step, picture)

    def _keep(self, step: StepRecord, picture: bytes | None) -> None:
        ends = (step.action or {}).get("kind") == "finish"  # it is the final action, which gets no picture
        caption = (
            self._captions.begin(picture)
            if self._call.enable_intermediate_image_caption and picture and not ends
            else None
        )
        self._seen.append(_Seen(step, picture if self._call.enable_intermediate_screenshots else None, caption))

    async def logs(self, *, last_is_final: bool) -> Sequence[LoggedStep] | None:
        """Return this call's steps, without the last one if that is the final action; None if nobody wants them."""
        if not self._call.enable_intermediate_logs:
            return None
        seen = self._seen[:-1] if last_is_final else self._seen
        return [
            LoggedStep(
                one.step.index,
                agent_action(one.step),
                ResultPicture(one.jpeg, await one.caption if one.caption else None),
            )
            for one in seen
        ]
