"""A million spoilt replies of models, against the rules for reading them as they are stated here.

    .venv/bin/python -m tests.acceptance.replies --replies 1000000 --seed 1 [--jobs 2] [--json]

Calls are written in each of the three dialects and then left whole, cut off, broken on purpose, or mangled at random.
What is read must be the call that was written, an ActionParseError, or at the very least an action that the rules below
allow and the reply's own words bear out; and it must be read within 5 ms of the processor's time. Exits with 1 where
anything else came out. Nothing here looks at how the product reads: names, fields, bounds and escapes stand here anew.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_core.actions import ActionParseError, Dialect, complete_call_end, parse_reply

LIMIT = 0.005  # seconds of the processor
USUAL_LIMIT = 0.0002  # for a reply as models write them
LONGEST = 12_000  # characters: what 3000 tokens come to at most
BATCH = 5_000
SHOWN = 10  # violations that are printed
AGAIN = 8  # readings that a slow one gets: of a busy machine, not of the text
DIALECTS: tuple[Dialect, ...] = ("autoglm", "json", "gelab")

# The rules ------------------------------------------------------------------------------------------------------------

PAIR, TEXT, WORDS, SOME, SECONDS, FLAG = "pair", "text", "words", "text or none", "seconds", "flag"
FIELDS: Mapping[str, Mapping[str, str]] = {
    "launch": {"app": TEXT},
    "tap": {"element": PAIR, "message": SOME},
    "double_tap": {"element": PAIR},
    "long_press": {"element": PAIR, "duration": SECONDS},
    "swipe": {"start": PAIR, "end": PAIR, "duration": SECONDS},
    "type": {"text": TEXT},
    "type_name": {"text": TEXT},
    "back": {},
    "home": {},
    "press_key": {"key": "key"},
    "wait": {"duration": SECONDS},
    "take_over": {"message": TEXT},
    "interact": {"question": TEXT, "choices": WORDS},
    "note": {"message": TEXT},
    "call_api": {"instruction": TEXT},
    "get_knowledge_data": {"query": TEXT},
    "finish": {"message": TEXT, "success": FLAG},
}
# How models call an action, folded: without case, blanks and joining marks.
NAMES: Mapping[str, tuple[str, ...]] = {
    "launch": ("launch", "awake"),
    "tap": ("tap", "click"),
    "double_tap": ("doubletap", "doubleclick"),
    "long_press": ("longpress",),
    "swipe": ("swipe", "slide"),
    "type": ("type",),
    "type_name": ("typename",),
    "back": ("back",),
    "home": ("home",),
    "press_key": ("hotkey", "enter", "appswitch"),
    "wait": ("wait",),
    "take_over": ("takeover",),
    "interact": ("interact", "info"),
    "note": ("note",),
    "call_api": ("callapi",),
    "get_knowledge_data": ("getknowledgedata",),
    "finish": ("finish", "complete", "abort"),
}
LONGEST_WAIT = 30.0
TYPED = {"type", "type_name"}


def complaint(action: Mapping[str, Any], text: str, dialect: Dialect) -> str:
    """Why this action may not have come of this text; "" where it may."""
    kind = action.get("kind")
    rules = FIELDS.get(str(kind))
    if rules is None:
        return f"unknown kind {kind!r}"
    if set(action) != {"kind", *rules}:
        return f"{kind} has the fields {sorted(action)}"
    for name, rule in rules.items():
        if wrong := _wrong(action[name], rule):
            return f"{name} of {kind} is {wrong}"
    plain = _folded(text)
    if not any(name in plain for name in NAMES[str(kind)]):
        return f"nothing in the reply names {kind}"
    if kind == "finish" and action["success"] and not ("finish" in plain or "complete" in plain):
        return "a success that nothing in the reply says"
    if kind == "press_key" and action["key"].replace("_", "") not in plain and "recent" not in plain:
        return "a key that the reply does not name"
    if kind in TYPED and not _quoted(str(action["text"]), text, dialect):
        return f"typed is what no value of the reply says in full: {action['text']!r}"
    for name, rule in rules.items():
        said = action[name]
        if rule == PAIR and not (kind == "swipe" and name == "end" and "direction" in plain):
            numbers = {round(float(found)) for found in re.findall(r"\d{1,20}(?:\.\d{1,20})?", _spelled(text))}
            if not set(said) <= numbers and not re.search(r"\d\s*[eE]", text):
                return f"{name} of {kind} is {said}, numbers that do not stand in the reply"
        if rule in (TEXT, SOME) and kind not in TYPED and said and not _stands(str(said), text):
            return f"{name} of {kind} is not in the reply: {said!r}"
    return ""


def _wrong(value: object, rule: str) -> str:
    """What is wrong with a value; "" where nothing is."""
    right = False
    match rule:
        case "pair":
            numbers = value if isinstance(value, tuple) else ()
            right = len(numbers) == 2 and all(type(one) is int and 0 <= one <= 1000 for one in numbers)
        case "seconds":
            right = isinstance(value, float) and 0 <= value <= LONGEST_WAIT
        case "text":
            right = isinstance(value, str)
        case "text or none":
            right = value is None or isinstance(value, str)
        case "words":
            right = isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        case "flag":
            right = isinstance(value, bool)
        case "key":
            right = value in ("enter", "app_switch")
    return "" if right else repr(value)[:80]


def _folded(text: str) -> str:
    return re.sub(r"[\s_\-]+", "", f"{text}\n{unescaped(text)}" if "\\" in text else text).lower()


def _spelled(text: str) -> str:
    """With the digits of every script as 0–9."""
    return text if text.isascii() else re.sub(r"\d", lambda found: str(int(found.group())), text)


_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "\n"}
_SAME = set("\"'\\/`“”‘’")
_LONG = {"x": 2, "u": 4, "U": 8}


def unescaped(text: str) -> str:
    """The text with its escapes as what they stand for, as far as they are some."""
    if "\\" not in text:
        return text
    found, pos = [], 0
    while (slash := text.find("\\", pos)) >= 0:
        found.append(text[pos:slash])
        meant, pos = _piece(text, slash)
        found.append(meant)
    return "".join((*found, text[pos:]))


def _piece(text: str, pos: int) -> tuple[str, int]:
    if text[pos] != "\\" or pos + 1 == len(text):
        return text[pos], pos + 1
    mark = text[pos + 1]
    if mark in _LONG:
        digits = text[pos + 2 : pos + 2 + _LONG[mark]]
        if len(digits) == _LONG[mark] and re.fullmatch(r"[0-9a-fA-F]+", digits):
            return _of_code(text, pos, mark, int(digits, 16), pos + 2 + len(digits))
        return "\\" + mark, pos + 2
    if mark in _SAME:
        return mark, pos + 2
    return _SHORT.get(mark, "\\" + mark), pos + 2


def _of_code(text: str, pos: int, mark: str, code: int, end: int) -> tuple[str, int]:
    if mark == "u" and 0xD800 <= code < 0xDC00 and (low := re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", text[end:])):
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), end + 6
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\ufffd", end
    return chr(code), end


def _ends(said: str, text: str, begin: int) -> int | None:
    """Where the text that stands for ``said`` and begins at ``begin`` ends."""
    pos, done = begin, 0
    while done < len(said):
        if text.startswith(said[done:], pos) and "\\" not in said:
            return pos + len(said) - done
        if pos >= len(text):
            return None
        if said[done:] == "\\" == text[pos] and text[pos + 1 : pos + 2] != "\\":
            return pos + 1  # what comes after it is the field's end
        meant, pos = _piece(text, pos)
        if not said.startswith(meant, done):
            return None
        done += len(meant)
    return pos


def _places(said: str, text: str) -> Iterator[tuple[int, int]]:
    """Every (begin, end) of what stands for ``said``, which is not empty."""
    for first in re.finditer(re.escape(said[0]) + r"|\\", text):
        end = _ends(said, text, first.start())
        if end is not None:
            yield first.start(), end


def _stands(said: str, text: str) -> bool:
    return any(True for one in (said, said.strip()) if one for _ in _places(one, text)) or not said.strip()


_OPENS = "\"'“”„‘’＂＇「『"
_CLOSES = "\"'“”‘’＂＇」』"
_BARE = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?|true|false", re.IGNORECASE)
_BEFORE_BARE = re.compile(r"[=＝:：]\s*\Z")
_BEFORE_FIELD = re.compile(r"(?:[:：*`\n]|\\t)\s*\Z")
_AFTER_FIELD = re.compile(r"\s*(?:\Z|\\t|\t|\n|<|＜|```|(?:[a-z_]+\d?)\*{0,2} {0,3}[:：])", re.IGNORECASE)
_LONGEST_GAP = 300  # characters between a value and what it stands after


def _quoted(said: str, text: str, dialect: Dialect) -> bool:
    """Whether the reply holds ``said`` as a whole value: between quotes with a bracket somewhere after them, or, in the
    tab-separated form, after a colon and up to the end of the field."""
    last = max(text.rfind(closer) for closer in ")）}｝")
    if not said:
        empty = re.search(f"[{_OPENS}][{_CLOSES}]", text)
        return (empty is not None and empty.end() <= last) or dialect == "gelab"
    for begin, end in _places(said, text):
        before = text[max(0, begin - _LONGEST_GAP) : begin]
        if before[-1:] in _OPENS and before and text[end : end + 1] in _CLOSES and end < last:
            return True
        if end <= last and _BARE.fullmatch(said) and _BEFORE_BARE.search(before):
            return True
        if dialect == "gelab" and _BEFORE_FIELD.search(before) and _AFTER_FIELD.match(text, end):
            return True
    return False


# Calls as models write them -------------------------------------------------------------------------------------------

WORDS_POOL = (
    "你好",
    "亲，下单后48小时内发货～",
    '他说"好的"，然后走了',
    "it's fine",
    "a=1, b=(2)",
    "第一行\n第二行",
    "100% 棉 [加厚]",
    "</answer>",
    'do(action="Home")',
    "emoji 😀 \u200b\u202e",
    "C:\\temp\\new",
    "“引号”与‘单引号’",
    "finish(message='x')",
    "007",
    "",
)
FLAT_POOL = (
    "你好",
    "亲，下单后48小时内发货～",
    '他说"好的"',
    "100% 棉",
    "emoji 😀",
    "it's fine",
    "几天能发货？",
    "8:30 开门",
)


@dataclass(frozen=True)
class Written:
    """A call as it was meant. ``arguments`` by the names that the action has; ``text`` in one dialect."""

    dialect: Dialect
    text: str
    action: Mapping[str, Any]
    call: tuple[int, int]  # where the call stands in the text


def _number(chance: random.Random) -> int:
    return chance.choice((0, 1000, 500, chance.randint(0, 1000)))


def _action(chance: random.Random, dialect: Dialect) -> dict[str, Any]:
    kind = chance.choice(tuple(FIELDS))
    pool = FLAT_POOL if dialect == "gelab" else WORDS_POOL
    made: dict[str, Any] = {"kind": kind}
    for name, rule in FIELDS[kind].items():
        match rule:
            case "pair":
                made[name] = (_number(chance), _number(chance))
            case "seconds":
                made[name] = chance.choice((1.0, 2.0, 3.0, 0.5, 30.0))
            case "words":
                made[name] = tuple(chance.sample(("甲", "乙") if dialect == "gelab" else pool, chance.randint(0, 2)))
            case "flag":
                made[name] = chance.random() < 0.7
            case "key":
                made[name] = chance.choice(("enter", "app_switch"))
            case "text or none":
                made[name] = chance.choice((None, chance.choice(pool)))
            case _:
                made[name] = chance.choice([one for one in pool if one] if rule == TEXT and name == "app" else pool)
    return made


def _name(chance: random.Random, action: Mapping[str, Any], dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """One of its names, in one of its spellings, and its arguments under one of theirs."""
    kind, values = action["kind"], {k: v for k, v in action.items() if k != "kind" and v is not None}
    if kind == "finish":
        success = values.pop("success")
        values = {chance.choice(("message", "return", "value")): values["message"]}
        if not success and chance.random() < 0.5:
            return chance.choice(("COMPLETE", "complete")), {"status": "FAILURE", **values}
        return chance.choice(("finish", "COMPLETE") if success else ("ABORT", "Abort")), values
    if kind in {"back", "home"} and chance.random() < 0.3:
        return "HOT_KEY", {"key": kind.upper()}
    if kind == "press_key" and chance.random() < 0.2:
        return values["key"].capitalize(), {}
    if kind == "press_key":
        return chance.choice(("HOT_KEY", "Hot_Key")), {chance.choice(("key", "value")): values["key"].upper()}
    spelled = {
        "long_press": ("Long Press", "LONG_PRESS", "LONGPRESS", "LongPress"),
        "double_tap": ("Double Tap", "DOUBLE_CLICK", "DoubleTap"),
        "tap": ("Tap", "CLICK", "tap", "click"),
        "swipe": ("Swipe", "SLIDE"),
        "launch": ("Launch", "AWAKE", "launch"),
        "type_name": ("Type_Name", "TYPE_NAME"),
        "take_over": ("Take_over", "TAKE_OVER"),
        "interact": ("Interact", "INFO"),
        "call_api": ("Call_API",),
        "get_knowledge_data": ("GET_KNOWLEDGE_DATA",),
    }.get(kind, (kind.capitalize(), kind.upper()))
    renamed = {
        "element": ("element", "point", "coordinates"),
        "start": ("start", "point1"),
        "end": ("end", "point2"),
        "app": ("app", "value", "package"),
        "text": ("text", "value"),
        "instruction": ("instruction", "value"),
        "query": ("query", "value"),
        "question": ("question", "value"),
    }
    named = {chance.choice(renamed.get(key, (key,))): value for key, value in values.items()}
    if "duration" in named:
        named["duration"] = _duration(chance, kind, named["duration"], dialect)
    return chance.choice(spelled), named


def _duration(chance: random.Random, kind: str, seconds: float, dialect: Dialect) -> object:
    forms: list[object] = [f"{seconds:g} seconds", f"{round(seconds * 1000)} ms"]
    if dialect != "json":
        forms.append(seconds)
    elif kind == "swipe" or seconds * 1000 >= 100:
        forms.append(round(seconds * 1000))
    return chance.choice(forms)


def _literal(chance: random.Random, value: object) -> str:
    if isinstance(value, str):
        quote = chance.choice('"""\'')
        body = value.replace("\\", "\\\\").replace(quote, "\\" + quote)
        if chance.random() < 0.5:
            body = body.replace("\n", "\\n")
        return quote + body.replace("</", "\\u003c/") + quote
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_literal(chance, one) for one in value) + "]"
    return str(value)


