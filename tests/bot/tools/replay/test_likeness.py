"""How much alike two actions are, on the screen that they were proposed on."""

from __future__ import annotations

import pytest

from agent_core.actions import parse_reply
from agent_core.actions.types import Action
from agent_core.geometry import Box
from agent_core.perception.readings import Reading, Source
from bot.tools.replay.dry_run import likeness

SIZE = (1000, 2000)
ROW = Reading("一行", Box(0, 400, 1000, 600), Source.TREE)
NAME = Reading("名字", Box(300, 450, 500, 550), Source.TREE)


def act(call: str) -> Action:
    return parse_reply(call if call.startswith("finish") else f"do(action={call})").action


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ('"Tap", element=[500,100]', '"Tap", element=[500,100]', "same"),
        ('"Tap", element=[500,100]', '"Tap", element=[500,130]', "near"),  # 60 of 2000 pixels
        ('"Tap", element=[500,100]', '"Tap", element=[500,131]', "different"),
        ('"Tap", element=[500,100]', '"Tap", element=[560,100]', "near"),  # 60 of 1000 across: the longer side counts
        ('"Tap", element=[600,210]', '"Tap", element=[950,290]', "near"),  # the same row
        ('"Tap", element=[310,250]', '"Tap", element=[950,250]', "different"),  # the name in it, and the row
        ('"Tap", element=[500,100]', '"Long Press", element=[500,100]', "different"),
        ('"Long Press", element=[500,100]', '"Long Press", element=[501,100]', "near"),
        ('"Swipe", start=[500,800], end=[500,200]', '"Swipe", start=[400,700], end=[420,300]', "near"),
        ('"Swipe", start=[500,800], end=[500,200]', '"Swipe", start=[500,200], end=[500,800]', "different"),
        ('"Type", text="你好 呀"', '"Type", text="你好呀"', "near"),
        ('"Type", text="你好"', '"Type", text="您好"', "different"),
        ('"Launch", app="qq"', '"Launch", app="QQ"', "near"),
        ('"Launch", app="QQ"', '"Launch", app="微信"', "different"),
        ('"GET_KNOWLEDGE_DATA", query="几天发货"', '"GET_KNOWLEDGE_DATA", query="多久发货"', "near"),
        ('finish(message="好")', 'finish(message="好了")', "near"),
        ('finish(message="好")', '"Abort", message="不行"', "different"),
        ('"Back"', '"Home"', "different"),
    ],
)
def test_likeness(one: str, other: str, expected: str) -> None:
    assert likeness(act(one), act(other), size=SIZE, readings=[ROW, NAME]) == expected
    assert likeness(act(other), act(one), size=SIZE, readings=[ROW, NAME]) == expected


def test_what_cannot_be_read_is_like_nothing() -> None:
    assert likeness(act('"Back"'), None, size=SIZE) == "invalid"
    assert likeness(None, act('"Back"'), size=SIZE) == "different"
