"""What a program may decide, and what only a person may."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import structlog

from agent_core.loop.questions import person_on_phone
from agent_core.session import NO_REPLY, NOBODY, Answer, Choice, GateState, Question, QuestionKind, Session
from agent_core.texts import load_texts
from bot.channels.mcp.asking import (
    MODEL_MAY,
    PROGRAM_MAY,
    AskingHuman,
    by_form,
    may_answer,
    no_reply,
    read_reply,
    who_may,
)
from bot.channels.mcp.client import Asks, Client, form_of, words_of
from bot.desk.actors import BadRequest
from scheduler.jobs.deadlines import AT_DEADLINE
from storage.engine import Database
from storage.runs import NewRun, Runs

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


OWN = Question(id="q", kind=QuestionKind.NO_SURE_ANSWER, choices=[Choice(value="skip", label="跳过")], free_text=True)


@pytest.mark.parametrize("reply", ["/stop", "／停", "停止", "stop", "Status.", "回放 3", "停止 3"])
def test_a_reply_that_looks_like_a_command_goes_to_the_customer_once_it_is_confirmed(reply: str) -> None:
    with pytest.raises(BadRequest, match="confirm"):
        read_reply(OWN, reply, by="x", person_there=True)
    assert read_reply(OWN, reply, by="x", person_there=True, confirmed=True).text == reply
    assert read_reply(OWN, "今天停止发货，status 明天更新", by="x", person_there=True).text


@pytest.mark.parametrize(("second", "answer"), [("yes", "停止"), ("no", None), ("", None)])
async def test_a_form_with_what_looks_like_a_command_is_asked_about(second: str, answer: str | None) -> None:
    said = ["停止", second]

    async def elicit(message: str, form: dict[str, Any]) -> str:
        return said.pop(0)

    async def say_nothing(progress: float, total: float, message: str) -> None:
        return None

    client = Client(say_nothing, Asks.NOW, elicit)
    given = await by_form(client, name="x", person_there=True)(Session(run_id="r", task="t"), OWN, None)
    assert (given.text if given else None, said) == (answer, [])


def test_both_languages_say_the_same() -> None:
    zh, en = (load_texts("bot.channels.mcp.texts", lang) for lang in ("zh", "en"))
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


async def test_a_database_that_is_away_for_a_moment_takes_no_question_back(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    run_id = await Runs(db).create(NewRun("task", "a", begun=True))
    assert run_id is not None
    question = Question(id="q", kind=QuestionKind.INTERACT, free_text=True)

    async def renamed(name: str, other: str) -> None:
        async with db.write() as connection:
            await connection.execute(sa.text(f"ALTER TABLE {name} RENAME TO {other}"))

    async def answered(session: Session, question: Question, picture: bytes | None) -> Answer | None:
        await renamed("questions", "away")
        try:
            async with asyncio.timeout(5):
                while not any(entry["event"] == "question_not_looked_at" for entry in told):
                    db.signal("questions").notify()
                    await asyncio.sleep(0.01)
        finally:
            await renamed("away", "questions")
        return Answer(text="yes", by="client")

    with structlog.testing.capture_logs() as told:
        human = AskingHuman(db, answered, attempt=1, hold_seconds=10)
        answer = await human.ask(Session(run_id=run_id, task="task"), question)
    await db.close()
    assert answer == Answer(text="yes", by="client")


async def test_a_person_who_keeps_the_phone_in_hand_is_not_gone_on_without() -> None:
    """Nor one who may be in a customer's chat with it."""
    session = Session(run_id="r", task="t")
    given = []
    for gate in (GateState(), GateState(), GateState(enabled=True, contact="11")):
        if gate.enabled:
            session = Session(run_id="r", task="t", gate=gate)
        question = person_on_phone(session)
        session.questions.append(question)
        given.append(await no_reply(session, question, None))
    assert [answer.by for answer in given if answer is not None] == [NO_REPLY, NOBODY, NOBODY]