def written(chance: random.Random, dialect: Dialect, extra: Callable[[str], str] = str) -> Written:
    """A valid reply. ``extra`` may change the call itself."""
    action = _action(chance, dialect)
    name, values = _name(chance, action, dialect)
    if dialect == "autoglm":
        call = _as_autoglm(chance, name, values)
    elif dialect == "json":
        call = _as_json(chance, name, values)
    else:
        call = _as_gelab(chance, name, values)
    call = extra(call)
    head, tail = _wrapping(chance, dialect)
    return Written(dialect, head + call + tail, action, (len(head), len(head) + len(call)))


def _as_autoglm(chance: random.Random, name: str, values: Mapping[str, object]) -> str:
    if name == "finish" and chance.random() < 0.8:
        message = _literal(chance, next(iter(values.values())))
        return chance.choice((f"finish(message={message})", f"finish({message})"))
    parts = [f"action={_literal(chance, name)}", *(f"{key}={_literal(chance, value)}" for key, value in values.items())]
    return f"do({chance.choice((', ', ','))[:2].join(parts)})"


def _as_json(chance: random.Random, name: str, values: Mapping[str, object]) -> str:
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    forms: list[dict[str, object]] = [
        {"action": name, **plain},
        {"_metadata": "finish" if name == "finish" else "do", "action": name, **plain},
        {"type": "do", "operation": name, **plain},
        {"type": name, **plain},
        {"name": name, "arguments": plain},
        {"thought": "想一想", "action": name, **plain},
    ]
    dumped = json.dumps(chance.choice(forms), ensure_ascii=chance.random() < 0.3)
    return dumped.replace("</", "\\u003c/")


