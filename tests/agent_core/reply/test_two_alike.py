"""Two answers below the same messages that a recogniser takes for one another."""

from __future__ import annotations

import pytest

from agent_core.perception.readings import Bubble, ChatScreen, Side, Source
from agent_core.ports import ReplyState
from agent_core.reply.match import our_bubble_after_question
from agent_core.session import QuestionKind, Status
from tests.agent_core.reply.dying import Killed
from tests.agent_core.reply.paper_desk import PaperDesk, ask

BLACK, WHITE = "黑色有货吗？", "白色有货吗？"
IN_BLACK = "黑色的现在有货，下单以后当天就可以从仓库里发出。"
IN_WHITE = "白色的现在有货，下单以后当天就可以从仓库里发出。"
TAIL = "下单以后当天就可以从仓库里发出来。"
WHOLE = f"白色的要先等两天，{TAIL}"
SECOND_SENDING = 5  # typing, sending, sent, typing, then this


def alike(*sends: str, answers: tuple[str, str] = (IN_BLACK, IN_WHITE), enter: bool = False) -> PaperDesk:
    desk = PaperDesk(BLACK, WHITE, sends=sends, source=Source.OCR, enter=enter)
    desk.shelf.answers = {"黑色": answers[0], "白色": answers[1]}
    return desk


BOTH = ask("黑色有货吗"), ask("白色有货吗")
ANSWERS = [(IN_BLACK, IN_WHITE), (TAIL, WHOLE), (WHOLE, TAIL)]


@pytest.mark.parametrize("answers", ANSWERS, ids=["one_letter", "longer", "shorter"])
def test_both_are_sent(answers: tuple[str, str]) -> None:
    desk = alike(answers=answers)
    session = desk.run(*BOTH)
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent() == list(answers)
    assert desk.people.asked == []


@pytest.mark.parametrize("answers", ANSWERS, ids=["one_letter", "longer", "shorter"])
def test_the_second_is_not_told_as_sent_by_the_first_ones_bubble(answers: tuple[str, str]) -> None:
    desk = alike("ok", "ignored", answers=answers)
    session = desk.run(*BOTH)
    assert session.status is Status.FAILED
    assert "没有效果" in session.message
    assert desk.sent() == [answers[0]]
    assert desk.rows == [(BLACK, ReplyState.SENT), (WHITE, ReplyState.PLANNED)]
    assert [reply.text for reply in session.replies] == [answers[0]]
    assert desk.drafts == {}


@pytest.mark.parametrize("answers", ANSWERS, ids=["one_letter", "longer", "shorter"])
def test_the_second_is_sent_by_enter(answers: tuple[str, str]) -> None:
    desk = alike("ok", "ignored", answers=answers, enter=True)
    session = desk.run(*BOTH)
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent() == list(answers)


@pytest.mark.parametrize("answers", ANSWERS, ids=["one_letter", "longer", "shorter"])
def test_a_second_that_leaves_the_input_and_is_not_seen_is_asked_about(answers: tuple[str, str]) -> None:
    desk = alike("ok", "vanish", answers=answers)
    session = desk.run(*BOTH)
    assert session.status is Status.WAITING, session.message
    assert desk.people.kinds == [QuestionKind.DELIVERY_UNKNOWN]
    assert desk.rows[1] == (WHITE, ReplyState.UNKNOWN)


@pytest.mark.parametrize("new_run", [False, True], ids=["next_attempt", "new_run"])
@pytest.mark.parametrize("answers", ANSWERS, ids=["one_letter", "longer", "shorter"])
@pytest.mark.parametrize("send", ["ignored", "vanish", "ok"])
def test_after_a_crash_the_second_is_judged_by_its_own_bubble(
    send: str, answers: tuple[str, str], new_run: bool
) -> None:
    desk = alike("ok", send, answers=answers)
    at, counted = (1, "key") if send == "ignored" else (SECOND_SENDING + 1, "advance")  # after Send, before Enter
    with pytest.raises(Killed):
        desk.run(*BOTH, dies_at=at, counted=frozenset({counted}))
    assert desk.rows == [(BLACK, ReplyState.SENT), (WHITE, ReplyState.SENDING)]
    session = desk.run(session=None if new_run else desk.store.session)
    if send == "vanish":
        assert desk.people.kinds == [QuestionKind.DELIVERY_UNKNOWN]
        assert desk.rows[1] == (WHITE, ReplyState.UNKNOWN)
        assert desk.sent() == [answers[0]]
    else:
        assert session.status is Status.SUCCEEDED, session.message
        assert desk.sent() == list(answers)
        assert desk.rows[1] == (WHITE, ReplyState.SENT)
    assert desk.drafts == {}


def test_a_colleagues_text_is_not_ours_because_ours_ends_so() -> None:
    """What was left open is not taken up below it."""
    desk = alike("ok", "ignored", answers=(IN_BLACK, WHOLE))
    assert desk.run(ask("白色有货吗"), ask("黑色有货吗")).status is Status.FAILED
    assert desk.rows == [(BLACK, ReplyState.PLANNED), (WHITE, ReplyState.SENT)]
    desk.phone.colleague(TAIL)
    session = desk.run()
    assert "没有新消息" in session.message
    assert desk.sent() == [WHOLE]


@pytest.mark.parametrize("crash", [False, True], ids=["same_attempt", "new_run"])
def test_a_colleagues_equal_text_leaves_nothing_of_ours_in_the_input(crash: bool) -> None:
    """It comes as Send takes no effect: what stands in the input was not sent, whatever bubble looks like it."""
    desk = PaperDesk(BLACK, sends=["ignored"], source=Source.OCR)
    desk.shelf.answers = {"黑色": IN_BLACK}
    if crash:
        with pytest.raises(Killed):
            desk.run(ask("黑色有货吗"), dies_at=1, counted=frozenset({"key"}))  # after Send, before Enter
        desk.phone.colleague(IN_BLACK)
    else:
        desk.phone.on_send = [lambda: desk.phone.colleague(IN_BLACK)]
    desk.run(ask("黑色有货吗"))
    assert (desk.sent(), desk.drafts) == ([], {})


def test_a_text_at_the_upper_edge_that_is_known_is_not_the_end_of_another() -> None:
    bubbles = (Bubble(Side.ME, TAIL), Bubble(Side.THEM, "好的，谢谢"))
    chat = ChatScreen("11", bubbles, "", Source.OCR)
    assert our_bubble_after_question(chat, [BLACK, WHITE], WHOLE) is bubbles[0]  # its end
    assert our_bubble_after_question(chat, [BLACK, WHITE], WHOLE, others=[TAIL]) is None
    assert our_bubble_after_question(chat, [BLACK, WHITE], TAIL, others=[]) is bubbles[0]
