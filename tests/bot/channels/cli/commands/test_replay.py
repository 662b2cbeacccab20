"""``phonedesk replay`` as a shell calls it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

from agent_core.session import Session, Status, StepRecord
from agent_core.texts import LANGUAGES, Lang, say
from bot.channels.chat.texts import texts
from bot.channels.cli.commands.common import Exit
from storage.engine import Database
from storage.runs import PLAN, PLAN_PART, NewRun, Runs
from tests.bot.desk.past import past_run
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]  # a fixture


def runs(*steps: int) -> list[str]:
    """Past runs in the database of the folder that the commands are called in; their ids."""

    async def made() -> list[str]:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        try:
            return [
                await past_run(
                    db, f"[b]任务[/b]\x1b[31m {count}", steps=count, sent={"11": "七天内可退"} if count else {}
                )
                for count in steps
            ]
        finally:
            await db.close()

    return asyncio.run(made())


def test_nothing_yet() -> None:
    assert call("replay") == (Exit.OK, "Nothing has been run yet.\n", "")
    assert json.loads(call("replay", "--json")[1]) == []
    code, _, err = call("replay", "1")
    assert (code, "no run 1" in err) == (Exit.USAGE, True)


def test_the_list() -> None:
    ids = runs(2, 3)
    out = call("replay")[1]
    assert out.index("#2") < out.index("#1")
    assert "[b]任务[/b]\\x1b[31m 3" in out  # words, neither markup nor the terminal's orders
    assert "→ 11: 七天内可退" in out
    listed = json.loads(call("replay", "--json")[1])
    assert [row["id"] for row in listed] == ids[::-1]
    assert (listed[0]["number"], listed[0]["status"]) == (2, "succeeded")
    assert listed[0]["sent"] == [{"contact": "11", "text": "七天内可退"}]
    assert listed[0]["at"].endswith("+08:00")


def test_the_steps() -> None:
    (run_id,) = runs(2)
    for name in ("1", run_id):
        out = call("replay", name)[1]
        assert out.index("Tap (500, 1)") < out.index("想法 1") < out.index("Tap (500, 2)")
        assert "\x1b" not in out
    told = json.loads(call("replay", "1", "--json")[1])
    assert (told["number"], told["id"], told["pictures"], told["serial"]) == (1, run_id, 3, "S1")
    assert [step["thinking"] for step in told["steps"]] == ["想法 1", "想法 2"]


def test_a_run_without_steps_has_the_phones_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    runs(0)
    monkeypatch.setenv("PHONEDESK_DEVICE__NAMES", "S1=Counter")
    assert " · Counter · " in call("replay", "1")[1]


async def unreachable() -> None:
    """A run whose model did not answer: its only step has no action."""
    db = Database("sqlite:///data/phonedesk.sqlite3")
    await db.migrate()
    made = await Runs(db).create(NewRun("打开设置", "S1", begun=True))
    assert made is not None
    step = StepRecord(index=1, ok=False, result="No route to it.", timings={"step": 1.0})
    session = Session(run_id=made, task="打开设置", status=Status.FAILED, steps=[step])
    await Runs(db).save_session(made, session.model_dump_json())
    await Runs(db).end_attempt(made, 1, status="failed")
    await db.close()


def test_a_step_without_an_action_begins_with_what_happened() -> None:
    asyncio.run(unreachable())
    assert re.search(r"^ 1 +No route to it\. *$", call("replay", "1")[1], re.MULTILINE)


async def plan() -> None:
    """Of two parts, the second of them failed; it ended with its process, and left no word."""
    db = Database("sqlite:///data/phonedesk.sqlite3")
    await db.migrate()
    runs = Runs(db)
    made = await runs.create(NewRun("打开微信,再回复11", options={"kind": PLAN, "lang": "zh"}, begun=True))
    assert made is not None
    for task, status in (("打开微信", "succeeded"), ("QQ回复联系人11", "failed")):
        part = NewRun(task, "S1", options={"kind": PLAN_PART}, parent_id=made, begun=True)
        part_id = await runs.create(part)
        assert part_id is not None
        await runs.end_attempt(part_id, 1, status=status, message=f"{task}：{status}")
    await runs.end_attempt(made, 1, status="failed")
    await db.close()


def test_a_plan_points_to_its_parts_and_says_why_it_failed(tmp_path: Path) -> None:
    asyncio.run(plan())
    cut_off = texts("en").get("plan.interrupted")
    assert cut_off[:40] in call("replay")[1]
    code, out, _ = call("replay", "1", "--html", "a.html")
    assert code == Exit.OK
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    for told in (" ".join(out.split()), page[page.index("<main") :]):
        assert told.index(cut_off) < told.index("#2") < told.index("打开微信：succeeded") < told.index("#3")
        assert told.index("QQ回复联系人11：failed") < told.index("phonedesk replay 2 --html run-2.html")
    assert [part["number"] for part in json.loads(call("replay", "1", "--json")[1])["parts"]] == [2, 3]
    assert call("replay", "1", "--step", "1")[0] == Exit.USAGE


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_a_run_advises_is_whole_and_as_it_is_typed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lang: Lang
) -> None:
    advice = say(lang, "run.goes_on_elsewhere", run="#1")

    async def ended() -> None:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        run_id = await Runs(db).create(NewRun("QQ回复联系人11", "S1", begun=True))
        assert run_id is not None
        await Runs(db).end_attempt(run_id, 1, status="failed", message=advice)
        await db.close()

    asyncio.run(ended())
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/phonedesk")])
    wanted = "".join(advice.replace("phonedesk serve", ".venv/bin/phonedesk serve").split())
    for shown in (call("replay")[1], call("replay", "1")[1]):
        assert wanted in "".join(shown.split())


def test_files(tmp_path: Path) -> None:
    runs(2)
    code, out, err = call("replay", "1", "--gif", "a.gif", "--sheet", "b.jpg", "--json")
    assert code == Exit.OK
    assert json.loads(out)["number"] == 1
    assert "Written to a.gif (3 pictures" in err
    with Image.open(tmp_path / "a.gif") as gif, Image.open(tmp_path / "b.jpg") as sheet:
        assert (gif.format, getattr(gif, "n_frames", 1), sheet.format) == ("GIF", 3, "JPEG")


@pytest.mark.parametrize(
    "args",
    [
        ("--gif", "a.gif"),
        ("1", "--gif", "nowhere/a.gif"),
        ("1", "--gif", "a.gif", "--oops"),
        ("2", "--gif", "a.gif"),
        ("2", "--sheet", "a.jpg"),
        ("3", "--sheet", "a.jpg"),
    ],
    ids=" ".join,
)
def test_bad_use_is_2(args: tuple[str, ...], tmp_path: Path) -> None:
    runs(2, 0)  # the second has no pictures, a third is not there
    code, out, err = call("replay", *args)
    assert code == Exit.USAGE
    assert out + err
    assert list(tmp_path.glob("a.*")) == []


def test_one_picture_is_no_gif_but_a_sheet(tmp_path: Path) -> None:
    async def one() -> None:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        await past_run(db, steps=1)
        await db.close()

    asyncio.run(one())
    code, _, err = call("replay", "1", "--gif", "a.gif")
    assert (code, "--sheet" in err) == (Exit.USAGE, True)
    code, _, err = call("replay", "1", "--sheet", "a.jpg")
    assert (code, "one picture only" in err) == (Exit.OK, True)
    assert (tmp_path / "a.jpg").read_bytes().startswith(b"\xff\xd8")


def test_words_without_spaces_are_not_cut() -> None:
    async def one() -> None:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        await past_run(db, steps=1, thinking="先看看客户问了什么" * 20)
        await db.close()

    asyncio.run(one())
    told = "".join(line.strip() for line in call("replay", "1")[1].splitlines())
    assert "先看看客户问了什么" * 20 in told
