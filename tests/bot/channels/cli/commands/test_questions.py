"""``phonedesk questions``."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from agent_core.session import Question, QuestionKind
from agent_core.texts import say
from bot.channels.chat.questions import question_card
from bot.channels.cli.main import app
from bot.channels.cli.terminal.language import TerminalTexts
from bot.desk.views import QuestionView
from storage.engine import Database
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.tables import questions

PAYLOAD = {
    "id": "q1",
    "kind": "no_sure_answer",
    "text": "你们收旧茶叶罐不",
    "choices": [{"value": "record:0", "label": "回收"}, {"value": "skip", "label": "跳过", "key": "card.skip"}],
    "free_text": True,
    "data": {"contact": "11"},
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHONEDESK_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PHONEDESK_TIMEZONE", "Asia/Shanghai")

    async def ask() -> None:
        db = Database(f"sqlite:///{tmp_path / 'phonedesk.sqlite3'}")
        await db.migrate()
        run_id = await Runs(db).create(NewRun("QQ回复联系人11", "phone"))
        assert run_id is not None
        await Questions(db).ask("q1", run_id=run_id, kind="no_sure_answer", payload=PAYLOAD)
        await db.close()

    asyncio.run(ask())
    return tmp_path


def told(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["questions", *arguments])
    return result.exit_code, result.output


def test_the_open_ones_with_how_to_answer(shop: Path) -> None:
    code, said = told("list")
    assert code == 0
    assert "你们收旧茶叶罐不" in said
    assert "phonedesk questions answer q1" in said
    assert all(part in said for part in ("#1 · phone", "提问于", "QQ回复联系人11"))
    assert told() == (0, said)
    code, said = told("list", "--json")
    (row,) = json.loads(said)
    assert (row["id"], row["contact"], row["free_text"]) == ("q1", "11", True)
    assert (row["run"], row["phone"], row["task"]) == (1, "phone", "QQ回复联系人11")


def test_what_a_question_of_ours_advises_is_as_it_is_typed_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a customer wrote is shown as it was written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin/phonedesk")])
    advice = say("zh", "run.no_chat", contact="11")
    for kind, shown in (
        (QuestionKind.STUCK, "bin/phonedesk contacts"),
        (QuestionKind.NO_SURE_ANSWER, "phonedesk contacts"),
    ):
        view = QuestionView("q2", "r1", Question(id="q2", kind=kind, text=advice))
        said = " ".join(line.text for line in question_card(view, TerminalTexts("zh")).lines)
        assert f"或 {shown} 登记" in said


@pytest.mark.parametrize("said", ["1", "跳过", "今天就收"])
def test_an_answer_counts_once(shop: Path, said: str) -> None:
    assert told("answer", "q1", said, "--json") == (0, '{\n  "id": "q1",\n  "state": "accepted"\n}\n')
    code, shown = told("list")
    assert "你们收旧茶叶罐不" not in shown
    given = {"1": "回收", "跳过": "跳过"}.get(said, said)
    for other in ("又一个回答", "/stop", "7"):  # own words; what is confirmed as long as it can count; no answer at all
        code, shown = told("answer", "q1", other)
        assert code == 1
        assert re.search(rf"本机管理员在 \d{{4}}-\d\d-\d\d \d\d:\d\d 已经先回答了：{given}\s+没有改动", shown)
    code, shown = told("answer", "q1", "又一个回答", "--json")
    before = json.loads(shown)
    assert (code, before["state"], before["by"], before["answered_at"][-6:]) == (1, "late", "terminal", "+08:00")


@pytest.mark.parametrize(
    ("kind", "value", "follows"),
    [
        ("no_sure_answer", "record:0", "现在还没有发送：由 phonedesk serve 发送"),
        ("no_sure_answer", "skip", "任务由 phonedesk serve 接着做"),
        ("stuck", "stop", "任务到此结束，不会再给客户发送任何内容"),
        ("stuck", "go_on", "任务由 phonedesk serve 接着做"),
    ],
)
def test_an_answer_says_what_follows_from_it(shop: Path, kind: str, value: str, follows: str) -> None:
    async def change() -> None:
        db = Database(f"sqlite:///{shop / 'phonedesk.sqlite3'}")
        payload = {**PAYLOAD, "kind": kind, "choices": [{"value": value, "label": "这个"}]}
        async with db.write() as connection:
            await connection.execute(sa.update(questions).values(kind=kind, payload=payload))
        await db.close()

    asyncio.run(change())
    said = "".join(told("answer", "q1", "1")[1].split())
    assert follows.replace(" ", "") in said
    assert "现在没有phonedesk在操作手机" in said
    assert ("现在还没有发送" in said) is ("发送：由" in follows)


@pytest.mark.parametrize("given", ["1", "跳过"])
def test_after_a_restore_the_run_is_on_hold_and_an_answer_says_how_it_is_resumed(shop: Path, given: str) -> None:
    kept = str(shop / "kept.zip")
    made = CliRunner().invoke(app, ["backup", kept, "--json"])
    assert json.loads(made.output)["parts"] == ["phonedesk.sqlite3"], made.output
    done = CliRunner().invoke(app, ["restore", kept])
    assert done.exit_code == 0, done.output
    assert all(part in done.output for part in ("已暂停", "phonedesk console", "/resume", "/stop"))
    code, said = told("answer", "q1", given)
    assert code == 0
    assert all(part in said for part in ("任务暂停着", "phonedesk console", "/resume"))
    assert "由 phonedesk serve" not in said


def test_the_same_answer_again_is_accepted_again(shop: Path) -> None:
    for said in ("1", "1", "回收"):
        assert told("answer", "q1", said, "--json") == (0, '{\n  "id": "q1",\n  "state": "accepted"\n}\n')

    async def kept() -> list[bool]:
        db = Database(f"sqlite:///{shop / 'phonedesk.sqlite3'}")
        try:
            return [one.late for one in await Questions(db).given("q1")]
        finally:
            await db.close()

    assert asyncio.run(kept()) == [False, True, True], "the first one counts"


def test_an_answer_after_its_time_says_that_it_is_over(shop: Path) -> None:
    async def over() -> None:
        db = Database(f"sqlite:///{shop / 'phonedesk.sqlite3'}")
        run_id = await Runs(db).create(NewRun("QQ回复联系人12", "phone"))
        assert run_id is not None
        payload = {**PAYLOAD, "id": "q2"}
        await Questions(db).ask("q2", run_id=run_id, kind="no_sure_answer", payload=payload, deadline=db.now())
        assert len(await Questions(db).expire()) == 1
        await db.close()

    asyncio.run(over())
    for said in ("1", "7"):  # a choice, and what is no answer
        code, shown = told("answer", "q2", said)
        assert code == 1
        assert "已经结束" in shown
        assert "先回答" not in shown


@pytest.mark.parametrize("kind", ["no_sure_answer", "stuck"])
def test_a_mere_number_goes_to_nobody(shop: Path, kind: str) -> None:
    async def is_of() -> None:
        db = Database(f"sqlite:///{shop / 'phonedesk.sqlite3'}")
        async with db.write() as connection:
            await connection.execute(sa.update(questions).values(kind=kind, payload={**PAYLOAD, "kind": kind}))
        await db.close()

    asyncio.run(is_of())
    code, said = told("answer", "q1", "7")
    assert (code, "[1] 回收" in said, "只有 2 个选项：请写 1 到 2 的序号" in said) == (2, True, True)
    assert "q1" in told("list")[1]


def test_our_own_choices_are_in_the_language_of_who_reads(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question was asked in Chinese; what the customer and the base say stays."""
    assert "[2] 跳过" in told("list")[1]
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    said = told("list")[1]
    assert "[2] Skip" in said
    assert "[1] 回收" in said
    assert json.loads(told("list", "--json")[1])[0]["choices"] == ["回收", "Skip"]
    assert told("answer", "q1", "Skip")[0] == 0, "it is understood, too"
    assert "Skip" in told("answer", "q1", "no")[1]


def test_a_question_that_is_none(shop: Path) -> None:
    code, _ = told("answer", "ghost", "1")
    assert code == 2


@pytest.mark.parametrize("said", ["/stop", "停止", "make demo"])
def test_what_looks_like_a_command_is_confirmed_before_it_goes_to_a_customer(shop: Path, said: str) -> None:
    for typed in ("n\n", "\n", ""):
        result = CliRunner().invoke(app, ["questions", "answer", "q1", said], input=typed)
        assert (result.exit_code, "原样发给客户" in result.output) == (2, True)
        assert "没有发送任何内容。这个问题还在等回答。要回答：phonedesk questions answer q1 " in result.output
        assert "q1" in told("list")[1]
    assert told("answer", "q1", said, "--json") == (2, '{\n  "id": "q1",\n  "state": "refused"\n}\n')
    assert CliRunner().invoke(app, ["questions", "answer", "q1", said], input="y\n").exit_code == 0
    assert "q1" not in told("list")[1]
