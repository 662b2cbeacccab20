"""``phonedesk eval`` as a shell calls it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from multiprocessing.queues import Queue
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.channels.cli.commands.common import Exit
from bot.channels.cli.main import app
from bot.tools.eval.case import Interrupted
from bot.tools.eval.result import Case, CaseResult
from bot.tools.eval.suite import find_cases
from simulator.phone.apps.looks import LOOKS
from tests.support.environment import without_settings

pytestmark = pytest.mark.rotating(parts=4)

NOTHING_NEW = """
title = "{title}"
modes = ["tree"]
[[contacts]]
name = "11"
history = [{{ text = "几天发货？", ago = 90 }}, {{ side = "me", text = "两天", ago = 60 }}]
[expect]
message = "{message}"
"""


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    monkeypatch.setenv("COLUMNS", "200")


def write(name: str, message: str = "没有新消息", title: str = "") -> None:
    folder = Path("cases")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(NOTHING_NEW.format(title=title or name, message=message), "utf-8")


def call(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["eval", *args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_a_table_with_what_went_wrong_below_it() -> None:
    write("good", title="All is well")
    write("bad", message="已回复")
    code, out, _ = call("cases", "--keep", "kept")
    assert code == Exit.FAILED
    assert "All is well" in out
    assert "passed" in out
    assert "cases/bad.toml (tree, qq-plain)\n  message: '已回复' does not stand in '没有新消息" in out
    assert f"kept in {Path('kept') / 'bad-tree-qq-plain'}" in out
    assert "1 of 2 passed" in out
    assert [folder.name for folder in Path("kept").iterdir()] == ["bad-tree-qq-plain"]


def test_json_of_two_processes_in_the_files_order() -> None:
    write("b")
    write("a")
    code, out, _ = call("cases", "--jobs", "2", "--json")
    told = json.loads(out)
    assert code == Exit.OK
    assert [Path(case["file"]).stem for case in told["cases"]] == ["a", "b"]
    assert (told["passed"], told["failed"], told["model"]) == (2, 0, "scripted")
    assert all(case["passed"] and case["problems"] == [] for case in told["cases"])
    assert told["cases"][0]["statuses"] == ["succeeded"]


def test_a_scenario_runs_in_every_look_of_its_app() -> None:
    write("a")
    code, out, _ = call("cases", "--look", "wechat-dark,qq-classic,qq-dark,qq-classic", "--json")
    assert [(case["look"], case["problems"]) for case in json.loads(out)["cases"]] == [
        ("qq-classic", []),
        ("qq-dark", []),
    ]
    assert code == Exit.OK
    code, _, told = call("cases", "--look", "wechat-dark")
    assert code == Exit.USAGE
    assert "--look" in told


def test_without_a_look_files_run_as_they_say() -> None:
    write("a")
    write("b")
    Path("cases/b.toml").write_text('look = "qq-2023"\n' + Path("cases/b.toml").read_text("utf-8"), "utf-8")
    assert [case.look for case in find_cases([Path("cases")])] == ["qq-plain", "qq-2023"]
    assert {case.look for case in find_cases([Path("cases")], looks=list(LOOKS))} == {
        key for key, look in LOOKS.items() if look.app == "qq"
    }


def test_broken_files_are_bad_use() -> None:
    write("good")
    Path("cases/broken.toml").write_text("[expect]\n\nsend = {}", "utf-8")
    Path("cases/worse.json").write_text('{"phone": {"size": [1, 2]}}', "utf-8")
    code, out, told = call("cases")
    assert code == Exit.USAGE
    assert out == ""
    assert "cases/broken.toml:3: expect.send: there is no such field; allowed are status," in told
    assert "cases/worse.json:1: phone.size[0]: " in told


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["empty"], "no scenario in empty"),
        (["none.toml"], "none.toml"),
        (["--match", "no such words"], "--match"),
        (["--look", "qq-plain,qq-steam"], "no look “qq-steam”"),
        (["--look", "qq-steam"], "qq-classic"),
        (["--model-url", "http://127.0.0.1:9/v1"], "--model-name"),
    ],
)
def test_nothing_to_run_is_bad_use(args: list[str], words: str) -> None:
    Path("empty").mkdir()
    code, _, told = call(*args)
    assert code == Exit.USAGE
    assert words in told


@pytest.mark.device
def test_the_demo_takes_the_same_files() -> None:
    write("good")
    args = ["demo", "--headless", "--json", "--task", "QQ回复联系人11", "--scenario", "cases/good.toml"]
    done = CliRunner().invoke(app, args)
    told = json.loads(done.stdout)
    assert (done.exit_code, told["status"], told["phone"]["sent"]) == (0, "succeeded", {})
    Path("cases/good.toml").write_text("[expect]\nsend = {}", "utf-8")
    done = CliRunner().invoke(app, args)
    assert done.exit_code == Exit.USAGE
    assert "good.toml:2: expect.send" in done.stderr.replace("\n", "")


def test_the_virtual_phone_takes_them_too() -> None:
    Path("broken.toml").write_text("[expect]\nsend = {}", "utf-8")
    done = CliRunner().invoke(app, ["virtual-phone", "--scenario", "broken.toml"])
    assert done.exit_code == Exit.USAGE
    assert "broken.toml:2: expect.send" in done.stderr


def test_the_virtual_phone_says_which_looks_there_are() -> None:
    for looks, words in ((("qq-old-style",), "qq-classic"), (("qq-plain", "qq-dark"), "both looks of qq")):
        options = [part for look in looks for part in ("--look", look)]
        done = CliRunner().invoke(app, ["virtual-phone", *options], env={"COLUMNS": "1000"})
        assert done.exit_code == Exit.USAGE
        assert words in done.stderr


def test_files_of_one_name_are_kept_apart() -> None:
    for folder in ("a", "b"):
        write(folder, message="已回复")
        Path("cases", folder).mkdir()
        Path(f"cases/{folder}.toml").rename(f"cases/{folder}/same.toml")
    call("cases", "--keep", "kept")
    assert {path.parent.as_posix() for path in Path("kept").rglob("problems.txt")} == {
        "kept/a/same-tree-qq-plain",
        "kept/b/same-tree-qq-plain",
    }
    one, two = find_cases([Path("cases/a"), Path("cases/b")])
    assert (one.name, two.name) == ("same", "same-2")


def test_a_process_that_dies_loses_its_own_case_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        write(name)
    monkeypatch.setattr("bot.tools.eval.suite._work", dies_at_the_second)
    code, out, _ = call("cases", "--jobs", "2", "--json")
    told = {Path(case["file"]).stem: case["problems"] for case in json.loads(out)["cases"]}
    assert code == Exit.FAILED
    assert told == {"a": [], "b": ["its process ended"], "c": []}


def dies_at_the_second(waiting: Queue[Case | None], done: Queue[CaseResult | str], *_: object) -> None:
    """A worker in place of the real one: it passes every case but "b", at which it ends without a word."""
    while (case := waiting.get()) is not None:
        if case.name == "b":
            return
        done.put(case.result())


def test_what_there_is_is_told_when_somebody_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def one_and_then_stopped(cases: Sequence[Case], options: object) -> AsyncGenerator[CaseResult, None]:
        yield replace(cases[0].result(), title="the first")
        raise Interrupted

    write("a")
    write("b")
    monkeypatch.setattr("bot.tools.eval.suite.run_cases", one_and_then_stopped)
    code, out, told = call("cases", "--json")
    assert code == Exit.STOPPED
    assert [case["title"] for case in json.loads(out)["cases"]] == ["the first"]
    assert "1 of 2 was not run" in told


def test_name_and_result_can_be_read_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    write("good", title="三个问题，一个回答过")
    write("bad", message="已回复", title="第二个")
    _, out, _ = call("cases")
    assert "三个问题，一个回答过" in out
    assert "passed" in out
    assert "message: '已回复' does" in out
    assert all(len(line) <= 80 for line in out.splitlines() if line.startswith(("│", "┃")))


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("eval", "gone.toml"), "Name a .toml or .json file."),
        (("demo", "--headless", "--task", "x", "--scenario", "bad.toml"), "Correct the fields that are named"),
    ],
)
def test_a_scenario_file_that_cannot_be_used_is_no_matter_of_settings(command: Sequence[str], advice: str) -> None:
    Path("bad.toml").write_text("nonsense = 1\n", "utf-8")
    told = CliRunner().invoke(app, list(command))
    assert told.exit_code == Exit.USAGE
    assert advice in told.stderr
    assert "doctor" not in told.stderr