def _as_gelab(chance: random.Random, name: str, values: Mapping[str, object]) -> str:
    fields = ["explain:因为要这样", f"action:{name}"]
    for key, value in values.items():
        separator = "|" if key == "choices" else ","
        said = separator.join(str(one) for one in value) if isinstance(value, tuple) else str(value)
        # the dialect has few fields: what it has none for goes under value
        fields.append(f"{key if key not in OTHERS else 'value'}:{said}")
    fields.append("summary:做到这里")
    return "\t".join(fields)


OTHERS = {"text", "app", "question", "instruction", "query"}


def _wrapping(chance: random.Random, dialect: Dialect) -> tuple[str, str]:
    thought = chance.choice(
        ("看看屏幕。", "先想 finish(message='x')，再说", '{"action":"Home"} 不对', "action:ABORT 也许", "")
    )
    if dialect == "gelab":
        tag = chance.choice(("THINK", "TINK", "think"))
        return chance.choice((f"<{tag}>{thought}</{tag}>", f"<{tag}>{thought}</{tag}>\n")), chance.choice(("", "\n"))
    wraps = (
        (f"<think>{thought}</think><answer>", "</answer>"),
        (f"<think>{thought}</think>\n<answer>\n", "\n</answer>\n好的"),
        (f"<think>{thought}</think>", ""),
        (f"{thought}</think>", "\n"),
        ("```\n", "\n```"),
        ("<|begin_of_box|>", "<|end_of_box|>"),
        ("", ""),
    )
    return chance.choice(wraps)


