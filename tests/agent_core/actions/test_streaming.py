"""When the first complete call of a reply that is still arriving has arrived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.actions import Action, CallWatch, Dialect, complete_call_end, parse_reply, to_autoglm
from tests.agent_core.actions.strategies import ACTIONS

REPLIES: list[tuple[Dialect, str, str]] = [
    ("autoglm", '<think>finish(message="x")</think>\n<answer>do(action="Type", text="a\\"b) c")', "</answer>"),
    ("autoglm", '想一想，也许 finish(message="x")</think>do(action="Back")', "\nfinish()"),
    ("autoglm", '好的。\ndo(action="Tap", element=[500,500])', "\n然后"),
    ("autoglm", '<answer>do(action="Type", text="他说"好"")', "</answer>"),
    ("json", '<think>{"action":"Home"}</think>{"action":"Type","text":"a } b"}', '{"action":"Home"}'),
    ("auto", '<think>x</think><answer>{"action":"Tap","element":[1,2]}', "</answer>"),
    ("gelab", "<THINK>action:ABORT</THINK>explain:a\taction:CLICK\tpoint:1,2\tsummary:好的", "\n"),
    ("auto", "<THINK>x</THINK>explain:a\taction:TYPE\tvalue:b\nc\tsummary:好的", "\n<THINK>"),
]


@pytest.mark.parametrize(("dialect", "head", "tail"), REPLIES)
def test_it_is_complete_with_its_last_character_and_not_before(dialect: Dialect, head: str, tail: str) -> None:
    text = head + tail
    gelab = "action:" in head and "do(" not in head
    ends = [complete_call_end(text[:length], dialect) for length in range(len(text) + 1)]
    first = next(index for index, end in enumerate(ends) if end is not None)
    assert first == len(head) + (1 if gelab else 0)
    assert all(end == len(head) for end in ends[first:])
    assert parse_reply(text[: len(head)], dialect).action == parse_reply(text, dialect).action


@pytest.mark.parametrize(
    "text",
    [
        "<think>do(action='Back')",
        "<think>do(action='Back')\n<answer>do(action='Home')</answer>",
        '<think>a</think><answer>do(action="Type", text="say (hi)',
        '<think>a</think><answer>do(action="Tap", ele',
        '<think>a</think><answer>do(action="Tap", element=[5',
        "I could finish(message='x') now",
        "",
    ],
)
def test_not_complete(text: str) -> None:
    assert complete_call_end(text) is None
    assert complete_call_end(text, "auto") is None


@given(ACTIONS, st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_a_growing_text_is_watched_piece_by_piece(action: Action, sizes: list[int]) -> None:
    head = f"<think>do(action='Home')</think><answer>{to_autoglm(action)}"
    text = head + "</answer>"
    watch = CallWatch()
    pos = 0
    while watch.end is None and pos < len(text):
        size = sizes[pos % len(sizes)]
        watch.feed(text[pos : pos + size])
        pos += size
    assert watch.end == len(head)
    assert parse_reply(watch.text[: watch.end]).action == action


def test_a_long_thought_is_not_read_again_for_each_piece() -> None:
    watch = CallWatch("auto")
    watch.feed("<think>")
    for _ in range(20_000):
        assert watch.feed("想(一)想") is None
    assert watch.feed("</thi") is None
    assert watch.feed('nk>\n<answer>do(action="Back")') == len(watch.text)
