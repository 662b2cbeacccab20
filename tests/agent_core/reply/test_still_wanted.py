"""What a person wants sent though the chat has changed, and the rest of a long answer that nobody wants any more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO

import pytest
from PIL import Image

from agent_core.ports import ReplyState
from agent_core.session import Answer, QuestionKind, Status
from tests.agent_core.paper import _painted
from tests.agent_core.reply.paper_desk import BILL, BILLED, SEND, SHIP, SKIP, PaperDesk, ask

WRITTEN = "今天下班以前就给您寄出。"
BY_HAND = "发票问题我来答：可以开。"
RETURN = "不合适怎么退货？"
STEPS = (
    "七天内可以退货，先在订单里点申请售后，写上原因和照片。"
    "收到后检查没有问题，三天内退款到原来的账户里。运费由我们出，请放心。"
)


def newer_while_typed(*second: Answer | Callable[[], Answer]) -> PaperDesk:
    """Nothing is known of the first question, a person writes an answer, and while it is typed the customer asks
    something else: a person is asked again, who says ``second``."""
    desk = PaperDesk(SHIP)
    desk.shelf.answers = {"发票": BILLED}
    desk.people.answers = [Answer(text=WRITTEN, by="店长"), *second]
    desk.phone.on_type = [lambda: desk.phone.receive("11", BILL)]
    return desk


def pixel(picture: bytes | Image.Image, point: tuple[int, int]) -> tuple[int, ...]:
    image = picture if isinstance(picture, Image.Image) else Image.open(BytesIO(picture))
    colour = image.convert("RGB").getpixel(point)
    assert isinstance(colour, tuple)
    return colour


def test_the_question_shows_the_chat_as_it_has_become() -> None:
    desk = newer_while_typed()
    desk.run(ask("几天能发货"))
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER, QuestionKind.STILL_SEND]
    assert desk.people.asked[1].data["new"] == [BILL]
    scene = desk.phone.scene()
    box = next(one.box for one in scene.elements if one.name == "bubble" and one.text == BILL)
    point = box.center.x, box.center.y
    colour = pixel(_painted(scene, "expected"), point)
    picture = desk.people.pictures[1]
    assert picture is not None
    shown = pixel(picture, point)
    assert max(abs(a - b) for a, b in zip(shown, colour, strict=True)) < 12, (shown, colour)


@pytest.mark.parametrize("last", ["在吗", SHIP], ids=["other words", "the same words"])
def test_a_chat_that_keeps_changing_says_what_came_last(last: str) -> None:
    desk = PaperDesk(SHIP)
    desk.shelf.answers = {"": WRITTEN}
    written = ("急急急", "快点", last)
    desk.phone.on_type = [partial(desk.phone.receive, "11", words) for words in written]
    desk.run(*[ask("几天能发货")] * 3)
    assert desk.people.kinds == [QuestionKind.CHAT_CHANGED]
    assert desk.people.asked[0].data["new"] == [last]


def test_without_a_change_it_is_sent_and_the_newer_question_is_answered_after_it() -> None:
    desk = newer_while_typed(SEND, Answer(choice="record:0", by="店长"))
    session = desk.run(ask("几天能发货"))
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER, QuestionKind.STILL_SEND, QuestionKind.NO_SURE_ANSWER]
    assert desk.sent() == [WRITTEN, BILLED]
    assert desk.rows == [(SHIP, ReplyState.SENT), (BILL, ReplyState.SENT)]


@pytest.mark.parametrize(("second", "sent"), [(SEND, [WRITTEN]), (SKIP, [])], ids=["send", "skip"])
def test_it_is_not_sent_below_what_the_person_was_not_shown(second: Answer, sent: list[str]) -> None:
    def as_a_colleague_answers() -> Answer:
        desk.phone.colleague(BY_HAND)
        return SEND

    def below(answer: Answer) -> Callable[[], Answer]:
        def given() -> Answer:
            assert desk.sent() == []
            return answer

        return given

    desk = newer_while_typed(as_a_colleague_answers, below(second))
    desk.run(ask("几天能发货"))
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER, QuestionKind.STILL_SEND, QuestionKind.STILL_SEND]
    assert desk.sent() == sent
    assert desk.drafts == {}
    again = desk.run()
    assert "没有新消息" in again.message
    assert desk.sent() == sent


@pytest.mark.parametrize("newer", ["急急急", "要快一点，谢谢", SHIP], ids=["more", "thanks", "the same words"])
def test_a_skip_settles_what_the_person_was_shown(newer: str) -> None:
    desk = newer_while_typed(SKIP)
    desk.phone.on_type = [lambda: desk.phone.receive("11", newer)]
    for _ in range(2):
        session = desk.run(ask("几天能发货"))
        assert session.status is Status.SUCCEEDED, session.message
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER, QuestionKind.STILL_SEND]
    assert (desk.sent(), desk.drafts) == ([], {})
    assert {state for _, state in desk.rows} == {ReplyState.SKIPPED}


def test_a_skip_settles_nothing_that_the_person_was_not_shown() -> None:
    def as_the_customer_writes() -> Answer:
        desk.phone.receive("11", "急急急")
        return SKIP

    desk = newer_while_typed(as_the_customer_writes)
    desk.phone.on_type = [lambda: desk.phone.receive("11", "在吗")]
    desk.run(ask("几天能发货"), ask("几天能发货"))
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER, QuestionKind.STILL_SEND, QuestionKind.NO_SURE_ANSWER]


def long_answer(*second: Answer | Callable[[], Answer]) -> PaperDesk:
    """Between the first part and the second the customer asks something else."""
    desk = PaperDesk(RETURN)
    desk.shelf.answers = {"退货": STEPS, "发票": BILLED}
    desk.people.answers = list(second)
    desk.phone.on_type = [lambda: None, lambda: desk.phone.receive("11", BILL)]
    return desk


def test_the_rest_is_not_sent_below_what_the_person_was_not_shown() -> None:
    def as_a_colleague_answers() -> Answer:
        desk.phone.colleague(BY_HAND)
        return SEND

    desk = long_answer(as_a_colleague_answers)
    desk.run(ask("怎么退货"))
    assert desk.people.kinds == [QuestionKind.REST_UNSENT, QuestionKind.REST_UNSENT]
    assert len(desk.sent()) == 1


def test_the_rest_is_sent_and_the_newer_question_is_answered_after_it() -> None:
    desk = long_answer(SEND)
    session = desk.run(ask("怎么退货"))
    assert session.status is Status.SUCCEEDED, session.message
    assert "".join(desk.sent()) == STEPS + BILLED
    assert desk.people.kinds == [QuestionKind.REST_UNSENT]


def test_the_rest_that_was_left_is_not_taken_up_by_the_next_run() -> None:
    desk = long_answer(SKIP)
    first = desk.run(ask("怎么退货"))
    assert first.status is Status.FAILED
    [part] = desk.sent()
    assert desk.rows[0] == (RETURN, ReplyState.SKIPPED)
    second = desk.run()
    assert second.status is Status.SUCCEEDED, second.message
    assert desk.sent() == [part, BILLED]
    third = desk.run()
    assert "没有新消息" in third.message
    assert desk.people.kinds == [QuestionKind.REST_UNSENT]
    assert desk.sent() == [part, BILLED]
