"""What the agent needs of a model: the next reply, streamed, and a transcription of a picture."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from PIL import Image

OnThinking = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds from the request; tokens as the endpoint says (0 where it says nothing)."""

    first_token: float | None = None
    thinking_end: float | None = None
    total: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """``text`` is the raw reply up to the end of the first complete call; the stream was closed there."""

    text: str
    usage: Usage = field(default_factory=Usage)


class Model(Protocol):
    @property
    def name(self) -> str: ...

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        """The next reply. ``messages`` are in the chat completions form. ModelError where there is none."""

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        """What the model reads in ``picture``. ModelError where it cannot."""

    async def close(self) -> None: ...
