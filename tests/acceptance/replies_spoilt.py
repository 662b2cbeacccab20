"""What goes wrong with a reply, for ``tests.acceptance.replies``."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Literal

from agent_core.actions import Dialect
from tests.acceptance.replies_written import DIALECTS, written

LONGEST = 12_000  # characters: what 3000 tokens come to at most

Fate = Literal["whole", "cut", "smuggled", "computed", "mangled"]
FATES: tuple[Fate, ...] = ("whole", "cut", "smuggled", "computed", *("mangled",) * 6)

SMUGGLED = ("kind", "success", "_metadata", "version", "approved", "times", "model_config", "__class__", "ignored")
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


def smuggle(chance: random.Random, dialect: Dialect) -> Callable[[str], str]:
    """One argument too many, which could say something else than what is done."""
    name, value = (
        chance.choice(SMUGGLED),
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


def compute(chance: random.Random, dialect: Dialect) -> Callable[[str], str]:
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


def mangle(chance: random.Random, text: str) -> str:
    """Something at random goes wrong with it, once or several times."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 6))):
        spoil: Callable[[random.Random, str], str] = chance.choice(MANGLERS)
        text = spoil(chance, text)[:LONGEST]
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
