"""Commands over a database that holds what somebody outside chose: words on a terminal, never orders to it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings

from agent_core.ports import AnswerEvent, Event, Record, ReplyState
from bot.channels.cli.commands.common import Exit
from scheduler.runs.executor import StoredRuns
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from storage.api_keys import ApiKeys
from storage.contacts import Contacts, NewContact
from storage.engine import Database
from storage.people import People
from storage.questions import Questions
from storage.runs import Runs
from storage.schedules import NewSchedule, Schedules
from storage.tables import runs
from tests.bot.desk.past import past_run
from tests.bot.hostile_texts import CONTROLS, DANGEROUS, MARKUP, ORDERS, TURNS, hostile
from tests.support.adb import adb_server
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]  # an autouse fixture

ALL = "".join(CONTROLS + ORDERS + TURNS + MARKUP)
HUMAN = [
    ["answers"],
    ["answers", "--csv", "-"],
    ["questions", "list"],
    ["kb", "search", "发货"],
    ["contacts", "list"],
    ["people", "list"],
    ["keys", "list"],
    ["schedule", "list"],
    ["replay"],
    ["replay", "1"],
    ["replay", "1", "--step", "1"],
    ["replay", "1", "--jsonl", "-"],
]
PROGRAM = [[*command, "--json"] for command in HUMAN if "-" not in command]


async def _fill(text: str) -> None:
    """A database in which everything that may be from outside is ``text``."""
    db = Database("sqlite:///data/phonedesk.sqlite3")
    await db.migrate()
    try:
        run = await past_run(db, text, steps=2, message=text, sent={text: text}, secret=text, thinking=text)
        said = AnswerEvent(1, "qq", text, text, ReplyState.SENT, text, [Record("r7", text, source=text)], text,
                           "knowledge", "r7", text, 0.9)  # fmt: skip
        await StoredRuns(db).event(run, Event("answer", said.data()))
        payload = {"id": "q1", "kind": "no_sure_answer", "text": text, "data": {"contact": text}, "free_text": True,
                   "choices": [{"value": "record:0", "label": text}]}  # fmt: skip
        await Questions(db).ask("q1", run_id=run, kind="no_sure_answer", payload=payload)
        await Contacts(db).add(NewContact("qq", text, note=text, tags=[text]))
        await ApiKeys(db).add(text, role="viewer", created_by=text)
        await Schedules(db).add(NewSchedule("0 9 * * *", "Asia/Shanghai", text))
        people = People(db)
        await people.add_code("code", role="owner", lifetime=timedelta(hours=1), created_by=text)
        await people.pair("code", telegram_id=7, name=text)
        async with db.write() as connection:
            await connection.execute(sa.update(runs).values(requested_by=text))
        assert await Runs(db).get(run) is not None
    finally:
        await db.close()


@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=hostile)
@example(text=ALL)
def test_what_a_person_sees_holds_no_control_character(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.chdir(folder)
        asyncio.run(_fill(text))
        assert call("kb", "add", f"发货{text}", f"发货{text}", "--tag", "a")[0] == Exit.OK
        for command in HUMAN:
            code, out, err = call(*command)
            assert code == Exit.OK, (command, out, err)
            assert not DANGEROUS.search(err), (command, err)
            if "--csv" not in command:  # a file: whole, as it is piped
                assert not DANGEROUS.search(out), (command, out)


def test_what_a_program_reads_is_json_and_whole() -> None:
    asyncio.run(_fill(ALL))
    for command in PROGRAM:
        code, out, _ = call(*command)
        assert code == Exit.OK
        assert not DANGEROUS.search(out), (command, out)
        told = json.loads(out)
        if command[0] in {"answers", "questions", "contacts", "schedule"}:
            assert ALL in _strings(told), command


def _strings(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {text for item in value.values() for text in _strings(item)}
    if isinstance(value, list):
        return {text for item in value for text in _strings(item)}
    return {value} if isinstance(value, str) else set()


async def test_a_phone_that_has_markup_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "[red]x[/red]\x1b[31m"
    async with adb_server() as adb, serve(default_scenario()) as phone:
        phone.phone.properties["ro.product.model"] = name
        await adb.connect(int(phone.address.rpartition(":")[2]))
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        code, out, _ = await asyncio.to_thread(call, "devices")
        assert code == Exit.OK
        assert "[red]x[/red]\\x1b" in out
        (told,) = json.loads((await asyncio.to_thread(call, "devices", "--json"))[1])
        assert told["model"] == name
