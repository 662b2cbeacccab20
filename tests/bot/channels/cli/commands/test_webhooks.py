"""``phonedesk webhooks``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.channels.cli.main import app
from bot.desk.webhook_messages import message_of
from storage.engine import Database
from storage.events import Events
from storage.webhooks import GONE, Attempt, Webhooks


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHONEDESK_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    monkeypatch.setenv("PHONEDESK_WEBHOOKS__ALLOW_PRIVATE", "127.0.0.1")

    async def made() -> None:
        db = Database(f"sqlite:///{tmp_path / 'phonedesk.sqlite3'}")
        await db.migrate()
        await db.close()

    asyncio.run(made())


def told(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["webhooks", *arguments])
    return result.exit_code, result.stdout, result.stderr


NOWHERE = "http://127.0.0.1:9/"  # nobody listens there


def test_an_address_is_listed_whole_however_narrow_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    url = f"{NOWHERE}{'a-long-path/' * 8}"
    assert told("add", url, "--events", "question,outcome")[0] == 0
    assert url in told("list")[1]


def test_a_webhook_from_add_to_remove() -> None:
    assert "no webhooks yet" in told("list")[1]
    code, out, _ = told("add", NOWHERE, "--events", "question, outcome", "--json")
    made = json.loads(out)
    assert (code, made["id"], made["events"], made["state"]) == (0, 1, ["question", "outcome"], "active")
    assert made["secret"].startswith("whsec_")
    code, out, said = told("rotate", "1")
    assert (code, out.strip() != made["secret"], "not shown again" in said) == (0, True, True)
    assert "Nothing was sent" in told("deliveries", "1")[1]
    code, out, _ = told("test", "1")
    assert code == 1
    assert "given up: ConnectError" in out
    listed = json.loads(told("deliveries", "1", "--dead", "--json")[1])
    assert [(one["event"], one["state"], one["attempts"]) for one in listed] == [("test", "dead", 1)]
    assert json.loads(told("retry", "1", str(listed[0]["id"]), "--json")[1])["state"] == "pending"
    (shown,) = json.loads(told("list", "--json")[1])
    assert (shown["state"], shown["waiting"], shown["dead"]) == ("failing", 1, 0)
    assert "failing; 1 waiting, 0 given up" in told("list")[1]
    assert "whsec_" not in told("list")[1] + told("list", "--json")[1]
    assert told("remove", "1")[0] == 0
    assert json.loads(told("list", "--json")[1]) == []


def test_each_message_says_why_it_is_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told("add", NOWHERE, "--events", "question")

    async def sent(*statuses: int) -> None:
        """Make two messages, and attempts that are answered so."""
        db = Database(f"sqlite:///{tmp_path / 'phonedesk.sqlite3'}")
        try:
            hooks = Webhooks(db)
            hook = await hooks.get(1)
            assert hook is not None
            for _ in range(2):
                await Events(db).append("r1", "question")
            await hooks.queue(hook, 0, message_of)
            for status in statuses:
                taken = await hooks.take(1)
                assert taken is not None
                await hooks.end(taken, Attempt(status, 0.1), again_at=db.now())
        finally:
            await db.close()

    def lines(*options: str) -> list[str]:
        return [line.split("question", 1)[1].strip() for line in told("deliveries", "1", *options)[1].splitlines()]

    asyncio.run(sent())
    assert told("deliveries", "1", "--dead")[1].strip() == "No message to it was given up."
    assert lines() == ["waits for message 1, which goes before it", "waits to be sent, 0 so far"]
    asyncio.run(sent(500))
    *behind, first = lines()
    assert behind == ["waits for message 1, which goes before it"] * 3
    assert first.endswith("HTTP 500, 1 so far")
    listed = json.loads(told("deliveries", "1", "--json")[1])
    assert [one["waits_for"] for one in listed] == [1, 1, 1, None]
    assert [one["next_at"] is None for one in listed] == [True, True, True, False]
    asyncio.run(sent(410))
    gone = "given up: its receiver answered 410, and the webhook was disabled; attempts: 0"
    assert lines("--dead") == [gone] * 5 + ["given up: HTTP 410; attempts: 2"]
    assert json.loads(told("deliveries", "1", "--json")[1])[0]["error"] == GONE
    monkeypatch.setenv("PHONEDESK_LANG", "zh")
    assert "接收方回应了 410" in lines("--dead")[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", NOWHERE, "--events", "questions"), "One of started, status"),
        (("add", NOWHERE), "--events"),
        (("add", "ftp://x", "--events", "question"), "https://HOST/PATH"),
        (("add", "https://192.168.1.1/", "--events", "question"), "PHONEDESK_WEBHOOKS__ALLOW_PRIVATE"),
        (("remove", "9"), "There is no webhook 9"),
        (("test", "9"), "There is no webhook 9"),
        (("rotate", "9"), "There is no webhook 9"),
        (("deliveries", "9"), "There is no webhook 9"),
        (("retry", "9", "1"), "There is no webhook 9"),
    ],
)
def test_bad_use(arguments: tuple[str, ...], says: str) -> None:
    code, _, said = told(*arguments)
    assert code == 2
    assert says in " ".join(said.split())
    assert json.loads(told("list", "--json")[1]) == []


def test_an_incoming_webhook_from_add_to_remove() -> None:
    assert "no incoming webhooks yet" in told("incoming", "list")[1]
    code, out, said = told("incoming", "add", "shop", "--may", "run")
    assert (code, out.strip()[:6], "/hooks/shop" in said) == (0, "whsec_", True)
    changed = json.loads(told("incoming", "rotate", "shop", "--json")[1])
    assert (changed["secret"] != out.strip(), changed["may"]) == (True, "run")
    assert "starts runs" in told("incoming", "list")[1]
    assert told("incoming", "add", "shop", "--may", "answer")[0] == 2
    assert told("incoming", "add", "b", "--may", "everything")[0] == 2
    assert told("incoming", "add", "b", "--may", "run", "--phone", "nobody")[0] == 2
    assert told("incoming", "remove", "shop")[0] == 0
    assert told("incoming", "remove", "shop")[0] == 2
    assert json.loads(told("incoming", "list", "--json")[1]) == []
