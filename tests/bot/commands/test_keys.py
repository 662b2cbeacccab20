"""``phonedesk keys``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.web.keys import actor_of_key
from storage.engine import Database
from storage.people import Audit
from storage.phones import Phones


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
    assert "my-editor" in told("list")[1]
    assert told("remove", "my-editor")[0] == 0
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
    ],
)
def test_bad_use(shop: str, arguments: tuple[str, ...]) -> None:
    assert told(*arguments)[0] == 2
    assert json.loads(told("list", "--json")[1]) == []
