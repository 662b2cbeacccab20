"""The commands as a shell calls them: output, and exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import typer
from filelock import FileLock

from agent_core.errors import (
    ConfigInvalid,
    ConfigMissing,
    DeviceOffline,
    InputRejected,
    KnowledgeAuth,
    ModelAuth,
    PhonedeskError,
    RateLimited,
)
from agent_core.session import Question, QuestionKind, ReplyRecord, Session, Status
from bot.app.release import release
from bot.app.settings.loading import load
from bot.channels.chat.texts import Lang, catalogue
from bot.channels.cli.commands.common import BY_STATUS, Exit, fail, result_of, run_async, settings_from
from bot.channels.cli.commands.sweep import _words as sweep_words
from bot.channels.cli.terminal.language import speak
from bot.channels.cli.terminal.texts import catalogue as help_texts
from bot.desk.actors import AccessDenied, BadRequest, NotFound
from scheduler.runs.queue import ProcessLock
from storage.engine import Database
from storage.hosts import ENDED, Hosts
from storage.leases import Clocks
from storage.runs import NewRun, Runs
from tests.support.adb import adb_server
from tests.support.command_line import call, empty_place
from tests.support.environment import in_a_checkout
from tests.support.proxies import free_port

__all__ = ["empty_place"]  # a fixture

TASK = "QQ回复联系人11"
SECRET = "123456789:" + "A" * 35


def test_schedules_from_add_to_remove() -> None:
    code, out, _ = call("schedule", "add", "*/5 9-18 * * 1-5", TASK, "--json")
    added = json.loads(out)
    assert code == Exit.OK
    assert (added["id"], added["expression"], added["task"], added["paused"]) == ("1", "*/5 9-18 * * 1-5", TASK, False)
    assert len(added["next_times"]) == 3
    assert all(moment.endswith("+08:00") for moment in added["next_times"])
    assert json.loads(call("schedule", "list", "--json")[1])[0]["id"] == "1"
    assert json.loads(call("schedule", "pause", "1", "--json")[1])["paused"] is True
    assert json.loads(call("schedule", "resume", "1", "--json")[1])["paused"] is False
    said = call("schedule", "remove", "1")[1]
    assert "Schedule #1 removed" in said
    assert "schedule undo 1" in said
    assert json.loads(call("schedule", "list", "--json")[1]) == []
    assert "no schedules yet" in call("schedule", "list")[1]


@pytest.mark.parametrize(
    ("lang", "no_serve", "no_worker", "queued", "now"),
    [
        ("zh", "没有运行 phonedesk serve", "没有 phonedesk 在操作手机", "已经排队", "现在开始执行"),
        ("en", "phonedesk serve is not running", "No phonedesk works phones now", "is queued", "is run now"),
    ],
)
def test_a_schedule_says_what_has_to_run_for_it(
    monkeypatch: pytest.MonkeyPatch, lang: str, no_serve: str, no_worker: str, queued: str, now: str
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)

    def with_db(call: Callable[[Database], Awaitable[object]]) -> None:
        async def called() -> None:
            db = Database(load().url)
            await call(db)
            await db.close()

        asyncio.run(called())

    def says(*args: str) -> set[str]:
        code, out, _ = call("schedule", *args)
        assert code == Exit.OK
        said = " ".join(out.split())  # a line may be broken anywhere
        return {one for one in (no_serve, no_worker, queued, now) if one in said}

    assert says("add", "every 5m", TASK) == {no_serve}
    assert says("watch", "11") == {no_worker}
    assert says("run", "1") == {queued, no_worker}
    assert says("pause", "1") == set()
    timed, watch = ("resume", "1"), ("resume", "2")
    with_db(lambda db: Hosts(db).register("host", "token"))  # a worker runs no clock
    assert (says(*timed), says(*watch)) == ({no_serve}, set())
    with_db(lambda db: Clocks(db).beat("token"))
    assert (says(*timed), says(*watch), says("run", "1")) == (set(), set(), {now})
    assert "phonedesk replay " in call("schedule", "run", "1")[1]
    with_db(lambda db: Hosts(db).set_state("host", "token", ENDED))  # serve --no-phones is no host
    assert (says(*timed), says(*watch)) == ({no_worker}, {no_worker})
    with_db(lambda db: Clocks(db).end("token"))
    assert says(*timed) == {no_serve}
    assert says("remove", "1") == set()


def test_schedules_for_people() -> None:
    out = call("schedule", "add", "every 5m", "打开[b]设置[/b]")[1]
    assert "Schedule #1 added" in out
    assert "打开[b]设置[/b]" in out  # words, no markup
    assert "#1" in call("schedule", "list")[1]


@pytest.mark.parametrize(
    "args",
    [
        ("schedule", "add", "60 * * * *", TASK),
        ("schedule", "add", "every 1s", TASK),
        ("schedule", "add", "at 2020-01-01 10:00", TASK),
        ("schedule", "add", "* * * * *", " "),
        ("schedule", "add", "* * * * *"),
        ("schedule", "pause", "7"),
        ("schedule", "remove", "x"),
        ("schedule", "resume"),
        ("schedule", "what"),
        ("schedule",),
        ("pair", "--role", "king"),
        ("run",),
        ("run", TASK, "--max-steps", "0"),
        ("sweep", "--app", "line"),
        ("sweep", "抖音"),
        ("sweep", "微信"),
        ("worker", "--host", ""),
        ("demo", "--lang", "fr"),
        ("virtual-phone", "--port", "70000"),
        ("what",),
        (),
    ],
    ids=" ".join,
)
def test_bad_use_is_2(args: tuple[str, ...]) -> None:
    code, out, err = call(*args)
    assert code == Exit.USAGE
    assert out + err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PHONEDESK_WEB__PORT", "many", "PHONEDESK_WEB__PORT"),
        ("PHONEDESK_CONFIG", "/nowhere/p.toml", "/nowhere/p.toml"),
        ("PHONEDESK_DATABASE_URL", f"mysql://u:{SECRET}@h/d", "PHONEDESK_DATABASE_URL"),
        ("PHONEDESK_DATABASE_URL", f"postgresql://u:{SECRET[10:]}@127.0.0.1:1/d", "the server runs"),
        ("PHONEDESK_DATABASE_URL", "sqlite:////dev", "database /dev cannot be opened"),
        ("PHONEDESK_DATA_DIR", "/dev/null/data", "PHONEDESK_DATA_DIR"),
        ("PHONEDESK_TELEGRAM", SECRET, "environment"),
    ],
)
def test_bad_configuration_is_2_and_says_where(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    code, out, err = call("schedule", "list")
    assert (code, out) == (Exit.USAGE, "")
    assert said in err.replace("\n", "")
    assert SECRET[10:] not in err.replace("\n", "")


def test_a_pairing_code() -> None:
    code, out, _ = call("pair", "--role", "viewer", "--json")
    assert code == Exit.OK
    assert json.loads(out)["role"] == "viewer"
    assert len(json.loads(out)["code"]) == 8


def test_the_release() -> None:
    code, out, _ = call("--version")
    assert (code, out) == (Exit.OK, f"phonedesk {release()}\n")
    assert re.search(r"\d+\.\d+", out)


def test_what_is_reported_about_settings_leaves_the_output_clean(tmp_path: Path) -> None:
    """In a process of its own: before the settings are read nobody has set up logging."""
    environment = {**os.environ, "PHONE_AGENT_KNOWLEDGE_TIMEOUT_SECONDS": "soon"}
    program = "from bot.start import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "schedule", "list", "--json"],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []
    assert "PHONE_AGENT_KNOWLEDGE_TIMEOUT_SECONDS" in done.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigMissing("x"), Exit.USAGE),
        (InputRejected("x"), Exit.USAGE),
        (BadRequest("x"), Exit.USAGE),
        (NotFound("x"), Exit.USAGE),
        (DeviceOffline("x"), Exit.FAILED),
        (ModelAuth("x"), Exit.FAILED),
        (KnowledgeAuth("x"), Exit.FAILED),
        (AccessDenied("x"), Exit.FAILED),
        (RateLimited("x"), Exit.FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_has_its_code(error: PhonedeskError, code: Exit) -> None:
    async def work() -> None:
        raise error

    with pytest.raises(typer.Exit) as left:
        fail(error)
    assert left.value.exit_code == code
    with pytest.raises(typer.Exit) as left:
        run_async(work)
    assert left.value.exit_code == code


def test_an_error_never_shows_a_token(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        fail(DeviceOffline(f"GET https://x/bot{SECRET}/getMe [red]failed[/red]"))
    err = capfd.readouterr().err.replace("\n", "")
    assert SECRET not in err
    assert "[red]failed[/red]" in err


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_an_error_is_told_in_the_language_of_the_settings(lang: Lang, capfd: pytest.CaptureFixture[str]) -> None:
    settings_from(lang=lang)
    told = catalogue(lang)
    with pytest.raises(typer.Exit):
        fail(ModelAuth("HTTP 401."))
    out, err = capfd.readouterr()
    assert out == ""
    own = told["common.detail"].format  # the error's own words are English
    assert err.splitlines() == [told["error.model.auth"], own(text="HTTP 401."), told["advice.model.auth"]]
    with pytest.raises(typer.Exit):
        fail(ConfigMissing("No token.", advice="Set THIS."))  # more exact than what is said of the kind
    said, detail, advice = capfd.readouterr().err.splitlines()
    assert (said, detail) == (told["error.config.missing"], own(text="No token. Set THIS."))
    assert advice == told["advice.config.missing"]
    with pytest.raises(typer.Exit):
        fail(ConfigInvalid("No port.", advice="Choose another."))  # the settings are right: no word of checking them
    assert capfd.readouterr().err.splitlines() == [told["error.config.invalid"], own(text="No port. Choose another.")]


def test_an_error_where_nothing_is_set_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def said(error: PhonedeskError) -> str:
        with pytest.raises(typer.Exit):
            fail(error)
        return capfd.readouterr().err

    settings_from(lang="en")
    wrong_folder = "no .env or phonedesk.toml in this folder"
    assert wrong_folder not in said(DeviceOffline("x"))  # the environment has settings
    monkeypatch.delenv("PHONEDESK_TIMEZONE")
    assert wrong_folder in said(DeviceOffline("x"))
    assert wrong_folder not in said(InputRejected("x"))
    Path(".env").write_text("PHONEDESK_TIMEZONE=UTC\n")
    assert wrong_folder not in said(DeviceOffline("x"))


@pytest.mark.parametrize(("lang", "spoken"), [("zh", "zh"), ("en", "en"), (None, "zh"), ("", "zh")])
@pytest.mark.parametrize("dotenv", [False, True])
def test_an_error_of_the_settings_is_told_in_the_language_that_is_asked_for(
    lang: str | None, spoken: Lang, dotenv: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_from(lang="zh" if spoken == "en" else "en")  # of before
    monkeypatch.delenv("PHONEDESK_LANG")
    if lang is not None and dotenv:
        (tmp_path / ".env").write_text(f"PHONEDESK_LANG={lang}\n")
    elif lang is not None:
        monkeypatch.setenv("PHONEDESK_LANG", lang)
    monkeypatch.setenv("PHONEDESK_WEB__PORT", "many")
    code, _, err = call("schedule", "list")
    assert code == Exit.USAGE
    assert catalogue(spoken)["config.unusable"] in err
    assert "PHONEDESK_WEB__PORT" in err


def test_a_name_that_sets_nothing_is_told_with_the_right_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("schedule", "list")[2] == ""
    (tmp_path / ".env").write_text("PHONEDESK_TIMEZON=Asia/Tokyo\n")
    monkeypatch.setenv("PHONEDESK_MODL__NAME", "x")
    code, out, err = call("schedule", "list", "--json")
    assert (code, json.loads(out)) == (Exit.OK, [])
    model, zone = err.splitlines()
    assert "PHONEDESK_MODL__NAME" in model
    assert "PHONEDESK_MODEL__NAME" in model
    assert "PHONEDESK_TIMEZON" in zone
    assert "PHONEDESK_TIMEZONE" in zone


def test_a_second_server_or_worker_of_the_same_name_is_told_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEDESK_LOG_FILE", str(tmp_path / "{host}.log"))
    monkeypatch.setenv("PHONEDESK_LANG", "zh")
    monkeypatch.setenv("PHONEDESK_WEB__PORT", str(free_port()))
    first = ProcessLock(tmp_path / "data" / "phonedesk-1.lock")
    first.acquire("token")
    with FileLock(tmp_path / "phonedesk-1.log.lock"):
        code, _, err = call("serve")
        assert (code, f"已经有 phonedesk 在运行（进程 {os.getpid()}）" in err) == (Exit.USAGE, True)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            monkeypatch.setenv("PHONEDESK_WEB__PORT", str(port))
            monkeypatch.setattr("bot.channels.cli.commands.serve.ANSWER_SECONDS", 0.1)
            told = "".join(call("serve")[2].split())
        assert f"127.0.0.1:{port}又被另一个程序占着" in told, "it said nothing of phonedesk"
        assert not any(word in err + told for word in ("日志", "EXECUTOR_ID", "--host"))
        code, _, err = call("worker")
        assert (code, "phonedesk-1" in err, "--host" in err) == (Exit.USAGE, True, True)
        first.release()
        assert "日志文件" in call("serve")[2]
    assert first.acquire() == "token", "looking takes nothing from who had the name before"


def test_ctrl_c_is_130() -> None:
    async def interrupted() -> None:
        raise asyncio.CancelledError

    with pytest.raises(typer.Exit) as left:
        run_async(interrupted)
    assert left.value.exit_code == 130


def test_other_errors_are_not_swallowed() -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_async(broken)


def test_every_status_has_its_code() -> None:
    assert {status: int(BY_STATUS[status]) for status in Status} == {
        Status.SUCCEEDED: 0,
        Status.FAILED: 1,
        Status.WAITING: 3,
        Status.RUNNING: 3,
        Status.STOPPED: 130,
    }


def test_the_result_of_a_run() -> None:
    reply = ReplyRecord(contact="11", question="q", text="t", provenance="knowledge", delivered=True, score=0.5)
    question = Question(id="q1", kind=QuestionKind.INTERACT, text="?")
    session = Session(run_id="r", task=TASK, status=Status.WAITING, replies=[reply], questions=[question], message="m")
    result = result_of(session, 1.23456)
    assert json.loads(json.dumps(result, ensure_ascii=False)) == result
    assert (result["status"], result["run_id"], result["steps"], result["seconds"]) == ("waiting", "r", 0, 1.235)
    assert {"contact", "question", "text", "provenance", "delivered"} <= result["replies"][0].keys()
    assert result["questions"][0]["kind"] == "interact"


@pytest.mark.parametrize(
    ("lang", "said"), [("zh", "可选的值里：'reply'、'careful'、'open'。"), ("en", "'reply', 'careful', 'open'.")]
)
def test_the_choices_of_an_option_are_listed_as_the_language_does_it(
    monkeypatch: pytest.MonkeyPatch, lang: str, said: str
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    assert said in " ".join(call("run", "打开设置", "--policy", "foo")[2].split())


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_help_names_the_commands_as_they_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lang: str
) -> None:
    called = in_a_checkout(tmp_path, monkeypatch)
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    for arguments in (["kb", "edit", "--help"], ["--help"], ["run"], ["kb", "add", "--nothing"]):
        said = "".join(call(*arguments)[1:])
        assert said.count(called) >= 2, said
        assert not re.search(r"(?<!/)\bphonedesk (run|kb|--help|\[)", said), said


@pytest.mark.parametrize(
    ("typed", "zh", "en"),
    [
        (["kb", "list"], "可用的：search、add、", "There are: search, add, "),
        (["zzz"], "可用的：demo、init、", "There are: demo, init, "),
        (["kb", "delete", "a", "--zzz"], "可用的：--json、--help", "There are: --json, --help"),
        (["kb", "serch"], "是不是 'search'？", "Did you mean 'search'?"),
        (["kb", "delete", "a", "--jsn"], "是不是 --json？", "Did you mean --json?"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_ones(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], zh: str, en: str
) -> None:
    for lang, said in (("zh", zh), ("en", en)):
        monkeypatch.setenv("PHONEDESK_LANG", lang)
        code, _, err = call(*typed)
        assert code == Exit.USAGE
        assert said in err


@pytest.mark.device
async def test_devices_says_which_missing_phones_runs_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(load().url)
    await db.migrate()
    await Runs(db).create(NewRun(TASK, "127.0.0.1:1"))
    await Runs(db).create(NewRun(TASK))  # any phone will do
    await db.close()
    async with adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        code, _, said = await asyncio.to_thread(call, "devices")
        assert (code, json.loads((await asyncio.to_thread(call, "devices", "--json"))[1])) == (Exit.OK, [])
    assert "Runs wait for phones that are not here: 127.0.0.1:1." in said


def test_a_sweep_is_called_by_the_apps_name() -> None:
    assert sweep_words([], [], False, None) == "QQ"
    assert sweep_words(["11"], [], False, "wechat") == '微信 "11"'


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(
    ("typed", "there"),
    [("kb list", "kb search"), ("kb lst", "kb export"), ("history", "replay"), ("history", "answers")],
)
def test_what_is_expected_under_another_name_is_named(
    monkeypatch: pytest.MonkeyPatch, lang: Lang, typed: str, there: str
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    speak(None)
    code, _, err = call(*typed.split())
    wanted = help_texts(lang)["usage.perhaps"].partition("{")[0] + f"phonedesk {there}"
    assert (code, wanted in err) == (Exit.USAGE, True)
