"""Tasks over HTTP: how they end, who answers what the agent asks, and sessions that outlive their server."""

from __future__ import annotations

import asyncio
import base64
import os
import pty
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, types
from pydantic import SecretStr

from agent_core.session import Question, QuestionKind, Session
from bot.app.settings.sections import HelperSettings
from bot.channels.mcp import asking, story
from bot.channels.mcp.arguments import MAX_TEXT
from bot.channels.mcp.asking import reply_of
from storage.leases import Leases
from storage.people import Audit
from storage.questions import Questions
from storage.runs import Runs
from tests.bot.channels.mcp.conftest import LEGACY, MODERN, PROMPT, World, until, words
from tests.bot.channels.mcp.replies import ASK, DONE, HOME, OPEN, PAY, TASK
from tests.support.lab import do
from tests.support.model_server import Hang, Status, Text, Whole

pytestmark = pytest.mark.asyncio(loop_scope="session")

GIVE_UP = do('do(action="Abort", message="找不到")')
TAKE_OVER = do('do(action="Take_over", message="请输入验证码")')
BOTH = pytest.mark.parametrize("mode", [LEGACY, MODERN])


async def call(client: Client, tool: str = "ask_agent", **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content["stop_reason"] in words(result) or result.is_error
    return dict(result.structured_content)


async def rest(world: World, session_id: str) -> tuple[str, list[Any]]:
    """How the run stands, and which phones are held."""
    row = await Runs(world.core.db).get(session_id)
    assert row is not None
    return row.status, list(await Leases(world.core.db).held())


# -- how a task ends


@BOTH
async def test_a_task_is_a_run_that_is_told_step_by_step(world: World, mode: str) -> None:
    world.says(OPEN, HOME, DONE)
    world.told.clear()
    async with world.client(mode=mode) as client:
        result = await client.call_tool("ask_agent", {"task": TASK}, progress_callback=world.progress)
    data = result.structured_content
    assert data["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
    assert not result.is_error
    assert data["device_info"] == {"device_id": world.serial, "device_wm_size": [720, 1600]}
    assert (data["task"], data["global_step_idx"], data["local_step_idx"]) == (TASK, 3, 3)
    assert data["final_action"]["action"] == "COMPLETE"
    assert data["final_action"]["return"] == data["message"] == "看完了"
    assert "intermediate_logs" not in data
    assert [(done, total) for done, total, _ in world.told] == [(1, 20), (2, 20), (3, 20)]
    assert world.told[0][2] == "Step 1: AWAKE 先打开设置"
    row = await Runs(world.core.db).get(data["session_id"])
    assert row is not None
    assert (row.status, row.requested_by, row.options["channel"]) == ("succeeded", "key:1", "mcp")
    noted = await Audit(world.core.db).done_by("key:1", ["mcp task"])
    assert noted[0].detail["task"] == TASK


async def test_the_environment_is_reset_for_a_new_task_and_only_then(world: World) -> None:
    def acts() -> list[str]:
        return [str(act) for act in world.phone.report()["actions"]]

    await world.phone.launch("com.tencent.mobileqq")
    before = len(acts())
    world.says(OPEN, HOME, OPEN, ASK)
    async with world.client() as client:
        data = await call(client, "ask_agent_start_new_task", task=TASK)
        begun = acts()[before:]
        assert "HOME" in begun[0]
        assert sum("force_stop" in act for act in begun) == 1  # though it was opened twice
        before += len(begun)
        world.says(OPEN, DONE)
        await call(client, "ask_agent_continue", session_id=data["session_id"], reply_from_client="全部")
        assert not any("force_stop" in act or "HOME" in act for act in acts()[before:])


@pytest.mark.parametrize(
    ("script", "reason", "status"),
    [
        ([OPEN, GIVE_UP], "TASK_ABORTED_BY_AGENT", "failed"),
        ([OPEN, HOME, OPEN], "MAX_STEPS_REACHED", "failed"),
        ([Status(401)], "ERROR", "failed"),
    ],
)
async def test_ends(world: World, script: list[Any], reason: str, status: str) -> None:
    world.says(*script)
    async with world.client() as client:
        data = await call(client, task=TASK, max_steps=3)
        assert (data["stop_reason"], await rest(world, data["session_id"])) == (reason, (status, []))
        again = await client.call_tool(
            "ask_agent_continue", {"session_id": data["session_id"], "reply_from_client": "go on"}
        )
    assert again.is_error
    assert "is over" in words(again)
    assert again.structured_content["stop_reason"] == "NOT_STARTED"


async def test_steps_are_capped_by_the_server(world: World) -> None:
    world.says(*[OPEN, HOME] * 3)
    async with AsyncExitStack() as stack:
        other = await world.restarted(stack, max_steps=2)
        async with other.client() as client:
            data = await call(client, task=TASK, max_steps=1000)
    assert (data["stop_reason"], data["global_step_idx"]) == ("MAX_STEPS_REACHED", 2)
    assert data["message"].startswith("maximum steps reached")


async def test_a_screen_that_goes_off_is_a_persons_stop(world: World) -> None:
    def off(_: dict[str, Any]) -> str:
        world.phone.faults.asleep = True
        return HOME

    world.phone.faults.asleep = True  # one that is off at the beginning is woken
    world.says(OPEN, off, DONE)
    async with world.client() as client:
        data = await call(client, task=TASK)
        assert (data["stop_reason"], data["global_step_idx"]) == ("MANUAL_STOP_SCREEN_OFF", 2)
        assert await rest(world, data["session_id"]) == ("failed", [])
        assert (await client.call_tool("AWAKE", {"value": "设置"})).structured_content["done"]
    assert not world.phone.faults.asleep


async def test_a_phone_that_is_lost_on_the_way_is_an_error(world: World) -> None:
    taken: list[asyncio.Task[list[str]]] = []

    def lost(_: dict[str, Any]) -> Text:
        taken.append(asyncio.ensure_future(Leases(world.core.db).take_back(f"mcp-{os.getpid()}")))
        return Text(HOME, delay=0.02)

    world.says(OPEN, lost)
    async with world.client() as client:
        result = await client.call_tool("ask_agent", {"task": TASK})
    assert (result.structured_content["stop_reason"], result.is_error) == ("ERROR", True)
    assert "taken by another owner" in result.structured_content["message"]
    assert taken[0].result() == [world.serial]
    assert await rest(world, result.structured_content["session_id"]) == ("failed", [])  # as the tools say of ERROR


async def test_an_operator_stops_it(world: World) -> None:
    world.says(OPEN, Hang())
    async with world.client() as client:
        calling = asyncio.create_task(call(client, task=TASK))
        await until(lambda: len(world.model.requests) == 2)
        (lease,) = await Leases(world.core.db).held()
        await Runs(world.core.db).request_stop(lease.run_id, by="somebody")
        data = await calling
    assert data["stop_reason"] == "STOPPED_BY_OPERATOR"
    assert await rest(world, data["session_id"]) == ("stopped", [])


@BOTH
async def test_a_client_takes_its_call_back(world: World, mode: str) -> None:
    world.says(OPEN, Hang())
    async with world.client(mode=mode) as client:
        calling = asyncio.create_task(call(client, task=TASK))
        await until(lambda: len(world.model.requests) == 2)
        (lease,) = await Leases(world.core.db).held()
        begun = time.monotonic()
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        while await Leases(world.core.db).held():
            await asyncio.sleep(0.01)
        assert time.monotonic() - begun < PROMPT
    assert await rest(world, lease.run_id) == ("stopped", [])


# -- who answers what the agent asks


async def test_pass_to_client_goes_on_after_a_restart(world: World) -> None:
    world.says(OPEN, ASK)
    async with AsyncExitStack() as stack:
        before = await world.restarted(stack)
        async with before.client(mode=MODERN) as client:
            data = await call(client, "execute_task", task=TASK, extra_info={"ticket": "7"})
    assert data["stop_reason"] == "INFO_ACTION_NEEDS_REPLY"
    asked = data["final_action"]
    assert (asked["action"], asked["value"], asked["answered_by"]) == ("INFO", "看哪一项？", "client")
    assert data["extra_info"] == {"ticket": "7"}
    assert await rest(world, data["session_id"]) == ("waiting", [])
    world.says(HOME, DONE)
    reply = {"session_id": data["session_id"], "reply_from_client": "看蓝牙"}
    async with world.client() as client:
        wrong = await client.call_tool("ask_agent_continue", {**reply, "device_id": "other"})
        assert f"is on the phone {world.serial}" in words(wrong)
        went_on = await call(client, "ask_agent_continue", **reply)
    assert went_on["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
    assert (went_on["global_step_idx"], went_on["local_step_idx"]) == (4, 2)
    assert went_on["reply_from_client"] == "看蓝牙"
    assert "task" not in went_on
    assert "看蓝牙" in str(world.model.requests[0]["messages"])
    (question,) = await Questions(world.core.db).find(run_id=data["session_id"])
    assert (question.answered_by, question.answer) == ("editor", {"choice": "", "text": "看蓝牙", "program": True})


@BOTH
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_client_that_can_be_asked_is_asked_at_once(world: World, mode: str, action: str) -> None:
    asked: list[Any] = []

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action=action, content={"answer": "看蓝牙"} if action == "accept" else None)

    world.says(OPEN, ASK, HOME, DONE)
    async with world.client(mode=mode, elicitation_callback=answer) as client:
        data = await call(client, task=TASK)
    assert [params.message for params in asked] == ["看哪一项？"]
    assert list(asked[0].requested_schema["properties"]) == ["answer"]
    assert data["task"] == TASK
    if action == "accept":
        assert (data["stop_reason"], data["local_step_idx"]) == ("TASK_COMPLETED_SUCCESSFULLY", 4)
        assert "看蓝牙" in str(world.model.requests[2]["messages"])
    else:
        assert (data["stop_reason"], data["local_step_idx"]) == ("INFO_ACTION_NEEDS_REPLY", 2)
        assert await rest(world, data["session_id"]) == ("waiting", [])


async def test_auto_reply_is_by_a_model_that_sees_the_screen(world: World) -> None:
    def helped(body: dict[str, Any]) -> Whole:
        content = body["messages"][-1]["content"]
        assert [part["type"] for part in content] == ["image_url", "text"]
        assert TASK in content[1]["text"]
        assert "看哪一项？" in content[1]["text"]
        return Whole("看蓝牙")

    world.says(ASK, helped, DONE)
    async with world.client() as client:
        data = await call(client, "execute_task", task=TASK, reply_mode="auto_reply")
        assert data["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
        assert "看蓝牙" in str(world.model.requests[2]["messages"])
        world.says(ASK, Whole("UNKNOWN"))
        assert (await call(client, "execute_task", task=TASK, reply_mode="auto_reply"))[
            "stop_reason"
        ] == "INFO_ACTION_NEEDS_REPLY"
        world.says(PAY)  # no model allows a payment, nor does a program
        data = await call(client, "execute_task", task=TASK, reply_mode="auto_reply")
        assert (data["stop_reason"], data["final_action"]["answered_by"]) == ("INFO_ACTION_NEEDS_REPLY", "person")
        reply = {"session_id": data["session_id"], "reply_from_client": "allow"}
        refused = await client.call_tool("ask_agent_continue", reply)
        assert "Only a person may answer this" in words(refused)
        world.says(DONE)
        assert (await call(client, "ask_agent_continue", **reply | {"reply_from_client": "deny"}))[
            "stop_reason"
        ] == "TASK_COMPLETED_SUCCESSFULLY"


async def test_no_reply_tells_the_agent_to_go_on_without(world: World) -> None:
    world.says(ASK, DONE)
    async with world.client() as client:
        data = await call(client, "execute_task", task=TASK, reply_mode="no_reply")
        assert data["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
        assert "nobody answered" in str(world.model.requests[1]["messages"]).lower()
        world.says(TAKE_OVER, GIVE_UP)
        result = await client.call_tool("execute_task", {"task": TASK, "reply_mode": "no_reply"})
        assert (result.structured_content["stop_reason"], result.is_error) == ("TASK_ABORTED_BY_AGENT", False)
        assert "nobody answered" in str(world.model.requests[1]["messages"]).lower()


async def test_stop_is_an_answer(world: World) -> None:
    world.says(TAKE_OVER)
    async with world.client() as client:
        data = await call(client, task=TASK)
        reply = {"session_id": data["session_id"], "reply_from_client": "stop"}
        result = await client.call_tool("ask_agent_continue", reply)
    assert (result.structured_content["stop_reason"], result.is_error) == ("STOPPED_BY_OPERATOR", False)


async def test_an_answer_of_a_round_is_read_as_every_other(world: World) -> None:
    said = "x" * (MAX_TEXT + 1)

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": said})

    for mode in (LEGACY, MODERN):
        world.says(ASK)
        async with world.client(mode=mode, elicitation_callback=answer) as client:
            data = await call(client, task=TASK)
        assert data["stop_reason"] == "INFO_ACTION_NEEDS_REPLY"
    assert "reply_from_client is not valid" in data["message"]
    world.says(ASK, DONE)
    said = "第一行\n第二行"
    async with world.client(mode=MODERN, elicitation_callback=answer) as client:
        data = await call(client, task=TASK)
    (question,) = await Questions(world.core.db).find(run_id=data["session_id"])
    assert question.answer == {"choice": "", "text": said, "program": True}


async def types_once_asked(terminal: int, asked: str, line: str) -> None:
    """Type a line at the terminal once these words are shown there."""
    shown = b""
    while asked.encode() not in shown:
        shown += await asyncio.to_thread(os.read, terminal, 10_000)
    os.write(terminal, line.encode())


async def test_manual_reply_is_asked_in_the_terminal(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(asking, "TERMINAL", tmp_path / "none")
    async with world.client() as client:
        arguments = {"task": TASK, "reply_mode": "manual_reply"}
        refused = await client.call_tool("execute_task", arguments)
        assert refused.structured_content["stop_reason"] == "NOT_STARTED"
        assert "this server has none" in words(refused)
        ours, theirs = pty.openpty()
        try:
            monkeypatch.setattr(asking, "TERMINAL", Path(os.ttyname(theirs)))
            world.says(ASK, DONE)
            typing = asyncio.create_task(types_once_asked(ours, "看哪一项？", "看蓝牙\n"))
            data = await call(client, "execute_task", **arguments)
            await typing
        finally:
            os.close(ours)
            os.close(theirs)
    assert data["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
    (question,) = await Questions(world.core.db).find(run_id=data["session_id"])
    assert question.answered_by == "terminal"


async def test_a_question_at_the_terminal_is_everybodys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered from elsewhere, and taken back when its time with the phone is over."""
    ours, theirs = pty.openpty()
    arguments = {"task": TASK, "reply_mode": "manual_reply"}
    questions = Questions(world.core.db)
    try:
        monkeypatch.setattr(asking, "TERMINAL", Path(os.ttyname(theirs)))
        world.says(ASK, DONE)
        async with world.client() as client:
            calling = asyncio.create_task(call(client, "execute_task", **arguments))
            while not (found := await questions.find(state="open", run_id=await at_work(world))):
                await asyncio.sleep(0.01)
            await questions.answer(found[0].id, {"choice": "", "text": "看电池"}, by="Li")
            async with asyncio.timeout(3):  # of the 5 seconds for which the phone is held
                assert (await calling)["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
            assert "看电池" in str(world.model.requests[1]["messages"])
        async with AsyncExitStack() as stack:
            impatient = await world.restarted(stack, others={"run": {"hold_seconds": 0.05}})
            async with impatient.client() as client:
                for _ in range(2):
                    world.says(ASK, DONE)
                    data = await call(client, "execute_task", **arguments)
                    assert data["stop_reason"] == "INFO_ACTION_NEEDS_REPLY"
                    assert await rest(world, data["session_id"]) == ("waiting", [])
                    (question,) = await questions.find(run_id=data["session_id"])
                    assert question.deadline is not None  # a person is asked
                    os.write(ours, "太晚\n".encode())  # answers no other question
    finally:
        os.close(ours)
        os.close(theirs)


async def at_work(world: World) -> str:
    """The run that has the phone; one that none is called where none has."""
    return next((lease.run_id for lease in await Leases(world.core.db).held()), "none")


async def test_an_answer_from_another_channel_counts(world: World) -> None:
    world.says(TAKE_OVER)
    async with world.client() as client:
        data = await call(client, task=TASK)
        (question,) = await Questions(world.core.db).find(run_id=data["session_id"])
        await Questions(world.core.db).answer(question.id, {"choice": "done", "text": ""}, by="Li")
        world.says(DONE)
        reply = {"session_id": data["session_id"], "reply_from_client": "stop"}
        went_on = await call(client, "ask_agent_continue", **reply)
    assert went_on["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
    assert went_on["message"].startswith("Li answered before you")
    assert "counts." in went_on["message"]
    kept = await Questions(world.core.db).get(question.id)
    assert kept is not None
    assert kept.answered_by == "Li"
    given = await Questions(world.core.db).given(question.id)
    assert [(one.answered_by, one.late) for one in given] == [("Li", False), ("editor", True)]


async def test_another_model_helps(world: World) -> None:
    """By the screen, and without one: asked again after a restart, a question has no picture."""

    def helped(body: dict[str, Any]) -> Whole:
        assert body["model"] == "helper"
        return Whole("看蓝牙")

    own = HelperSettings(base_url=world.settings.model.base_url, name="helper", api_key=SecretStr("k"))
    async with AsyncExitStack() as stack:
        other = await world.restarted(stack, helper=own)
        world.says(ASK, helped, DONE)
        async with other.client() as client:
            data = await call(client, "execute_task", task=TASK, reply_mode="auto_reply")
        assert data["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
        world.says(helped)
        question = Question(id="q", kind=QuestionKind.INTERACT, text="看哪一项？")
        session = Session(run_id="r", task=TASK, lang="en")
        assert await reply_of(other.house.helper, session, question, None) == "看蓝牙"


# -- what else is given


@BOTH
async def test_a_call_of_several_rounds_gives_all_its_steps(world: World, mode: str) -> None:
    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "看蓝牙"})

    world.says(OPEN, ASK, HOME, DONE)
    wanted = {"enable_intermediate_logs": True, "enable_intermediate_screenshots": True}
    async with world.client(mode=mode, elicitation_callback=answer) as client:
        data = await call(client, "execute_task", task=TASK, **wanted)
    logs = data["intermediate_logs"]
    assert [log["global_step_idx"] for log in logs] == [1, 2, 3]
    assert all(log["screenshot_b64_url"].startswith("data:image/jpeg;base64,") for log in logs)


async def test_steps_screens_and_captions_as_they_were_asked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def captioned(body: dict[str, Any]) -> Any:
        caption = "Describe this phone screen" in str(body["messages"][-1]["content"])
        order.append((caption, time.monotonic()))
        if not caption:
            return replies.pop(0)
        return Hang(headers_too=True) if sum(one for one, _ in order) == 1 else Whole("The settings.")

    monkeypatch.setattr(story, "CAPTION_SECONDS", 0.7)  # for the one that never comes
    order: list[tuple[bool, float]] = []
    replies: list[Any] = [OPEN, HOME, DONE]
    world.says(*[captioned] * 6)
    async with world.client() as client:
        result = await client.call_tool(
            "execute_task",
            {
                "task": TASK,
                "enable_intermediate_logs": True,
                "enable_intermediate_screenshots": True,
                "enable_intermediate_image_caption": True,
                "enable_final_screenshot": True,
                "enable_final_image_caption": True,
            },
        )
    data = result.structured_content
    logs = data["intermediate_logs"]
    assert [(log["agent_action"]["action"], log["global_step_idx"]) for log in logs] == [("AWAKE", 1), ("HOT_KEY", 2)]
    assert [log["screenshot_caption"] for log in logs] == [None, "The settings."]
    first = next(number for number, (caption, _) in enumerate(order) if caption)
    thinks = next(at for caption, at in order[first:] if not caption)
    assert thinks - order[first][1] < 0.5, "the agent goes on while a screen is described"
    assert data["final_screenshot_caption"] == "The settings."
    urls = [*(log["screenshot_b64_url"] for log in logs), data["final_screenshot_b64_url"]]
    pictures = [block.data for block in result.content if block.type == "image"]
    assert urls == [f"data:image/jpeg;base64,{picture}" for picture in pictures]
    assert all(base64.b64decode(picture).startswith(b"\xff\xd8") for picture in pictures)
    assert "base64," not in words(result)
    assert '"image 3"' in words(result)


async def test_two_clients_on_one_phone(world: World) -> None:
    world.says(OPEN, Hang())
    second, row = await world.another_key()
    async with world.client() as client, world.client(key=second) as other:
        calling = asyncio.create_task(call(client, task=TASK))
        await until(lambda: len(world.model.requests) == 2)
        begun = time.monotonic()
        for tool, arguments in (("ask_agent", {"task": TASK}), ("HOT_KEY", {"key": "HOME"})):
            refused = await other.call_tool(tool, arguments)
            assert refused.is_error
            assert f"The phone {world.serial} is busy: the run " in words(refused)
        assert time.monotonic() - begun < PROMPT
        (lease,) = await Leases(world.core.db).held()
        assert len(await Runs(world.core.db).find(requested_by=row)) == 0
        theirs = {"session_id": lease.run_id, "reply_from_client": "x"}
        assert "There is no session" in words(await other.call_tool("ask_agent_continue", theirs))
        assert "is at work now" in words(await client.call_tool("ask_agent_continue", theirs))
        assert (await other.call_tool("get_device_list", {})).structured_content["devices"][0]["state"] == "busy"
        assert not (await other.call_tool("get_screenshot", {})).is_error  # only read
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        while await Leases(world.core.db).held():
            await asyncio.sleep(0.01)


async def test_what_a_customer_gets_no_program_decides(world: World) -> None:
    """Nothing in the knowledge base fits: a person answers, or nobody."""
    arguments = {"task": "QQ回复联系人11", "reset_environment": False}
    await world.open_chat()
    world.phone.receive("11", "充电宝能带上高铁吗？")
    world.says(do('do(action="GET_KNOWLEDGE_DATA", query="充电宝能带上高铁吗")'), DONE)
    async with world.client() as client:
        data = await call(client, "execute_task", **arguments, reply_mode="auto_reply")
        assert data["stop_reason"] == "INFO_ACTION_NEEDS_REPLY", data
        assert data["final_action"]["answered_by"] == "person"
        assert data["final_action"]["kind"] in {"no_sure_answer", "right_chat"}
        for said in ("可以带的。", "1"):
            reply = {"session_id": data["session_id"], "reply_from_client": said}
            refused = await client.call_tool("ask_agent_continue", reply)
            assert "Only a person may answer this" in words(refused)
        await Runs(world.core.db).request_stop(data["session_id"])
    assert world.phone.report()["sent"].get("11", []) == []


async def test_a_task_for_several_contacts_is_refused(world: World) -> None:
    """The client waits for one run; each contact is a run of its own."""
    before = await Runs(world.core.db).find()
    async with world.client() as client:
        result = await client.call_tool("ask_agent", {"task": "QQ回复11和12"})
    assert result.is_error
    assert "one contact" in words(result)
    assert await Runs(world.core.db).find() == before
