"""The interface of a model: the next reply, streamed, plain text, and a transcription of a picture.

ModelWrapper is the base of models that do one thing differently from the model that they wrap.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

from PIL import Image

from agent_core.model.profile import ModelProfile

OnThinking = Callable[[str], Awaitable[None]]
Message = dict[str, Any]  # in the format of the chat completions API


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of one call: seconds since the request, and tokens as the endpoint counts them.

    tokens_cached: those of ``tokens_in`` that the endpoint had in its cache.
    guessed: the endpoint gave no counts, so they are estimated from above.
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
    """A model's reply.

    text: the raw reply up to the end of the first complete call; the stream was closed there.
    model: the name of the model that answered.
    profile: that model's own, if it is not the first model.
    instead_of: the kind of error of the first model, if another one answered.
    rest: text of the model after the call; it is ignored.
    ended: False if the reply was cut off, mostly at the token limit, before the model ended it or a call was complete.
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

    For a model with another profile use ``written_for``.
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
        """Return the next reply to ``messages`` (format of the chat completions API).

        Raises ModelError if there is none.
        """

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        """Return plain text in answer to ``messages``, complete and without thinking.

        Raises ModelError if there is none.
        """

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        """Return what the model reads in ``picture``. Raises ModelError if it cannot."""

    async def close(self) -> None: ...


class ModelWrapper:
    """A wrapper that passes every call on to ``model``. It implements ``Model``; a subclass overrides calls."""

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
