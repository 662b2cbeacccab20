"""The messages that show runs and questions."""

from __future__ import annotations

from bot.desk.actors import MessageRef
from bot.desk.desk import Desk


class Refs:
    """The messages that show a named subject (``run:<id>``, ``question:<id>``), as the desk remembers them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def get(self, ref: str) -> MessageRef | None:
        """Return the message; None if none shows it yet."""
        kind, _, name = ref.partition(":")
        if kind == "run":
            return await self._desk.runs.card(name)
        return await self._desk.questions.card(name) if kind == "question" else None

    async def set(self, ref: str, message: MessageRef) -> None:
        kind, _, name = ref.partition(":")
        if kind == "run":
            await self._desk.runs.set_card(name, message)
        elif kind == "question":
            await self._desk.questions.set_card(name, message)

    async def is_over(self, question_id: str) -> bool:
        """Tell whether this question is closed for everybody."""
        view = await self._desk.questions.get(question_id)
        return view is None or not view.open
