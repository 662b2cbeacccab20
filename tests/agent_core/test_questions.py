from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agent_core.actions.types import Tap
from agent_core.devices.base import Window
from agent_core.loop import questions
from agent_core.loop.outcome import take_answer
from agent_core.policies import Situation
from agent_core.ports import Record
from agent_core.session import (
    TO_CUSTOMER,
    Answer,
    Approval,
    AskedQuestion,
    Choice,
    GateState,
    Planned,
    Question,
    QuestionKind,
    RowMark,
    Session,
    Spent,
    Status,
)
from agent_core.texts import say

TAP = Tap(element=(10, 20), message="付款？")
SITUATION = Situation(None, Window("com.shop"), (1080, 2400), GateState())
RECORDS = [
    Record(id="k0", text=" ", question="empty"),
    Record(id="k1", text="48小时内", question="几天能发货", score=0.5, source="shelf"),
    Record(id="k2", text="长" * 60, score=0.4),
    Record(id="k3", text="三", question="三？", score=0.3),
    Record(id="k4", text="四", question="四？", score=0.2),
]


def session(lang: str = "zh") -> Session:
    return Session.model_validate(
        {"run_id": "r", "task": "t", "lang": lang, "gate": GateState(enabled=True, contact="11").model_dump()}
    )


PICTURE = AskedQuestion(ledger_id=4, fingerprint="f2", words="[图片]", readable=False)
PLANNED = Planned(ledger_id=3, fingerprint="f1", cluster=["在吗", "几天能发货"], query="几天能发货")


def used_up(session: Session, ask: Callable[[Session], Question | None]) -> Question:
    """At the run's limit."""
    session.max_tokens, session.spent.tokens_in = 1000, 1000
    question = ask(session)
    assert question is not None
    return question


MAKERS: dict[QuestionKind, Callable[[Session], Question]] = {
    QuestionKind.NO_SURE_ANSWER: lambda s: questions.no_sure_answer(s, PLANNED, RECORDS),
    QuestionKind.RIGHT_CHAT: lambda s: questions.right_chat(s, "11?", "title unread"),
    QuestionKind.ANSWERED_BEFORE: lambda s: questions.answered_before(s, "几天能发货", "48小时内", "f1"),
    QuestionKind.DELIVERY_UNKNOWN: lambda s: questions.delivery_unknown(s, PLANNED),
    QuestionKind.FOREIGN_DRAFT: lambda s: questions.foreign_draft(s, "草稿"),
    QuestionKind.CHAT_CHANGED: questions.chat_changed,
    QuestionKind.SENSITIVE_TAP: lambda s: questions.sensitive_tap(s, TAP, SITUATION),
    QuestionKind.TAKE_OVER: lambda s: questions.take_over(s, "请登录"),
    QuestionKind.INTERACT: lambda s: questions.interact(s, "哪一个？", ["红", "蓝"]),
    QuestionKind.STUCK: lambda s: questions.stuck(s, "?"),
    QuestionKind.UNREADABLE: lambda s: questions.unreadable(s, PICTURE),
    QuestionKind.PERSON_ON_PHONE: questions.person_on_phone,
    QuestionKind.FIRST_DELIVERY: lambda s: questions.first_delivery(s, PLANNED, "QQ", "9.1.0"),
    QuestionKind.REST_UNSENT: lambda s: questions.rest_unsent(s, PLANNED),
    QuestionKind.STILL_SEND: lambda s: questions.still_send(s, PLANNED),
    QuestionKind.NO_SEND: lambda s: questions.no_send(s, PLANNED),
    QuestionKind.WHICH_ROW: lambda s: questions.which_row(s, [RowMark(preview="在吗"), RowMark(time="昨天")]),
    QuestionKind.BUDGET: lambda s: used_up(s, questions.budget),
}
VALUES = {
    QuestionKind.NO_SURE_ANSWER: ["record:0", "record:1", "record:2", "skip"],
    QuestionKind.RIGHT_CHAT: ["yes", "no"],
    QuestionKind.ANSWERED_BEFORE: ["again", "skip"],
    QuestionKind.DELIVERY_UNKNOWN: ["arrived", "not_arrived"],
    QuestionKind.FOREIGN_DRAFT: ["clear", "skip"],
    QuestionKind.CHAT_CHANGED: ["retry", "skip"],
    QuestionKind.SENSITIVE_TAP: ["allow", "deny"],
    QuestionKind.TAKE_OVER: ["done", "stop"],
    QuestionKind.INTERACT: ["红", "蓝"],
    QuestionKind.STUCK: ["go_on", "stop"],
    QuestionKind.UNREADABLE: ["skip"],
    QuestionKind.PERSON_ON_PHONE: ["go_on", "stop"],
    QuestionKind.FIRST_DELIVERY: ["send", "skip"],
    QuestionKind.REST_UNSENT: ["send", "skip"],
    QuestionKind.STILL_SEND: ["send", "skip"],
    QuestionKind.NO_SEND: ["enter", "sent", "skip"],
    QuestionKind.WHICH_ROW: ["row:0", "row:1", "none"],
    QuestionKind.BUDGET: ["go_on", "stop"],
}
OWN_WORDS = {*TO_CUSTOMER, QuestionKind.INTERACT, QuestionKind.STUCK}


