"""What the harness makes of right and wrong readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_core.perception.page_report import PageReport
from tests.acceptance.pages import Result, Verdict, app_of, compared, plain, totals

SEEN: dict[str, Any] = {
    "page": "chat",
    "title": {"text": "售后群", "sure": True, "group": True},
    "messages": [
        {"side": "me", "kind": "text", "text": "在的", "sure": True},
        {"side": "them", "kind": "text", "text": "能带上高铁吗？", "sure": True},
        {"side": "them", "kind": "image", "text": "", "sure": True},
    ],
    "question": [1, 2],
    "input": {"box": [20, 700, 240, 740], "text": "", "sure": True},
    "send": {"box": [260, 700, 320, 740], "state": "dimmed"},
    "rows": [],
    "doubts": [],
}


def verdicts(truth: dict[str, Any], **seen: Any) -> dict[str, Verdict]:
    """The worst one of each field."""
    order = [Verdict.RIGHT, Verdict.UNSURE, Verdict.WRONG_DOUBTED, Verdict.WRONG_SURE]
    found: dict[str, Verdict] = {}
    for finding in compared(truth, PageReport.model_validate(SEEN | seen)):
        before = found.get(finding.field, Verdict.RIGHT)
        found[finding.field] = max(before, finding.verdict, key=order.index)
    return found


def test_a_page_that_is_read_rightly() -> None:
    assert set(verdicts(SEEN).values()) == {Verdict.RIGHT}
    some = {"title": {"text": "售后 群🔥"}, "question": ["能带上高铁吗?😀", ""]}
    assert verdicts(some) == {"page": Verdict.RIGHT, "title": Verdict.RIGHT, "question": Verdict.RIGHT}


@pytest.mark.parametrize(("sure", "verdict"), [(True, Verdict.WRONG_SURE), (False, Verdict.WRONG_DOUBTED)])
def test_what_is_wrong_is_worse_if_it_is_sure(sure: bool, verdict: Verdict) -> None:
    title = {"text": "售后", "sure": sure, "group": True}
    assert verdicts(SEEN, title=title)["title"] is verdict
    assert verdicts(SEEN, question=[2], doubts=[] if sure else ["something"])["question"] is verdict
    assert verdicts(SEEN, input=SEEN["input"] | {"text": "你好", "sure": sure})["input.text"] is verdict
    other = [message | {"side": "them", "sure": sure} for message in SEEN["messages"]]
    assert verdicts(SEEN, messages=other)["message"] is verdict
    fewer = {"messages": SEEN["messages"][:2], "question": [1], "doubts": [] if sure else ["something"]}
    assert verdicts(SEEN, **fewer)["message"] is verdict


def test_a_page_that_is_not_seen_misleads_nobody_but_is_not_right() -> None:
    nothing: dict[str, Any] = {"title": None, "messages": [], "question": [], "input": None, "send": None}
    found = verdicts(SEEN, page="other", **nothing)
    assert found.pop("page") is Verdict.WRONG_SURE
    assert set(found.values()) == {Verdict.UNSURE}


def test_boxes_that_are_elsewhere_and_unread_marks() -> None:
    assert verdicts(SEEN, input=SEEN["input"] | {"box": [20, 600, 240, 640]})["input.box"] is Verdict.WRONG_SURE
    assert verdicts(SEEN, send={"box": None, "state": "dimmed"})["send.box"] is Verdict.WRONG_SURE
    truth = {"rows": [{"name": "11", "unread": 2}, {"name": "12", "unread": 0}, {"name": "13", "unread": 1}]}
    rows = [{"name": "11", "preview": "", "unread": 1}, {"name": "12", "preview": "", "unread": 0}]
    seen = PageReport(page="list", rows=rows)
    lines = totals([Result("a.png", seen, compared(truth, seen), 0.0)])
    assert "unread marks right: 33% (1 of 3)" in lines
    assert "page seen: 100% (1 of 1)" in lines


def test_totals_count_a_right_title_that_is_in_doubt() -> None:
    seen = PageReport.model_validate(SEEN | {"title": SEEN["title"] | {"sure": False}})
    lines = totals([Result("a.png", seen, compared(SEEN, seen), 0.0)])
    assert lines[1:4] == ["title right: 100% (1 of 1)", "title right and sure: 0% (0 of 1)", "title wrong and sure: 0"]


def test_the_app_is_told_by_the_truth_or_the_name() -> None:
    for path, truth, key in (
        ("pages/qq-1.png", {}, "qq"),
        ("wechat/1.png", {}, "wechat"),
        ("qq/1.png", {"app": "wechat"}, "wechat"),
    ):
        assert app_of(truth, Path(path), "").key == key
    assert app_of({}, Path("pages/1.png"), "qq").key == "qq"
    with pytest.raises(KeyError):
        app_of({}, Path("pages/1.png"), "")


def test_texts_are_compared_without_emoji_and_blanks() -> None:
    assert plain("好的👌🏻 ！️") == plain("好的!")
    assert plain("①号 100°") != plain("号 100°")