# What goes wrong ------------------------------------------------------------------------------------------------------

Fate = Literal["whole", "cut", "smuggled", "computed", "mangled"]
FATES: tuple[Fate, ...] = ("whole", "cut", "smuggled", "computed", *("mangled",) * 6)

SMUGGLED = ("thinking", "kind", "success", "_metadata", "version", "approved", "model_config", "__class__", "ignored")
COMPUTED = (
    '__import__("os").system("id")',
    'f"{1+1}"',
    '"a" + "b"',
    '"a" * 9',
    '"%s" % "a"',
    '"a".upper()',
    "open('x').read()",
    "[i for i in (1, 2)]",
    "lambda: 1",
    "1 if True else 2",
    "500 + 1",
    "0x1F4",
    "500..1",
    "nan",
    "1e999",
    'b"raw"',
    "`id`",
    "$(id)",
    "{**globals()}",
    "(yield)",
    "...",
)


def _smuggle(chance: random.Random, dialect: Dialect) -> Callable[[str], str]:
    """One argument too many: a field that is ours. A thought is no argument in JSON."""
    name, value = (
        chance.choice(SMUGGLED[dialect == "json" :]),
        chance.choice(('"finish"', "true", "1", "[500, 500]", '"x"')),
    )

    def put(call: str) -> str:
        if dialect == "gelab":
            return call.replace("\tsummary:", f"\t{name}:{value}\tsummary:", 1)
        if dialect == "json":
            return f'{{"{name}x": {value}, {call[1:]}' if name == "_metadata" else f'{{"{name}": {value}, {call[1:]}'
        separator = "" if call.endswith("()") else ", "
        return f"{call[:-1]}{separator}{name}={value})"

    return put


