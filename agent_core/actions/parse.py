"""Reads one action from a model's reply: what is thinking, what is the answer, and the first complete call in it.

- Text between think tags is thinking; a call mentioned there never counts. A closing tag without an opening one (the
  opening one may be part of the prompt) makes everything before it thinking.
- With answer tags, only the text between them is read; without, everything outside the thinking; if all is inside
  thinking that was never closed, that.
- The first complete call wins. Outside answer tags, a finish within a sentence is only a mention if a call follows on a
  line of its own; and if very many calls are mentioned, only one on a line of its own is meant, the first of those that
  were examined, else one that ends the reply.
- Tags inside the quotes of a call are data.
- In a reply that was cut off, a call counts only if nothing after it could have changed it. A reply that its model
  ended by itself may lack the last bracket of its call, and nothing else.

The text is read once from left to right, in time proportional to its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from agent_core.actions.dialects import Call, DialectReader
from agent_core.actions.dialects._text import Incomplete, Tag, next_tag, stands_alone, unwrapped, wrapping_begins
from agent_core.actions.dialects.autoglm import AutoGLM
from agent_core.actions.dialects.gelab import GELab
from agent_core.actions.dialects.json_calls import JsonCalls
from agent_core.actions.types import Finish, Reply
from agent_core.errors import ActionParseError

Dialect = Literal["autoglm", "json", "gelab", "auto"]

_MOST_TRIES = 12  # calls examined outside answer tags before the rest is only searched for tags
_MOST_FRESH = 3  # how often a tag restarts the count of tries
_LAST_LINES = 2_000  # characters at the end in which the last call is searched for
_MOST_LAST = 3  # calls that are read there, the last first
_MOST_TAGS = 200  # a text with more is not a reply
_CLOSERS = frozenset(")）}｝\n>")
# Characters that a watch reads without restraint, each time from the beginning; no honest reply needs a quarter of it.
# Beyond that it reads only when the text has grown by an eighth, so that the total stays proportional to the text.
_FREELY_READ = 4_000_000


# A value that ends in one of these is complete: more of a number or a word might have come.
_WHOLE_VALUES = frozenset("\"'”’」』＂＇)）]】］}｝")
_LAST_BRACKETS: dict[Dialect, str] = {"autoglm": ")", "json": "}", "gelab": "", "auto": ")}"}


def parse_reply(text: str, dialect: Dialect = "autoglm", *, ended: bool | None = None) -> Reply:
    """Read a reply. Raises ActionParseError, with a message for the model, if it holds no complete and valid call.

    ended: True if the model ended the reply by itself (its finish reason says so): then a call at the end that lacks
    only its last bracket is read, too. False if the reply was cut off: then a call counts only if nothing that might
    have followed could change it, or make it part of the thinking. None if neither is known.
    """
    if ended is False:
        return _parse(text, dialect, cut_off=True)
    try:
        return _parse(text, dialect)
    except ActionParseError:
        if ended:
            for closed, end in _with_last_bracket(text, dialect):
                with suppress(ActionParseError):
                    return _parse(closed, dialect, call_end=end)
        raise


def _with_last_bracket(text: str, dialect: Dialect) -> Iterator[tuple[str, int]]:
    """Yield the text with the bracket that may be missing before its closing tags, and the index just after it."""
    end = wrapping_begins(text)
    if end and text[end - 1] in _WHOLE_VALUES:
        for bracket in _LAST_BRACKETS[dialect]:
            yield text[:end] + bracket + text[end:], end + 1


def _parse(text: str, dialect: Dialect, *, cut_off: bool = False, call_end: int | None = None) -> Reply:
    """Read a reply whose call ends at ``call_end``, if that is given. Raises ActionParseError."""
    reader = _Reader(text, _dialect(dialect), streaming=cut_off)
    try:
        call = reader.find()
        if cut_off and (call is None or not call.closed):
            raise Incomplete(f"The reply was cut off before its call was complete. {reader.dialect.hint}")
        if call is None:
            raise ActionParseError(_nothing_found(text, reader))
        if call_end is not None and call.end != call_end:
            raise ActionParseError(f"The call does not end with the reply. {reader.dialect.hint}")
        action = call.build()
        if call_end is not None and isinstance(action, Finish) and not action.message.strip():
            raise ActionParseError("The end is told without a message.")  # a status may be missing, too
    except RecursionError:  # nested extremely deeply, in a place without a limit
        raise ActionParseError("The call is nested too deeply.") from None
    ignored = [part for part in (call.aside, unwrapped(text[call.end :])) if part]
    return Reply(
        thinking="\n".join(part for part in (*reader.thoughts(call), call.thinking) if part),
        action=action,
        ignored="\n".join(ignored),
        summary=call.summary,
    )


def complete_call_end(text: str, dialect: Dialect = "autoglm") -> int | None:
    """Return the index just after the first complete call in a reply that is still arriving; None if there is none yet.

    Complete means that nothing still to come can change the call: it is not inside open thinking or an open quote, and,
    outside answer tags, it is on a line of its own. The call may still be invalid: ``parse_reply`` says so. In the
    gelab dialect a call is complete with the line of its summary.
    """
    return _look(text, dialect)[0]


def _look(text: str, dialect: Dialect) -> tuple[int | None, bool]:
    """Return the end of the first complete call, and whether the text ends inside thinking."""
    reader = _Reader(text, _dialect(dialect), streaming=True)
    try:
        call = reader.find()
    except ActionParseError:  # malformed up to now
        return None, False
    return (call.end if call and call.closed else None), reader.in_open_thinking


class CallWatch:
    """Runs ``complete_call_end`` on a growing text: feed it the pieces.

    ``end`` is the index just after the first complete call in ``text``, None until there is one.
    """

    def __init__(self, dialect: Dialect = "autoglm") -> None:
        self.text = ""
        self.end: int | None = None
        self._dialect: Dialect = dialect
        self._thinking = False
        self._read = 0
        self._next_look = 0  # the length that the text must have

    def feed(self, piece: str) -> int | None:
        """Add ``piece`` and return ``end``. Cheap if the piece cannot have ended a call."""
        seam = max(0, len(self.text) - 16)  # a tag may come in two pieces
        self.text += piece
        if self.end is None and not _CLOSERS.isdisjoint(piece):
            if len(self.text) < self._next_look or (self._thinking and next_tag(self.text, seam) is None):
                return None
            self._read += len(self.text)
            if self._read > _FREELY_READ:
                self._next_look = len(self.text) * 9 // 8
            self.end, self._thinking = _look(self.text, self._dialect)
        return self.end


def _dialect(name: Dialect) -> DialectReader:
    if name == "autoglm":
        return AutoGLM()
    if name == "json":
        return JsonCalls()
    if name == "gelab":
        return GELab()
    return _Auto()


class _Auto:
    """A reader of all dialects at once, each call in the dialect that it begins in.

    Use one object per text, because it keeps state.
    """

    hint = AutoGLM.hint

    def __init__(self) -> None:
        self._parts: tuple[DialectReader, ...] = (AutoGLM(), JsonCalls(), GELab(known_only=True))
        self._next: list[int | None] = [0] * len(self._parts)  # where each dialect's next call begins, up to ``_end``
        self._end = -1

    def next_start(self, text: str, pos: int, end: int) -> int | None:
        known, self._end = self._end == end, end
        first = None
        for index, part in enumerate(self._parts):
            start = self._next[index]
            if not known or (start is not None and start < pos):
                start = self._next[index] = part.next_start(text, pos, end)
            if start is not None and (first is None or start < first):
                first = start
        return first

    def read_at(self, text: str, start: int, end: int) -> Call | None:
        for part in self._parts:
            call = part.read_at(text, start, end)
            if call is not None:
                return call
        return None


@dataclass
class _Reader:
    """A reader for one text, used once."""

    text: str
    dialect: DialectReader
    streaming: bool = False
    in_answer: bool = False
    answer_begin: int = 0
    in_open_thinking: bool = False  # all the rest is inside thinking that was never closed
    think_spans: list[tuple[int, int]] = field(default_factory=list)
    prose_begin: int = 0
    first: Call | None = None  # the first call outside answer tags
    alone: Call | None = None  # the first of those on a line of its own
    error: ActionParseError | None = None
    broken: bool = False  # the text was cut off inside a call
    tries: int = 0
    fresh: int = 0

    def find(self) -> Call | None:
        pos = 0
        for _ in range(_MOST_TAGS):
            tag = next_tag(self.text, pos)
            call = self._read(pos, tag[1] if tag else len(self.text))
            if isinstance(call, Call):
                return call
            if call is not None:  # a call outside answer tags was passed; tags inside it are data
                pos = call
                continue
            if tag is None:
                return self._outside()
            next_pos = self._pass_tag(*tag)
            if next_pos is None:
                return None
            pos = next_pos
        raise ActionParseError(f"The reply holds too many think and answer tags. {self.dialect.hint}")

    def thoughts(self, call: Call) -> list[str]:
        """Return the model's thinking before ``call``: the text between think tags, else the prose before it."""
        spans = self.think_spans or [(0, self.answer_begin if self.in_answer else call.start)]
        return [part for begin, end in spans if (part := unwrapped(self.text[begin:end]).strip())]

    def _read(self, pos: int, end: int) -> Call | int | None:
        """Search for calls from ``pos`` to the tag at ``end``.

        Returns the call, or the end of one that was passed, or None.
        """
        region = pos
        while self.tries < _MOST_TRIES:
            start = self.dialect.next_start(self.text, pos, end)
            if start is None:
                return None
            alone = self.in_answer or stands_alone(self.text, region, start)
            try:
                call = self.dialect.read_at(self.text, start, end)
            except ActionParseError as error:
                if self.in_answer or (alone and isinstance(error, Incomplete) and self.first is None):
                    raise  # a text that is cut off may hold tags, which must not be taken for real ones
                self.error = self.error or (error if self.first is None else None)
                self.broken = self.broken or isinstance(error, Incomplete)
                self.tries = _MOST_TRIES if self.broken else self.tries + 1
                pos = start + 1
                continue
            if call is None:
                pos = start + 1
                continue
            if self.in_answer or (self.streaming and alone):
                return call
            self.tries += 1
            self.first = self.first or call
            if alone:
                self.alone = self.alone or call
            if call.end > end:
                return call.end
            pos = max(call.end, start + 1)
        return None

    def _pass_tag(self, tag: Tag, begin: int, end: int) -> int | None:
        """Continue after a tag; None if the text ends inside thinking that is still arriving."""
        if tag is Tag.END_THINK and not self.in_answer and not self.in_open_thinking:
            self.think_spans.append((self.prose_begin, begin))
            self._begin_anew()
        elif tag is Tag.THINK and not self.in_open_thinking:
            return self._pass_thinking(end)
        elif tag is Tag.ANSWER and not self.in_answer:
            self.in_answer, self.answer_begin = True, end
            self._begin_anew()
        elif tag is Tag.END_ANSWER and self.in_answer:
            if self.text[self.answer_begin : begin].strip():
                raise ActionParseError(f"The answer holds no call. {self.dialect.hint}")
            self.in_answer = False
        self.prose_begin = end
        return end

    def _begin_anew(self) -> None:
        """Forget everything found up to now, because it was thinking."""
        self.first = self.alone = self.error = None
        self.broken = False
        self.fresh += 1
        if self.fresh <= _MOST_FRESH:
            self.tries = 0

    def _pass_thinking(self, begin: int) -> int | None:
        answer: int | None = None
        pos = begin
        while found := next_tag(self.text, pos):
            tag, tag_begin, tag_end = found
            if tag is Tag.END_THINK:
                self.think_spans.append((begin, tag_begin))
                self.prose_begin = tag_end
                return tag_end
            if tag is Tag.THINK:
                break
            if tag is Tag.ANSWER and answer is None:
                answer = tag_begin
            pos = tag_end
        # never closed: an answer tag in it ends it, else another think tag
        if found is None and self.streaming:
            self.in_open_thinking = True
            return None
        if answer is not None:
            self.think_spans.append((begin, answer))
            return answer
        if found is not None:
            self.think_spans.append((begin, found[1]))
            return found[1]
        self.in_open_thinking = True
        return begin

    def _outside(self) -> Call | None:
        if self.in_answer or self.streaming:
            return None
        if self.tries >= _MOST_TRIES and not self.broken and self.first is not None:
            return self.alone or self._last()
        if self.first and self.first.finishes and self.alone:
            return self.alone
        if self.error and self.first is None:
            raise self.error
        return self.first

    def _last(self) -> Call:
        """Return the call that ends a text with very many calls."""
        text, size = self.text, len(self.text)
        pos = region = max(self.prose_begin, text.rfind("\n", 0, max(0, size - _LAST_LINES)) + 1)
        starts: list[int] = []
        while (start := self.dialect.next_start(text, pos, size)) is not None:
            if stands_alone(text, region, start):
                starts.append(start)
            pos, region = start + 1, start
        for start in reversed(starts[-_MOST_LAST:]):
            with suppress(ActionParseError):
                call = self.dialect.read_at(text, start, size)
                if call is not None and not unwrapped(text[call.end :]):
                    return call
        raise ActionParseError(f"The reply mentions many calls, and none ends it. {self.dialect.hint}")


def _nothing_found(text: str, reader: _Reader) -> str:
    if not text.strip():
        return f"The reply was empty. {reader.dialect.hint}"
    return f"The reply holds no call. {reader.dialect.hint}"
