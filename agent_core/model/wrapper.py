"""A model around another one."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from agent_core.model.base import Completion, Message, Model, OnThinking


class ModelWrapper:
    """Fits ``Model``. Hands everything on to ``model``; who builds on it says only what it does otherwise."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, messages: Sequence[Message], *, on_thinking: OnThinking | None = None) -> Completion:
        return await self._model.complete(messages, on_thinking=on_thinking)

    async def ask(self, messages: Sequence[Message]) -> Completion:
        return await self._model.ask(messages)

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        return await self._model.transcribe(picture, instruction)

    async def close(self) -> None:
        await self._model.close()
