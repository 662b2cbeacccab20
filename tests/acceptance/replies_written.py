"""Calls as models write them, for ``tests.acceptance.replies``."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.actions import Dialect
from tests.acceptance.replies_rules import FIELDS, TEXT

DIALECTS: tuple[Dialect, ...] = ("autoglm", "json", "gelab")

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
