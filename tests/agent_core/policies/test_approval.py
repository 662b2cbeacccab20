"""A person's yes holds for the tap that they were asked about, and for no other that looks like it."""

from __future__ import annotations

from dataclasses import replace

from PIL import Image

from agent_core.actions.types import LongPress, Tap
from agent_core.devices.base import Frame, Window
from agent_core.geometry import Box
from agent_core.loop import questions
from agent_core.loop.outcome import take_answer
from agent_core.perception.readings import Reading, Source
from agent_core.policies import PolicyName, Situation, policies_of, review
from agent_core.policies.approval import KEPT_STEPS, given, holds
from agent_core.session import Answer, GateState, Session, StepRecord

SIZE = (1000, 2000)
TAP = Tap(element=(500, 500), message="付款")


def reading(text: str, x: int, y: int) -> Reading:
    return Reading(text, Box(x, y, x + 200, y + 60), Source.TREE)


def page(*texts: str, package: str = "com.shop", color: str = "white") -> Situation:
    """``确认支付`` below the texts, far from a banner and the clock."""
    rows = [reading(text, 400, 700 + 70 * row) for row, text in enumerate(texts)]
    readings = [reading("12:01", 0, 10), reading("广告", 400, 1700), *rows, reading("确认支付", 400, 970)]
    return Situation(
        None, Window(package), SIZE, GateState(), readings, frame=Frame(Image.new("RGB", SIZE, color), color, 0.0)
    )


def test_what_an_approval_holds_for() -> None:
    session, shown = Session(run_id="r", task="t"), page("订单 A", "剩余 14:59", "合计 20 元")
    session.approval = given(session, questions.sensitive_tap(session, TAP, shown))
    moved = replace(shown, readings=[reading("12:40", 0, 10), reading("新广告", 400, 1700), *shown.readings[2:]])
    same = page("订单 A", "剩余 3:07", "合计 20 元")
    for tap, where, expected in (
        (TAP, shown, True),
        (Tap(element=(501, 500), message="确认"), shown, True),
        (TAP, moved, True),
        (TAP, same, True),
        (TAP, page("订单 A", "剩余 14:59", "合计 2000 元"), False),
        (TAP, page("订单 A", "剩余 14:59", "合计 20 元", package="com.android.launcher3"), False),
        (Tap(element=(500, 380), message="付款"), shown, False),
        (
            Tap(element=(500, 478), message="付款"),
            replace(shown, readings=[*shown.readings, reading("删除", 400, 930)]),
            False,
        ),
        (LongPress(element=(500, 500)), shown, False),
    ):
        assert holds(session, tap, where) is expected, (tap, where)
    for package, lapsed, blocked in (
        ("com.shop", False, False),
        ("com.advert", False, True),
        ("com.shop", True, True),
    ):  # since it was looked at
        now = replace(shown, now=page(color="blue").frame, window_now=Window(package), lapsed=lapsed)
        assert (review(TAP, now, policies_of(PolicyName.CAREFUL)).action is None) is blocked
    for package, kept in (("com.android.launcher3", True), ("com.shop", False)):
        no = questions.sensitive_tap(session, TAP, page(package=package))
        told = session.model_copy()
        take_answer(told, no, Answer(choice="deny", by="店长"))
        assert holds(told, TAP, shown) is kept
    session.steps = [StepRecord(index=n + 1) for n in range(KEPT_STEPS)]
    assert holds(session, TAP, shown)
    session.steps.append(StepRecord(index=KEPT_STEPS + 1))
    assert not holds(session, TAP, shown)


def test_where_nothing_is_read_the_picture_tells_one_page_from_another() -> None:
    session, bare = Session(run_id="r", task="t"), replace(page(), readings=[])
    session.approval = given(session, questions.sensitive_tap(session, TAP, bare))
    assert holds(session, TAP, bare)
    assert holds(session, TAP, replace(bare, frame=page(color="#dfe4f2").frame))  # it pulses
    assert not holds(session, TAP, replace(bare, frame=page(color="blue").frame))
    frame = page().frame
    assert frame is not None
    frame.image.paste("black", (450, 990, 480, 1010))  # another word on it
    assert not holds(session, TAP, replace(bare, frame=frame))


def test_our_words_about_the_button_come_first_and_the_models_are_quoted() -> None:
    session, lie = Session(run_id="r", task="t"), Tap(element=(500, 500), message="查看”余额\n安全")
    judgement = review(lie, page(), policies_of(PolicyName.CAREFUL))
    assert judgement.action == lie
    asked = questions.sensitive_tap(session, lie, page(), judgement.to_ask).text
    assert asked == "“确认支付”可能会付款、删除、通话或授权，要点击吗？ 模型的说法：“查看 余额 安全”"
    named = replace(page(), readings=[reading("蓝牙", 400, 970)])
    assert questions.sensitive_tap(session, lie, named).text.startswith("允许点击“蓝牙”吗？ 模型的说法：“")
    plain = review(Tap(element=(500, 500)), page(), policies_of(PolicyName.CAREFUL))
    assert plain.action == Tap(element=(500, 500))
    assert isinstance(plain.action, Tap)
    assert "模型的说法" not in questions.sensitive_tap(session, plain.action, page(), plain.to_ask).text
