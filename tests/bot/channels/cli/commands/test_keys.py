"""``phonedesk keys``."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.channels.cli.main import app
from bot.desk.keys import actor_of_key
from storage.engine import Database
from storage.hosts import Phones
from storage.people import Audit
from storage.runs import NewRun, Runs


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHONEDESK_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    url = f"sqlite:///{tmp_path / 'phonedesk.sqlite3'}"

    async def seen() -> None:
        db = Database(url)
        await db.migrate()
        await Phones(db).saw({"S1": "Pixel_8"})
        await db.close()

    asyncio.run(seen())
    return url


def told(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["keys", *arguments])
    return result.exit_code, result.stdout


async def begun(url: str, requested_by: str) -> list[str]:
    """One run of a key, and one of somebody else."""
    db = Database(url)
    made = [await Runs(db).create(NewRun("打开设置", "S1", requested_by=who)) for who in (requested_by, "key:99")]
    await db.close()
    return [one for one in made if one]


async def statuses(url: str, run_ids: list[str]) -> list[str]:
    db = Database(url)
    rows = [await Runs(db).get(one) for one in run_ids]
    await db.close()
    return [row.status for row in rows if row]


def test_a_key_from_add_to_remove(shop: str) -> None:
    code, out = told("add", "my-editor", "--phone", "S1", "--json")
    added = json.loads(out)
    assert (code, added["name"], added["role"], added["serials"]) == (0, "my-editor", "operator", ["S1"])
    key = told("add", "ci", "--role", "viewer")[1].strip()
    assert key.startswith("pdk_")

    async def known() -> list[str]:
        db = Database(shop)
        try:
            actors = [await actor_of_key(db, f"Bearer {secret}") for secret in (added["key"], key)]
            noted = [row.command for row in await Audit(db).last()]
        finally:
            await db.close()
        return [*(f"{actor.name} {actor.role}" for actor in actors if actor), *noted]

    assert asyncio.run(known()) == ["my-editor operator", "ci viewer", "keys add", "keys add"]
    listed = told("list", "--json")[1]
    assert [row["name"] for row in json.loads(listed)] == ["my-editor", "ci"]
    assert all(row["last_used_at"] for row in json.loads(listed))
    assert added["key"] not in listed
    assert re.search(r"my-editor.*Pixel 8", told("list")[1]), "the phone by its name"
    code, out = told("rotate", "ci", "--json")
    assert (code, json.loads(out)["name"]) == (0, "ci")
    assert json.loads(out)["key"] != key
    assert asyncio.run(known())[:2] == ["my-editor operator", "keys rotate"], "the old one is nobody's"
    going = asyncio.run(begun(shop, f"key:{added['id']}"))
    code, out = told("remove", "my-editor", "--json")
    assert (code, json.loads(out)["stopped"]) == (0, 1)
    assert asyncio.run(statuses(shop, going)) == ["stopped", "queued"]
    assert [row["name"] for row in json.loads(told("list", "--json")[1])] == ["ci"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "x", "--role", "king"),
        ("add", "x", "--phone", "nobody-has-seen-it"),
        ("add", "x", "--role", "owner", "--phone", "S1"),
        ("add", ""),
        ("add", "two\nlines"),
        ("remove", "nobody"),
        ("rotate", "nobody"),
    ],
)
def test_bad_use(shop: str, arguments: tuple[str, ...]) -> None:
    assert told(*arguments)[0] == 2
    assert json.loads(told("list", "--json")[1]) == []
