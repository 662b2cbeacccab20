"""What a task that is no reply is asked about before it taps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import Image

from agent_core.actions.types import Swipe, Tap
from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Node, Window
from agent_core.geometry import Box
from agent_core.perception.readings import Reading, Source
from agent_core.policies import Decision, PolicyName, Situation, policies_of, review
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


LABELS = (
    "立即支付 ¥199.00", "确认支付99.00元", "立即下载并安装", "马上升级体验新版", "删除该聊天记录", "拨打 400-123-4567",
    "立\u200b即支\u200b付 ¥1", "仅在使用该应用期间允许访问", "Install update", "Allow access", "Ｐａｙ ￥１９９",
    "Allow only while using the app",
)  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_a_price_or_a_number_beside_the_word_makes_no_button_harmless(label: str) -> None:
    words = (Reading(label, Box(140, 560, 430, 610), Source.OCR),)
    where = Situation(profile("qq"), Window("com.tencent.mobileqq", "x"), SIZE, GateState(contact="11"), words)
    for pair in ((263, 244), (150, 255)):
        judgement = review(Tap(element=pair), where, policies_of(PolicyName.CAREFUL))
        assert [verdict.decision for verdict in judgement.verdicts] == [Decision.ASK]
        assert review(Tap(element=pair), where, policies_of(PolicyName.REPLY)).action is None


def test_a_button_of_the_tree_is_one_however_long_its_label_is() -> None:
    words = Reading(
        "我已阅读并同意以上全部条款，确认支付本次订单的全部款项", Box(140, 560, 940, 610), Source.TREE, role="button"
    )
    for one, asked in ((words, True), (replace(words, role="text"), False)):
        where = Situation(None, Window("x", "x"), SIZE, GateState(), (one,))
        verdicts = review(Tap(element=(500, 244)), where, policies_of(PolicyName.CAREFUL)).verdicts
        assert bool(verdicts) is asked


def test_the_contacts_own_name_is_no_button() -> None:
    words = (Reading("极速安装小李", Box(200, 560, 430, 610), Source.OCR),)
    for contact, done in (("极速安装小李", True), ("11", False)):
        gate = GateState(enabled=True, contact=contact)
        where = Situation(profile("qq"), Window("com.tencent.mobileqq", "x"), SIZE, gate, words)
        assert (review(Tap(element=(290, 244)), where, policies_of(PolicyName.REPLY)).action is not None) is done


# Dialogs --------------------------------------------------------------------------------------------------------------

YES, NO, MIDDLE_OF_TEXT = (700, 552), (290, 552), (500, 420)
BRIGHT, DARK = ("#7f7f7f", "#ffffff", "#111111"), ("#080808", "#2c2c2e", "#f5f5f5")


def dialog(
    asks: str, yes: str, no: str, *, source: Source, look: tuple[str, str, str] = BRIGHT, seen: bool = True
) -> Situation:
    """A dialog of two buttons. ``seen``: the picture shows it; else it is black, as that of a protected page is."""
    page, panel, ink = look
    picture = Image.new("RGB", SIZE, page if seen else "black")
    boxes = {asks: Box(300, 980, 780, 1040), no: Box(270, 1300, 360, 1350), yes: Box(710, 1300, 800, 1350)}
    if seen:
        picture.paste(panel, (130, 900, 950, 1400))
        for box in boxes.values():
            picture.paste(ink, (box.left, box.top, box.right, box.bottom))
    nodes = [Node(box, text=text, package="x") for text, box in boxes.items()]
    nodes += [Node(Box(*edges), clickable=True) for edges in ((130, 1260, 540, 1400), (540, 1260, 950, 1400))]
    words = [Reading(text, box, source) for text, box in boxes.items()]
    tree = nodes if source is Source.TREE else None
    frame = Frame(picture, "d", 0.0)
    window = Window("com.tencent.mobileqq", "x")
    return Situation(profile("qq"), window, SIZE, GateState(contact="11"), words, frame=frame, nodes=tree)


def asked(pair: tuple[int, int], where: Situation) -> bool:
    """Whether a tap is blocked in a reply, and a person asked before it in any other task: the same for both."""
    verdicts = review(Tap(element=pair), where, policies_of(PolicyName.CAREFUL)).verdicts
    blocked = review(Tap(element=pair), where, policies_of(PolicyName.REPLY)).action is None
    assert blocked is ([verdict.decision for verdict in verdicts] == [Decision.ASK])
    return blocked


SEEN = [
    pytest.param(Source.TREE, BRIGHT, True, id="tree"),
    pytest.param(Source.TREE, BRIGHT, False, id="tree_of_a_protected_page"),
    pytest.param(Source.OCR, BRIGHT, True, id="picture"),
    pytest.param(Source.OCR, DARK, True, id="dark_picture"),
]


@pytest.mark.parametrize(("source", "look", "seen"), SEEN)
@pytest.mark.parametrize(
    ("asks", "yes", "no"),
    [("确认支付99元？", "确定", "取消"), ("Pay 99.00 now?", "OK", "Not now"), ("清空后无法恢复", "知道了", "暂不")],
)
def test_on_a_dialog_that_asks_about_a_risk_a_known_refusal_alone_is_tapped(
    asks: str, yes: str, no: str, source: Source, look: tuple[str, str, str], seen: bool
) -> None:
    where = dialog(asks, yes, no, source=source, look=look, seen=seen)
    assert asked(YES, where)
    assert asked((540, 575), where)  # beside its words
    assert asked(MIDDLE_OF_TEXT, where)
    assert not asked(NO, where)
    assert not asked((500, 100), where)  # the page behind it
    assert not asked(YES, dialog("连接已断开", yes, no, source=source, look=look, seen=seen))


def test_what_a_dialog_itself_asks_for_is_no_refusal() -> None:
    assert asked(NO, dialog("关闭免密支付？", "再想想", "关闭", source=Source.OCR))
    assert not asked(NO, dialog("开通免密支付？", "好", "关闭", source=Source.OCR))
    assert asked(NO, dialog("开通免密支付？", "好", "随便看看", source=Source.OCR))
