"""What a red mark, and the same words asked before, mean for the next run."""

from __future__ import annotations

import pytest

from agent_core.perception.readings import Source
from agent_core.ports import ReplyState
from agent_core.session import Answer, QuestionKind, Status
from tests.agent_core.reply.dying import Killed
from tests.agent_core.reply.paper_desk import SHIP, SHIPPED, SKIP, PaperDesk, ask

SOURCES = pytest.mark.parametrize("source", [Source.TREE, Source.OCR])
URGENT, HELLO, HERE = "急，几天能发货？", "有现货吗？", "有的，请说。"


@SOURCES
def test_a_red_mark_is_not_sent_again_though_the_same_text_arrived_before(source: Source) -> None:
    desk = PaperDesk(SHIP, sends=["ok", "red"], source=source)
    desk.shelf.answers["现货"] = HERE
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    desk.phone.receive("11", URGENT)
    assert desk.run(ask("几天能发货")).status is Status.FAILED
    desk.phone.receive("11", HELLO)
    session = desk.run(ask("有现货吗"))
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent() == [SHIPPED, SHIPPED, HERE]
    assert dict(desk.rows)[URGENT] is ReplyState.FAILED


@SOURCES
def test_after_a_crash_the_bubble_is_known_though_the_same_was_asked_and_answered_before(source: Source) -> None:
    desk = PaperDesk(SHIP, source=source)
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    desk.phone.receive("11", SHIP)
    with pytest.raises(Killed):
        desk.run(ask("几天能发货"), dies_at=3, counted=frozenset({"advance"}))
    assert desk.sent() == [SHIPPED, SHIPPED]
    session = desk.run()
    assert session.status is Status.SUCCEEDED, session.message
    assert (desk.people.asked, desk.sent()) == ([], [SHIPPED, SHIPPED])
    assert [state for _, state in desk.rows] == [ReplyState.SENT, ReplyState.SENT]


@SOURCES
def test_what_a_person_says_was_answered_is_not_asked_again(source: Source) -> None:
    desk = PaperDesk(SHIP, source=source)
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    desk.phone.chats["11"].messages.pop()  # another phone, or a chat that was emptied: ours is not there
    desk.people.answers = [SKIP]
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    assert desk.people.kinds == [QuestionKind.ANSWERED_BEFORE]
    for _ in range(2):
        session = desk.run(ask("几天能发货"))
        assert session.status is Status.SUCCEEDED, session.message
    assert len(desk.people.asked) == 1
    assert desk.sent() == []
    desk.shelf.answers["现货"] = HERE
    desk.phone.receive("11", HELLO)  # what is written below it changes nothing about it
    session = desk.run(ask("几天能发货"), ask("有现货吗"))
    assert session.status is Status.SUCCEEDED, session.message
    assert (len(desk.people.asked), desk.sent()) == (1, [HERE])
    desk.phone.receive("11", SHIP)  # the same words once more are another question
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    assert (len(desk.people.asked), desk.sent()) == (1, [HERE, SHIPPED])


@SOURCES
def test_the_same_words_below_a_decided_message_are_another_question(source: Source) -> None:
    desk = PaperDesk(SHIP, source=source)
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    desk.phone.chats["11"].messages.pop()
    desk.people.answers = [SKIP]
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    desk.phone.receive("11", SHIP)
    assert desk.run(ask("几天能发货"), ask("几天能发货")).status is Status.SUCCEEDED
    assert (len(desk.people.asked), desk.sent()) == (1, [SHIPPED])


@SOURCES
def test_what_a_person_wants_answered_again_is_answered_again(source: Source) -> None:
    desk = PaperDesk(SHIP, source=source)
    assert desk.run(ask("几天能发货")).status is Status.SUCCEEDED
    desk.phone.chats["11"].messages.pop()
    desk.people.answers = [Answer(choice="again", by="店长")]
    assert desk.run(ask("几天能发货"), ask("几天能发货")).status is Status.SUCCEEDED
    assert desk.sent() == [SHIPPED]


def test_what_a_program_skips_is_no_persons_doing() -> None:
    desk = PaperDesk(SHIP)
    desk.shelf.answers = {}
    desk.people.answers = [SKIP.model_copy(update={"by": "editor", "program": True})]
    session = desk.run(ask("几天能发货"))
    assert (session.status, session.message) == (Status.SUCCEEDED, "已由程序“editor”跳过，没有发送任何内容。")
    assert [event.data["person"] for event in desk.store.events if event.kind == "answer"][-1] == ""
