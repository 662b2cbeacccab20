"""The reply, end to end on the virtual phone: the right answer into the right chat, once, or nothing at all."""

from __future__ import annotations

import pytest

from agent_core.errors import KnowledgeUnreachable, ModelLimit
from agent_core.loop.questions import right_chat
from agent_core.model.usage import Meter
from agent_core.ports import Record, ReplyState
from agent_core.reply.outcome import nothing_left, pause
from agent_core.session import Answer, QuestionKind, ReplyRecord, Session, Status
from agent_core.settings import AgentSettings, new_session
from tests.support.lab import ANSWER, ASK, ASK_INVOICE, BACK, FINISH, INVOICE, LAUNCH, TASK, Lab, do, lab
from tests.support.model_server import ScriptedModel

pytestmark = pytest.mark.rotating(parts=2)

TAP_FIRST_ROW = do('do(action="Tap", element=[400,180])')
NOT_SURE = (
    Record(id="a", text="满59元包邮。", question="包邮吗", score=0.4, source="shelf"),
    Record(id="b", text="支持7天无理由退货。", question="能退吗", score=0.3, source="shelf"),
)


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("tree", ["full", "empty", "no_texts", "failing"])
async def test_the_customer_gets_the_answer_once(bench_lab: Lab, tree: str) -> None:
    bench_lab.phone.set_tree(tree)
    async with ScriptedModel([LAUNCH, TAP_FIRST_ROW, ASK, FINISH]) as model:
        session = await bench_lab.run(model)
    assert (session.status, session.message) == (Status.SUCCEEDED, "已回复 11，发出 1 条。")
    assert bench_lab.sent == {"11": [ANSWER]}
    assert bench_lab.knowledge.queries == ["你好，请问几天能发货？"]
    assert [reply.text for reply in session.replies] == [ANSWER]
    assert session.replies[0].provenance == "knowledge"
    report = bench_lab.phone.report()
    assert report["opened"] == ["com.tencent.mobileqq"]
    assert "sogou" in report["input_method"]
    assert bench_lab.story.kinds().count("reply") == 1


async def test_a_step_shows_what_the_knowledge_base_was_asked(bench_lab: Lab) -> None:
    """A query that is not made of the customer's words is replaced by one that is."""
    other = do('do(action="GET_KNOWLEDGE_DATA", query="你们地址在哪里")')
    async with ScriptedModel([LAUNCH, TAP_FIRST_ROW, other, FINISH]) as model:
        session = await bench_lab.run(model)
    step = next(step for step in session.steps if step.asked and step.asked["kind"] == "get_knowledge_data")
    assert step.asked is not None
    assert step.action is not None
    assert (step.asked["query"], step.action["query"]) == ("你们地址在哪里", "几天能发货？")
    assert bench_lab.sent == {"11": [ANSWER]}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("ends", "note"), [("finish(", ""), ('do(action="Abort", ', "\n模型的说明：没有找到联系人，什么也没有发送")]
)
async def test_what_was_sent_is_told_first_whatever_the_model_says(bench_lab: Lab, ends: str, note: str) -> None:
    ending = do(f'{ends}message="没有找到联系人，什么也没有发送")')
    async with ScriptedModel([LAUNCH, TAP_FIRST_ROW, ASK, ending]) as model:
        session = await bench_lab.run(model)
    assert bench_lab.sent == {"11": [ANSWER]}
    assert session.message == f"已回复 11，发出 1 条。{note}"


def test_a_run_that_has_nothing_left_says_what_it_has_sent() -> None:
    session = Session(run_id="r", task=TASK, lang="en")
    assert nothing_left(session, "run.already_skipped").message == "This question was skipped before; nothing was sent."
    session.replies.append(ReplyRecord(contact="11", question="q", text="t", provenance="person", delivered=True))
    assert nothing_left(session, "run.already_skipped").message == "Answered 11: 1 answer sent."


