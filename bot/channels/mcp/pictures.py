"""Describes screens in words, and lets a model that sees one answer."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress

import structlog
from PIL import Image

from agent_core.errors import PhonedeskError
from agent_core.model.base import Model
from agent_core.session import Question, Session
from agent_core.texts import Lang
from bot.channels.mcp.texts import say

log = structlog.get_logger(__name__)

UNKNOWN = "UNKNOWN"
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


async def reply_of(model: Model, session: Session, question: Question, jpeg: bytes | None) -> str:
    """Return a model's answer for the user, by the screen and the task; "" if it does not know, or cannot be asked."""
    labels = " / ".join(choice.label or choice.value for choice in question.choices)
    choices = say(session.lang, "ask.choices", choices=labels) if labels else ""
    asked = say(session.lang, "ask.reply", task=session.task, question=question.text, choices=choices, unknown=UNKNOWN)
    said = ""
    with suppress(PhonedeskError, TimeoutError):
        async with asyncio.timeout(CAPTION_SECONDS):
            if jpeg is None:  # a question repeated after a restart has no picture
                said = (await model.ask([{"role": "user", "content": asked.strip()}])).text.strip()
            else:
                picture = await asyncio.to_thread(opened, jpeg)
                said = (await model.transcribe(picture, asked.strip())).strip()
    return "" if UNKNOWN in said.upper() else said


def opened(jpeg: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(jpeg))
    picture.load()
    return picture