def _compute(chance: random.Random, dialect: Dialect) -> Callable[[str], str]:
    """A value that would have to be worked out."""
    value = chance.choice(COMPUTED)

    def put(call: str) -> str:
        if dialect == "json":
            return f'{{"message": {value}, "action": "finish"}}'
        name, key = chance.choice((("Type", "text"), ("Note", "message"), ("Tap", "element"), ("Wait", "duration")))
        return f'do(action="{name}", {key}={value})'

    return put


PIECES: tuple[str, ...] = (
    *"\"'()[]{}<>,=:\\\t\n“”‘’（）【】｛｝，：；＝＂＇「」",
    "<think>", "</think>", "<answer>", "</answer>", "<THINK>", "<ansewr>", "＜think＞", "```", "```json",
    "<|begin_of_box|>", "<|end_of_box|>", "do(", "finish(", 'do(action="Back")', 'finish(message="好")',
    '{"action":"Home"}', "explain:x\taction:HOT_KEY\tvalue:HOME\tsummary:x", "action:", "value:", "summary:",
    "\tsummary:x", "\\t", "\\n", "\\u", "\\ud800", "\\ud83d\\ude00", "\\x4", "\\U0010ffff", "\\U00110000",
    "9" * 30, "1" * 400, "-1", "1001", "1e3", "1e999", "5e-324", ".5", "0x10", "５００", "٥٠٠", "nan", "inf",
    "None", "null", "true", "\x00", "\u202e", "\u200b", "\u2028", "\ufeff", "\r", "\x85", "__import__('os')",
    "f\"", "lambda:", "kind=", "success=True", '"kind":"finish",', "_metadata", "element=", "text=",
    "message=", "%s", "${x}", "; rm -rf /", "'; id; '", "$(id)",
)  # fmt: skip
FULL_WIDTH = str.maketrans("()[]{},:=\"'", "（）【】｛｝，：＝＂＇")
SWAPS = (
    ('"', "'"),
    ("'", '"'),
    ('"', "“"),
    ('"', "”"),
    ('"', '\\"'),
    (",", "，"),
    ("(", "（"),
    (")", "）"),
    ("\t", " "),
    ("\t", "\n"),
)


