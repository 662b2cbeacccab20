"""What a person reads on a card."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agent_core.loop.questions import no_sure_answer
from agent_core.ports import Record
from agent_core.session import (
    WAITS_ELSEWHERE,
    Choice,
    KeptNote,
    Planned,
    Question,
    QuestionKind,
    ReplyRecord,
    Session,
    Spent,
    StepRecord,
    StepVerdict,
)
from agent_core.texts import rule_words
from bot.channels.chat.cards import Card, Line
from bot.channels.chat.devices import devices_card
from bot.channels.chat.questions import SOMEWHAT_ALIKE, VERY_ALIKE, question_card
from bot.channels.chat.run_cards import describe_action, ruled, run_card
from bot.channels.chat.runs import status_card
from bot.channels.chat.sweeps import card_of
from bot.channels.chat.texts import LANGUAGES, Lang, Texts, texts
from bot.channels.telegram import render
from bot.desk.actors import ChatRef
from bot.desk.views import BusyView, PhoneView, PlanView, QuestionView, RunStatus, RunView, StatusView, SweepView
from knowledge.entries import Entry
from storage.people import TERMINAL
from tests.support.stage import NOW

ZH, EN = texts("zh"), texts("en")
RUN = RunView("r1", "QQ回复联系人11", RunStatus.RUNNING, "zh", "S1", "Pixel", ChatRef("telegram", "11"), started_at=NOW)
LATER = NOW + timedelta(seconds=65)


def lines(card: Card) -> list[str]:
    return [card.title, *(f"{line.label}: {line.text}" if line.label else line.text for line in card.lines)]


def labels(card: Card) -> list[list[str]]:
    return [[button.label for button in row] for row in card.buttons]


def test_a_running_run() -> None:
    step = StepRecord(index=3, thinking="找到聊天", action={"kind": "launch", "app": "QQ"})
    card = run_card(replace(RUN, steps=3, last_step=step), ZH, now=LATER, picture=b"p")
    assert lines(card) == [
        "▶️ 执行中", "任务: QQ回复联系人11", "手机: Pixel", "步数: 第 3 步（最多 100）", "思考: 找到聊天",
        "操作: 打开 QQ",
        "用时: 1 分 05 秒",
    ]  # fmt: skip
    assert labels(card) == [["停止", "看屏幕", "暂停"]]
    assert [button.action for button in card.buttons[0]] == ["stop:r1", "screen:S1", "hold:r1"]
    assert card.picture == b"p"
    assert "思考: 正在看" in lines(run_card(replace(RUN, last_step=step), ZH, now=LATER, thinking="正在看"))


def test_a_customer_left_to_an_older_run_is_neither_done_nor_failed() -> None:
    failed = replace(RUN, error_kind=WAITS_ELSEWHERE, status=RunStatus.FAILED, left_to="person")
    done = replace(RUN, error_kind=WAITS_ELSEWHERE, status=RunStatus.SUCCEEDED, left_to="run")
    assert run_card(failed, ZH, now=LATER).title == "✋ 等待人工"
    assert run_card(done, ZH, now=LATER).title == "⏳ 留给较早的任务"


def test_a_run_whose_phone_is_away_says_what_it_waits_for_how_long_and_what_to_do() -> None:
    until = NOW + timedelta(minutes=5)
    queued = replace(RUN, status=RunStatus.QUEUED, position=1, away="offline", away_until=until, started_at=None)
    card = run_card(queued, ZH, now=NOW)
    assert lines(card)[0] == "⏳ 排队中，等手机"
    assert lines(card)[-4:] == [
        "队列中第 1 位", "等待手机 Pixel：它没有连接，或已离线。",
        "最多等到 11-20 09:35:00；那时还没有连上，任务就失败。",
        "请检查数据线或网络、USB 调试，也可以停止任务。连上以后会自动开始。",
    ]  # fmt: skip
    assert "It waits until the phone is there" in lines(run_card(replace(queued, away_until=None), EN, now=NOW))[-2]
    assert "No phone is attached" in lines(run_card(replace(queued, away="none"), EN, now=NOW))[-3]
    assert "USB" in lines(run_card(replace(queued, away="unauthorized"), EN, now=NOW))[-1]
    assert lines(status_card(StatusView((), (queued,)), ZH))[2] == "⏳ 排队中，等手机 · QQ回复联系人11 · 第 0 步"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize("kind", ["run", "sweep", "plan"])
def test_the_lines_of_a_card_agree_with_its_title(lang: Lang, status: RunStatus, kind: str) -> None:
    """Whoever was asked to stop is stopping until it has stopped, and is not asked again; a result is not the title."""
    words = texts(lang)
    run = replace(RUN, status=status, stopped_by="小李", message=words.get("card.stopped").removeprefix("⏹ ") + ".")
    card = card_of(
        replace(run, sweep=SweepView(1) if kind == "sweep" else None, plan=PlanView() if kind == "plan" else None),
        words,
        now=LATER,
    )
    stops = [line for line in card.lines if line.label == words.get("card.stopped_by")]
    assert bool(stops) == (status is RunStatus.STOPPED or not status.final)
    assert not [button for row in card.buttons for button in row if button.action.startswith(("stop:", "hold:"))]
    if not status.final:
        assert card.title.startswith("⏹") or kind == "sweep"
        assert words.get({"run": "card", "sweep": "sweep", "plan": "plan"}[kind] + ".stopping") == card.title
    if status is RunStatus.STOPPED:
        assert words.get("card.result") not in {line.label for line in card.lines}
    if status is RunStatus.SUCCEEDED:
        assert words.get("plan.interrupted") not in {line.text for line in card.lines}


@pytest.mark.parametrize(
    ("words", "line", "label", "button"),
    [
        (ZH, "客户分 2 条写的", "候选 1（2 条答案一起）", "1. 把几条答案一起发"),
        (EN, "These are 2 messages", "Candidate 1 (2 answers together)", "1. Send these answers together"),
    ],
)
def test_two_messages_with_an_answer_each_are_offered_as_one_choice(
    words: Texts, line: str, label: str, button: str
) -> None:
    session = Session(run_id="r", task="t", lang=words.lang)
    planned = Planned(ledger_id=1, fingerprint="f", cluster=["线多长", "功率多大"], query="线多长")
    length, power = Record(id="a", text="1米。", question="线多长"), Record(id="b", text="65W。", question="功率多大")
    question = no_sure_answer(session, planned, [length, power], together=[length, power])
    card = question_card(QuestionView(id="q", run_id="r", question=question, lang=words.lang), words)
    assert any(one.text.startswith(line) for one in card.lines)
    assert next(one.text for one in card.lines if one.label == label) == "1米。\n65W。"
    assert card.buttons[0][0].label == button
    alone = no_sure_answer(session, planned, [length, power])
    shown = question_card(QuestionView(id="q", run_id="r", question=alone, lang=words.lang), words)
    assert not any(one.text.startswith(line) for one in shown.lines)


def test_a_stopped_run_says_who_was_not_answered() -> None:
    stopped = replace(RUN, status=RunStatus.STOPPED, stopped_by="小李", unanswered="11")
    assert lines(run_card(stopped, ZH, now=LATER))[-1].startswith("还没有回复 11。要回复就再发一次这个任务")
    assert "11 was not answered" in lines(run_card(stopped, EN, now=LATER))[-1]
    assert "没有回复" not in "".join(lines(run_card(replace(stopped, unanswered=""), ZH, now=LATER)))
    some = replace(stopped, replies=(ReplyRecord(contact="11", question="?", text="!", provenance="", delivered=True),))
    assert "没有回复 11" not in "".join(lines(run_card(some, ZH, now=LATER))), "one of two was answered"
    assert any(line.startswith("11 还有问题没有回答") for line in lines(run_card(some, ZH, now=LATER)))
    assert any(line.startswith("11 has a question that was not") for line in lines(run_card(some, EN, now=LATER)))


def test_a_queued_run_says_what_its_phone_does_and_how_to_get_it() -> None:
    busy = BusyView("run", 12, "微信回复张三", 3, TERMINAL)
    queued = replace(RUN, status=RunStatus.QUEUED, position=1, busy_with=busy, started_at=None)
    assert lines(run_card(queued, ZH, now=NOW))[-2] == "队列中第 1 位"
    assert lines(run_card(queued, ZH, now=NOW))[-1] == "在等任务 #12 做完：微信回复张三（本机管理员发起，第 3 步）"
    said = "Waits for run #12 to end: 微信回复张三 (started by the owner at this machine, step 3)"
    assert lines(run_card(queued, EN, now=NOW))[-1] == said
    asks = replace(queued, busy_with=replace(busy, kind="asks", by="小李"))
    assert lines(run_card(asks, ZH, now=NOW))[-1] == (
        "在等任务 #12：微信回复张三（小李发起，第 3 步）。它占着手机，在等人回答。\n回答它：/ask，或停止它：/stop 12"
    )
    assert "waits for a person's answer.\nAnswer it: /ask" in lines(run_card(asks, EN, now=NOW))[-1]
    by_others = (
        (BusyView("person", by="Anna"), "Anna 在控制台里接管了它", "Anna has taken it over"),
        (BusyView("other"), "正在用它", "is using it"),
    )
    for busy, zh, en in by_others:
        taken = replace(queued, busy_with=busy)
        assert zh in lines(run_card(taken, ZH, now=NOW))[-1]
        assert en in lines(run_card(taken, EN, now=NOW))[-1]


def test_the_notes_of_a_run_stand_on_its_card_at_the_end() -> None:
    notes = (
        KeptNote(text="早" * 600, app="设置", step=2),
        KeptNote(text="有 WLAN", app="设置", step=3),
        KeptNote(text="共一项", step=4, summary=True),
    )
    over = replace(RUN, status=RunStatus.SUCCEEDED, notes=notes)
    assert lines(run_card(over, ZH, now=LATER))[-3:] == [
        "更早的笔记还有 1 条。", "笔记（设置 · 第 3 步）: 有 WLAN", "总结（第 4 步）: 共一项",
    ]  # fmt: skip
    assert not [line for line in lines(run_card(replace(RUN, notes=notes), ZH, now=LATER)) if "WLAN" in line]


def test_what_waits_for_a_person_has_not_failed() -> None:
    waiting = replace(RUN, status=RunStatus.WAITING)
    running = replace(waiting, status=RunStatus.RUNNING)
    back = StepRecord(index=1, action={"kind": "back"}, ok=False)
    asks = back.model_copy(update={"asks": True})
    assert "操作: 返回（问人）" in lines(run_card(replace(waiting, last_step=asks), ZH, now=NOW))
    assert "操作: 返回（未成功）" in lines(run_card(replace(running, last_step=back), ZH, now=NOW))
    for action, said in (({"kind": "take_over", "message": "登录"}, "请人接手：登录"), ({"kind": "interact"}, "询问")):
        step = StepRecord(index=1, action=action, ok=False)  # and neither has what asks by itself
        for run in (waiting, running):
            assert f"操作: {said}" in lines(run_card(replace(run, last_step=step), ZH, now=NOW))
    held = replace(waiting, held=True)
    assert labels(status_card(StatusView((), (held,)), ZH)) == [["继续 · QQ回复联系人11", "停止 · QQ回复联系人11"]]
    assert labels(status_card(StatusView((), (held,)), ZH, may_act=False)) == []


def test_an_outcome_shows_what_was_sent_and_where_it_came_from() -> None:
    record = ReplyRecord(
        contact="11", question="怎么退货", text="七天内可退", provenance="knowledge", record_id="r7",
        record_source="dify:returns.csv", record_questions=["怎么退货"], score=0.914, delivered=True,
    )  # fmt: skip
    person = ReplyRecord(contact="11", question="几点", text="九点", provenance="person", person="Operator A")
    chosen = record.model_copy(update={"person": "Operator B"})
    run = replace(RUN, status=RunStatus.SUCCEEDED, message="已回复", replies=(record, person, chosen), ended_at=LATER)
    card = run_card(run, ZH, now=LATER + timedelta(hours=1))
    assert lines(card)[3:] == [
        "用时: 1 分 05 秒", "结果: 已回复",
        "客户 11 问: 怎么退货", "已发送: 七天内可退", "依据: dify:returns.csv · “怎么退货” · 得分 0.91",
        "客户 11 问: 几点", "未确认送达: 九点", "依据: 由 Operator A 撰写",
        "客户 11 问: 怎么退货", "已发送: 七天内可退", "依据: dify:returns.csv · “怎么退货” · 得分 0.91",
        "由 Operator B 选定",
    ]  # fmt: skip
    assert card.title == "✅ 已完成"
    assert card.buttons == ()


def test_what_only_the_model_says_is_marked_as_its_note() -> None:
    step = StepRecord(index=1, action={"kind": "finish", "message": "电量 80%"}, ok=True)
    run = replace(RUN, status=RunStatus.SUCCEEDED, message="电量 80%", last_step=step)
    assert "模型的说明: 电量 80%" in lines(run_card(run, ZH, now=NOW))
    assert "结果: 已回复 11" in lines(run_card(replace(run, message="已回复 11"), ZH, now=NOW))


def test_an_own_entry_is_shown_by_its_question_never_by_its_id() -> None:
    id_ = "e64d868060de"
    reply = ReplyRecord(
        contact="11", question="q", text="t", provenance="knowledge", record_id=id_, record_source=f"embedded:{id_}"
    )
    ended = replace(RUN, status=RunStatus.SUCCEEDED)
    for questions, said in (
        (["几天\n能发货？"], "依据: “几天 能发货？”"),
        (["发货" * 60], f"依据: “{'发货' * 39}发…”"),
        (["几天能发货", "包邮吗"], "依据: “几天能发货” · “包邮吗”"),  # composed of two
        ([], "依据: 自己的知识库"),  # sent by an earlier run
    ):
        shown = lines(
            run_card(replace(ended, replies=(reply.model_copy(update={"record_questions": questions}),)), ZH, now=NOW)
        )
        assert said in shown
        assert id_ not in "".join(shown)


def test_a_failure_is_explained_with_what_to_do() -> None:
    run = replace(RUN, status=RunStatus.FAILED, message="S1 gone", error_kind="device.offline")
    assert lines(run_card(run, EN, now=NOW))[-3:] == [
        "Result: S1 gone",
        "The phone is not attached, or offline.",
        "Check the cable or the network, and whether /devices shows the phone.",
    ]
    assert lines(run_card(run, texts("zh"), now=NOW))[-1] == "检查数据线或网络，再看 /devices 里有没有这台手机。"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"kind": "tap", "element": [500, 120], "message": None}, "Tap (500, 120)"),
        ({"kind": "swipe", "start": (1, 2), "end": (3, 4)}, "Swipe (1, 2) to (3, 4)"),
        ({"kind": "wait", "duration": 1.0}, "Wait 1 s"),
        ({"kind": "type", "text": "{x}"}, "Type “{x}”"),
        ({"kind": "something_new"}, "something_new"),
        (None, ""),
    ],
)
def test_actions_in_words(action: dict[str, object] | None, said: str) -> None:
    assert describe_action(EN, StepRecord(index=1, action=action)) == said
    if said:
        assert describe_action(EN, StepRecord(index=1, action=action, ok=False)) == f"{said} (no success)"
        asks = StepRecord(index=1, action=action, ok=False, asks=True)
        assert describe_action(EN, asks) == f"{said} (a person is asked)"


def test_a_reply_that_could_not_be_read_has_words_for_people() -> None:
    step = StepRecord(index=1, model="m", tokens_out=9, ok=False, result="Your reply could not be read: no call.")
    assert describe_action(EN, step) == "The model's reply could not be read; nothing was done"
    assert describe_action(EN, step.model_copy(update={"tokens_out": 0})) == ""  # there was none


CHOICES = {
    QuestionKind.INTERACT: (("红", "红"), ("蓝", "蓝")),
    QuestionKind.TAKE_OVER: (("done", "完成"), ("stop", "停止")),
    QuestionKind.SENSITIVE_TAP: (("allow", "允许"), ("deny", "不允许")),
    QuestionKind.NO_SURE_ANSWER: (("record:0", "退货"), ("skip", "跳过")),
    QuestionKind.RIGHT_CHAT: (("yes", "是"), ("no", "不是")),
    QuestionKind.DELIVERY_UNKNOWN: (("arrived", "到了"), ("not_arrived", "没到")),
    QuestionKind.ANSWERED_BEFORE: (("again", "再答"), ("skip", "已答")),
    QuestionKind.FOREIGN_DRAFT: (("clear", "清掉"), ("skip", "保留")),
    QuestionKind.CHAT_CHANGED: (("retry", "再试"), ("skip", "跳过")),
    QuestionKind.STUCK: (("go_on", "继续"), ("stop", "停止")),
    QuestionKind.UNREADABLE: (("skip", "跳过"), ("later", "以后")),
    QuestionKind.PERSON_ON_PHONE: (("go_on", "继续"), ("stop", "停止")),
    QuestionKind.BUDGET: (("go_on", "继续"), ("stop", "停止")),
    QuestionKind.FIRST_DELIVERY: (("send", "发送"), ("skip", "跳过")),
    QuestionKind.REST_UNSENT: (("send", "继续发"), ("skip", "不发")),
    QuestionKind.STILL_SEND: (("send", "发送"), ("skip", "跳过")),
    QuestionKind.WHICH_ROW: (("row:0", "1 · 在吗"), ("none", "都不是")),
    QuestionKind.NO_SEND: (("enter", "按回车"), ("skip", "放弃")),
}
DATA = {
    "contact": "11",
    "title": "十一",
    "draft": "亲",
    "answer": "七天",
    "candidates": [{"id": "r1", "text": "七天内可退", "score": 0.614}],
}


def asked(kind: QuestionKind, *, free_text: bool = False) -> QuestionView:
    choices = [Choice(value=value, label=label) for value, label in CHOICES[kind]]
    question = Question(id="q1", kind=kind, text="怎么退货", choices=choices, free_text=free_text, data=DATA)
    return QuestionView("q1", "r1", question, RUN.chat, "zh", NOW, "skip")


@pytest.mark.parametrize("kind", QuestionKind)
def test_every_kind_of_question_has_a_card_that_can_be_answered(kind: QuestionKind) -> None:
    card = question_card(asked(kind), ZH, run=RUN, picture=b"p")
    seen = lines(card)
    assert seen[1:3] == ["任务: QQ回复联系人11", "联系人: 11"]
    assert seen[-1] == "截止 11-20 09:30 · 到时没有回答，跳过这一条。"
    actions = [button.action for row in card.buttons for button in row]
    on_the_phone = kind in {QuestionKind.TAKE_OVER, QuestionKind.PERSON_ON_PHONE}
    assert actions == ["q:q1:0", "q:q1:1", *(["look:q1"] if on_the_phone else [])]
    assert "回复" in seen[-2]


def test_what_the_gate_made_of_the_last_step_is_shown() -> None:
    verdict = StepVerdict(policy="right_chat", decision="block", message="当前聊天不是 11")
    step = StepRecord(index=1, action=None, ok=False, verdicts=[verdict])
    assert (
        lines(run_card(replace(RUN, last_step=step), ZH, now=NOW))[-2] == "规则: 已拦截 · 只在这位联系人的聊天里查资料"
    )


def test_a_fallback_is_named_while_it_answers_and_the_cost_at_the_end() -> None:
    step = StepRecord(index=1, model="glm-4.5v", instead_of="model.quota")
    assert "模型: 正在用备用模型 glm-4.5v：模型的额度或频率已用完。" in lines(
        run_card(replace(RUN, last_step=step), ZH, now=NOW)
    )
    spent = Spent(calls=3, tokens_in=900, cost=0.1234, currency="CNY")
    ended = replace(RUN, status=RunStatus.SUCCEEDED, spent=spent)
    assert "费用: ≈ 0.12 CNY" in lines(run_card(ended, ZH, now=NOW))
    assert "费用" not in " ".join(lines(run_card(replace(ended, spent=Spent()), ZH, now=NOW)))


def test_a_question_that_has_an_answer_says_what_else_is_open() -> None:
    view = asked(QuestionKind.NO_SURE_ANSWER)
    assert question_card(view, ZH).title == "❓ 知识库没有确定的答案"

    def beside(*answers: str | None) -> Card:
        others = [{"words": f"第{n}句", "answer": answer} for n, answer in enumerate(answers, 1)]
        return question_card(replace(view, question=view.question.model_copy(update={"data": {"beside": others}})), ZH)

    assert beside("", "可以").title == "❓ 这句有答案，但客户同时说的另一句没有"
    assert "客户还说了: 第1句" in lines(beside("", "可以"))
    assert "客户还说了: 第2句\n→ 可以" in lines(beside("", "可以"))
    assert beside("可以", None).title == "❓ 这句有答案；客户同时说的另一句是人工处理的，这句要发吗？"
    assert "客户还说了: 第2句\n→ 已跳过" in lines(beside("可以", None))


@pytest.mark.parametrize(
    "kind", [QuestionKind.CHAT_CHANGED, QuestionKind.STILL_SEND, QuestionKind.REST_UNSENT], ids=str
)
def test_a_chat_that_has_changed_shows_what_is_new(kind: QuestionKind) -> None:
    view = asked(kind)
    view = replace(view, question=view.question.model_copy(update={"data": {"new": ["不要了", "退款吧"]}}))
    assert "新消息: 不要了\n退款吧" in lines(question_card(view, ZH))


def test_candidates_are_numbered_and_ones_own_words_offered() -> None:
    card = question_card(asked(QuestionKind.NO_SURE_ANSWER, free_text=True), ZH)
    assert "客户的话: 怎么退货" in lines(card)
    assert "候选 1（有点像）: 七天内可退" in lines(card)
    assert labels(card) == [["1. 退货", "跳过"], ["自己写"]]
    assert "刚发给对方" not in str(card)


def test_a_candidate_that_the_customer_has_just_got_says_so() -> None:
    view = asked(QuestionKind.NO_SURE_ANSWER, free_text=True)
    got = [{**candidate, "sent": True} for candidate in view.question.data["candidates"]]
    view = replace(view, question=view.question.model_copy(update={"data": {**view.question.data, "candidates": got}}))
    assert any("七天内可退\n（这句刚发给对方了" in line for line in lines(question_card(view, ZH)))


@pytest.mark.parametrize(
    ("score", "zh", "en"),
    [
        (1.0, "候选 1（很像）", "Candidate 1 (very alike)"),
        (VERY_ALIKE, "候选 1（很像）", "Candidate 1 (very alike)"),
        (0.79, "候选 1（有点像）", "Candidate 1 (somewhat alike)"),
        (SOMEWHAT_ALIKE, "候选 1（有点像）", "Candidate 1 (somewhat alike)"),
        (0.49, "候选 1（不太像）", "Candidate 1 (not much alike)"),
        (None, "候选 1", "Candidate 1"),
    ],
)
def test_how_alike_a_candidate_is_is_said_in_words(score: float | None, zh: str, en: str) -> None:
    view = asked(QuestionKind.NO_SURE_ANSWER)
    candidate = {"id": "r1", "question": "怎么\n退", "text": "七天内可退", "score": score}
    view = replace(view, question=view.question.model_copy(update={"data": {"candidates": [candidate]}}))
    assert f"{zh}: 怎么 退\n→ 七天内可退" in lines(question_card(view, ZH))
    assert f"{en}: 怎么 退\n→ 七天内可退" in lines(question_card(view, EN))


def test_a_candidate_with_the_customers_own_words_is_called_the_same_question() -> None:
    view = asked(QuestionKind.NO_SURE_ANSWER)
    candidate = {"id": "r1", "question": "怎么退", "text": "七天内可退", "score": 1.0}
    for customer, zh, en in (("怎么退？", "同一个问题", "the same question"), ("怎么退货？", "很像", "very alike")):
        data = {"candidates": [candidate]}
        shown = replace(view, question=view.question.model_copy(update={"text": customer, "data": data}))
        assert f"候选 1（{zh}）: 怎么退\n→ 七天内可退" in lines(question_card(shown, ZH))
        assert f"Candidate 1 ({en}): 怎么退\n→ 七天内可退" in lines(question_card(shown, EN))


@pytest.mark.parametrize("words", [ZH, EN])
def test_the_longest_question_can_be_answered_with_all_its_candidates_in_view(words: Texts) -> None:
    candidate = {"id": "r", "question": "问" * 500, "text": "答" * 4000, "score": 0.6}
    view = asked(QuestionKind.NO_SURE_ANSWER, free_text=True)
    question = view.question.model_copy(update={"text": "客" * 1000, "data": {**DATA, "candidates": [candidate] * 3}})
    card = question_card(replace(view, question=question), words, run=RUN, picture=b"p", alike=12)
    for limit in (render.MAX_CAPTION, render.MAX_TEXT):
        shown = render.to_html(card, limit)
        for number in (1, 2, 3):
            assert (
                words.get("question.candidate_alike", number=number, alike=words.get("question.alike_somewhat"))
                in shown
            )
        assert "问→" not in shown
        assert words.get("question.alike", count=12) in shown
        assert words.get("question.hint_reply") in shown


def test_an_answer_that_was_learnt_can_be_approved_on_the_card_by_who_may() -> None:
    view = replace(asked(QuestionKind.NO_SURE_ANSWER), open=False, answer="有的", by="Operator A")
    entry = Entry(id="e1", question="你家有彩虹绳没", answer="有的", live=False)
    view = replace(view, learnt=entry)
    card = question_card(view, ZH)
    assert lines(card)[-3:] == ["客户已收到。以后这样问也这样答？", "问: 你家有彩虹绳没", "答: 有的"]
    assert labels(card) == [["是", "否"]]
    assert not [line for line in lines(card) if line.startswith("候选")]
    for_others = question_card(view, ZH, approves=False)
    assert for_others.buttons == ()
    assert "客户已收到。管理员通过以后，这样问就这样答：" in lines(for_others)
    told = question_card(replace(view, learnt=entry.model_copy(update={"answer": "电话 13800138000"})), ZH)
    known = replace(
        view, answer=view.question.choices[0].value, learnt=entry.model_copy(update={"answer": "4008001234"})
    )
    assert labels(question_card(known, ZH)) == [["是", "否"]]  # a candidate was in the base already
    assert "13800138000" in lines(told)[-1]
    assert labels(told) == [["是", "否", "修改"]]


def test_a_question_without_choices_is_answered_by_a_reply() -> None:
    view = asked(QuestionKind.INTERACT, free_text=True)
    view = replace(view, question=view.question.model_copy(update={"choices": []}), deadline=None)
    card = question_card(view, ZH)
    assert card.buttons == ()
    assert lines(card)[-1] == "回复这条消息写下你的回答。"


def test_an_answered_question_says_by_whom() -> None:
    view = replace(asked(QuestionKind.SENSITIVE_TAP), open=False, answer="allow", by="Operator A")
    card = question_card(view, ZH)
    assert lines(card)[-1] == "Operator A 已回答：允许"
    assert card.buttons == ()
    assert lines(question_card(replace(view, answer="", by=""), ZH))[-1] == "已结束，没有人回答。"


def test_status() -> None:
    question = asked(QuestionKind.STUCK)
    status = StatusView((PhoneView("S1", "Pixel", "busy"), PhoneView("S2", "", "offline")), (RUN,), (question,))
    card = status_card(status, ZH)
    assert lines(card) == [
        "现状", "Pixel: 使用中", "S2: 离线", "▶️ 执行中 · QQ回复联系人11 · 第 0 步", "待回答: 怎么退货",
    ]  # fmt: skip
    assert labels(card) == [["停止 · QQ回复联系人11"]]
    assert lines(status_card(StatusView(), EN)) == ["Status", "No phone is attached.", "Nothing is running."]


def test_the_colon_is_as_wide_as_the_words_of_the_card() -> None:
    status = StatusView((PhoneView("127.0.0.1:39823", "", "free"), PhoneView("S2", "红米", "free")))
    chinese, english = render.to_html(devices_card(status, ZH), 4096), render.to_html(devices_card(status, EN), 4096)
    assert "127.0.0.1:39823：空闲" in chinese
    assert "红米：空闲" in chinese
    assert "127.0.0.1:39823: free" in english
    assert "#1 x" in render.to_html(Card("标题", (Line("x", "#1"),)), 4096)


def test_a_phone_is_not_said_to_be_at_work_on_a_run_that_has_left_it() -> None:
    waiting = replace(RUN, id="w", serial="S1", status=RunStatus.WAITING)
    line = "✋ 等待人工 · QQ回复联系人11 · 第 0 步"
    free = devices_card(StatusView((PhoneView("S1", "Pixel", "free"),), (waiting,)), ZH)
    assert lines(free) == ["手机", "Pixel: 空闲", "序列号: S1", f"停着（不占手机）: {line}"]
    kept = devices_card(StatusView((PhoneView("S1", "Pixel", "busy", "w"),), (waiting,)), ZH)
    assert lines(kept)[-1] == f"正在做: {line}"
    other = replace(RUN, id="o", serial="S1", task="看看天气")
    both = devices_card(StatusView((PhoneView("S1", "Pixel", "busy", "o"),), (waiting, other)), ZH)
    assert lines(both)[-2:] == ["正在做: ▶️ 执行中 · 看看天气 · 第 0 步", f"停着（不占手机）: {line}"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_rule_that_changed_a_step_is_told_as_what_happened(lang: Lang) -> None:
    """Not as what the model is told to do."""
    told = ruled(StepVerdict(policy="customer_reply", decision="rewrite", message="x"), texts(lang))
    assert told == " · ".join((texts(lang).get("gate.rewrite"), rule_words(lang, "customer_reply")))
    assert ("要先查知识库" if lang == "zh" else "has to be asked first") in told
    assert "要有" not in told
