"""``phonedesk answers`` and ``phonedesk contacts`` as a shell calls them."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_core.ports import AnswerEvent, Event, MessageKey, Record, ReplyState
from bot.channels.cli.commands.answers import COLUMNS, PAGE
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.main import app
from scheduler.runs.executor import StoredRuns
from storage.engine import Database
from storage.ledger import StoredLedger
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]  # a fixture

EVIL = '=HYPERLINK("x")\n怎么退货，"急"'
SENT = AnswerEvent(
    1, "qq", "11", EVIL, ReplyState.SENT, "退货", [Record("r7", "七天内可退", score=0.9, source="embedded:r7")],
    "七天内可退", "knowledge", "r7", "embedded:r7", 0.9,
)  # fmt: skip


def tell(*events: AnswerEvent) -> None:
    """Into the database of the folder that the commands are called in."""

    async def told() -> None:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        try:
            for event in events:
                await StoredRuns(db).event("r1", Event("answer", event.data()))
        finally:
            await db.close()

    asyncio.run(told())


def test_an_empty_log() -> None:
    assert call("answers") == (Exit.OK, "There are no answers yet.\n", "")
    assert json.loads(call("answers", "--json")[1]) == []
    assert "No answer is like that." in call("answers", "--text", "x")[1]
    assert call("answers", "--csv", "-")[1].lstrip("\ufeff") == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("becomes", "told"),
    [
        ("asked", ("waits for a person's answer", "phonedesk questions answer q1")),
        ("answered", ("queued to be sent", "phonedesk serve sends what is queued")),
        ("stopped", ("no reply",)),
    ],
)
def test_what_was_not_sent_says_whom_it_waits_for(becomes: str, told: tuple[str, ...]) -> None:
    async def ask() -> None:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        run_id = await Runs(db).create(NewRun("QQ回复联系人11", "phone", begun=True))
        assert run_id is not None
        await StoredRuns(db).event(run_id, Event("answer", replace(SENT, state=ReplyState.PLANNED, sent="").data()))
        payload = {"id": "q1", "kind": "no_sure_answer", "text": "?", "free_text": True, "data": {"contact": "11"}}
        await Questions(db).ask("q1", run_id=run_id, kind="no_sure_answer", payload=payload)
        await Runs(db).park_attempt(run_id, 1)
        if becomes == "answered":
            await Questions(db).answer("q1", {"text": "可以"}, by="terminal")
        if becomes == "stopped":
            await Runs(db).request_stop(run_id)
        await db.close()

    asyncio.run(ask())
    out = " ".join(call("answers")[1].split())
    assert all(words in out for words in told), out
    assert "planned" not in out
    (row,) = json.loads(call("answers", "--json")[1])
    assert (row["state"], "standing" in row) == ("planned", False)


def test_the_log_for_people_and_programs() -> None:
    tell(
        SENT,
        replace(SENT, ledger_id=2, contact="12", question="[b]能[/b]刻字\x1b[31m吗", state=ReplyState.SKIPPED, sent=""),
    )
    out = call("answers")[1]
    assert out.index("#2") < out.index("#1")
    assert "[b]能[/b]刻字\\x1b[31m吗" in out  # words, neither markup nor the terminal's orders
    assert "→ 七天内可退" in out
    assert "2 in all" in out
    newest, first = json.loads(call("answers", "--json")[1])
    assert (newest["contact"], newest["state"]) == ("12", "skipped")
    assert first["asked_at"].endswith("+08:00")
    assert first["records"][0]["id"] == "r7"
    assert (first["question"], first["score"], first["rating"]) == (EVIL, 0.9, 0)

    def ids(*options: str) -> list[str]:
        return [row["id"] for row in json.loads(call("answers", "--json", *options)[1])]

    assert ids("--contact", "12") == ["2"]
    assert ids("--text", "退货") == ["1"]
    assert ids("--state", "sent") == ["1"]
    assert ids("--unanswered") == ["2"]
    assert ids("--since", "1h") == ["2", "1"]
    assert ids("--until", "2026-01-01") == []
    assert ids("--limit", "1") == ["2"]
    assert ids("--rated", "bad") == []


def test_a_question_that_a_stopped_run_has_read_is_without_an_answer() -> None:
    async def stopped() -> None:
        db = Database("sqlite:///data/phonedesk.sqlite3")
        await db.migrate()
        for contact in ("11", "12"):
            run_id = await Runs(db).create(NewRun(f"QQ回复联系人{contact}", "phone"))
            assert run_id is not None
            await StoredLedger(db).open(MessageKey("phone", "qq", contact, "f"), run_id=run_id, question="?")
            if contact == "12":
                await Runs(db).request_stop(run_id)
        await db.close()

    asyncio.run(stopped())
    out = call("answers", "--unanswered")[1]
    assert out.startswith("#2 · ⏹ Stopped · 12 was not answered"), out
    assert "#1" not in out
    assert call("answers", "--unanswered", "--contact", "11")[1] == "No answer is like that.\n"


def test_rating() -> None:
    tell(SENT)
    for _ in range(2):  # said again it stays
        assert call("answers", "rate", "1", "down") == (Exit.OK, "Rated 👎\n", "")
    assert [row["rated_by"] for row in json.loads(call("answers", "--rated", "bad", "--json")[1])] == ["terminal"]
    assert json.loads(call("answers", "rate", "1", "up", "--json")[1])["rating"] == 1
    assert "taken back" in call("answers", "rate", "1", "none")[1]
    assert json.loads(call("answers", "--json")[1])[0]["rated_at"] is None


def test_a_table_for_a_spreadsheet(tmp_path: Path) -> None:
    tell(SENT, *(replace(SENT, ledger_id=n, contact="@11", question=f"q{n}") for n in range(2, PAGE + 3)))
    call("answers", "rate", "1", "down")
    code, out, err = call("answers", "--csv", "a.csv")
    assert (code, out) == (Exit.OK, "")
    assert f"a.csv: {PAGE + 2}" in err
    raw = (tmp_path / "a.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfid,asked_at,")
    rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    assert len(rows) == PAGE + 2  # more than one page, and no default limit
    last = rows[-1]
    assert (last["id"], last["question"], last["rating"]) == ("1", f"'{EVIL}", "-1")
    assert (last["sent"], last["score"], last["provenance"], last["rated_by"]) == (
        "七天内可退",
        "0.9",
        "knowledge",
        "terminal",
    )
    assert last["records"] == "embedded:r7 (0.90): 七天内可退"
    assert rows[0]["contact"] == "'@11"
    printed = CliRunner().invoke(app, ("answers", "--csv", "-", "--contact", "11"))
    assert printed.stdout_bytes.startswith(b"\xef\xbb\xbfid,")
    assert len(list(csv.DictReader(io.StringIO(printed.stdout, newline="")))) == 1


@pytest.mark.parametrize(
    "args",
    [
        ("answers", "--since", "soon"),
        ("answers", "--state", "gone"),
        ("answers", "--rated", "so-so"),
        ("answers", "--limit", "0"),
        ("answers", "--csv", "nowhere/a.csv"),
        ("answers", "rate", "9", "up"),
        ("answers", "rate", "1", "5"),
        ("answers", "rate"),
        ("contacts", "add"),
        ("contacts", "add", "11", "--number", "12a"),
        ("contacts", "add", "11", "--app", "fax"),
        ("contacts", "edit", "11", "--note", "x"),
        ("contacts", "remove", "11"),
        ("contacts",),
    ],
    ids=" ".join,
)
def test_bad_use_is_2(args: tuple[str, ...]) -> None:
    code, out, err = call(*args)
    assert code == Exit.USAGE
    assert out + err


def test_contacts_from_add_to_remove() -> None:
    assert "No contacts are kept yet." in call("contacts", "list")[1]
    out = call(
        "contacts", "add", "11", "--number", "12345678", "--tag", "老客户", "--tag", "b", "--note", "n", "--json"
    )[1]
    added = {"app": "qq", "name": "11", "serial": "", "number": "12345678", "tags": ["老客户", "b"], "note": "n"}
    assert json.loads(out) == added
    assert "Contact 11 added" in call("contacts", "add", "11", "--serial", "S1")[1]
    assert [row["serial"] for row in json.loads(call("contacts", "list", "--json")[1])] == ["", "S1"]
    assert json.loads(call("contacts", "list", "--tag", "b", "--json")[1]) == [added]
    assert "12345678" in call("contacts", "list", "--text", "345")[1]
    assert "no such contact" in call("contacts", "list", "--text", "x")[1]
    changed = json.loads(call("contacts", "edit", "11", "--rename", "客户11", "--tag", "", "--number", "", "--json")[1])
    assert changed == added | {"name": "客户11", "tags": [], "number": ""}
    assert "Contact 客户11 removed" in call("contacts", "remove", "客户11")[1]
    call("contacts", "remove", "11", "--serial", "S1")
    assert json.loads(call("contacts", "list", "--json")[1]) == []
