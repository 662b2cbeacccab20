"""Shows in a terminal that a model has not answered yet, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from agent_core.model.base import Completion, Message, Model, ModelWrapper, OnThinking
from bot.app.settings.layers import Settings
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Text

FIRST_SECONDS = 5.0  # most models answer sooner
EVERY_SECONDS = 10.0


class WaitedFor(ModelWrapper):
    """A model whose calls are reported while they last.

    say: gets the seconds after ``first`` seconds, then every ``every`` seconds. Thinking is a sign of life: after it
        they are counted from 0.
    """

    def __init__(
        self,
        model: Model,
        say: Callable[[int], object],
        *,
        first: float = FIRST_SECONDS,
        every: float = EVERY_SECONDS,
    ) -> None:
        super().__init__(model)
        self._say = say
        self._first, self._every = first, every
        self._since = 0.0

    async def complete(self, messages: Sequence[Message], *, on_thinking: OnThinking | None = None) -> Completion:
        async def heard(text: str) -> None:
            self._since = asyncio.get_running_loop().time()
            if on_thinking is not None:
                await on_thinking(text)

        async with self._told():
            return await super().complete(messages, on_thinking=heard)

    async def ask(self, messages: Sequence[Message]) -> Completion:
        async with self._told():
            return await super().ask(messages)

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        self._since = asyncio.get_running_loop().time()
        telling = asyncio.create_task(self._tell(), name="model-waited-for")
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self) -> None:
        clock = asyncio.get_running_loop().time
        due = self._since + self._first
        while True:
            await asyncio.sleep(due - clock())
            if (silent := clock() - self._since) >= self._first:
                self._say(round(silent))
            due = max(due, self._since) + self._every


def waiting_line(seconds: int, settings: Settings, words: Texts) -> Text:
    """Say what happens if it lasts longer: another try, or the next model."""
    key = "card.waiting_next" if settings.model.fallbacks else "card.waiting_again"
    return Text(f"     {words.get(key, seconds=seconds, most=settings.model.timeout_seconds)}", style="dim")