def _mangle(chance: random.Random, text: str) -> str:
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 6))):
        mangle: Callable[[random.Random, str], str] = chance.choice(MANGLERS)
        text = mangle(chance, text)[:LONGEST]
    return text


def _span(chance: random.Random, text: str) -> tuple[int, int]:
    begin = chance.randint(0, len(text))
    return begin, min(len(text), begin + chance.choice((0, 1, 1, 2, 5, 20, 60)))


def _insert(chance: random.Random, text: str) -> str:
    begin, end = _span(chance, text)
    return text[:begin] + chance.choice(PIECES) + text[chance.choice((begin, begin, end)) :]


def _delete(chance: random.Random, text: str) -> str:
    begin, end = _span(chance, text)
    return text[:begin] + text[end:]


def _double(chance: random.Random, text: str) -> str:
    begin, end = _span(chance, text)
    return text[:end] + text[begin:end] * chance.choice((1, 2, 50)) + text[end:]


def _swap(chance: random.Random, text: str) -> str:
    old, new = chance.choice(SWAPS)
    return text.replace(old, new, chance.choice((1, 2, -1)))


def _widen(chance: random.Random, text: str) -> str:
    begin, end = _span(chance, text)
    return text[:begin] + text[begin:end].translate(FULL_WIDTH) + text[end:]


