"""The commands, as a person or a script calls them."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from simulator.phone.scenario import OtherAppPart, PhonePart, Scenario
from tests.acceptance.stage import (
    ANSWER,
    CANDIDATE,
    OPEN_QUESTION,
    QUESTION,
    QUICK_TASK,
    SOURCE,
    TASK,
    WITH_OCR,
    Running,
    Stage,
    asked,
    stage,
    until,
)

QQ = "com.tencent.mobileqq"


def check_result(result: dict[str, Any]) -> None:
    """The keys that programs rely on."""
    keys = {"status", "run_id", "steps", "replies", "questions", "message", "seconds"}
    assert keys <= result.keys()
    assert result["status"] in {"succeeded", "failed", "waiting", "stopped"}
    assert isinstance(result["run_id"], str)
    assert isinstance(result["steps"], int)
    assert result["seconds"] > 0
    for reply in result["replies"]:
        assert {"contact", "question", "text", "provenance", "delivered"} <= reply.keys()


# The demo -------------------------------------------------------------------------------------------------------------


def written(folder: Path, question: str, **more: str) -> Path:
    """A scenario file as a person writes it."""
    told = {"side": "them", "text": question, "ago": 60, "unread": True}
    path = folder / "scenario.json"
    path.write_text(json.dumps({**more, "contacts": [{"name": "11", "history": [told]}]}), encoding="utf-8")
    return path


async def test_the_demo_does_the_main_job(on: Stage) -> None:
    done = await on.command("demo", "--headless", "--json", **WITH_OCR)
    assert done.code == 0, done.err
    result = done.json
    check_result(result)
    assert result["status"] == "succeeded"
    [reply] = result["replies"]
    assert (reply["contact"], reply["question"], reply["text"]) == ("11", QUESTION, ANSWER)
    assert (reply["provenance"], reply["delivered"], reply["record_source"]) == ("knowledge", True, SOURCE)
    assert result["questions"] == []
    assert result["phone"] == {"sent": {"11": [ANSWER]}, "opened": [QQ]}
    assert on.report["pictures"] == 0, "the phone of the settings was left alone"


@pytest.mark.rotating(parts=3)
async def test_the_demo_reads_the_picture_where_the_tree_is_empty(on: Stage) -> None:
    scenario = written(on.folder, QUESTION, tree="empty")
    done = await on.command("demo", "--headless", "--task", TASK, "--scenario", str(scenario), "--json", **WITH_OCR)
    assert done.code == 0, done.err
    assert done.json["status"] == "succeeded"
    assert done.json["phone"]["sent"] == {"11": [ANSWER]}


async def test_the_demo_sends_nothing_where_the_base_has_no_answer(on: Stage) -> None:
    scenario = written(on.folder, OPEN_QUESTION)
    done = await on.command("demo", "--headless", "--scenario", str(scenario), "--json")
    assert done.code == 3, done.err
    check_result(done.json)
    assert done.json["status"] == "waiting"
    assert done.json["message"] == OPEN_QUESTION
    [question] = done.json["questions"]
    assert question["kind"] == "no_sure_answer"
    assert question["data"]["candidates"][0]["text"] == CANDIDATE
    assert done.json["replies"] == []
    assert done.json["phone"]["sent"] == {}


# A run in the terminal ------------------------------------------------------------------------------------------------


async def test_run_opens_an_app_that_is_in_no_list_of_names(tmp_path: Path) -> None:
    """By its icon on the second page of the home screen; the next command knows the package.

    By the picture: tests/agent_core/test_launching.py.
    """
    shop = OtherAppPart(label="小店助手", package="com.example.shop")
    async with stage(tmp_path, Scenario(phone=PhonePart(others=[shop]))) as on:
        for count in (1, 2):
            done = await on.command("run", "打开小店助手", "--json")
            assert done.code == 0, done.err
            assert done.json["status"] == "succeeded"
            assert on.report["opened"] == [shop.package] * count
            assert [tap["on"] for tap in on.report["taps"]] == [shop.label]
        lost = await on.command("run", "打开大店助手", "--json")
        assert lost.code == 1
        assert on.report["opened"] == [shop.package] * 2


async def test_run_tries_out_fails_and_succeeds(on: Stage) -> None:
    tried = await on.command("run", TASK, "--dry-run", "--json")
    assert tried.code == 0, tried.err
    assert tried.json["status"] == "succeeded"
    assert "打开 qq" in tried.json["message"].lower()
    report = on.report
    assert (report["opened"], report["taps"], report["typed"]) == ([], [], [])
    on.at_rest()

    short = await on.command("run", TASK, "--max-steps", "1", "--json")
    assert short.code == 1
    check_result(short.json)
    assert short.json["status"] == "failed"
    assert "最大步数 1" in short.json["message"]
    on.untouched_by_words()

    done = await on.command("run", TASK)
    assert done.code == 0, done.err
    assert TASK in done.out
    assert "查询知识库：几天能发货？" in done.out
    assert ANSWER in done.out.replace("\n", "")
    assert "已完成" in done.out
    assert on.sent == {"11": [ANSWER]}
    on.at_rest()
    assert [run.status for run in await on.runs()] == ["succeeded", "failed", "succeeded"]


async def test_run_leaves_a_question_open_and_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path, asked(OPEN_QUESTION)) as on:
        done = await on.command("run", TASK, "--json")
        assert done.code == 3, done.err
        check_result(done.json)
        assert done.json["status"] == "waiting"
        assert done.json["questions"][0]["text"] == OPEN_QUESTION
        on.untouched_by_words()
        on.at_rest()
        [run] = await on.runs()
        assert run.status == "waiting"
        for lang, asks, failed in (("zh", "（问人）", "未成功"), ("en", "(a person is asked)", "no success")):
            for told in (done.err, (await on.command("replay", "1", PHONEDESK_LANG=lang)).out):
                assert failed not in told
                assert asks in told or (lang, told) == ("en", done.err), told


async def test_ctrl_c_while_typing_leaves_the_phone_clean(on: Stage) -> None:
    running = await on.start("run", TASK, "--json")
    await until(lambda: on.report["drafts"])
    running.signal(signal.SIGINT)
    done = await running.ended()
    assert done.code == 130, done.err
    assert done.json["status"] == "stopped"
    assert on.sent == {}
    on.at_rest()
    [run] = await on.runs()
    assert run.status == "stopped"
    again = await on.command("run", QUICK_TASK, "--json")  # the phone is free
    assert (again.code, again.json["status"]) == (0, "succeeded")


async def test_bad_use_is_told_by_name_with_exit_code_2(on: Stage) -> None:
    cases: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
        "没有写要做的事": (("run", "  "), {}),
        "PHONEDESK_RUN__MAX_STEPS": (("run", TASK), {"PHONEDESK_RUN__MAX_STEPS": "many"}),
        "PHONEDESK_MODEL__TIMEOUT_SECONDS": (("serve",), {"PHONEDESK_MODEL__TIMEOUT_SECONDS": "0"}),
        "--max-steps": (("run", TASK, "--max-steps", "none"), {}),
        "webhook_url": (("serve",), {"PHONEDESK_TELEGRAM__MODE": "webhook"}),
        f"端口 {on.phone.adb_port}": (("virtual-phone", "--port", str(on.phone.adb_port)), {}),
        f"端口 {on.telegram.port}": (("demo-model", "--port", str(on.telegram.port)), {}),
    }
    ended = await asyncio.gather(*(on.command(*arguments, **settings) for arguments, settings in cases.values()))
    for name, done in zip(cases, ended, strict=True):
        assert done.code == 2, (name, done)
        assert name in " ".join(done.err.split()), (name, done.err)
        assert done.out == ""
    assert on.report["pictures"] == 0


async def test_devices_and_the_stand_ins_as_servers_of_their_own(on: Stage) -> None:
    phone = await on.start("virtual-phone", "--scenario", str(written(on.folder, QUESTION)))
    model = await on.start("demo-model")
    address = (await phone.line()).rpartition(" ")[2]
    state = (await phone.line()).partition("http")[2]
    assert "Ctrl-C" in await phone.line()
    url = "http" + (await model.line()).partition("http")[2]
    async with aiohttp.ClientSession() as session:
        async with session.post(
            f"http{state.removesuffix('/state')}/message", json={"contact": "11", "text": "在吗"}
        ) as told:
            assert told.status == 200
        async with session.get(f"http{state}") as looked:
            assert [message["text"] for message in (await looked.json())["chats"]["11"]] == [QUESTION, "在吗"]

    both = json.dumps([on.phone.address, address])
    listed, done = await asyncio.gather(
        on.command("devices", "--json", PHONEDESK_DEVICE__CONNECT=both),
        on.command("run", QUICK_TASK, "--device", address, "--json", PHONEDESK_MODEL__BASE_URL=url),
    )
    assert listed.code == 0
    assert {row["serial"]: row["status"] for row in listed.json} == {on.phone.address: "device", address: "device"}
    assert done.code == 0, done.err
    assert on.report["opened"] == []  # the other phone was meant
    await ends_by(signal.SIGINT, phone)
    await ends_by(signal.SIGTERM, model)


async def ends_by(number: signal.Signals, running: Running) -> None:
    """The loop takes both: a signal wakes it also where it is about to wait, or where Ctrl-C was ignored before."""
    running.signal(number)
    done = await running.ended()
    assert done.code == 130, done.err


pytestmark = pytest.mark.timeout(300)
