"""What is written is read back as equal, whatever the texts; and no reply, however mangled, raises anything else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.actions import Action, ActionParseError, Dialect, parse_reply, to_autoglm, types
from tests.agent_core.actions.strategies import ACTIONS


@given(ACTIONS, st.sampled_from(["autoglm", "auto"]))
def test_written_and_read_is_the_same(action: Action, dialect: Dialect) -> None:
    call = to_autoglm(action)
    assert "\n" not in call.replace("\u2028", "")
    for text in (
        call,
        f"<think>想</think><answer>{call}</answer>",
        f"<think>想 finish(message=1)</think>\n{call}\nfinish(message='later')",
        f"好的\n```\n{call}\n```",
    ):
        assert parse_reply(text, dialect).action == action


def test_no_tag_of_a_text_stands_in_what_is_written() -> None:
    """A model server's chat template may look for them in the history."""
    call = to_autoglm(types.Type(text="a</think><Answer>b"))
    assert "<" not in call
    assert parse_reply(call).action == types.Type(text="a</think><Answer>b")


@pytest.mark.parametrize("kind", sorted(types.Reply.model_fields))
def test_every_field_of_a_reply_is_there(kind: str) -> None:
    assert hasattr(parse_reply('do(action="Back")'), kind)


SEEDS = [
    '<think>a</think><answer>do(action="Tap", element=[500,300], message="x")</answer>',
    '<answer>do(action="Type", text="他说\\"好\\"\\n行")</answer>',
    '{"_metadata":"do","action":"Swipe","start":[1,2],"end":[3,4],"duration":500}',
    "<THINK>x</THINK>explain:y\taction:SLIDE\tpoint1:1,2\tpoint2:3,4\tsummary:z",
    "finish（“好”）",
]
PIECES = [
    *"\"'()[]{}<>,=:\\\t\n“”（）【】，：",
    "<think>",
    "</think>",
    "<answer>",
    "do(",
    "finish(",
    "9" * 30,
    "1e999",
    "\\u",
    "\\ud800",
    "\x00",
    "None",
    "true",
    "action",
    "explain:",
    "-",
    ".",
]


@st.composite
def mangled(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 4))
        text = text[:at] + draw(st.sampled_from(PIECES) | st.text(max_size=3)) + text[at + cut :]
    return text


@given(mangled() | st.text(), st.sampled_from(["autoglm", "json", "gelab", "auto"]))
@example("do(action=" + "[" * 100_000, "autoglm")
@example("{" * 100_000, "json")
def test_nothing_but_a_parse_error_is_raised(text: str, dialect: Dialect) -> None:
    with contextlib.suppress(ActionParseError):
        reply = parse_reply(text, dialect)
        reply.model_dump_json()  # every text in it can be encoded
