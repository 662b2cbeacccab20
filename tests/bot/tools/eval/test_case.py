"""A case through the whole product: what its file says happens, and what goes wrong is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.tools.eval.bench import Bench, RealModel, open_bench
from bot.tools.eval.case import run_case
from bot.tools.eval.result import Case, CaseResult, EvalReply
from bot.tools.eval.scenario import EvalScenario, Mode
from simulator.model.server import MODEL_NAME, start_demo_model
from simulator.phone.scenario_file import parse_scenario

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.rotating(parts=2)]

HEAD = """
task = "QQ回复联系人11"
knowledge = [{ question = "几天能发货", answer = "48小时内发货。" }, { question = "几天能到", answer = "三天到。" }]
"""
ASKED = """
[[contacts]]
name = "11"
history = [{ text = "几天能发货", ago = 60, unread = true }]
"""
UNSURE = """
[[contacts]]
name = "11"
history = [{ text = "我的包裹几天能到杭州", ago = 60, unread = true }]
"""
QUERY = 'do(action="GET_KNOWLEDGE_DATA", query="几天能发货")'


async def run(bench: Bench, *parts: str, keep: Path | None = None) -> CaseResult:
    scenario = parse_scenario("".join(parts), EvalScenario)
    return await run_case(bench, Case(Path("here.toml"), scenario, Mode.TREE), keep=keep)


@pytest.mark.rotating(parts=1)
async def test_a_case_tells_what_was_sent_and_what_it_cost(bench: Bench) -> None:
    result = await run(bench, HEAD, ASKED, "[expect]\nsent = { '11' = ['48小时内发货。'] }")
    assert result.problems == []
    assert result.replies == [EvalReply("11", "48小时内发货。", "knowledge")]
    assert (result.statuses, result.asked, result.title) == (["succeeded"], [], "here")
    assert result.model_calls == result.steps >= 3
    assert result.tokens_in > result.tokens_out > 0
    assert 0 < result.model_seconds < result.seconds


async def test_what_went_wrong_comes_first_and_leaves_traces(bench: Bench, tmp_path: Path) -> None:
    result = await run(bench, HEAD, ASKED, "[expect]\nsent = { '11' = ['三天到。'] }\nmessage = '没有'", keep=tmp_path)
    assert result.problems[0] == "sent to 11: 48小时内发货。 instead of 三天到。"
    assert result.problems[1].startswith("message: ")
    folder = tmp_path / "here-tree-qq-plain"
    assert result.kept == str(folder)
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    assert [event["kind"] for event in events if event["kind"] in ("started", "reply", "outcome")] == [
        "started",
        "reply",
        "outcome",
    ]
    assert {event["picture"] for event in events if event["picture"]} == {p.name for p in folder.glob("0*.jpg")}
    assert json.loads((folder / "phone.json").read_text("utf-8"))["sent"] == {"11": ["48小时内发货。"]}
    assert (folder / "end.jpg").stat().st_size > 1000


async def test_a_case_that_passes_leaves_none(bench: Bench, tmp_path: Path) -> None:
    assert (await run(bench, HEAD, ASKED, "[expect]\nsent = { '11' = ['48小时内发货。'] }", keep=tmp_path)).passed
    assert list(tmp_path.iterdir()) == []


async def test_replies_that_are_over_end_the_run(bench: Bench) -> None:
    replies = '[[replies]]\ncall = \'do(action="Launch", app="QQ")\'\n'
    result = await run(bench, HEAD, ASKED, replies, "[expect]\nstatus = 'failed'\nmessage = 'replies are over'")
    assert result.problems == []
    assert result.model_calls == 2


async def test_a_question_that_nobody_answers_leaves_the_run_waiting(bench: Bench) -> None:
    expect = "[expect]\nstatus = 'waiting'\nasked = ['no_sure_answer']\nledger = { '11' = ['planned'] }"
    result = await run(bench, HEAD, UNSURE, expect)
    assert result.problems == []
    assert result.seconds < 20  # nobody was waited for


async def test_an_answer_that_does_not_fit_is_told(bench: Bench) -> None:
    people = "[[people]]\non = 'no_sure_answer'\nchoice = 'yes'\n"
    expect = "[expect]\nstatus = 'waiting'\nasked = ['no_sure_answer']"
    result = await run(bench, HEAD, UNSURE, people, expect)
    assert result.problems == ["people: 'yes' is no answer to no_sure_answer: record:0, record:1, skip"]


async def test_a_person_takes_a_candidate(bench: Bench) -> None:
    people = "[[people]]\non = 'no_sure_answer'\nchoice = 'record:0'\nby = '店长'\n"
    expect = "[expect]\nasked = ['no_sure_answer']\nprovenance = ['knowledge']\nsent = { '11' = ['三天到。'] }"
    assert (await run(bench, HEAD, UNSURE, people, expect)).problems == []


async def test_a_text_model_picks(bench: Bench) -> None:
    chooser = "[chooser]\npicks = [1]\n"
    expect = "[expect]\nprovenance = ['knowledge']\nsent = { '11' = ['三天到。'] }"
    asked = UNSURE.replace("我的包裹几天能到杭州", "一般几天能到")
    assert (await run(bench, HEAD, asked, chooser, expect)).problems == []
    assert (
        await run(bench, HEAD, UNSURE, chooser, "[expect]\nstatus = 'waiting'\nasked = ['no_sure_answer']")
    ).problems == []


async def test_a_knowledge_base_that_fails_once(bench: Bench) -> None:
    fault = "[knowledge_faults]\nfail = 'unreachable'\ntimes = 1\n"
    expect = "[expect]\nsent = { '11' = ['48小时内发货。'] }"
    assert (await run(bench, HEAD, ASKED, fault, expect)).problems == []


async def test_a_knowledge_base_that_keeps_failing(bench: Bench) -> None:
    fault = "[knowledge_faults]\nfail = 'quota'\n"
    expect = "[expect]\nstatus = 'waiting'\nerror = 'knowledge.quota'"
    assert (await run(bench, HEAD, ASKED, fault, expect)).problems == []


async def test_two_runs_on_one_phone(bench: Bench) -> None:
    head = HEAD.replace('task = "QQ回复联系人11"', 'tasks = ["QQ回复联系人11", "QQ回复联系人11"]')
    expect = (
        "[expect]\nstatuses = ['succeeded', 'succeeded']\nsent = { '11' = ['48小时内发货。'] }\nmessage = '没有新消息'"
    )
    result = await run(bench, head, ASKED, expect)
    assert result.problems == []
    assert result.statuses == ["succeeded", "succeeded"]


async def test_something_happens_while_the_model_thinks(bench: Bench) -> None:
    event = "[[events]]\nafter_model = 3\ndo = 'colleague'\ncontact = '11'\ntext = '亲，48小时内'\n"
    expect = "[expect]\nmessage = '没有新消息'"
    assert (await run(bench, HEAD, ASKED, event, expect)).problems == []


async def test_a_real_model_is_asked_in_place_of_the_files_replies() -> None:
    demo = await start_demo_model()
    try:
        async with open_bench(real=RealModel(demo.url, MODEL_NAME, SecretStr("key"))) as measured:
            replies = f"[[replies]]\ncall = '{QUERY}'\n"
            result = await run(measured, HEAD, ASKED, replies, "[expect]\nsent = { '11' = ['48小时内发货。'] }")
            assert result.problems == []
    finally:
        await demo.close()


async def test_an_open_task_may_use_only_the_apps_that_are_named(bench: Bench) -> None:
    head = 'task = "看看有什么新消息"\npolicy = "open"\nonly_apps = ["QQ"]\nmax_steps = 3\n'
    replies = '[[replies]]\ncall = \'do(action="Launch", app="设置")\'\ntimes = 0\n'
    expect = "[expect]\nstatus = 'failed'\napps = []\n"
    assert (await run(bench, head, replies, expect)).problems == []


async def test_a_number_that_is_known_opens_the_chat(bench: Bench) -> None:
    head = HEAD + 'known_numbers = { "11" = "20110011" }\n'
    contact = ASKED.replace('name = "11"', 'name = "11"\nnumber = "20110011"')
    result = await run(bench, head, contact, "[expect]\nsent = { '11' = ['48小时内发货。'] }")
    assert result.problems == []


async def test_a_fault_of_ours_is_one_cases_result(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*args: object, **options: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr("bot.tools.eval.scripted.WatchedModel.complete", breaks)
    result = await run(bench, HEAD, ASKED, "[expect]\nsent = { '11' = ['48小时内发货。'] }")
    assert result.problems == ["the run broke: no such thing"]


async def test_what_was_done_before_the_time_was_over_is_judged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.tools.eval.case.CASE_SECONDS", 2.0)
    head = HEAD + 'policy = "open"\nmax_steps = 50\n'
    replies = (
        '[[replies]]\ncall = \'do(action="Launch", app="设置")\'\n'
        '[[replies]]\ncall = \'do(action="Wait", duration="30 seconds")\'\ntimes = 0\n'
    )
    result = await run(bench, head, ASKED, replies)
    assert result.problems[0].startswith("not done after")
    assert any("apps that were not to be opened" in problem for problem in result.problems)
    assert not result.passed


async def test_an_answer_that_nobody_asked_for_is_told(bench: Bench) -> None:
    people = "[[people]]\non = 'no_sure_answer'\nchoice = 'skip'\n"
    result = await run(bench, HEAD, ASKED, people, "[expect]\nsent = { '11' = ['48小时内发货。'] }")
    assert result.problems == ["people: nobody asked for the answer no_sure_answer: skip"]


async def test_what_an_earlier_run_kept_is_gone(bench: Bench, tmp_path: Path) -> None:
    old = tmp_path / "here-tree-qq-plain"
    old.mkdir()
    for name in ("999-old.jpg", "mine.txt"):
        (old / name).write_bytes(b"x")
    await run(bench, HEAD, ASKED, "[expect]\nmessage = '没有'", keep=tmp_path)
    assert not (old / "999-old.jpg").exists()
    assert (old / "mine.txt").exists()
    assert (old / "log.jsonl").exists()
