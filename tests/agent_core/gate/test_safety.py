"""What a task that is no reply is asked about before it taps."""

from __future__ import annotations

import pytest

from agent_core.actions.types import Swipe, Tap
from agent_core.devices.base import Window
from agent_core.gate import Decision, PolicyName, Situation, policies_of, review
from agent_core.geometry import Box
from agent_core.screen.readings import Reading, Source
from agent_core.session import GateState

SIZE = (1080, 2400)
LABEL = Reading("转账", Box(240, 560, 330, 610), Source.OCR)  # below its icon, as a picture shows it


@pytest.mark.parametrize(
    ("pair", "asked"),
    [((263, 244), True), ((263, 200), True), ((700, 200), False), ((263, 90), False), ((263, 320), False)],
    ids=["label", "icon", "beside", "far_above", "below"],
)
def test_an_icon_is_known_by_the_label_below_it(pair: tuple[int, int], asked: bool) -> None:
    drawing = Reading("转", Box(238, 440, 330, 500), Source.OCR)
    where = Situation(None, Window("com.eg.android.AlipayGphone", "x"), SIZE, GateState(), (drawing, LABEL))
    judgement = review(Tap(element=pair), where, policies_of(PolicyName.CAREFUL))
    assert [verdict.decision for verdict in judgement.verdicts] == ([Decision.ASK] if asked else [])


@pytest.mark.parametrize(
    ("start", "end", "blocked"),
    [
        ((263, 244), (263, 244), True),
        ((263, 240), (270, 250), True),
        ((100, 244), (700, 244), True),  # along the button
        ((100, 255), (200, 260), True),  # beside its label
        ((263, 600), (263, 244), False),  # the page scrolls
        ((263, 244), (263, 600), False),
        ((100, 600), (700, 600), False),
    ],
)
def test_a_swipe_that_may_click_a_button_is_no_way_around_the_question(
    start: tuple[int, int], end: tuple[int, int], blocked: bool
) -> None:
    where = Situation(None, Window("com.eg.android.AlipayGphone", "x"), SIZE, GateState(), (LABEL,))
    judgement = review(Swipe(start=start, end=end), where, policies_of(PolicyName.CAREFUL))
    assert [verdict.decision for verdict in judgement.verdicts] == ([Decision.BLOCK] if blocked else [])


@pytest.mark.parametrize(
    ("label", "asked"),
    [
        ("允许", True), ("仅在使用该应用时允许", True), ("仅限这一次", True), ("While using the app", True),
        ("不允许", False), ("暂不更新", False), ("拒绝", False), ("Don’t allow", False), ("取消安装", False),
        *((text, True) for text in (
            "不领券支付", "不选优惠支付", "不用密码支付", "不再询问允许", "取消并删除",
            "拒绝并卸载", "稍后支付", "先不付款", "取消授权", "取消拉黑",
            "不等了下单", "No, Pay",
        )),
    ],
)  # fmt: skip
def test_a_button_that_says_no_and_nothing_else_is_no_risk(label: str, asked: bool) -> None:
    where = Situation(
        None, Window("com.android.permissioncontroller", "x"), SIZE, GateState(),
        (Reading(label, Box(240, 560, 330, 610), Source.TREE),),
    )  # fmt: skip
    judgement = review(Tap(element=(263, 244)), where, policies_of(PolicyName.CAREFUL))
    assert [verdict.decision for verdict in judgement.verdicts] == ([Decision.ASK] if asked else [])