async def test_finish_before_knowledge_is_not_done(bench_lab: Lab) -> None:
    async with ScriptedModel([LAUNCH, FINISH, TAP_FIRST_ROW, ASK, FINISH]) as model:
        session = await bench_lab.run(model)
        told = str(model.requests[2]["messages"])
    assert session.status is Status.SUCCEEDED
    assert "GET_KNOWLEDGE_DATA 成功之前" in told
    assert bench_lab.sent == {"11": [ANSWER]}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(("typed", "asked"), [("小强", True), ("小", False)])
async def test_a_contact_that_a_search_does_not_find_is_asked_about_at_once(
    bench_lab: Lab, typed: str, asked: bool
) -> None:
    """A search for something else, or an end without one, tells nothing for sure: there the model is refused first."""
    search = [do('do(action="Tap", element=[500,115])'), do(f'do(action="Type_Name", text="{typed}")')]
    async with ScriptedModel([LAUNCH, FINISH, *search, FINISH]) as model:
        session = await bench_lab.run(model, "QQ回复联系人小强", max_steps=5)
    assert len(session.steps) == 5
    assert (session.status is Status.WAITING) is asked
    if asked:
        assert session.question is not None
        assert session.question.kind is QuestionKind.STUCK
        assert session.question.text.startswith("按“小强”搜索过，结果里没有这个名字。")
        assert "/contacts" in session.question.text


async def test_a_misspelt_contact_is_told_with_the_names_that_are_like_it(bench_lab: Lab) -> None:
    search = [do('do(action="Tap", element=[500,115])'), do('do(action="Type_Name", text="112")')]
    async with ScriptedModel([LAUNCH, FINISH, *search, FINISH]) as model:
        session = await bench_lab.run(model, "QQ回复联系人112", max_steps=5)
    assert session.question is not None
    assert "应用里相近的名字：11" in session.question.text
    assert "请结束这个任务，用对的名字再发一次" in session.question.text


async def test_a_contact_that_a_search_shows_is_not_given_up_at_once(bench_lab: Lab) -> None:
    search = [do('do(action="Tap", element=[500,115])'), do('do(action="Type_Name", text="11")')]
    async with ScriptedModel([LAUNCH, *search, FINISH]) as model:
        session = await bench_lab.run(model, max_steps=4)
    assert session.status is Status.FAILED
    assert session.question is None


@pytest.mark.parametrize("name", ["110", "小11"])
async def test_nothing_is_sent_into_a_chat_with_a_similar_name(bench_lab: Lab, name: str) -> None:
    bench_lab.phone.receive(name, "几天能发货？")
    await bench_lab.open_chat(name)
    async with ScriptedModel([ASK, ASK]) as model:
        session = await bench_lab.run(model, max_steps=2)
    assert session.status is Status.FAILED
    assert bench_lab.sent == {}
    assert bench_lab.knowledge.queries == []
    assert name in session.steps[0].result


async def test_nothing_new_ends_without_a_model_call(bench_lab: Lab) -> None:
    bench_lab.phone.colleague("11", "您好，今天就发")
    await bench_lab.open_chat()
    async with ScriptedModel([]) as model:
        session = await bench_lab.run(model)
        assert model.requests == []
    assert session.status is Status.SUCCEEDED
    assert "没有新消息" in session.message
    assert bench_lab.sent == {}


async def test_without_a_sure_answer_a_person_writes_it(bench_lab: Lab) -> None:
    bench_lab.knowledge.records = NOT_SURE
    bench_lab.people.answers = [Answer(text="亲，明天就发。", by="店长")]
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, FINISH]) as model:
        session = await bench_lab.run(model)
    question = bench_lab.people.asked[0]
    assert question.kind is QuestionKind.NO_SURE_ANSWER
    assert question.text == "你好，请问几天能发货？"
    assert [choice.value for choice in question.choices] == ["record:0", "record:1", "skip"]
    assert session.status is Status.SUCCEEDED
    assert bench_lab.sent == {"11": ["亲，明天就发。"]}
    assert session.replies[0].provenance == "person"
    assert session.replies[0].person == "店长"


