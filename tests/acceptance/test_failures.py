"""What goes wrong around the product: told by its cause and with what to do, and nothing wrong is ever typed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest
from aiohttp import web

from simulator.phone.server import serve
from tests.acceptance.stage import PHONEDESK, QUICK_TASK, TASK, Done, Stage, stage, until
from tests.support.model_server import Hang, Raw, Reply, Status, Text
from tests.support.terminal import Terminal

TOKEN = "dataset-abcdefgh12345678"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Expected:
    """How a run is to end, and which words must be in its message."""

    code: int
    words: tuple[str, ...]


def check(name: str, on: Stage, done: Done, expected: Expected) -> None:
    assert done.code == expected.code, (name, done)
    result = done.json
    assert result["status"] == {1: "failed", 3: "waiting"}[expected.code], name
    for words in expected.words:
        assert words in result["message"], (name, result["message"])
    assert result["replies"] == [], name
    assert TOKEN not in done.out + done.err, name
    on.untouched_by_words()
    on.at_rest()


# None of them can be read: a run that is given them in turn must find that of each, as it ends after so many in a row.
UNREADABLE: tuple[Reply, ...] = (
    "%&§ \x07 �� {]",
    "我觉得应该先打开 QQ，然后找到联系人 11。",
    Text('<think>先打开</think><answer>do(action="Launch", app="Q', finish="length"),
)
MODEL_FAULTS: dict[str, tuple[Reply | Iterator[Reply], Expected]] = {
    "unreadable": (cycle(UNREADABLE), Expected(3, (f"连续 {len(UNREADABLE)} 次", "无法读懂", "先打开"))),
    "HTML": (Raw("<html><body>Bad gateway</body></html>"), Expected(1, ("不是聊天补全", "MODEL__BASE_URL"))),
    "HTTP 500": (Status(500, "out of memory"), Expected(1, ("HTTP 500", "out of memory", "MODEL__BASE_URL"))),
    "silence": (Hang(headers_too=True), Expected(1, ("没有及时回答", "MODEL__TIMEOUT_SECONDS"))),
}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("lang", "said", "asked"),
    [("zh", "模型服务连不上或者出错", False), ("en", "The model server cannot be reached", True)],
    ids=["words", "log"],
)
async def test_a_person_at_a_terminal_reads_words_and_finds_the_log_in_its_file(
    on: Stage, lang: str, said: str, asked: bool
) -> None:
    """Unless they ask for the log."""
    environment = {**on.environment, "PHONEDESK_LANG": lang, "PHONEDESK_MODEL__BASE_URL": "http://127.0.0.1:1/v1"}
    options = ["--log-level", "warning"] if asked else []
    terminal = Terminal([PHONEDESK, "run", QUICK_TASK, *options], on.folder, environment)
    try:
        assert await asyncio.to_thread(terminal.ended) == 1
    finally:
        terminal.close()
    assert said in terminal.seen
    assert ("run_cut_short" in terminal.seen) == asked
    file = on.folder / "data" / "terminal.log"
    assert file.exists() != asked
    if not asked:
        events = [json.loads(line)["event"] for line in file.read_text().splitlines()]
        assert events.count("run_cut_short") == 1
        assert "phone_not_connected" not in events, "a phone that the settings name twice is connected to once"


async def test_a_model_that_fails(tmp_path: Path) -> None:
    async def run(name: str, reply: Reply | Iterator[Reply]) -> tuple[Stage, Done]:
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        async with stage(folder) as on:
            on.brain.instead[""] = reply
            return on, await on.command("run", TASK, "--json", PHONEDESK_MODEL__TIMEOUT_SECONDS="0.7")

    ended = await asyncio.gather(*(run(name, reply) for name, (reply, _) in MODEL_FAULTS.items()))
    for (name, (_, expected)), (on, done) in zip(MODEL_FAULTS.items(), ended, strict=True):
        check(name, on, done, expected)


# The knowledge service ------------------------------------------------------------------------------------------------


async def slow(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html><body>Log in</body></html>", content_type="text/html")


async def refused(request: web.Request) -> web.StreamResponse:
    told = {"code": "unauthorized", "message": f"Access token {TOKEN} is invalid", "status": 401}
    return web.json_response(told, status=401)


@asynccontextmanager
async def dify(answer: Answer | None) -> AsyncIterator[dict[str, str]]:
    """A knowledge service of Dify's form that answers so; None: nobody listens there. The settings that point to it."""
    app = web.Application()
    if answer is not None:
        app.router.add_post("/v1/datasets/shop/retrieve", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        if answer is None:
            await site.stop()
        yield {
            "PHONEDESK_KNOWLEDGE__PROVIDER": "dify",
            "PHONEDESK_KNOWLEDGE__BASE_URL": f"http://127.0.0.1:{port}",
            "PHONEDESK_KNOWLEDGE__DATASET_ID": "shop",
            "PHONEDESK_KNOWLEDGE__TOKEN": TOKEN,
            "PHONEDESK_KNOWLEDGE__TIMEOUT_SECONDS": "0.7",
        }
    finally:
        await runner.cleanup()


KNOWLEDGE_FAULTS: dict[str, tuple[Answer | None, Expected]] = {
    "down": (None, Expected(3, ("连不上知识库服务", "KNOWLEDGE__BASE_URL"))),
    "slow": (slow, Expected(3, ("0.7 秒内没有回答", "KNOWLEDGE__BASE_URL"))),
    "HTML": (page, Expected(3, ("网页", "KNOWLEDGE__BASE_URL"))),
    "401": (refused, Expected(3, ("不接受密钥", "KNOWLEDGE__TOKEN"))),
}


async def test_a_knowledge_service_that_fails(tmp_path: Path) -> None:
    async def run(name: str, answer: Answer | None) -> tuple[Stage, Done]:
        folder = tmp_path / name
        folder.mkdir()
        async with stage(folder) as on, dify(answer) as settings:
            return on, await on.command("run", TASK, "--json", **settings)

    ended = await asyncio.gather(*(run(name, answer) for name, (answer, _) in KNOWLEDGE_FAULTS.items()))
    for (name, (_, expected)), (on, done) in zip(KNOWLEDGE_FAULTS.items(), ended, strict=True):
        check(name, on, done, expected)


# In the chat ----------------------------------------------------------------------------------------------------------


async def test_the_cards_of_three_phones_name_the_cause_and_what_to_do(on: Stage) -> None:
    async with dify(refused) as settings, serve() as second, serve() as third:
        attached = [on.phone.address, second.address, third.address]
        server = await on.serve(PHONEDESK_DEVICE__CONNECT=json.dumps(attached), **settings)
        owner = await on.owner(server)
        on.brain.instead["微信"] = Status(500, "out of memory")
        without_model = await on.run(owner, f"-d {on.phone.address} 打开微信")
        without_key = await on.run(owner, f"-d {second.address} {TASK}")
        unplugged = await on.run(owner, f"-d {third.address} {TASK}")
        await until(lambda: third.phone.report()["opened"])
        third.phone.set_fault("dropped")

        shown = await on.shows(owner, without_key, "暂缓")
        assert "知识库恢复后会自动继续回答" in shown
        assert "不接受密钥" in shown
        assert "PHONEDESK_KNOWLEDGE__TOKEN" in shown
        assert TOKEN not in shown
        shown = await on.shows(owner, without_model, "失败")
        assert "模型服务连不上或者出错" in shown
        assert "PHONEDESK_MODEL__BASE_URL" in shown
        shown = await on.shows(owner, unplugged, "失败")
        assert f"1:{third.adb_port}" in shown
        assert "手机没有连接，或已离线" in shown
        assert "检查数据线" in shown

        for phone in (on.phone, second, third):
            report = phone.phone.report()
            assert (report["sent"], report["drafts"], report["typed"]) == ({}, {}, [])
        assert not any("停止" in str(card.buttons) for card in (without_model, unplugged))
        # The others go on being served: the phone that was unplugged comes back by itself.
        on.brain.instead.clear()
        third.phone.set_fault("dropped", False)
        again = await on.run(owner, f"-d {third.address} 打开设置")
        await on.shows(owner, again, "已完成")
        assert TOKEN not in server.complaints()


pytestmark = [pytest.mark.timeout(300), pytest.mark.rotating(parts=3)]