def _nest(chance: random.Random, text: str) -> str:
    begin, end = _span(chance, text)
    opened, closed = chance.choice(
        (("[", "]"), ("(", ")"), ("{", "}"), ('{"a":', "}"), ("do(", ")"), ('"', '"'), ("<think>", ""))
    )
    many = chance.choice((1, 3, 20, 2000))
    return text[:begin] + opened * many + text[begin:end] + closed * chance.choice((many, 0)) + text[end:]


def _big(chance: random.Random, text: str) -> str:
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text
    found = chance.choice(numbers)
    number = chance.choice(
        ("1" * 5000, "99999999999999999999999", "1e400", "-5", "1000.4", "0.5", "1001", "+7", "00500")
    )
    return text[: found.start()] + number + text[found.end() :]


def _cut(chance: random.Random, text: str) -> str:
    return text[: chance.randint(0, len(text))]


def _behead(chance: random.Random, text: str) -> str:
    return text[chance.randint(0, len(text)) :]


def _join(chance: random.Random, text: str) -> str:
    other = written(chance, chance.choice(DIALECTS)).text
    return chance.choice((text + other, text + "\n" + other, other + text))


def _shuffle(chance: random.Random, text: str) -> str:
    lines = re.split(r"(\t|, |\n)", text)
    chance.shuffle(lines)
    return "".join(lines)


MANGLERS = (
    _insert, _insert, _insert, _delete, _delete, _double, _swap, _swap, _widen, _nest, _big, _cut, _behead, _join,
    _shuffle,
)  # fmt: skip


# One reply ------------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What came of some replies. ``wrong``: (what is wrong, dialect, fate, the text)."""

    replies: int = 0
    actions: int = 0
    refused: int = 0
    by_fate: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str, str]] = field(default_factory=list)
    slowest: float = 0.0
    usual: list[float] = field(default_factory=list)  # seconds, of whole replies

    def add(self, other: Found) -> None:
        self.replies += other.replies
        self.actions += other.actions
        self.refused += other.refused
        self.by_fate += other.by_fate
        self.wrong += other.wrong
        self.slowest = max(self.slowest, other.slowest)
        self.usual += other.usual


def read(text: str, dialect: Dialect) -> tuple[dict[str, Any] | None, str, float]:
    """The action as plain data (None where it was refused), what else was raised, and the seconds that it took."""
    begin = time.thread_time()
    try:
        reply = parse_reply(text, dialect)
    except ActionParseError as error:
        said = "" if 0 < len(error.message) < 600 else f"a message of {len(error.message)} characters"
        return None, said, time.thread_time() - begin
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return None, f"{type(error).__name__}: {error}", time.thread_time() - begin
    took = time.thread_time() - begin
    return reply.action.model_dump(), "", took


def judge(chance: random.Random, found: Found) -> None:
    """Write a reply, spoil it, have it read, and look at what came of it."""
    dialect, fate = chance.choice(DIALECTS), chance.choice(FATES)
    if fate == "computed" and dialect == "gelab":
        fate = "mangled"  # its values stand without quotes: nothing in it looks like an expression
    if fate == "smuggled":
        reply = written(chance, dialect, _smuggle(chance, dialect))
    elif fate == "computed":
        reply = written(chance, dialect, _compute(chance, dialect))
    else:
        reply = written(chance, dialect)
    text = reply.text
    if fate == "mangled":
        text = _mangle(chance, text)
    elif fate == "cut":
        text = text[: chance.randint(0, reply.call[1])]
    how: Dialect = "auto" if chance.random() < 0.25 else dialect
    action, raised, took = read(text, how)
    for _ in range(AGAIN):
        if took <= LIMIT:
            break
        took = min(took, read(text, how)[2])
    found.replies += 1
    found.by_fate[fate] += 1
    found.slowest = max(found.slowest, took)
    found.actions += action is not None
    found.refused += action is None
    if fate == "whole":
        found.usual.append(took)
    wrong = (
        raised or (f"it took {took * 1000:.1f} ms" if took > LIMIT else "") or _verdict(fate, reply, action, text, how)
    )
    if not wrong and chance.random() < 0.05:
        wrong = _streamed(text, how, action)
    if wrong:
        found.wrong.append((wrong, how, fate, text))


