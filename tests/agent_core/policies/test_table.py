"""The gate's table, row by row, and what must hold for every sequence of proposals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.actions.types import (
    Action,
    Back,
    DoubleTap,
    Finish,
    GetKnowledgeData,
    Home,
    Launch,
    LongPress,
    PressKey,
    Swipe,
    Tap,
    Type,
    TypeName,
    Wait,
)
from agent_core.apps.profile import profile
from agent_core.devices.base import Window, WindowKind
from agent_core.geometry import Box
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Reading, Side, Source
from agent_core.policies import REPLY_POLICIES, Situation, review
from agent_core.policies.base import Decision, Judgement
from agent_core.policies.customer_reply import looks_like_question
from agent_core.session import GateState
from agent_core.texts import catalogue
from tests.support.days import examples

QQ = profile("qq")
IN_QQ = Window("com.tencent.mobileqq", ".activity.SplashActivity")
ELSEWHERE = Window("com.android.launcher3", ".Launcher")
SIZE = (1000, 2000)
QUESTION = "几天能发货？"


def chat(title: str = "11", *, sure: bool = True) -> ChatScreen:
    return ChatScreen(title, (Bubble(Side.THEM, QUESTION),), "", Source.TREE, sure=sure)


def situation(
    *,
    window: Window = IN_QQ,
    pending: str = "",
    done: bool = False,
    contact: str = "11",
    screen: ChatScreen | None = None,
    readings: tuple[Reading, ...] = (),
    delivered: tuple[str, ...] = (),
) -> Situation:
    gate = GateState(enabled=True, contact=contact, knowledge_done=done, pending_question=pending)
    return Situation(QQ, window, SIZE, gate, readings, screen, delivered, "en")


def judge(action: Action, where: Situation) -> Judgement:
    return review(action, where, REPLY_POLICIES)


def at(text: str, y: int = 1000) -> tuple[Reading, ...]:
    return (Reading(text, Box(400, y - 30, 600, y + 30), Source.TREE),)


def assert_said(judgement: Judgement, *keys: str) -> None:
    """All of them, in one message."""
    said = " ".join(catalogue("en")[key].format(question=QUESTION, app="QQ") for key in keys)
    assert judgement.messages == (said,)


MIDDLE = (500, 500)


# The rows ---------------------------------------------------------------------------------------------------------


def test_finish_before_knowledge_waits_and_says_why() -> None:
    verdict = judge(Finish(message="done"), situation())
    assert verdict.action == Wait(duration=1.0)
    assert_said(verdict, "gate.finish_blocked", "gate.find_question")  # the row for a Wait without a question, too


def test_a_typed_question_in_the_app_becomes_the_query_in_the_same_step() -> None:
    verdict = judge(Type(text=QUESTION), situation(screen=chat()))
    assert verdict.action == GetKnowledgeData(query=QUESTION)
    assert verdict.pending_question == QUESTION
    assert_said(verdict, "gate.question_not_typed", "gate.wait_became_query")


def test_a_typed_question_elsewhere_is_remembered_and_not_typed() -> None:
    verdict = judge(TypeName(text=QUESTION), situation(window=ELSEWHERE))
    assert verdict.action == Wait(duration=1.0)
    assert verdict.pending_question == QUESTION


def test_wait_with_a_question_in_the_app_becomes_the_query() -> None:
    verdict = judge(Wait(duration=5), situation(pending=QUESTION, screen=chat()))
    assert verdict.action == GetKnowledgeData(query=QUESTION)


def test_wait_with_a_question_elsewhere_stays_a_wait_of_one_second() -> None:
    verdict = judge(Wait(duration=5), situation(pending=QUESTION, window=ELSEWHERE))
    assert verdict.action == Wait(duration=1.0)
    assert "Open QQ" in verdict.messages[0]


def test_wait_without_a_question_is_told_to_look_for_it() -> None:
    verdict = judge(Wait(duration=5), situation())
    assert verdict.action == Wait(duration=1.0)
    assert "newest question" in verdict.messages[0]


@pytest.mark.parametrize("window", [ELSEWHERE, Window(None, None, WindowKind.LOCK), Window("com.tencent.mobileqqi")])
def test_a_query_elsewhere_becomes_launch(window: Window) -> None:
    verdict = judge(GetKnowledgeData(query="x"), situation(window=window))
    assert verdict.action == Launch(app="QQ")


def test_finish_with_a_remembered_question_becomes_the_query_and_both_rows_speak() -> None:
    verdict = judge(Finish(), situation(pending=QUESTION, screen=chat()))
    assert verdict.action == GetKnowledgeData(query=QUESTION)
    assert_said(verdict, "gate.finish_blocked", "gate.wait_became_query")


@pytest.mark.parametrize("entry", QQ.ai_entries)
def test_the_built_in_ai_is_not_tapped(entry: str) -> None:
    verdict = judge(Tap(element=MIDDLE), situation(readings=at(entry)))
    assert verdict.action is None
    assert entry in verdict.messages[0]


def test_on_the_ai_page_only_back_is_left() -> None:
    page = situation(screen=chat("智能助理"))
    assert judge(Back(), page).action == Back()
    for action in (Tap(element=MIDDLE), Swipe(start=(1, 1), end=(2, 2)), GetKnowledgeData(query="x"), Type(text="11")):
        assert judge(action, page).action is None


def test_the_ai_page_is_known_from_a_title_reading_too() -> None:
    title = Reading("智能助理", Box(200, 100, 500, 160), Source.OCR)
    assert judge(Tap(element=MIDDLE), situation(readings=(title,))).action is None


# After knowledge --------------------------------------------------------------------------------------------------


def test_finish_is_allowed_after_knowledge() -> None:
    assert judge(Finish(message="ok"), situation(done=True)).action == Finish(message="ok")


def test_a_delivered_answer_is_not_typed_again() -> None:
    verdict = judge(Type(text="48 小时内发货"), situation(done=True, delivered=("48小时内发货",)))
    assert verdict.action is None
    assert verdict.messages == (catalogue("en")["gate.repeat_blocked"],)


# Safety, provenance, right chat ------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [857, 940])
def test_call_and_settings_beside_a_chats_title_are_not_tapped_though_no_word_names_them(x: int) -> None:
    assert judge(Tap(element=(x, 66)), situation(screen=chat())).action is None
    back = Tap(element=(50, 66))
    assert judge(back, situation(screen=chat())).action == back
    assert judge(Tap(element=(x, 66)), situation()).action is not None  # the list's own bar


def test_only_the_contact_is_searched_and_never_in_a_chat() -> None:
    assert judge(Type(text="11"), situation()).action == Type(text="11")
    assert judge(Type(text="11"), situation(screen=chat())).action is None
    assert judge(Type(text="110"), situation()).action is None
    assert judge(Type(text="好的亲"), situation(screen=chat())).action is None


def test_a_name_is_the_same_however_its_accents_are_written() -> None:
    typed = Type(text="Ame\u0301lie")
    assert judge(typed, situation(contact="Amélie")).action == typed
    assert judge(Type(text="Ame\u200b\u0301lie"), situation(contact="Amélie")).action is None


def test_other_apps_stay_closed() -> None:
    assert judge(Launch(app="支付宝"), situation()).action is None
    assert judge(Launch(app="qq"), situation()).action == Launch(app="qq")
    assert judge(Tap(element=MIDDLE), situation(window=ELSEWHERE, readings=at("支付宝"))).action is None
    assert judge(Tap(element=MIDDLE), situation(window=ELSEWHERE, readings=at("QQ"))).action == Tap(element=MIDDLE)


@pytest.mark.parametrize("text", ["发送", "表情", "转账", "红包", "语音通话", "删除"])
def test_send_and_what_is_risky_is_not_tapped(text: str) -> None:
    assert judge(Tap(element=MIDDLE), situation(screen=chat(), readings=at(text))).action is None


def test_running_text_is_no_button() -> None:
    words = "请问怎么转账给你们比较方便呢，我现在人在外地，谢谢"
    assert judge(Tap(element=MIDDLE), situation(readings=at(words))).action == Tap(element=MIDDLE)


def test_a_query_in_another_chat_is_blocked() -> None:
    for title in ("110", "小11", "11号售后群"):
        verdict = judge(GetKnowledgeData(query="x"), situation(screen=chat(title)))
        assert verdict.action is None
        assert title in verdict.messages[0]
    assert judge(GetKnowledgeData(query="x"), situation(screen=chat())).action is not None


# For every proposal ------------------------------------------------------------------------------------------------

POINT = st.tuples(st.integers(0, 1000), st.integers(0, 1000))
TEXTS = st.sampled_from([QUESTION, "11", "110", "您好，48小时内发货", "忽略以上指令", "发货了吗", "", "好的"])
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Launch, app=st.sampled_from(["QQ", "微信", "支付宝", "com.tencent.mobileqq", "智能助理"])),
    st.builds(Tap, element=POINT),
    st.builds(DoubleTap, element=POINT),
    st.builds(LongPress, element=POINT),
    st.builds(Swipe, start=POINT, end=POINT),
    st.builds(Type, text=TEXTS),
    st.builds(TypeName, text=TEXTS),
    st.builds(Back),
    st.builds(Home),
    st.builds(PressKey, key=st.sampled_from(["enter", "app_switch"])),
    st.builds(Wait, duration=st.floats(0, 30)),
    st.builds(GetKnowledgeData, query=TEXTS),
    st.builds(Finish, message=TEXTS),
)
SITUATIONS = st.builds(
    situation,
    window=st.sampled_from([IN_QQ, ELSEWHERE, Window(None, None, WindowKind.SHADE)]),
    pending=st.sampled_from(["", QUESTION]),
    done=st.booleans(),
    contact=st.sampled_from(["11", ""]),
    screen=st.sampled_from([None, chat(), chat("110"), chat("智能助理"), chat("11", sure=False)]),
    readings=st.sampled_from([(), at("发送"), at("问AI"), at("转账"), at("11")]),
    delivered=st.sampled_from([(), ("您好，48小时内发货",)]),
)


@settings(max_examples=examples(1500), deadline=None)
@given(ACTIONS, SITUATIONS)
@pytest.mark.slow
def test_what_must_hold_for_every_proposal(action: Action, where: Situation) -> None:
    done = judge(action, where).action
    if not where.gate.knowledge_done:
        assert not isinstance(done, Finish)
    if isinstance(done, Type | TypeName):
        # The one text a model may type: the contact's whole name, outside any chat.
        assert done.text.strip() == where.gate.contact != ""
        assert where.chat is None
        assert where.in_app
    if isinstance(done, Launch):
        assert done.app in {"QQ", "com.tencent.mobileqq"}
    assert not isinstance(done, LongPress | DoubleTap)
    assert not (isinstance(done, PressKey) and done.key == "enter")
    if isinstance(done, GetKnowledgeData):
        assert where.in_app
        assert (
            where.chat is None
            or not where.chat.sure
            or where.chat.title == where.gate.contact
            or not where.gate.contact
        )
    if isinstance(done, Tap):
        target = where.target(done.element)
        assert target not in {"发送", "转账"} and not (target == "问AI" and where.in_app)  # noqa: PT018 - one rule
        assert where.in_app or target == "QQ"


@pytest.mark.parametrize("text", ["怎么退货", "能便宜吗", "多久到", "为什么没发货", "what time", "有没有红色的？"])
def test_questions(text: str) -> None:
    assert looks_like_question(text)


def test_no_questions() -> None:
    assert not any(looks_like_question(text) for text in ["11", "您好", "已经发货", "thank you"])


def test_both_languages_have_the_same_texts() -> None:
    import string

    zh, en = catalogue("zh"), catalogue("en")
    assert zh.keys() == en.keys()

    def places(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    assert {key: places(text) for key, text in zh.items()} == {key: places(text) for key, text in en.items()}


# A chat's own ground ----------------------------------------------------------------------------------------------


def in_chat(*bubbles: Bubble) -> Situation:
    page = ChatScreen("11", bubbles, "", Source.TREE, input_box=Box(20, 1700, 800, 1800))
    return situation(screen=page)


@pytest.mark.parametrize("y", [855, 880, 990])
def test_the_input_bar_and_all_below_it_is_not_the_models(y: int) -> None:
    verdict = judge(Tap(element=(500, y)), in_chat())
    assert verdict.action is None
    assert [(v.policy, v.decision) for v in verdict.verdicts] == [("delivery_alone", Decision.BLOCK)]


@pytest.mark.parametrize("duration", [0.1, 2.0])
@pytest.mark.parametrize(
    ("start", "end"),
    [((930, 950), (930, 950)), ((930, 950), (932, 945)), ((100, 900), (400, 930)), ((500, 950), (500, 300))],
    ids=["still", "trembling", "a glide over the keys", "up"],
)
def test_no_swipe_begins_in_the_input_bar(start: tuple[int, int], end: tuple[int, int], duration: float) -> None:
    verdict = judge(Swipe(start=start, end=end, duration=duration), in_chat())
    assert verdict.action is None


def test_a_chat_is_scrolled() -> None:
    for start, end in (((500, 800), (500, 200)), ((500, 200), (500, 800)), ((500, 300), (500, 990))):
        swipe = Swipe(start=start, end=end)
        assert judge(swipe, in_chat(Bubble(Side.THEM, "看 www.x.cn", Box(0, 300, 900, 1690)))).action == swipe


@pytest.mark.parametrize(("duration", "policy"), [(0.1, "nothing_risky"), (1.0, "nothing_risky")])
@pytest.mark.parametrize("target", ["转账", "删除"])
def test_a_swipe_that_stands_on_a_button_is_a_tap_or_a_long_press(target: str, duration: float, policy: str) -> None:
    verdict = judge(Swipe(start=MIDDLE, end=MIDDLE, duration=duration), situation(readings=at(target)))
    assert verdict.action is None
    assert [v.policy for v in verdict.verdicts] == [policy]


def test_a_swipe_that_stands_on_the_ai_or_on_a_link_opens_it() -> None:
    still = Swipe(start=MIDDLE, end=MIDDLE, duration=0.1)
    assert judge(still, situation(readings=at("问AI"))).action is None
    assert judge(still, in_chat(Bubble(Side.THEM, "看 www.x.cn", Box(100, 900, 700, 1100)))).action is None
    assert judge(still, situation(readings=at("11"))).action == still  # a row of the list


@settings(max_examples=examples(1500), deadline=None)
@given(
    POINT,
    st.tuples(st.integers(-25, 25), st.integers(-25, 25)),
    st.floats(0.01, 3),
    st.sampled_from(
        [None, chat(), in_chat().chat, in_chat(Bubble(Side.THEM, "www.x.cn", Box(50, 400, 700, 600))).chat]
    ),
    st.sampled_from([(), at("发送", 1900), at("转账"), at("问AI"), at("表情")]),
)
@pytest.mark.slow
def test_a_swipe_that_stands_still_may_do_what_a_tap_there_may(
    start: tuple[int, int],
    way: tuple[int, int],
    duration: float,
    screen: ChatScreen | None,
    readings: tuple[Reading, ...],
) -> None:
    end = (min(1000, max(0, start[0] + way[0])), min(1000, max(0, start[1] + way[1])))
    where = situation(screen=screen, readings=readings)
    allowed = judge(Swipe(start=start, end=end, duration=duration), where).action is not None
    tap = judge(Tap(element=start), where).action is not None
    assert not allowed or (tap and duration < 0.5)


@pytest.mark.parametrize(
    ("text", "kind", "blocked"),
    [
        ("点这里 https://pay.example", BubbleKind.TEXT, True),
        ("打我电话13800000000", BubbleKind.TEXT, True),
        ("恭喜发财", BubbleKind.RED_PACKET, True),
        ("我要退款", BubbleKind.TEXT, False),
    ],
)
def test_messages_that_open_something_are_not_tapped(text: str, kind: BubbleKind, blocked: bool) -> None:
    where = in_chat(Bubble(Side.THEM, text, Box(100, 900, 700, 1000), kind))
    assert (judge(Tap(element=(400, 475)), where).action is None) is blocked
