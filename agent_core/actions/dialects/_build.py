"""Builds an action from a call's name and arguments: one set of names and arguments for all dialects.

Every problem is reported to the model in the words that it wrote. Coordinates are whole numbers 0–1000; 500.0 is whole,
500.4 is rounded, and fractions of the screen such as [0.5, 0.3] are refused, because rounding would tap a corner.
Durations are seconds (a number, ``"2 seconds"``, ``"500 ms"``), at most 30.

An argument that the action does not have is refused, because it may ask for something that would not be done: how
often, where else, that a person is to be asked. Only arguments that describe and never instruct (``TELLING``) are
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from agent_core.actions import types
from agent_core.actions.dialects._text import Number, Scanner, Value, shown
from agent_core.actions.types import MAX_WAIT_SECONDS, Action, Pair
from agent_core.errors import ActionParseError
from agent_core.geometry import SCALE

# Other names of arguments. Messages use the first one.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "element": ("point", "coordinates", "coordinate", "position"),
    "start": ("point1", "from", "start_point"),
    "end": ("point2", "to", "end_point"),
    "text": ("value", "content"),
    "app": ("value", "package", "app_name"),
    "key": ("value",),
    "query": ("value",),
    "question": ("value", "message", "prompt"),
    "instruction": ("value", "message"),
    "message": ("value", "text"),
}
# Names, without case and separators, of arguments that a model adds as comments on a call. ``reason`` is not among
# them: beside a tap it means that a person is to be asked; nor is an index or a label, which may point elsewhere than
# the coordinates.
TELLING = frozenset(
    {"thought", "thinking", "think", "reasoning", "rationale", "analysis", "explain", "explanation", "observation"}
    | {"description", "comment", "confidence", "score", "probability", "step", "stepnumber", "timestamp"}
)
# A call of a web service is read as a query only if its address is that of a knowledge base.
_KNOWLEDGE_URL = re.compile(r"knowledge|retriev|dataset|知识", re.IGNORECASE)
_DATA_QUERY = ("query", "question")
FINISH_MESSAGE = ("message", "return", "value", "result", "text")
ABORT_MESSAGE = ("message", "abort_reason", "value", "reason", "return")

_PAIR_TEXT = re.compile(r"\s*[\[(【（]?\s*([+-]?[\d.]{1,12})\s*[,，、;\s]\s*([+-]?[\d.]{1,12})\s*[\])】）]?\s*")
_DURATION = re.compile(
    r"\s*([+-]?(?:\d{1,12}(?:\.\d{0,20})?|\.\d{1,20})(?:e[+-]?\d{1,3})?)\s*"
    r"(ms|msec|milliseconds?|毫秒|s|secs?|seconds?|秒钟?|m|mins?|minutes?|分钟?)?\s*",
    re.IGNORECASE,
)
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_DIRECTION_LENGTH = 400  # of 1000: about half a screen


@dataclass(frozen=True, slots=True)
class Units:
    """The number from which on a bare duration counts as milliseconds; None: it is always seconds.

    Nobody means a swipe of 100 seconds, in any dialect.
    """

    wait_ms_from: float | None = None
    swipe_ms_from: float | None = 100


SECONDS = Units()


class CallArguments:
    """The arguments of one call.

    Arguments that nobody took are unknown; ``done`` refuses them unless they only describe.
    """

    def __init__(self, name: str, values: Mapping[str, Value], units: Units) -> None:
        self.name = name
        self.units = units
        self._left = {key: value for key, value in values.items() if value is not None}
        self._known: list[str] = []

    def done(self) -> None:
        unknown = sorted(key for key, value in self._left.items() if not _only_tells(key, value))
        if unknown:
            known = ", ".join(dict.fromkeys(self._known)) or "none"
            raise ActionParseError(f"{self.name} has no argument {', '.join(unknown)[:80]}. It takes: {known}.")

    def _take(self, key: str, names: tuple[str, ...] | None = None) -> Value:
        self._known.append(key)
        for name in names or (key, *ALIASES.get(key, ())):
            if name in self._left:
                return self._left.pop(name)
        return None

    def value(self, key: str) -> Value:
        return self._take(key)

    def text(self, key: str, *, names: tuple[str, ...] | None = None) -> str | None:
        value = self._take(key, names)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, Number):
            return value.raw
        if isinstance(value, bool):
            return str(value)
        raise ActionParseError(f"{self.name} needs {key} as one text in quotes; you wrote {shown(value)}.")

    def needed_text(self, key: str, *, blank: bool = True) -> str:
        text = self.text(key)
        if text is None or (not blank and not text.strip()):
            raise ActionParseError(f'{self.name} needs {key}="…"; it is missing.')
        return text

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key)
        if value is None:
            return ()
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | Number) for item in items):
            raise ActionParseError(f'{self.name} needs {key}=["…", "…"]; you wrote {shown(value)}.')
        return tuple(item.raw if isinstance(item, Number) else str(item) for item in items)

    def pair(self, key: str) -> Pair:
        value = self._take(key)
        if value is None and key == "element" and {"x", "y"} <= self._left.keys():
            value = [self._left.pop("x"), self._left.pop("y")]
        if value is None:
            raise ActionParseError(f"{self.name} needs {key}=[x, y]; it is missing.")
        numbers = _numbers(value)
        if numbers is None:
            raise ActionParseError(
                f"{self.name} needs {key}=[x, y] with exactly two numbers from 0 to {SCALE}; you wrote {shown(value)}."
            )
        if any(not 0 <= number <= SCALE for number in numbers):
            raise ActionParseError(
                f"{self.name}: {key}={shown(value)} is outside the picture. Both numbers go from 0 to {SCALE}, "
                "from the top left."
            )
        if any(0 < number < 1 for number in numbers):
            raise ActionParseError(
                f"{self.name}: {key}={shown(value)} holds fractions. Write whole numbers from 0 to {SCALE}."
            )
        return (round(numbers[0]), round(numbers[1]))

    def seconds(self, default: float, *, ms_from: float | None, zero: bool = False) -> float:
        plain = self._take("duration", ("seconds",))
        value = self._take("duration", ("duration", "value")) if plain is None else plain
        if value is None:
            return default
        match = _DURATION.fullmatch(value.raw if isinstance(value, Number) else value if isinstance(value, str) else "")
        if not match:
            raise ActionParseError(f'{self.name} needs duration="2 seconds"; you wrote {shown(value)}.')
        amount, unit = float(match.group(1)), (match.group(2) or "").lower()
        if unit.startswith(("ms", "milli", "毫")) or (
            not unit and plain is None and ms_from is not None and amount >= ms_from
        ):
            amount /= 1000
        elif unit.startswith(("m", "分")):
            amount *= 60
        if amount < 0 or (amount == 0 and not zero):
            raise ActionParseError(f"{self.name}: a duration of {shown(value)} is too short.")
        return min(amount, MAX_WAIT_SECONDS)


def _only_tells(key: str, value: Value) -> bool:
    """Tell whether an argument only describes: by its name, and because it holds words or a number."""
    words = isinstance(value, str) and _PAIR_TEXT.fullmatch(value) is None
    return plain(key) in TELLING and (words or isinstance(value, Number))


def _numbers(value: Value) -> tuple[float, float] | None:
    """Return two numbers from ``[x, y]``, ``(x, y)`` or either of them in quotes; None if there are none."""
    if isinstance(value, str):
        match = _PAIR_TEXT.fullmatch(value)
        if not match:
            return None
        try:
            return (float(match.group(1)), float(match.group(2)))
        except ValueError:
            return None
    if isinstance(value, list) and len(value) == 2 and all(isinstance(item, Number) for item in value):
        first, second = (item.value for item in value if isinstance(item, Number))
        return (first, second)
    return None


def _launch(a: CallArguments) -> Action:
    return types.Launch(app=a.needed_text("app", blank=False))


def _tap(a: CallArguments) -> Action:
    return types.Tap(element=a.pair("element"), message=a.text("message", names=("message",)))


def _double_tap(a: CallArguments) -> Action:
    return types.DoubleTap(element=a.pair("element"))


def _swipe(a: CallArguments) -> Action:
    direction = a.text("direction")
    duration = a.seconds(0.5, ms_from=a.units.swipe_ms_from)
    if direction is None:
        return types.Swipe(start=a.pair("start"), end=a.pair("end"), duration=duration)
    step = _DIRECTIONS.get(direction.strip().lower())
    if step is None:
        raise ActionParseError(f"{a.name}: direction is one of UP, DOWN, LEFT, RIGHT; you wrote {shown(direction)}.")
    x, y = a.pair("element")
    end = tuple(min(SCALE, max(0, v + s * _DIRECTION_LENGTH)) for v, s in zip((x, y), step, strict=True))
    return types.Swipe(start=(x, y), end=(end[0], end[1]), duration=duration)


def _hot_key(a: CallArguments) -> Action:
    key = plain(a.needed_text("key"))
    if key == "back":
        return types.Back()
    if key == "home":
        return types.Home()
    if key == "enter":
        return types.PressKey(key="enter")
    if key in {"appswitch", "recent", "recents"}:
        return types.PressKey(key="app_switch")
    raise ActionParseError(f"{a.name}: the key is one of BACK, HOME, ENTER, APP_SWITCH; you wrote {key[:40]}.")


def _interact(a: CallArguments) -> Action:
    return types.Interact(question=a.text("question") or "", choices=a.texts("choices"))


def _call_api(a: CallArguments) -> Action:
    data, url = a.value("data"), a.text("url")
    if data is not None or url is not None:
        return types.GetKnowledgeData(query=_query(a.name, url, data))
    return types.CallAPI(instruction=a.text("instruction") or "")


def _query(name: str, url: str | None, data: Value) -> str:
    """Return the query in a call of a knowledge base's own service. The address itself is never called.

    Raises ActionParseError if the address is not a knowledge base's, or if ``data`` holds anything but one query.
    """
    if not _KNOWLEDGE_URL.search(url or ""):
        raise ActionParseError(f"{name} calls no web address. For the knowledge base write GET_KNOWLEDGE_DATA.")
    if isinstance(data, str):
        data = Scanner(data.strip(), 0).object() if data.lstrip().startswith("{") else {"query": data}
    found = [data.get(key) for key in _DATA_QUERY if key in data] if isinstance(data, dict) else []
    if len(found) != 1 or not isinstance(found[0], str) or not found[0].strip():
        raise ActionParseError(f'{name} needs data={{"query": "…"}} with one question in it.')
    return found[0]


def _complete(a: CallArguments) -> Action:
    status = plain(a.text("status") or "success")
    if status not in {"success", "failure"}:
        raise ActionParseError(f"{a.name}: the status is SUCCESS or FAILURE; you wrote {status[:40]}.")
    return types.Finish(message=a.text("message", names=FINISH_MESSAGE) or "", success=status == "success")


# Actions that point at one place: ``{"tap": [500, 300]}`` is complete.
POINTING = frozenset({"tap", "click", "doubletap", "doubleclick", "longpress"})

_MAKERS: Mapping[str, Callable[[CallArguments], Action]] = {
    "launch": _launch,
    "awake": _launch,
    "tap": _tap,
    "click": _tap,
    "doubletap": _double_tap,
    "doubleclick": _double_tap,
    "longpress": lambda a: types.LongPress(
        element=a.pair("element"), duration=a.seconds(1.0, ms_from=a.units.wait_ms_from)
    ),
    "swipe": _swipe,
    "slide": _swipe,
    "type": lambda a: types.Type(text=a.needed_text("text")),
    "typename": lambda a: types.TypeName(text=a.needed_text("text")),
    "back": lambda _: types.Back(),
    "home": lambda _: types.Home(),
    "hotkey": _hot_key,
    "enter": lambda _: types.PressKey(key="enter"),
    "appswitch": lambda _: types.PressKey(key="app_switch"),
    "wait": lambda a: types.Wait(duration=a.seconds(1.0, ms_from=a.units.wait_ms_from, zero=True)),
    "takeover": lambda a: types.TakeOver(message=a.text("message") or ""),
    "interact": _interact,
    "info": _interact,
    "note": lambda a: types.Note(message=a.text("message") or ""),
    "callapi": _call_api,
    "getknowledgedata": lambda a: types.GetKnowledgeData(query=a.text("query") or ""),
    "finish": lambda a: types.Finish(message=a.text("message", names=FINISH_MESSAGE) or ""),
    "complete": _complete,
    "abort": lambda a: types.Finish(message=a.text("message", names=ABORT_MESSAGE) or "", success=False),
}
_FOR_THE_MODEL = (
    "Launch, Tap, Type, Type_Name, Swipe, Long Press, Double Tap, Back, Home, Wait, Take_over, Interact, Note, "
    "Call_API, GET_KNOWLEDGE_DATA"
)
_FILLING = re.compile(r"[\s_\-]+")


def plain(name: str) -> str:
    """Return a name without case, spaces and separators: ``Long Press`` and ``LONG_PRESS`` become ``longpress``."""
    return _FILLING.sub("", name).lower()


def is_known(name: str) -> bool:
    return plain(name) in _MAKERS


def build(name: str, values: Mapping[str, Value], units: Units = SECONDS) -> Action:
    """Return the action with this name. Raises ActionParseError, which says what is wrong with it."""
    maker = _MAKERS.get(plain(name))
    if maker is None:
        raise ActionParseError(f"There is no action {shown(name)}. The actions are: {_FOR_THE_MODEL}, finish.")
    arguments = CallArguments(name.strip(), values, units)
    try:
        action = maker(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ActionParseError(f"{arguments.name}: {where} is not valid: {first['msg']}.") from None
    arguments.done()
    return action
