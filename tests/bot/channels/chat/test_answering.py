"""From what a person writes to an answer."""

from __future__ import annotations

import pytest

from agent_core.session import Answer, Choice, Question, QuestionKind
from bot.channels.chat.answering import no_answer, read_answer
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from bot.channels.cli.terminal.language import texts as terminal_texts
from bot.desk.views import QuestionView

CHOICES = [Choice(value="record:0", label="几天能发货？"), Choice(value="skip", label="跳过")]
OPEN = Question(id="q", kind=QuestionKind.NO_SURE_ANSWER, choices=CHOICES, free_text=True)
CODE = Question(id="q", kind=QuestionKind.INTERACT, free_text=True)


@pytest.mark.parametrize("said", ["1", " 1. ", "几天能发货？", "record:0"])
def test_a_choice_by_number_words_or_value(said: str) -> None:
    assert read_answer(OPEN, said, by="me") == Answer(choice="record:0", by="me")


@pytest.mark.parametrize("said", ["3", "4", "77", "0", " 9. ", "。", "", "  "])
def test_a_number_that_is_no_choice_is_never_a_customers_answer(said: str) -> None:
    assert read_answer(OPEN, said) is None


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_advice_as_it_stands_is_no_answer(lang: Lang) -> None:
    for key in ("question.hint_command", "activity.asks", "activity.asks_there_too"):
        placeholder = terminal_texts(lang).get(key, id="q", what="11", console="c").rpartition(" ")[2]
        assert read_answer(OPEN, placeholder) is None
        assert read_answer(OPEN, placeholder, own=True) is None


PASTED = [
    "NUMBER or your words",
    "number-or-words",
    "<NUMBER> / <WORDS>",
    "Number.",
    "your own words or the number!",
    "“序号或要说的话”",
]


@pytest.mark.parametrize("said", PASTED)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_words_of_the_advice_are_no_answer_however_they_are_written(said: str, lang: Lang) -> None:
    assert read_answer(OPEN, said) is None
    told = no_answer(texts(lang), QuestionView("q", "r", OPEN), said)
    assert told.startswith(f"“{said}”")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_number_of_no_choice_is_named(lang: Lang) -> None:
    for closed in (OPEN, OPEN.model_copy(update={"free_text": False})):
        told = no_answer(texts(lang), QuestionView("q", "r", closed), "9")
        assert told.startswith("没有第 9 项。" if lang == "zh" else "There is no choice 9. ")


@pytest.mark.parametrize("said", ["your number", "order number 12", "In other words: no", "号码"])
def test_answers_that_hold_some_of_these_words_are_answers(said: str) -> None:
    assert read_answer(OPEN, said) == Answer(text=said)


def test_own_words_may_hold_numbers() -> None:
    assert read_answer(OPEN, "48小时内") == Answer(text="48小时内")
    assert read_answer(OPEN, "满 59 元包邮") == Answer(text="满 59 元包邮")


def test_a_model_may_ask_for_a_number() -> None:
    assert read_answer(CODE, "4821") == Answer(text="4821")
    assert read_answer(CODE, "42") == Answer(text="42")


def test_where_own_words_are_not_taken() -> None:
    closed = OPEN.model_copy(update={"free_text": False})
    assert read_answer(closed, "好的") is None
    assert read_answer(closed, "2") == Answer(choice="skip")


@pytest.mark.parametrize("said", ["1", "3", "几天能发货？", "今天"])
def test_words_that_were_asked_for_are_no_candidate(said: str) -> None:
    assert read_answer(OPEN, said, own=True) == Answer(text=said)
    assert read_answer(OPEN, "跳过", own=True) == Answer(choice="skip")
    assert read_answer(OPEN.model_copy(update={"free_text": False}), "1", own=True) == Answer(choice="record:0")
