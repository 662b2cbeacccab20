"""What the agent needs of a model: the next reply, streamed, and a transcription of a picture; and a wrapper
for models that do one thing otherwise than another model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

from PIL import Image

from agent_core.model.profile import ModelProfile

OnThinking = Callable[[str], Awaitable[None]]
Message = dict[str, Any]  # in the chat completions form


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds from the request; tokens as the endpoint says, ``guessed`` from above where it says nothing.

    ``tokens_cached`` are those of ``tokens_in`` that the endpoint had in its cache.
    """

    first_token: float | None = None
    thinking_end: float | None = None
    total: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """``text`` is the raw reply up to the end of the first complete call; the stream was closed there. ``rest`` is what
    the model had said by then after it: it counts for nothing.

    ``model`` is the name of the one that answered. Where that is not the one that is asked first, ``profile`` is its
    own, and ``instead_of`` the kind of error of the first. ``ended`` False: the reply was cut off, at the
    limit of tokens mostly, before the model had ended it or a call in it was complete.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    profile: ModelProfile | None = None
    instead_of: str = ""
    rest: str = ""
    ended: bool = True


class Request(Sequence[Message]):
    """The messages of one request, written for the profile of the model that is asked first.

    A model with another profile is asked with ``written_for``.
    """

    def __init__(self, write: Callable[[ModelProfile], Sequence[Message]], profile: ModelProfile) -> None:
        self._write = write
        self._profile = profile
        self._written: dict[ModelProfile, Sequence[Message]] = {}

    def written_for(self, profile: ModelProfile) -> Sequence[Message]:
        if profile not in self._written:
            self._written[profile] = self._write(profile)
        return self._written[profile]

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self.written_for(self._profile)[index]

    def __len__(self) -> int:
        return len(self.written_for(self._profile))

    def __iter__(self) -> Iterator[Message]:
        return iter(self.written_for(self._profile))


class Model(Protocol):
    @property
    def name(self) -> str: ...

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        """The next reply. ``messages`` are in the chat completions form. ModelError where there is none."""

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        """A plain text in answer to ``messages``, whole and without thinking. ModelError where there is none."""

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        """What the model reads in ``picture``. ModelError where it cannot."""

    async def close(self) -> None: ...


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