def _verdict(fate: Fate, reply: Written, action: Mapping[str, Any] | None, text: str, how: Dialect) -> str:
    """What is wrong with what was read; "" where nothing is."""
    if fate == "whole" and action != dict(reply.action):
        return f"read as {action}, written as {dict(reply.action)}"
    if action is None:
        return ""
    if fate in {"smuggled", "computed"}:
        return f"was to be refused, and is {action}"
    if fate == "cut" and action["kind"] in TYPED and action != dict(reply.action):
        return f"cut off, and would be typed: {action}"
    return complaint(action, text, "gelab" if how == "auto" else how) or _thought(text, how, action)


_CLEAN = re.compile(r"<think>([^<＜>＞]*)</think>\s*(<answer>[^<＜]*</answer>[^<＜]*)", re.DOTALL)


def _thought(text: str, how: Dialect, action: Mapping[str, Any]) -> str:
    """What is thought decides nothing: with another thought the action is the same."""
    clean = _CLEAN.fullmatch(text)
    if clean is None:
        return ""
    other, _, _ = read(f"<think>…</think>{clean[2]}", how)
    return "" if other == dict(action) else f"with another thought it is {other}"


_BEGUN_IN_THE_PROMPT = re.compile(r"[^<＜]*[<＜]\s*/", re.DOTALL)


def _streamed(text: str, how: Dialect, action: Mapping[str, Any] | None) -> str:
    """A stream is closed where the call is complete: what is read up to there is what is read of the whole."""
    if _BEGUN_IN_THE_PROMPT.match(text):
        return ""  # what arrives may be a thought, of which only its end will tell
    try:
        end = complete_call_end(text, how)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"while it arrives, {type(error).__name__}: {error}"
    if end is None or re.search(r"[<＜]", text[end:]):
        return ""  # tags that come later change what the whole is, and nobody waits for them
    early, raised, _ = read(text[:end], how)
    return raised or (
        "" if early == (dict(action) if action else None) else f"closed at {end} it is {early}, whole {action}"
    )


# A million ------------------------------------------------------------------------------------------------------------


def batch(seed: str, replies: int) -> Found:
    chance, found = random.Random(seed), Found()
    for _ in range(replies):
        judge(chance, found)
    return found


def fuzz(replies: int, seed: int, jobs: int = 1) -> Found:
    """``replies`` of them; the same for the same ``seed``, in however many processes."""
    sizes = [min(BATCH, replies - begin) for begin in range(0, replies, BATCH)]
    seeds = [f"{seed}:{number}" for number in range(len(sizes))]
    found = Found()
    if jobs == 1:
        for one in map(batch, seeds, sizes):
            found.add(one)
        return found
    with ProcessPoolExecutor(jobs) as pool:
        for one in pool.map(batch, seeds, sizes):
            found.add(one)
    return found


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    begin = time.monotonic()
    found = fuzz(asked.replies, asked.seed, asked.jobs)
    usual = _quantile(found.usual, 0.95)
    told = {
        "replies": found.replies,
        "fates": dict(sorted(found.by_fate.items())),
        "actions": found.actions,
        "refused": found.refused,
        "violations": len(found.wrong),
        "slowest_ms": round(found.slowest * 1000, 3),
        "usual_ms_median": round(_quantile(found.usual, 0.5) * 1000, 4),
        "usual_ms_p95": round(usual * 1000, 4),
        "seconds": round(time.monotonic() - begin, 1),
    }
    if asked.json:
        sys.stdout.write(json.dumps({**told, "wrong": found.wrong}, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{name:16} {value}\n" for name, value in told.items()))
        for wrong, how, fate, text in found.wrong[:SHOWN]:
            sys.stdout.write(f"\n{how}, {fate}: {wrong[:300]}\n  {text[:500]!r}\n")
    return 1 if found.wrong or usual > USUAL_LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