def test_a_model_that_asks_without_a_word_leaves_no_question_empty() -> None:
    assert "看手机画面" in questions.interact(session("zh"), " ", []).text
    assert "look at the phone" in questions.take_over(session("en"), "").text


@pytest.mark.parametrize(("lang", "again"), [("zh", "卡住过 1 次"), ("en", "stuck 1 time before")])
def test_who_let_a_stuck_run_continue_is_told_that_it_did_not_help(lang: str, again: str) -> None:
    run = session(lang)
    run.questions.append(questions.stuck(run, "?"))
    assert run.questions[0].text == "?"
    assert again in questions.stuck(run, "?").text


@pytest.mark.parametrize("kind", list(QuestionKind))
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_each_question_has_its_choices_in_words(kind: QuestionKind, lang: str) -> None:
    asked = MAKERS[kind](session(lang))
    assert (asked.kind, [choice.value for choice in asked.choices]) == (kind, VALUES[kind])
    assert all(choice.label.strip() for choice in asked.choices)
    assert asked.free_text is (kind in OWN_WORDS)
    assert asked.data["contact"] == "11"
    assert asked.text
    assert Question.model_validate_json(asked.model_dump_json()) == asked
    assert json.dumps(asked.data, ensure_ascii=False)
    assert MAKERS[kind](session(lang)).id != asked.id
    for value in VALUES[kind]:
        assert asked.accepts(Answer(choice=value))
    assert not asked.accepts(Answer(choice="other"))
    assert asked.accepts(Answer(text="words")) is (kind in OWN_WORDS)
    assert not asked.accepts(Answer(text="  "))


def test_a_run_asks_each_time_its_budget_is_used_up_and_never_between_two_parts_of_an_answer() -> None:
    state = session()
    state.max_tokens, state.max_cost = 1000, 0.5
    state.spent = Spent(tokens_in=900, tokens_out=99, cost=0.49, currency="CNY")
    assert questions.budget(state) is None
    state.spent.cost = 0.5
    asked = questions.budget(state)
    assert asked is not None
    assert "0.50 CNY" in asked.text
    state.planned = PLANNED.model_copy(update={"parts": ["一", "二"], "part": 1})
    assert questions.budget(state) is None
    state.planned = None
    assert take_answer(state, asked, Answer(choice="go_on", by="Anna")).ending is None
    assert (state.allowance, questions.budget(state)) == (2, None)
    state.spent.tokens_in = 4000  # far beyond, by one call
    jumped = questions.budget(state)
    assert jumped is not None
    take_answer(state, jumped, Answer(choice="go_on", by="Anna"))
    assert (state.allowance, questions.budget(state)) == (5, None)
    state.spent.tokens_in = 5000
    again = questions.budget(state)
    assert again is not None
    assert "5,099" in again.text
    ended = take_answer(state, again, Answer(choice="stop", by="deadline")).ending
    assert ended is not None
    assert ended.status is Status.FAILED
    assert ended.message == say("zh", "run.budget_stopped_tokens")


