"""Note, Call_API, Interact and Take_over, each to its end."""

from __future__ import annotations

from agent_core.loop.thinking import LONGEST_SUMMARY
from agent_core.session import Answer, Question, QuestionKind, Session, Status
from tests.support.lab import BACK, FINISH, Lab, People, do
from tests.support.model_server import Script, ScriptedModel, Whole
from tests.support.model_server import Status as Refusal

SETTINGS = do('do(action="Launch", app="设置")')
NOTE = do('do(action="Note", message="True")')
POINTS = do('do(action="Note", message="蓝牙是开着的")')
SUM_UP = do('do(action="Call_API", instruction="列出所有设置项")')
ASK = do('do(action="Interact", question="红还是蓝？", choices=["红", "蓝"])')
HAND_OVER = do('do(action="Take_over", message="请登录")')
NOTHING = do('finish(message="")')


def newest(model: ScriptedModel, request: int) -> str:
    return str(model.requests[request]["messages"][-1])


async def test_notes_are_kept_with_their_place_and_summarised(bench_lab: Lab) -> None:
    """The model writes the summary of notes and page, and is told it; it is the result, too."""
    replies: list[Script] = [SETTINGS, NOTE, POINTS, SUM_UP, Whole("<think>想</think>有 WLAN 和蓝牙。"), NOTHING]
    async with ScriptedModel(replies) as model:
        session = await bench_lab.run(model, "看看设置")
        asked = model.requests[4]["messages"]
        assert "tools" not in model.requests[4]
        assert len(asked) == 1
        wish = asked[0]["content"][1]["text"]
        assert asked[0]["content"][0]["type"] == "image_url"
        assert "列出所有设置项" in wish
        assert "2. [com.android.settings] 蓝牙是开着的" in wish
        assert wish.count("开发者选项") == 2  # in the first note, and on the page
        assert "有 WLAN 和蓝牙。" in newest(model, 5)
    assert session.status is Status.SUCCEEDED
    assert session.message == "有 WLAN 和蓝牙。"  # a finish that says nothing
    page, points, summary = session.notes
    assert page.text.startswith("设置\nWLAN\n蓝牙")
    assert [(n.app, n.step, n.summary) for n in (page, points, summary)] == [
        ("com.android.settings", 2, False), ("com.android.settings", 3, False), ("com.android.settings", 4, True),
    ]  # fmt: skip
    step = session.steps[3]
    assert (step.tokens_in, step.tokens_out) == (200, 40)  # of the reply and of the summary
    outcome = bench_lab.story.events[-1].data
    assert [note["text"] for note in outcome["notes"]] == [note.text for note in session.notes]


async def test_a_summary_that_fails_is_a_failed_action(bench_lab: Lab) -> None:
    long = Whole("长" * 2000)
    async with ScriptedModel([SUM_UP, Refusal(400), SUM_UP, Whole(" "), SUM_UP, long, FINISH]) as model:
        session = await bench_lab.run(model, "看看")
        assert "模型没有给出文字" in newest(model, 2)
        assert "长长长" in newest(model, 6)
    assert [step.ok for step in session.steps] == [False, False, True, True]
    assert [len(note.text) for note in session.notes] == [LONGEST_SUMMARY]
    assert session.status is Status.SUCCEEDED


async def test_a_page_that_nothing_can_read_is_written_down_by_the_model(bench_lab: Lab) -> None:
    bench_lab.elements = False
    async with ScriptedModel([NOTE, Whole("桌面上有六个应用。"), FINISH]) as model:
        session = await bench_lab.run(model, "看看")
        assert "如实写下来" in str(model.requests[1]["messages"])
    assert [(note.text, note.summary) for note in session.notes] == [("桌面上有六个应用。", False)]


async def test_a_choice_comes_back_as_an_observation_and_stays(bench_lab: Lab) -> None:
    bench_lab.people.answers = [Answer(choice="蓝", by="店长"), Answer(text="都不要", by="店长")]
    async with ScriptedModel([ASK, ASK, FINISH]) as model:
        session = await bench_lab.run(model, "选颜色")
        assert "蓝" in newest(model, 1)
        assert "都不要" in newest(model, 2)
        assert '"last_observation": "人工回答：蓝"' in model.requests[2]["messages"][3]["content"][0]["text"]
    assert [choice.label for choice in bench_lab.people.asked[0].choices] == ["红", "蓝"]
    assert session.status is Status.SUCCEEDED


async def test_a_person_takes_over_and_the_run_goes_on_in_another_process(bench_lab: Lab) -> None:
    """Their fingers on the phone are no reason to ask again; the screen is looked at anew."""
    async with ScriptedModel([HAND_OVER]) as model:
        session = await bench_lab.run(model, "登录")
    assert session.status is Status.WAITING
    later = Session.model_validate_json(bench_lab.story.saved)
    assert later.question is not None
    assert (later.question.kind, later.question.text) == (QuestionKind.TAKE_OVER, "请登录")
    bench_lab.phone.panel.touch(300, 300)
    await bench_lab.phone.launch("com.android.settings")
    later.answered = Answer(choice="done", by="店长")
    async with ScriptedModel([BACK, FINISH]) as model:
        session = await bench_lab.run(model, "登录", session=later)
        assert "人工已在手机上处理完" in newest(model, 0)
        assert "com.android.settings" in newest(model, 0)
        assert "不是这个任务打开的" not in newest(model, 0)
    assert session.status is Status.SUCCEEDED
    assert [question.kind for question in session.questions] == [QuestionKind.TAKE_OVER]


async def test_a_touch_while_the_question_is_open_in_the_same_process(bench_lab: Lab) -> None:
    class Hands(People):
        async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer:
            bench_lab.phone.panel.touch(300, 300)
            await bench_lab.device.tree()  # long enough for the touch to be heard of
            return Answer(choice="done", by="店长")

    bench_lab.people = Hands()
    async with ScriptedModel([HAND_OVER, SETTINGS, FINISH]) as model:
        session = await bench_lab.run(model, "登录")
    assert session.status is Status.SUCCEEDED
    assert [question.kind for question in session.questions] == [QuestionKind.TAKE_OVER]
