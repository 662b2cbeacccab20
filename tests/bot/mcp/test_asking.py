"""What a program may decide, and what only a person may."""

from __future__ import annotations

import re

import pytest

from agent_core.session import Answer, Choice, Question, QuestionKind
from agent_core.texts import load_texts
from bot.desk.actors import BadRequest
from bot.mcp.asking import MODEL_MAY, PROGRAM_MAY, may_answer, read_reply, who_may
from bot.mcp.client import form_of, words_of
from scheduler.deadlines import AT_DEADLINE

SAFE = {kind: rule.choice for kind, rule in AT_DEADLINE.items() if rule.choice}


def test_a_program_decides_how_its_task_goes_on_and_nothing_else() -> None:
    """A new kind of question is a person's until somebody says otherwise here."""
    kinds = QuestionKind
    assert {kinds.INTERACT, kinds.TAKE_OVER, kinds.STUCK, kinds.PERSON_ON_PHONE} == PROGRAM_MAY
    assert {kinds.INTERACT, kinds.STUCK} == MODEL_MAY


@pytest.mark.parametrize("kind", QuestionKind)
def test_only_a_person_says_yes_where_it_counts(kind: QuestionKind) -> None:
    safe = SAFE.get(kind, "skip")
    question = Question(
        id="q1", kind=kind, text="?", choices=[Choice(value="yes", label="是"), Choice(value=safe, label="否")]
    )
    yes, no = Answer(choice="yes"), Answer(choice=safe)
    program = kind in PROGRAM_MAY
    assert may_answer(question, yes, person_there=False) is program
    assert may_answer(question, no, person_there=False) is (program or kind in SAFE)
    assert may_answer(question, yes, person_there=True)
    assert who_may(question, person_there=False) == ("client" if program else "person")
    if not program:
        with pytest.raises(BadRequest, match="phonedesk questions answer q1"):
            read_reply(question, "是", by="x", person_there=False)


def test_a_reply_is_a_choice_by_its_words_its_value_or_its_number() -> None:
    done = Choice(value="done", label="已完成")
    question = Question(id="q", kind=QuestionKind.TAKE_OVER, choices=[done, Choice(value="stop", label="停")])
    for reply in ("done", "Done.", "已完成", "1"):
        answer = read_reply(question, reply, by="editor", person_there=False)
        assert answer == Answer(choice="done", by="editor", program=True)
    assert not read_reply(question, "done", by="editor", person_there=True).program
    with pytest.raises(BadRequest, match=r"done \(已完成\), stop \(停\)"):
        read_reply(question, "maybe", by="editor", person_there=False)


def test_both_languages_say_the_same() -> None:
    zh, en = (load_texts("bot.mcp.texts", lang) for lang in ("zh", "en"))
    assert set(zh) == set(en)
    for key in zh:
        assert set(re.findall(r"{(\w+)}", zh[key])) == set(re.findall(r"{(\w+)}", en[key])), key


def test_a_form_is_a_text_or_a_choice() -> None:
    free = Question(id="q", kind=QuestionKind.INTERACT, free_text=True)
    assert form_of(free)["properties"]["answer"]["type"] == "string"
    chosen = free.model_copy(update={"free_text": False, "choices": [Choice(value="a", label="A")]})
    assert form_of(chosen)["properties"]["answer"]["enum"] == ["a"]
    both = free.model_copy(update={"choices": [Choice(value="a", label="A")]})
    assert form_of(both)["properties"]["answer"]["description"] == "A"
    assert (words_of({"answer": " a\n b "}), words_of({"answer": 1}), words_of(None)) == ("a\n b", "", "")