async def test_the_run_waits_for_a_person_and_goes_on_elsewhere(bench_lab: Lab) -> None:
    bench_lab.knowledge.records = NOT_SURE
    await bench_lab.open_chat()
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.WAITING
    assert bench_lab.sent == {}
    await bench_lab.phone.key("HOME")
    later = Session.model_validate_json(bench_lab.story.saved)
    later.answered = Answer(choice="record:1", by="店长")
    async with ScriptedModel([LAUNCH, TAP_FIRST_ROW, FINISH]) as model:
        session = await bench_lab.run(model, session=later)
    assert session.status is Status.SUCCEEDED
    assert bench_lab.sent == {"11": ["支持7天无理由退货。"]}
    assert session.replies[0].record_id == "b"
    assert session.replies[0].record_questions == ["能退吗"]


async def test_a_person_may_skip(bench_lab: Lab) -> None:
    bench_lab.knowledge.records = ()
    bench_lab.people.answers = [Answer(choice="skip", by="店长")]
    await bench_lab.open_chat()
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert (session.status, bench_lab.sent) == (Status.SUCCEEDED, {})
    async with ScriptedModel([]) as model:
        again = await bench_lab.run(model, TASK)
    assert again.status is Status.SUCCEEDED
    assert "跳过" in again.message


async def test_a_knowledge_base_that_is_away_leaves_the_question_waiting_until_it_is_back(bench_lab: Lab) -> None:
    away = bench_lab.knowledge.error = KnowledgeUnreachable("It answered with HTML.")
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, ASK]) as model:
        session = await bench_lab.run(model)
        told = str(model.requests[1]["messages"])
    assert session.is_put_off
    assert session.error_kind == "knowledge.network"
    assert "It answered with HTML." in told
    assert "PHONEDESK_KNOWLEDGE__BASE_URL" in session.message
    assert bench_lab.people.asked == []
    assert (bench_lab.sent, bench_lab.drafts) == ({}, {})
    assert [row.state for row in await bench_lab.ledger.recent(bench_lab.device.serial, "qq", "11")] == [
        ReplyState.PLANNED
    ]

    pauses = [pause(session)]
    pictures = bench_lab.phone.report()["pictures"]
    for _ in range(6):
        async with ScriptedModel([]) as model:
            session = await bench_lab.run(model, session=session)
        assert session.is_put_off
        pauses.append(pause(session))
    assert bench_lab.phone.report()["pictures"] == pictures, "neither the phone nor a model is used to ask again"
    assert pauses == [30, 60, 120, 240, 300, 300, 300]

    bench_lab.knowledge.error = None
    async with ScriptedModel([ASK, FINISH]) as model:
        session = await bench_lab.run(model, session=session)
    assert (session.status, session.error_kind) == (Status.SUCCEEDED, "")
    assert bench_lab.sent == {"11": [ANSWER]}

    bench_lab.phone.receive("11", "能开发票吗")
    bench_lab.knowledge.error = away
    async with ScriptedModel([ASK_INVOICE, ASK_INVOICE]) as model:
        session = await bench_lab.run(model)
    assert (session.is_put_off, pause(session)) == (True, 30)


