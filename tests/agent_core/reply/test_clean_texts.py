"""A text with something hidden in it is for a person; what is typed is what they were shown."""

from __future__ import annotations

import pytest

from agent_core.perception.readings import Source
from agent_core.session import Answer, QuestionKind, Status
from tests.agent_core.reply.paper_desk import SHIP, PaperDesk, ask

HIDDEN = "付款后\u202e48\u202c小时\x00内发出\ud83d。"
SEEN = "付款后48小时内发出。"


def desk(text: str, source: Source = Source.TREE) -> PaperDesk:
    desk = PaperDesk(SHIP, source=source)
    desk.shelf.answers = {"发货": text}
    return desk


def test_a_record_with_something_hidden_is_not_sent_without_a_person() -> None:
    paper = desk(HIDDEN)
    session = paper.run(ask(SHIP))
    assert session.status is Status.WAITING
    assert paper.people.kinds == [QuestionKind.NO_SURE_ANSWER]
    assert paper.sent() == []


def test_what_is_sent_is_what_the_person_was_shown() -> None:
    paper = desk(HIDDEN)
    paper.people.answers = [Answer(choice="record:0", by="店长")]
    session = paper.run(ask(SHIP))
    assert [candidate["text"] for candidate in paper.people.asked[0].data["candidates"]] == [SEEN]
    assert (session.status, paper.sent()) == (Status.SUCCEEDED, [SEEN])


def test_a_persons_own_words_lose_what_nobody_sees() -> None:
    paper = desk(HIDDEN)
    paper.people.answers = [Answer(text="\ufeff明天\u200b就发 ❤️", by="店长")]
    assert paper.run(ask(SHIP)).status is Status.SUCCEEDED
    assert paper.sent() == ["明天就发 ❤️"]


@pytest.mark.parametrize("source", [Source.TREE, Source.OCR])
def test_letters_in_two_pieces_are_typed_as_one_and_known_again(source: Source) -> None:
    paper = desk("Cafe\u0301 48小时内发出。", source)
    session = paper.run(ask(SHIP))
    assert (session.status, paper.people.asked) == (Status.SUCCEEDED, [])
    assert paper.sent() == ["Café 48小时内发出。"]
