"""What is read of an endpoint's answers. The library hands on whatever came; here it has its form, or a ValueError."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent_core.model.failures import Failures


class _Part(BaseModel):
    """From JSON, or from the objects of the library. What is missing is None; what else there is does not matter."""

    model_config = ConfigDict(extra="ignore", from_attributes=True)


class Piece(_Part):
    """A part of a content, where that is a list: of the text, or of thinking, which may be a list itself (Mistral)."""

    text: str | None = None
    thinking: str | list[Piece] | None = None


class Function(_Part):
    name: str | None = None
    arguments: str | None = None


class Call(_Part):
    index: int | None = None
    function: Function | None = None


class Said(_Part):
    """A message, or a part of one."""

    content: str | list[str | Piece] | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None

    @property
    def text(self) -> str:
        """The content, without thinking that stands in it in parts of its own."""
        if isinstance(self.content, list):
            return "".join(part if isinstance(part, str) else part.text or "" for part in self.content)
        return self.content or ""

    @property
    def thought(self) -> str:
        """Thinking that an endpoint sends beside the answer, under one of two names, or in parts of the content."""
        text = self.reasoning_content or self.reasoning
        if isinstance(text, str) and text:
            return text
        parts = self.content if isinstance(self.content, list) else ()
        return "".join(_thinking(part) for part in parts if isinstance(part, Piece))


def _thinking(piece: Piece) -> str:
    if isinstance(piece.thinking, list):
        return "".join(part.text or "" for part in piece.thinking)
    return piece.thinking or ""


class Choice(_Part):
    """``delta`` in a stream, where the last one of some endpoints has none; else ``message``."""

    delta: Said | None = None
    message: Said | None = None
    finish_reason: str | None = None


class Answer(_Part):
    """A whole completion, or a chunk of one. ``usage`` as the endpoint counts it."""

    model_config = ConfigDict(extra="allow", from_attributes=True)  # the rest may be words about an error

    choices: list[Choice] | None = None
    usage: Any = None


class _Model(_Part):
    id: str


class Models(_Part):
    """The endpoint's list of models."""

    data: list[_Model] | None = None


def read_answer(body: bytes, failures: Failures) -> Answer:
    """Read a whole completion. ModelFormat if ``body`` is none; ValueError or RecursionError if its form is unknown."""
    if not body.lstrip().startswith(b"{"):
        raise failures.not_json(body.decode(errors="replace"))
    return Answer.model_validate(json.loads(body))  # which takes half a surrogate pair; pydantic's own reader does not