async def test_what_another_run_answered_meanwhile_is_left_alone_by_the_one_that_was_put_off(bench_lab: Lab) -> None:
    bench_lab.knowledge.error = KnowledgeUnreachable("down")
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, ASK]) as model:
        first = await bench_lab.run(model)
    bench_lab.knowledge.error = None
    async with ScriptedModel([ASK, FINISH]) as model:
        second = await bench_lab.run(model)
    assert second.status is Status.SUCCEEDED
    async with ScriptedModel([]) as model:
        first = await bench_lab.run(model, session=first)
    assert first.status is Status.SUCCEEDED
    assert "没有新消息" in first.message
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_replies_that_cannot_be_read_end_at_a_person(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    garbage = ["我觉得应该点击那里", '<answer>do(action="Type", text="您好，48小', "…"]
    async with ScriptedModel(garbage) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.STUCK
    assert (bench_lab.sent, bench_lab.drafts, bench_lab.phone.report()["typed"]) == ({}, {}, [])


async def test_a_keyboard_that_types_nothing(bench_lab: Lab) -> None:
    bench_lab.phone.set_fault("stuck_keyboard", True)
    await bench_lab.open_chat()
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.FAILED
    assert "文字没有进入输入框" in session.message
    assert bench_lab.sent == {}
    assert "sogou" in bench_lab.phone.report()["input_method"]


async def test_a_red_mark_is_not_sent_again(bench_lab: Lab) -> None:
    bench_lab.phone.set_fault("send_fails", True)
    await bench_lab.open_chat()
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.FAILED
    assert "红色感叹号" in session.message
    bench_lab.phone.set_fault("send_fails", False)
    async with ScriptedModel([]) as model:
        again = await bench_lab.run(model)
    assert again.status is Status.FAILED
    assert "红色感叹号" in again.message
    assert bench_lab.sent == {}


async def test_a_new_message_before_sending_is_read_first(bench_lab: Lab) -> None:
    await bench_lab.open_chat()

    def interrupt() -> None:
        bench_lab.knowledge.before = None
        bench_lab.phone.receive("11", "顺便问下能开发票吗？")

    bench_lab.knowledge.before = interrupt
    bench_lab.knowledge.answers = {"发票": INVOICE}
    async with ScriptedModel([ASK, ASK, ASK_INVOICE, FINISH]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.SUCCEEDED
    assert bench_lab.sent == {"11": [ANSWER, INVOICE]}
    assert [reply.question for reply in session.replies] == ["你好，请问几天能发货？", "顺便问下能开发票吗？"]
    assert {"你好，请问几天能发货？", "顺便问下能开发票吗？"} <= set(bench_lab.knowledge.queries)


async def test_a_colleague_who_answers_meanwhile_is_enough(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    bench_lab.knowledge.before = lambda: bench_lab.phone.colleague("11", "今天发哦")
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.SUCCEEDED
    assert "没有新消息" in session.message
    assert bench_lab.sent == {}


async def test_a_chat_that_is_switched_meanwhile_gets_nothing(bench_lab: Lab) -> None:
    await bench_lab.open_chat()

    async def switch() -> None:
        bench_lab.knowledge.before = None
        await bench_lab.phone.key("BACK")
        await bench_lab.open_chat("110")

    bench_lab.knowledge.before = switch
    async with ScriptedModel([ASK, BACK]) as model:
        session = await bench_lab.run(model, max_steps=2)
    assert session.status is Status.FAILED
    assert bench_lab.sent == {}
    assert bench_lab.drafts == {}


async def test_a_foreign_draft_is_kept_and_shown(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    field = next(node for node in await bench_lab.phone.tree() if node.class_name.endswith("EditText"))
    await bench_lab.device.tap(field.box.center)
    async with bench_lab.device.keyboard() as keyboard:
        await keyboard.type("同事写了一半的话")
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.FOREIGN_DRAFT
    assert session.question.data["draft"] == "同事写了一半的话"
    assert bench_lab.drafts == {"11": "同事写了一半的话"}


async def test_the_built_in_ai_is_bait(bench_lab: Lab) -> None:
    await bench_lab.phone.launch("com.tencent.mobileqq")
    bait = next(node for node in await bench_lab.phone.tree() if node.text == "QQ智能客服")
    width, height = bench_lab.phone.size
    x, y = bait.box.center.x * 1000 // width, bait.box.center.y * 1000 // height
    async with ScriptedModel([do(f'do(action="Tap", element=[{x},{y}])'), TAP_FIRST_ROW, ASK, FINISH]) as model:
        session = await bench_lab.run(model)
    assert [(v.policy, v.decision) for v in session.steps[0].verdicts] == [("no_built_in_ai", "block")]
    assert session.status is Status.SUCCEEDED
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_phone_that_is_unplugged_names_the_cause() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with lab(sleep=sleep) as bench:
        await bench.open_chat()
        bench.knowledge.before = lambda: bench.phone.set_fault("dropped", True)
        async with ScriptedModel([ASK]) as model:
            session = await bench.run(model)
        assert session.status is Status.FAILED
        assert session.error_kind == "device.offline"
        assert "连不上手机" in session.message
        assert bench.sent == {}
    assert sum(slept) <= 10  # tidying up does not wait for it once more


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("left", [False, True])
async def test_a_limit_after_send_is_no_failure_of_what_was_sent(bench_lab: Lab, left: bool) -> None:
    class Full(Meter):
        calls = 0

        async def admit(self, model: str) -> None:
            self.calls += 1
            if self.calls > 1:
                raise ModelLimit("今天的已用完。", key="")

    if left:
        bench_lab.phone.receive("11", "能开发票吗？")
        bench_lab.knowledge.answers = {"发票": INVOICE}
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, ASK]) as model:
        session = await bench_lab.run(model, meter=Full())
    assert bench_lab.sent["11"] == [ANSWER]
    assert (session.status, session.error_kind) == (Status.SUCCEEDED, "model.limit" if left else "")
    assert session.message.startswith("已发出 1 条回复；之后因上限提前结束：今天的已用完。")


async def test_ledger_knows_how_it_ended(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, FINISH]) as model:
        await bench_lab.run(model)
    assert await bench_lab.ledger.unfinished(bench_lab.device.serial) == []
    row = await bench_lab.ledger.advance(1, ReplyState.SENT, expected=[ReplyState.SENT])
    assert row.text == ANSWER
    assert row.key.contact == "11"


async def test_a_model_that_keeps_wanting_to_end_is_heard_by_a_person(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    gone, wait = do('finish(message="没有找到联系人")'), do('do(action="Wait", duration="1 seconds")')
    async with ScriptedModel([gone, wait, gone, gone]) as model:
        session = await bench_lab.run(model)
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.STUCK
    assert "没有找到联系人" in session.question.text
    assert len(session.steps) == 4


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(("choice", "sent"), [("yes", {"11": [ANSWER]}), ("no", {})])
async def test_without_a_contact_a_person_says_whether_this_is_the_chat(
    bench_lab: Lab, choice: str, sent: dict[str, list[str]]
) -> None:
    bench_lab.people.answers = [Answer(choice=choice, by="店长")]
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, ASK, FINISH]) as model:
        session = await bench_lab.run(model, "QQ智能客服", max_steps=2 if choice == "no" else 20)
    assert bench_lab.people.asked[0].kind is QuestionKind.RIGHT_CHAT
    assert bench_lab.people.asked[0].data["title"] == "11"
    assert bench_lab.sent == sent
    assert (session.status is Status.SUCCEEDED) is (choice == "yes")


async def test_a_yes_to_a_title_that_nobody_could_read_says_nothing(bench_lab: Lab) -> None:
    session = new_session(TASK, bench_lab.device.serial, AgentSettings())
    session.question = right_chat(session, "", "the title cannot be read")
    session.answered = Answer(choice="yes", by="店长")
    session.max_steps = 0  # the answer is taken up, and nothing else is done
    async with ScriptedModel([]) as model:
        session = await bench_lab.run(model, session=session)
    assert session.question is None
    assert session.gate.chat_confirmed == ""
    assert "不是联系人“11”的聊天" in session.observation
