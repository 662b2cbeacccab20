"""What the gate makes of a chat page as phones show it: a group of the contact's name, a header, a bar to talk into."""

from __future__ import annotations

import pytest
from PIL import Image

from agent_core.actions.types import Action, GetKnowledgeData, Tap, Wait
from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Window
from agent_core.geometry import Box, Point
from agent_core.perception.observer import Observation
from agent_core.perception.readings import Bubble, ChatScreen, SendState, Side, Source
from agent_core.policies import REPLY_POLICIES, Decision, Situation, review
from agent_core.policies.customer_reply import NothingNew
from agent_core.policies.right_chat import RightChat, is_contacts
from agent_core.reply.outcome import DeliveryResult, check_chat
from agent_core.session import GateState

SIZE = (1080, 2400)
WECHAT = profile("wechat")
IN_WECHAT = Window("com.tencent.mm", ".ui.LauncherUI")
GATE = GateState(enabled=True, contact="11")


def page(
    title: str = "11",
    *,
    group: bool = False,
    side: Side = Side.THEM,
    title_box: Box | None = None,
    input_box: Box | None = None,
    keyboard_icon: Point | None = None,
    send_state: SendState = SendState.ABSENT,
) -> ChatScreen:
    return ChatScreen(
        title,
        (Bubble(side, "在吗"),),
        "",
        Source.OCR,
        group=group,
        title_box=title_box,
        input_box=input_box,
        keyboard_icon=keyboard_icon,
        send_state=send_state,
    )


def situation(chat: ChatScreen, gate: GateState = GATE) -> Situation:
    return Situation(WECHAT, IN_WECHAT, SIZE, gate, chat=chat)


def confirmed(*, group: bool) -> GateState:
    return GATE.model_copy(update={"chat_confirmed": "11", "group_confirmed": group})


def result(chat: ChatScreen, gate: GateState) -> DeliveryResult | None:
    outcome = check_chat(chat, gate)
    return None if outcome is None else outcome.result


def test_a_groups_name_does_not_pass_for_a_contact() -> None:
    assert is_contacts(page(), GATE)
    assert check_chat(page(), GATE) is None
    assert not is_contacts(page(group=True), GATE)
    assert result(page(group=True), GATE) is DeliveryResult.WRONG_CHAT


@pytest.mark.parametrize("title", ["11(3)", "11"])  # the count may stand in a place of its own
def test_a_group_that_the_task_names_is_for_a_person(title: str) -> None:
    named = GATE.model_copy(update={"contact": "11(3)"})
    assert result(page(title, group=True), named) is DeliveryResult.UNSURE_CHAT
    assert result(page("12", group=True), named) is DeliveryResult.WRONG_CHAT
    assert result(page("11"), named) is DeliveryResult.WRONG_CHAT


def test_a_yes_to_a_chat_is_none_to_a_group_of_its_name() -> None:
    assert is_contacts(page(group=True), confirmed(group=True))
    assert result(page(group=True), confirmed(group=True)) is None
    assert not is_contacts(page(group=True), confirmed(group=False))
    assert result(page(group=True), confirmed(group=False)) is DeliveryResult.WRONG_CHAT


def test_nothing_new_in_a_group_says_nothing_of_the_contact() -> None:
    wait = Wait(duration=1.0)
    assert NothingNew().review(wait, situation(page(side=Side.ME))).decision is Decision.REWRITE
    assert NothingNew().review(wait, situation(page(side=Side.ME, group=True))).decision is Decision.ALLOW


def test_a_query_in_a_group_is_blocked_unless_the_task_names_the_group() -> None:
    query = GetKnowledgeData(query="几天能发货")
    verdict = RightChat().review(query, situation(page(group=True)))
    assert verdict.decision is Decision.BLOCK
    assert "群" in verdict.message
    named = GATE.model_copy(update={"contact": "11(3)"})
    assert RightChat().review(query, situation(page(group=True), named)).decision is Decision.ALLOW


def blocked(action: Action, chat: ChatScreen) -> bool:
    return review(action, situation(chat), REPLY_POLICIES).action is None


@pytest.mark.parametrize(
    ("at", "expected"),
    [((950, 75), True), ((300, 75), True), ((40, 75), False), ((110, 75), False), ((300, 130), False)],
    ids=["settings", "beside", "back", "name", "below"],
)
def test_what_stands_right_of_the_name_is_not_for_the_model(at: tuple[int, int], expected: bool) -> None:
    name = Box(104, 148, 160, 202)
    assert blocked(Tap(element=at), page(title_box=name, input_box=Box(157, 2120, 819, 2240))) is expected


@pytest.mark.parametrize(("at", "expected"), [((60, 950), True), ((500, 935), True), ((500, 800), False)])
def test_a_bar_to_hold_and_talk_is_not_for_the_model(at: tuple[int, int], expected: bool) -> None:
    assert blocked(Tap(element=at), page(keyboard_icon=Point(65, 2290))) is expected


@pytest.mark.parametrize(
    ("state", "bottom", "expected"),
    [(SendState.ABSENT, 2300, False), (SendState.ABSENT, 1500, True), (SendState.KEYBOARD, 2300, True)],
)
def test_whether_a_keyboard_is_up(state: SendState, bottom: int, expected: bool) -> None:
    frame = Frame(Image.new("RGB", SIZE), "", 0.0)
    chat = page(send_state=state, input_box=Box(130, bottom - 100, 842, bottom))
    assert Observation(frame, IN_WECHAT, None, (), chat, 0.0).keyboard_up is expected
