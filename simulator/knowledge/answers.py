"""Answers of a hostile knowledge service that are whole HTTP messages: JSON that is too much, odd, or not clean.

Each form is that of one provider: "dify" (``{"records": […]}`` with segments), "ragflow" (``{"code": 0, "data":
{"chunks": […]}}``), and "http" (``{"records": […]}`` with flat records, what a template reads if nothing else is set).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

Form = Literal["dify", "ragflow", "http"]
QUESTION = "几天能发货"
ANSWER = "48小时内发货"
SURE = 0.99
JUST_ALLOWED = 4 * 1024 * 1024 - 64  # bytes: a little less than what a client reads at most

# Texts that differ from their looks, by the reason.
DIRTY = {
    "nul": "48\x00小时",
    "bell": "48小时\x07",
    "delete": "48小时\x7f",
    "escape sequence": "\x1b[31m48小时\x1b[0m",
    "escape of one byte": "\x9b31m48小时",
    "right-to-left override": "\u202e时小84",
    "isolate": "48\u2067小时\u2069",
    "direction mark": "48\u200f小时",
    "Arabic letter mark": "48\u061c小时",
    "half a pair": "48小时\ud83d",
    "other half of a pair": "\ude00 48小时",
    "zero width space": "48\u200b小时",
    "byte order mark": "\ufeff48小时",
    "soft hyphen": "48\u00ad小时",
    "joiner between letters": "4\u200d8小时",
    "selectors behind a letter": "48小时\ufe01\ufe02",
    "tags": "48小时" + "".join(chr(0xE0000 + ord(char)) for char in "free"),
    "filler": "48\u3164小时",
    "noncharacter": "48\uffff小时",
    "marks out of order": "48" + "\u0301\u0323" * 1900 + "小时",
}
# None of them is a score.
NO_SCORES: tuple[object, ...] = (
    10**400,
    -(10**400),
    float("nan"),
    float("inf"),
    -float("inf"),
    37,
    True,
    "0.99x",
    "9" * 400,
    [],
    {},
    None,
)


def record(form: Form, text: str, *, question: str = "", score: object = SURE) -> dict[str, Any]:
    """Return one record in the form of a service."""
    if form == "dify":
        segment = {"content": question or text, "answer": text if question else None, "document": {"name": "faq.csv"}}
        return {"segment": segment, "score": score}
    if form == "ragflow":
        content = f"问题：{question}\t回答：{text}" if question else text
        return {"content": content, "similarity": score, "document_keyword": "faq.csv"}
    return {"text": text, "question": question, "score": score}


def flat(form: Form, text: str, score: str = "") -> str:
    """Return the shortest record with a text, as JSON. ``score`` is JSON, too."""
    name, score_name = {"dify": ("content", "score"), "ragflow": ("content", "similarity"), "http": ("text", "score")}[
        form
    ]
    return f'{{"{name}":"{text}","{score_name}":{score}}}' if score else f'{{"{name}":"{text}"}}'


def wrapped(form: Form, listed: str) -> bytes:
    """Return the answer that holds these records; ``listed`` is JSON, mostly a list."""
    return (f'{{"code":0,"data":{{"chunks":{listed}}}}}' if form == "ragflow" else f'{{"records":{listed}}}').encode()


def _records(form: Form, records: Sequence[dict[str, Any]]) -> bytes:
    return wrapped(form, json.dumps(records))


def _filled(form: Form, unit: str) -> bytes:
    """Return a list of as many ``unit`` as the client may read."""
    return wrapped(form, "[" + ",".join([unit] * ((JUST_ALLOWED - 40) // (len(unit) + 1))) + "]")


def _many(form: Form) -> bytes:
    """Return an answer of 300,000 records, or as many as fit."""
    one = flat(form, "a")
    return wrapped(form, "[" + ",".join([one] * min(300_000, (JUST_ALLOWED - 40) // (len(one) + 1))) + "]")


def _rising(form: Form) -> bytes:
    """Return an answer of 80,000 records, the best ones last."""
    records = [flat(form, f"{number}", f"{number / 100_000}") for number in range(80_000)]
    return wrapped(form, "[" + ",".join(records) + "]")


def _odd_scores(form: Form) -> bytes:
    return _records(form, [record(form, f"{number}", score=score) for number, score in enumerate(NO_SCORES)])


def _dirty(form: Form) -> bytes:
    return _records(form, [record(form, text, question=QUESTION) for text in DIRTY.values()])


def _composed_in_parts(form: Form) -> bytes:
    """Return a clean answer with an accent behind its letter, as some systems write it."""
    return _records(form, [record(form, "Cafe\u0301, 48小时内发货", question=QUESTION)])


def _long(form: Form) -> bytes:
    return _records(form, [record(form, "48小时内发货。" * 60_000, question=QUESTION)])


def _of_another_kind(value: object) -> Callable[[Form], bytes]:
    return lambda form: wrapped(form, json.dumps(value))


BODIES: dict[str, Callable[[Form], bytes]] = {
    "good": lambda form: _records(form, [record(form, ANSWER, question=QUESTION)]),
    "composed_in_parts": _composed_in_parts,
    "objects": lambda form: _filled(form, "{}"),
    "bare_objects": lambda form: b"[" + b"{}," * (JUST_ALLOWED // 3 - 1) + b"0]",
    "lists": lambda form: _filled(form, "[]"),
    "members": lambda form: _filled(form, '{"":0}'),
    "nested_objects": lambda form: _filled(form, '{"":[{}]}'),
    "numbers": lambda form: _filled(form, "1.5"),
    "many_records": _many,
    "rising_scores": _rising,
    "odd_scores": _odd_scores,
    "dirty_texts": _dirty,
    "long_text": _long,
    "deep_lists": lambda form: wrapped(form, "[" * 1_000_000),
    "deep_objects": lambda form: b'{"records":' * 300_000,
    "deep_text": lambda form: _records(form, [record(form, "a") | {"text": json.loads("[" * 500 + "]" * 500)}]),
    "long_number": lambda form: _records(form, [record(form, "a")])[:-2] + b',{"score":' + b"9" * 1_000_000 + b"}]}",
    "long_fraction": lambda form: _filled(form, "0." + "3" * 1_000_000),
    "nothing": lambda form: b"",
    "null": lambda form: b"null",
    "a_number": lambda form: b"5",
    "a_text": lambda form: b'"records"',
    "a_list": lambda form: b"[1]",
    "an_object": lambda form: b"{}",
    "cut_off": lambda form: wrapped(form, '[{"text":"a"'),
    "a_page": lambda form: b"<html><body>Login</body></html>",
    "bad_utf8": lambda form: b'{"records": ["\xff\xfe"]}',
    "other_encoding": lambda form: wrapped(form, "[]").decode().encode("utf-32") * 2,
    "nul_bytes": lambda form: b"\x00" * 1000,
    "records_null": _of_another_kind(None),
    "records_text": _of_another_kind("48小时"),
    "records_object": _of_another_kind({"0": {"text": "a"}}),
    "list_of_null": _of_another_kind([None]),
    "list_of_numbers": _of_another_kind([1, 2]),
    "list_of_lists": _of_another_kind([[["a"]]]),
    "text_is_object": lambda form: _records(
        form, [record(form, "a") | {"segment": {"content": {}}, "content": [1], "text": {}}]
    ),
    "score_of_types": lambda form: _records(form, [record(form, "a", score=[{"type": [], "value": 1}, 5, None])]),
    "error_of_odd_type": lambda form: json.dumps({"code": [1], "message": {"a": 1}, "data": True}).encode(),
    "dirty_error": lambda form: json.dumps({"code": 109, "message": "\x1b[2J\ud800\u202e no"}).encode(),
}
