"""What the scripted endpoint says, and when."""

from __future__ import annotations

import json

import pytest

from bot.tools.eval.scenario import ChooserPart, ReplyPart
from bot.tools.eval.scripted import Picks, Script
from simulator.model.reading import BadRequest


def said(script: Script, *newest: str) -> list[str | None]:
    return [script.next(words) for words in newest]


def test_replies_come_in_order_as_often_as_they_say_then_nothing_is_left() -> None:
    script = Script([ReplyPart(text="a", times=2), ReplyPart(call="b()")])
    assert said(script, "", "", "") == ["a", "a", "<think>…</think><answer>b()</answer>"]
    with pytest.raises(BadRequest, match="over"):
        script.next("")


def test_the_last_one_may_be_said_for_ever() -> None:
    assert said(Script([ReplyPart(text="a"), ReplyPart(text="b", times=0)]), "", "", "", "") == ["a", "b", "b", "b"]


def test_a_reply_with_when_waits_for_its_words_and_is_left_out_without_them() -> None:
    script = Script(
        [ReplyPart(text="close", when="弹窗", times=0), ReplyPart(text="a"), ReplyPart(text="b", when="聊天")]
    )
    assert said(script, "桌面", "有弹窗", "弹窗和聊天", "聊天") == ["a", "close", "close", "b"]
    with pytest.raises(BadRequest):
        script.next("桌面")


def test_without_replies_or_after_them_the_demo_model_goes_on() -> None:
    assert said(Script([]), "", "") == [None, None]
    assert said(Script([ReplyPart(text="a", then_demo=True)]), "", "") == ["a", None]


def test_the_text_model_picks_in_order_and_repeats_the_last() -> None:
    picks = Picks(ChooserPart(picks=[2, 0]))
    candidates, picked = '{"records": []}', '{"record": {}}'
    assert json.loads(picks.next(candidates)) == {"pick": 2}
    assert json.loads(picks.next(picked)) == {"missing": ""}
    assert [json.loads(picks.next(candidates)) for _ in range(2)] == [{"pick": 0}] * 2
    assert json.loads(Picks(ChooserPart(picks=[1, 2], reply="好")).next(candidates)) == {"pick": [1, 2], "reply": "好"}
    assert json.loads(Picks(ChooserPart(picks=[1], missing="几天")).next(picked)) == {"missing": "几天"}