@pytest.mark.parametrize(
    ("kind", "by", "said"),
    [
        (QuestionKind.TAKE_OVER, "Anna", "person_stopped"),
        (QuestionKind.STUCK, "Anna", "stuck_stopped"),
        (QuestionKind.TAKE_OVER, "deadline", "nobody_stopped"),
    ],
)
def test_who_ended_a_run_is_said_as_it_was(kind: QuestionKind, by: str, said: str) -> None:
    question = Question(id="q", kind=kind, text="", choices=[Choice(value="stop", label="Stop")])
    ended = take_answer(session(), question, Answer(choice="stop", by=by)).ending
    assert ended is not None
    assert ended.message == say("zh", f"run.{said}")


def test_the_best_records_are_offered() -> None:
    asked = questions.no_sure_answer(session(), PLANNED, RECORDS)
    assert asked.text == "在吗\n几天能发货"
    assert [item["id"] for item in asked.data["candidates"]] == ["k1", "k2", "k3"]  # the blank one is none
    assert [choice.label for choice in asked.choices[:3]] == ["几天能发货", "长" * 40, "三？"]
    assert (asked.data["query"], asked.data["fingerprint"]) == ("几天能发货", "f1")
    far = [
        Record(id="k9", text="请换一根线", score=0.19, source="t"),
        Record(id="k8", text="七天内可以", score=0.2, source="t"),
        Record(id="k7", text="不用寄回", source="t"),
    ]
    near = questions.no_sure_answer(session(), PLANNED, far)
    assert [item["id"] for item in near.data["candidates"]] == ["k8", "k7"]  # one tap sends: what is far is no choice
    none = questions.no_sure_answer(session(), PLANNED, far[:1])
    assert [choice.value for choice in none.choices] == ["skip"]
    nothing = questions.no_sure_answer(session(), PLANNED, [])
    assert [choice.value for choice in nothing.choices] == ["skip"]
    assert nothing.free_text


def test_choices_of_the_model_that_are_none() -> None:
    asked = questions.interact(session(), "?", ["红", " ", "红", "", "蓝"])
    assert [choice.value for choice in asked.choices] == ["红", "蓝"]


# -- what an answer means


def answered(kind: QuestionKind, *, choice: str = "", text: str = "") -> tuple[Session, str, bool, Status | None]:
    state = session("en")
    state.trail, state.repeats = ["a", "a"], 2
    result = take_answer(state, MAKERS[kind](state), Answer(choice=choice, text=text, by="Desk A"))
    return state, result.message, result.ok, result.ending.status if result.ending else None


def test_a_tap_is_allowed_once_and_only_by_allow() -> None:
    state, _, ok, ending = answered(QuestionKind.SENSITIVE_TAP, choice="allow")
    assert (state.approval, ok, ending) == (Approval(element=(10, 20), package="com.shop", until=10), True, None)
    for choice in ("deny", "skip", ""):
        state, message, ok, ending = answered(QuestionKind.SENSITIVE_TAP, choice=choice)
        assert (state.approval, ok, ending) == (None, False, None)
        assert "did not allow" in message


def test_taking_over_is_done_only_where_somebody_says_so() -> None:
    _, message, ok, ending = answered(QuestionKind.TAKE_OVER, choice="done")
    assert (ok, ending) == (True, None)
    assert "dealt with it" in message
    for choice in ("stop", "skip"):  # skip: nobody answered in time
        _, _, ok, ending = answered(QuestionKind.TAKE_OVER, choice=choice)
        assert (ok, ending) == (False, Status.FAILED)


def test_out_of_a_rut() -> None:
    for given in ({"choice": "go_on"}, {"text": "try the menu"}):
        state, message, ok, ending = answered(QuestionKind.STUCK, **given)
        assert (ok, ending, state.trail, state.repeats) == (True, None, [], 0)
        assert message == {"text": "A person says go on: try the menu"}.get(next(iter(given)), "A person says go on.")
    for choice in ("stop", "skip"):
        _, _, ok, ending = answered(QuestionKind.STUCK, choice=choice)
        assert (ok, ending) == (False, Status.FAILED)


def test_the_models_question_gets_the_answer() -> None:
    assert "红" in answered(QuestionKind.INTERACT, choice="红")[1]
    assert "green" in answered(QuestionKind.INTERACT, text="green")[1]
