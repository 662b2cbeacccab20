"""``phonedesk replay`` of what was recorded: the page, lines of JSON, one step, timings, and another model's try."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.app.settings.loading import load
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.terminal.language import texts
from storage.engine import Database
from storage.tables import trajectories, trajectory_pictures
from tests.bot.desk.past import past_run
from tests.support.command_line import call, empty_place
from tests.support.model_server import ScriptedModel, Status

__all__ = ["empty_place"]  # a fixture

SECRET = "验证码 483920"


async def made(*secrets: str | None, steps: int = 2) -> list[str]:
    """One run for each, see ``past_run``; their ids."""
    db = Database("sqlite:///data/phonedesk.sqlite3")
    await db.migrate()
    try:
        return [await past_run(db, f"任务 {place}", steps=steps, secret=one) for place, one in enumerate(secrets, 1)]
    finally:
        await db.close()


async def thinned(pictures: bool) -> None:
    """As after a few days, or where a recording has lost its beginning."""
    db = Database("sqlite:///data/phonedesk.sqlite3")
    async with db.write() as connection:
        gone = sa.delete(trajectory_pictures) if pictures else sa.delete(trajectories).where(trajectories.c.step == 1)
        await connection.execute(gone)
    await db.close()


def runs(*secrets: str | None, steps: int = 2) -> list[str]:
    return asyncio.run(made(*secrets, steps=steps))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_lines_with_pictures_beside_or_inside_or_none(tmp_path: Path) -> None:
    ids = runs(None, SECRET, "")
    (tmp_path / ".a.jsonl.part").write_bytes(b"another user's")
    code, _, err = call("replay", "2", "--jsonl", "a.jsonl")
    assert (code, "2 steps, 2 pictures" in err) == (Exit.OK, True)
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    first, second = lines(text)
    assert (first["form"], first["run"], first["number"], first["step"], second["step"]) == (1, ids[1], 2, 1, 2)
    assert (first["model"], first["profile"], first["covered"]) == ("scripted", "autoglm-phone", True)
    assert first["screen"]["elements"][0] == {
        "text": "<按钮>", "box": [0, 0, 108, 20], "role": "button", "source": "tree"
    }  # fmt: skip
    assert (first["asked"]["kind"], first["thinking"], first["tokens_in"]) == ("tap", "想法 1", 100)
    assert first["reply"].endswith("</answer>")
    assert [message["role"] for message in second["messages"]] == ["system", "user"]  # each line is whole
    shown = second["messages"][1]["content"][0]["image_url"]["url"]
    assert shown == second["picture"]
    assert (tmp_path / shown).read_bytes().startswith(b"\xff\xd8")
    assert [file.read_bytes() for file in tmp_path.glob(".*.part")] == [b"another user's"]
    assert (mode(tmp_path / "a.jsonl"), mode(tmp_path / shown), mode(tmp_path / "a.pictures")) == (0o600, 0o600, 0o700)

    # What is covered for people is in no export, unless it is asked for.
    code, out, _ = call("replay", "2", "--jsonl", "-", "--embed")
    assert code == Exit.OK
    assert "483920" not in text + out
    inside = lines(out)[0]["picture"]
    code, out, _ = call("replay", "2", "--jsonl", "-", "--embed", "--raw")
    assert lines(out)[0]["covered"] is False
    assert "483920" in out
    assert lines(out)[0]["picture"] != inside

    # Of many, also those that were not recorded; without a place for pictures there are none.
    everything = lines(call("replay", "--last", "10", "--jsonl", "-")[1])
    assert [line["number"] for line in everything] == [3, 3, 2, 2, 1, 1]
    assert everything[0]["picture"] is None
    assert [part["type"] for part in everything[0]["messages"][1]["content"]] == ["text"]
    assert everything[-1]["messages"] is None
    assert everything[-1]["reply"] == ""
    assert len(lines(call("replay", "--since", "today", "--jsonl", "-")[1])) == 6


def test_the_page_and_one_step(tmp_path: Path) -> None:
    runs(SECRET, None)
    code, _, err = call("replay", "1", "--html", "a.html")
    assert (code, "Written to a.html" in err, mode(tmp_path / "a.html")) == (Exit.OK, True, 0o600)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "483920" not in page
    assert "第 1 屏 &lt;按钮&gt; ▒▒▒" in page
    assert call("replay", "1", "--html", "a.html")[0] == Exit.USAGE
    assert call("replay", "1", "--html", "a.html", "--raw", "--force")[0] == Exit.OK
    assert "483920" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert call("replay", "2", "--html", "b.html")[0] == Exit.OK  # not recorded: with the pictures for people
    assert (tmp_path / "b.html").read_text(encoding="utf-8").count("data:image/jpeg") == 2

    out = call("replay", "1", "--step", "2")[1]
    assert out.index("怎样回答") < out.index("第 2 屏 <按钮> ▒▒▒") < out.index("do(action=")
    told = json.loads(call("replay", "1", "--step", "2", "--json", "--raw")[1])
    assert (told["asked_of_model"]["model"], told["messages"][0]["role"]) == ("scripted", "system")
    assert SECRET in told["messages"][1]["content"][1]["text"]
    assert "not kept" in call("replay", "2", "--step", "1")[1]


def test_timings() -> None:
    runs("", "", None)
    one = json.loads(call("replay", "1", "--timings", "--json")[1])
    assert (one["runs"], one["steps"], one["asked"], one["tokens_in"]) == (1, 2, 2, 200)
    model = next(phase for phase in one["phases"] if phase["name"] == "model")
    assert (model["count"], model["mean"], model["least"], model["most"]) == (2, 0.75, 0.5, 1.0)
    assert model["deviation"] == pytest.approx(0.3536, abs=1e-3)
    assert json.loads(call("replay", "--timings", "--last", "2", "--json")[1])["asked"] == 2
    out = call("replay", "--timings")[1]
    assert "3 runs, 6 steps, 4 of them asked" in out
    assert "std. dev." in out


BAD_USE = {
    "1 --dry-run": "no_recording",
    "1 --step 3": "no_such_step",
    "2 --html a.html": "no_steps",
    "2 --timings": "no_steps",
    "9 --dry-run": "no_run_in_terminal",
    "1 --jsonl there": "file_there",
    "1 --html there": "file_there",
    "1 --html nowhere/a.html": "file_unwritable",
    "1 --timings --dry-run": "replay_one",
    "1 --last 3 --timings": "replay_one",
    "--last 3": "replay_only_with",
    "1 --model-name x": "replay_only_with",
    "--dry-run": "replay_which",
    "--jsonl -": "replay_which",
    "3 --dry-run --key-env NOT_THERE": "replay_no_key",
}


def test_bad_use_is_2_and_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(None)
    runs(None, steps=0)
    runs("")
    (tmp_path / "there").write_bytes(b"as it was")
    monkeypatch.setenv("COLUMNS", "300")
    for written, said in BAD_USE.items():
        code, _, err = call("replay", *written.split())
        assert code == Exit.USAGE, written
        last = texts("en").find(f"errors.{said}", "?").splitlines()[-1]
        assert last.split("{")[0] in err, f"{written}: {err}"
    assert (tmp_path / "there").read_bytes() == b"as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "there"]


async def test_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    await made(SECRET, steps=4)
    near = '<think>近</think><answer>do(action="Tap", element=[510,2])</answer>'
    far = '<think>远</think><answer>do(action="Tap", element=[500,900])</answer>'
    same = '<think>同</think><answer>do(action="Tap", element=[500,1])</answer>'
    monkeypatch.setenv("PHONEDESK_MODEL__API_KEY", "the-key-of-the-settings")
    monkeypatch.setenv("PHONEDESK_MODEL__EXTRA_BODY", '{"user_token": "for-the-settings-model"}')
    monkeypatch.setenv("OTHER_KEY", "another")
    async with ScriptedModel([same, near, far, "什么", same, Status(401), Status(401)]) as model:
        other = ("--model-url", model.url, "--model-name", "autoglm-phone-other")
        code, out, _ = await asyncio.to_thread(call, "replay", "1", "--dry-run", *other, "--json")
        assert code == Exit.OK
        told = json.loads(out)
        assert [step["likeness"] for step in told["steps"]] == ["same", "near", "different", "invalid"]
        assert (told["same"], told["near"], told["agreement"], told["profile"]) == (1, 1, 0.5, "autoglm-phone")
        assert told["steps"][0]["recorded"] == told["steps"][0]["new"]
        assert (told["tokens_in"], told["steps_recorded"], told["error"]) == (400, 4, None)
        assert "483920" not in str(model.requests)  # no other model is shown what people may not see
        assert "user_token" not in str(model.requests)  # and what is meant for the settings' model is told to no other
        assert all("the-key-of-the-settings" not in str(headers) for headers in model.headers)
        # It breaks off in the middle: what there is is shown, and the exit code tells.
        code, out, err = await asyncio.to_thread(call, "replay", "1", "--dry-run", *other, "--key-env", "OTHER_KEY")
        assert code == Exit.FAILED
        assert "1 step; same 1" in out
        assert "broke off at step 2" in err
        assert "another" in str(model.headers[-1])
    async with ScriptedModel([same] * 8) as model:
        args = ("replay", "1", "--dry-run", "--model-url", model.url, "--model-name", "autoglm-phone-other", "--least")
        assert (await asyncio.to_thread(call, *args, "75"))[0] == Exit.OK  # the tap on step 4 is near enough
        await thinned(pictures=True)
        code, out, _ = await asyncio.to_thread(call, *args, "0")
        assert "4 of these steps were asked without a picture" in out
        # Of what lost its beginning nothing is asked: it would be asked something else.
        await thinned(pictures=False)
        assert (await asyncio.to_thread(call, *args, "0"))[0] == Exit.USAGE
    assert load().trajectory.pictures == "covered"
