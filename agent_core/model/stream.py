"""Reads a reply while it arrives: its thinking, and the end of its first complete call.

How long to wait for it depends on how fast it arrives.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_core.actions.parse import CallWatch, Dialect
from agent_core.model.base import Completion, Usage
from agent_core.model.usage import request_tokens, text_tokens

_THINK_OPEN = re.compile(r"\s*<think>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</think>", re.IGNORECASE)
# The end of thinking without tags: the answer's tag, or the call itself.
_ANSWER = re.compile(r"<answer>|\b(?:do|finish)\s{0,9}\(\s{0,9}\w{1,20}\s{0,9}=|\baction:", re.IGNORECASE)
_PARTIAL = re.compile(r"(?:</?[a-z]{0,6}|\b(?:do|finish)\s{0,9}(?:\(\s{0,9}\w{0,20}\s{0,9})?)\Z", re.IGNORECASE)
_SEAM = 60  # characters; no match of the three is longer, so earlier text need not be searched again
_CLOSING = re.compile(r"(?:\s|</answer>|<\|end_of_box\|>|<\|[a-z_]*\|>|`)*(?:<[^>]*)?", re.IGNORECASE)
_WHOLE_THINK = re.compile(r"<think>.*?</think>", re.IGNORECASE | re.DOTALL)
_WRAPPINGS = re.compile(r"<\|(?:begin|end)_of_box\|>|</?answer>", re.IGNORECASE)
_MARKS = re.compile(r"</?(?:think|answer)>|<\|(?:begin|end)_of_box\|>", re.IGNORECASE)
_MOST_TOKENS = 2**31  # a higher count is wrong
_CHARACTERS_PER_TOKEN = 8  # more than any model's average: only a reply that ignores max_tokens reaches this


@dataclass(slots=True)
class _ToolCall:
    index: int
    name: str
    arguments: str = ""

    @property
    def text(self) -> str:
        """The call in the json dialect, so that calls are read in one way only."""
        return (
            f'{{"action": {json.dumps(self.name, ensure_ascii=False)}, "arguments": {self.arguments.strip() or "{}"}}}'
        )


class _Halves:
    """A filter that joins halves of surrogate pairs that come in two pieces (see ``whole_characters``)."""

    def __init__(self) -> None:
        self._half = ""

    def joined(self, piece: str) -> str:
        """Return ``piece`` after the part that was held back; a first half at its end waits for the second."""
        if self._half or not piece.isascii():
            piece, self._half = self._half + piece, ""
            if "\ud800" <= piece[-1:] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            piece = whole_characters(piece)
        return piece


class _Thinking:
    """A search for the thinking in a growing content; each character is searched once."""

    def __init__(self) -> None:
        self.tagged = False  # the content begins with a think tag
        self.closed = False
        self._begin = 0
        self._begun = False  # whether it is known that the content begins with a tag
        self._searched = 0
        self._text = ""

    def of(self, content: str) -> str:
        """Return the thinking in ``content``, which begins with the content of the call before."""
        if self.closed:
            return self._text
        if not self._begun:
            self._look_at_begin(content)
        seam = max(self._begin, self._searched - _SEAM)
        found = _THINK_CLOSE.search(content, seam)
        if found is None and not self.tagged:
            found = _ANSWER.search(content, seam)
        self._searched = len(content)
        if found is not None:
            self.closed = True
            self._text = content[self._begin : found.start()].strip()
            return self._text
        partial = _PARTIAL.search(content, max(self._begin, len(content) - _SEAM))
        return content[self._begin : partial.start() if partial else None].strip()

    def _look_at_begin(self, content: str) -> None:
        begin = content.lstrip()
        self._begun = len(begin) >= len("<think>")
        if (opened := _THINK_OPEN.match(content)) is not None:
            self.tagged, self._begin = True, opened.end()


class ReplyReader:
    """The parts of one reply, collected as they come.

    ``end`` is the position in ``text`` after the first complete call, or None; ``size`` is the number of characters so
    far.

    whole: calls in the text do not end it; tool calls do.
    """

    def __init__(self, dialect: Dialect, started: float, *, whole: bool) -> None:
        self._started = started
        self._content = ""
        self._content_halves = _Halves()
        self._reasoning = ""
        self._reasoning_halves = _Halves()
        self._watch = CallWatch(dialect)
        self._thinking = _Thinking()
        self._first: float | None = None
        self._thought: float | None = None
        self._whole = whole  # calls in the text count only without a tool call, so they do not end it
        self._call: _ToolCall | None = None
        self._others: dict[int, _ToolCall] = {}  # by index
        self._talked = False
        self.size = 0
        self.thinking = ""
        self.ended = False  # by the model itself
        self.counted: Any = None  # the tokens as the endpoint counts them
        self.end: int | None = None
        self.end_time = 0.0  # of the event loop's clock

    @property
    def _prefix(self) -> str:
        return f"<think>{self._reasoning}</think>" if self._reasoning else ""

    @property
    def text(self) -> str:
        return self._prefix + self._content

    @property
    def empty(self) -> bool:
        return self._call is None and not self.text.strip()

    @property
    def talks_on(self) -> bool:
        """True if more than closing tags came after the call."""
        if self._call is not None:
            return self._talked
        return self.end is not None and _CLOSING.fullmatch(self.text, self.end) is None

    def feed(self, content: str, reasoning: str) -> bool:
        """Take a part of the reply; return whether the thinking has grown."""
        if not content and not reasoning:
            return False
        self._note_first()
        self.size += len(content) + len(reasoning)
        content, reasoning = self._content_halves.joined(content), self._reasoning_halves.joined(reasoning)
        arriving = self.end is None
        self._content += content
        if arriving:  # thinking after the call would move the position of its end
            self._reasoning += reasoning
            if not self._whole:
                self._note_end(self._watch.feed(content))
        else:
            self._talked = True
        thinking = self._thinking.of(self._content)
        beside = bool(self._reasoning and self._content.strip()) and not self._thinking.tagged
        if arriving and (self._thinking.closed or beside):
            self._note_thought()
        if self._reasoning:  # content beside it is the answer, unless it is tagged as thinking
            own = thinking if self._thinking.tagged else ""
            thinking = f"{self._reasoning}\n{own}".strip()
        grown = len(thinking) > len(self.thinking)
        if grown:
            self.thinking = thinking
        return grown

    def feed_call(self, index: int, name: str, arguments: str) -> None:
        """Take a part of the tool call with this index: its name, in the first part, and its arguments.

        The first call is the answer, whatever calls the text mentions. It is complete with its arguments, or when
        another one begins.
        """
        self.size += len(name) + len(arguments)
        if self._call is None and self.end is None and name:
            self._call = _ToolCall(index, name)
            self._note_first()
            if self.text.strip():
                self._note_thought()
        if self._call is None or self.end is not None or index != self._call.index:
            self._note_other(index, name, arguments)
            if self._call is not None and self.end is None and not self._call.arguments.strip():
                self._end_here()  # the answer is complete, unless the endpoint mixes the parts of calls
            return
        self._call.arguments += arguments
        if _is_object(self._call.arguments):
            self._end_here()

    def _note_first(self) -> None:
        if self._first is None:
            self._first = time.monotonic() - self._started

    def _note_thought(self) -> None:
        if self._thought is None:
            self._thought = time.monotonic() - self._started

    def _note_other(self, index: int, name: str, arguments: str) -> None:
        self._talked = self._talked or self.end is not None
        if name and index not in self._others:
            self._others[index] = _ToolCall(index, name)
        if index in self._others:
            self._others[index].arguments += arguments

    def _end_here(self) -> None:
        self.end = len(self.text)
        self.end_time = asyncio.get_running_loop().time()

    def _note_end(self, end: int | None) -> None:
        if end is not None:
            self.end = len(self._prefix) + end
            self.end_time = asyncio.get_running_loop().time()

    def overlong(self, max_tokens: int) -> bool:
        return self.size > max_tokens * _CHARACTERS_PER_TOKEN

    def completion(self, model: str, sent: Sequence[Mapping[str, Any]]) -> Completion:
        """Return the reply of ``model`` up to now, in answer to the messages ``sent``."""
        usage = replace(
            usage_of(self.counted, sent, self._said),
            first_token=self._first,
            thinking_end=self._thought,
            total=time.monotonic() - self._started,
        )
        text, rest = whole_characters(self._answer()), whole_characters(self._rest())
        return Completion(text=text, usage=usage, model=model, rest=rest, ended=self.ended or self.end is not None)

    def _said(self) -> str:
        calls = [*([self._call] if self._call else ()), *self._others.values()]
        return self._reasoning + self._content + "".join(call.text for call in calls)

    def _answer(self) -> str:
        if self._call is not None:
            content = self._content if self.end is None else self._content[: self.end - len(self._prefix)]
            thinking = _MARKS.sub("", f"{self._reasoning}\n{content}").strip()
            return f"<think>{thinking}</think><answer>{self._call.text}</answer>"
        return self.text if self.end is None else self.text[: self.end]

    def _rest(self) -> str:
        """Return the text after the answer, without closing tags."""
        after = "" if self.end is None else self.text[self.end :]
        if (closing := _CLOSING.match(after)) is not None and closing.end() == len(after):
            after = ""
        return "\n".join(filter(None, (_MARKS.sub("", after).strip(), *(call.text for call in self._others.values()))))


def _is_object(text: str) -> bool:
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def usage_of(counted: Any, sent: Sequence[Mapping[str, Any]], said: Callable[[], str]) -> Usage:
    """Return the tokens as the endpoint counted them; estimated from above if it did not, or was cut short."""
    tokens_in, tokens_out = (_count(counted, name) for name in ("prompt_tokens", "completion_tokens"))
    if tokens_in is None or tokens_out is None or not (tokens_in or tokens_out):
        return Usage(tokens_in=request_tokens(sent), tokens_out=text_tokens(said()), guessed=True)
    details = counted.get("prompt_tokens_details") if isinstance(counted, Mapping) else None
    # Names that others than OpenAI use: DeepSeek, Moonshot.
    others = ("prompt_cache_hit_tokens", "cached_tokens")
    cached = _count(details, "cached_tokens") or next(filter(None, (_count(counted, name) for name in others)), 0)
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out, tokens_cached=min(cached, tokens_in))


def _count(part: Any, name: str) -> int | None:
    """Return a token count; None if it is none."""
    number = part.get(name) if isinstance(part, Mapping) else None
    whole = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < _MOST_TOKENS
    return number if whole else None


def plain_text(text: str) -> str:
    """Return the words of a plain answer, without thinking and tags; "" if it was cut off while thinking."""
    text = _THINK_CLOSE.split(_WHOLE_THINK.sub("", text))[-1]
    if _THINK_OPEN.match(text):
        return ""
    return whole_characters(_WRAPPINGS.sub("", text).strip())


def whole_characters(text: str) -> str:
    """Return ``text`` with halves of surrogate pairs joined; a lone half becomes �.

    Some gateways cut between halves, and half a pair can neither be stored nor sent on.
    """
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


SECONDS_PER_CHARACTER = 0.05  # a reply slower than 20 characters a second uses up its time


class ReplyDeadline:
    """The deadline of one reply, from the moment of its request.

    It ends after ``timeout`` seconds without a character. Only the reply's own characters count, so pings and empty
    parts keep nothing alive; and each is worth ``SECONDS_PER_CHARACTER``, so an occasional character does not either.
    """

    def __init__(self, timeout: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._timeout = timeout
        self._begun = self._heard = self._now()
        self._size = 0

    @property
    def deadline(self) -> float:
        """The deadline on the event loop's clock."""
        earned = self._begun + self._size * SECONDS_PER_CHARACTER
        return min(self._heard, earned) + self._timeout

    def heard(self, size: int) -> None:
        """Note that ``size`` characters have come up to now."""
        if size > self._size:
            self._size = size
            self._heard = self._now()
