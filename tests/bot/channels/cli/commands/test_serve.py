"""What the person at the terminal of ``phonedesk serve`` reads."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import structlog

from agent_core.errors import ConfigInvalid
from agent_core.texts import LANGUAGES
from bot.app import logs
from bot.app.server import Server, server
from bot.app.settings.loading import load
from bot.app.settings.sections import WebSettings
from bot.channels.chat.questions import question_card
from bot.channels.chat.texts import Lang
from bot.channels.cli.commands.common import log_to_file
from bot.channels.cli.commands.serve import _answers_already, _runs_already, say_up
from bot.channels.cli.terminal.activity import Activity
from bot.channels.cli.terminal.console import Console
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.notices import Notices
from simulator.phone.phone import VirtualPhone
from storage.events import Events
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.support.proxies import free_port
from tests.support.shop import Shop

ROOT = Path(__file__).parents[5]
ZONE = ZoneInfo("Asia/Shanghai")


def printed() -> Console:
    return Console(file=io.StringIO(), width=200, color_system=None)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@asynccontextmanager
async def desk(lang: Lang) -> AsyncIterator[tuple[Server, VirtualPhone]]:
    from bot.tools.demo.world import demo_world

    web = {"host": "127.0.0.1", "port": 0}
    async with demo_world(lang=lang, web=web) as world, server(world.settings) as running:
        yield running, world.phone


async def until(console: Console, *words: str) -> str:
    async with asyncio.timeout(60):
        while not all(word in text_of(console) for word in words):
            await asyncio.sleep(0.02)
    return text_of(console)


@pytest.mark.device
async def test_without_a_token_it_says_what_works_and_then_what_happens() -> None:
    words = texts("zh")
    async with desk("zh") as (running, phone):
        for lang, parts in (
            ("zh", ("init，它会问这个令牌", "没有令牌也能用", "英文日志写到标准错误")),
            ("en", ("init, which asks", "Without it work", "the log, in English, goes to standard error")),
        ):
            up = printed()
            await say_up(replace(running, settings=running.settings.model_copy(update={"lang": lang})), up)
            console_is = f"{running.url}/console"
            assert all(part in text_of(up) for part in ("@BotFather", console_is, "phonedesk console", *parts))
            assert "--no-phones" not in text_of(up)
            await say_up(replace(running, work=None), up)
            assert "--no-phones" in text_of(up)
            assert "phonedesk worker" in text_of(up)
        console = printed()
        following = asyncio.create_task(Activity(running.desk, console, words, ZONE).follow())
        runs, serial = Runs(running.desk.context.db), running.settings.device.serial
        await runs.create(NewRun("QQ回复联系人11", serial))
        shown = await until(console, f"#1 {words.get('card.succeeded')}")
        assert f"#1 {words.get('activity.began', phone='VP 1', task='QQ回复联系人11')}" in shown
        assert f"#1 {words.get('activity.replied', contact='11')}" in shown
        await runs.create(NewRun("打开闲鱼", serial))
        shown = await until(console, f"#2 {words.get('card.failed')}")
        assert shown.count("手机上没有安装“闲鱼”：请先安装，或换一个应用。") == 1
        phone.receive("11", "你们的手机壳能定制刻字吗？")
        await runs.create(NewRun("QQ回复联系人11", serial))
        shown = await until(console, "#3 在等人回答")
        assert "questions answer " in shown
        assert re.fullmatch(r"(?:\d\d:\d\d:\d\d  #\d \S.*\n)+", shown), "the time and the run stand in front"
        following.cancel()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("has_bot", [False, True])
async def test_a_question_reads_as_in_the_list_and_telegram_is_named_only_with_a_bot(
    shop: Shop, lang: Lang, has_bot: bool
) -> None:
    console, words = printed(), texts(lang)
    run_id = await Runs(shop.db).create(NewRun("QQ回复联系人11", "S1"))
    assert run_id is not None
    data = {"contact": "11", "beside": [{"words": "?", "answer": ""}]}
    payload = {"id": "q1", "kind": "no_sure_answer", "text": "?", "free_text": True, "data": data}
    await Questions(shop.db).ask("q1", run_id=run_id, kind="no_sure_answer", payload=payload)
    shop.desk.context.console_url = "http://127.0.0.1:8737/console"
    activity = Activity(shop.desk, console, words, ZONE, has_bot=has_bot)
    newest = await Events(shop.db).append(run_id, "question", payload)
    for row in await Events(shop.db).after(0, run_id=run_id):
        if row.id == newest:
            await activity._show(row)
    view = await shop.desk.questions.get("q1")
    assert view is not None
    shown = text_of(console)
    assert f"{question_card(view, words).title} · 11" in shown
    assert "phonedesk questions answer q1" in shown
    assert "http://127.0.0.1:8737/console" in shown
    assert ("Telegram" in shown) is has_bot
    assert ("phonedesk console" in shown) is not has_bot, "how to get in"


async def test_what_happened_until_the_end_is_shown_before_it_ends(shop: Shop) -> None:
    console, log = printed(), Events(shop.db)
    following = asyncio.create_task(Activity(shop.desk, console, texts("en"), ZONE).follow())
    await until_follows(shop, console)
    for number in range(5):
        await log.append("", "answered", {"by": f"person {number}"})
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert [line.split()[-1] for line in text_of(console).splitlines()][-5:] == ["0", "1", "2", "3", "4"]


async def until_follows(shop: Shop, console: Console) -> None:
    """Wait until an event is shown: events before the start are not."""
    async with asyncio.timeout(60):
        while "someone" not in text_of(console):
            await Events(shop.db).append("", "answered", {"by": "someone"})
            await asyncio.sleep(0.02)


def test_at_a_terminal_the_log_is_in_its_file_and_what_matters_is_said_once_in_plain_words(tmp_path: Path) -> None:
    console, file = printed(), tmp_path / "desk.log"
    try:
        logs.configure(
            file=logs.LogFile(file), notice=Notices(console, texts("zh"), ZONE, file, without=["phone_not_connected"])
        )
        log = structlog.get_logger()
        for _ in range(3):
            log.warning("telegram_poll_failed", why="…", url="https://api.telegram.org", again_in=1)
        log.info("digest")
        log.warning("settings_need_restart", names=("web.port", "web.host"))
        log.warning("caption_missing")  # has no text for a person
        log.warning("phone_not_connected", address="127.0.0.1:1")  # left out here
        log.error("never_heard_of", token="1")
        log.error("telegram_message_given_up\x1b[2J", chat="c")
    finally:
        logs.configure()
    shown = [line.partition("  ")[2] for line in text_of(console).splitlines()]
    assert shown == [
        "连不上 Telegram（https://api.telegram.org），会一直重试。",
        "这些设置改了，重启后生效：web.port、web.host",
        f"出了问题（never_heard_of），详见日志：{file}",
        f"出了问题（telegram_message_given_up\\x1b[2J），详见日志：{file}",
    ]
    events = [json.loads(line)["event"] for line in file.read_text().splitlines()]
    assert events[:5] == ["telegram_poll_failed"] * 3 + ["digest", "settings_need_restart"]
    assert len(events) == 9


def test_where_nobody_looks_the_log_goes_to_standard_error_as_before(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert log_to_file(load(data_dir=tmp_path)) is None
    try:
        logs.configure()
        structlog.get_logger().warning("telegram_poll_failed")
    finally:
        logs.configure()
    assert "[warning" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


class Other(BaseHTTPRequestHandler):
    """A program that is no phonedesk, but has a health path."""

    said = b'{"status": "ok"}'

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *_: object) -> None:
        pass


class Ours(Other):
    said = b'{"status": "ok", "name": "phonedesk"}'


@pytest.mark.parametrize(
    ("handler", "key"), [(Ours, "serve_runs_already"), (Other, "host_runs_port_taken"), (None, "host_runs_already")]
)
def test_a_second_server_knows_the_first_one_by_what_it_answers(handler: type[Other] | None, key: str) -> None:
    busy = ConfigInvalid("Busy.", process=7)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler or Other) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        web = WebSettings(host="127.0.0.1", port=listening.server_port if handler else free_port())
        said, there = _runs_already(web, busy), _answers_already(web)
        listening.shutdown()
    assert said.key == key
    assert (there is not None) is (handler is Ours)
    for lang in LANGUAGES:
        shown = texts(lang).error(said)
        assert "7" in shown
        assert there is None or str(web.port) in texts(lang).error(there)
        assert ("PHONEDESK_WEB__PORT" in shown and str(web.port) in shown) is (handler is Other)


def test_the_server_of_the_settings_is_named_if_it_cannot_be_reached(tmp_path: Path) -> None:
    """In a real terminal: no line of the log among what is said, and Ctrl-C ends it."""
    url = f"http://127.0.0.1:{free_port()}"
    settings = {"LANG": "zh", "TELEGRAM__TOKEN": "1234567:" + "a" * 35, "TELEGRAM__API_BASE_URL": url, "WEB__PORT": "0"}
    place = {name: value for name, value in os.environ.items() if not name.startswith("PHONEDESK_")}
    place |= {f"PHONEDESK_{name}": value for name, value in settings.items()} | {"PYTHONPATH": str(ROOT)}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bot", "serve", "--no-phones"],
        cwd=tmp_path, env=place, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    try:
        while f"PHONEDESK_TELEGRAM__API_BASE_URL 设成了 {url}" not in shown.decode("utf-8", "replace"):
            shown += os.read(master, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(master)
    said = shown.decode()
    assert "[warning" not in said
    assert "telegram_not_reached" not in said
    assert "标准错误" not in said, "no log is written there"
    assert "7890" not in said, "a server of one's own needs no advice on proxies"
    assert "telegram_not_reached" in (tmp_path / "data" / "phonedesk-1.log").read_text()
