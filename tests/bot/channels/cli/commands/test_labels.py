"""``phonedesk apps labels`` and ``phonedesk apps forget``, as a shell calls them."""

from __future__ import annotations

import asyncio
import json

import pytest

from bot.channels.cli.commands.common import Exit
from storage.engine import Database
from storage.learnt import AppLabels
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]  # an autouse fixture


async def _found(*labels: tuple[str, str, str]) -> None:
    db = Database("sqlite:///data/phonedesk.sqlite3")
    try:
        await db.migrate()
        for serial, label, package in labels:
            await AppLabels(db).put(serial, label, package)
    finally:
        await db.close()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_remembered_label_is_listed_and_forgotten(monkeypatch: pytest.MonkeyPatch, lang: str) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    monkeypatch.setenv("PHONEDESK_DEVICE__NAMES", '{"P2": "Counter"}')
    assert "小店" not in call("apps", "labels")[1]
    asyncio.run(_found(("P1", "小店助手", "com.example.shop"), ("P2", "小店助手", "com.example.other")))
    code, out, _ = call("apps", "labels")
    assert code == Exit.OK
    assert all(word in out for word in ("小店助手", "com.example.shop", "P1", "com.example.other", "Counter"))
    [one] = json.loads(call("apps", "labels", "--device", "counter", "--json")[1])
    assert (one["serial"], one["label"], one["package"]) == ("P2", "小店助手", "com.example.other")
    code, out, _ = call("apps", "forget", " 小店 助手", "--device", "Counter")
    assert (code, "小店" in out) == (Exit.OK, True)
    assert [one["serial"] for one in json.loads(call("apps", "labels", "--json")[1])] == ["P1"]
    code, _, err = call("apps", "forget", "小店助手", "--device", "P2")
    assert code == Exit.USAGE
    assert "phonedesk apps labels" in err
    assert json.loads(call("apps", "forget", "小店助手", "--json")[1]) == {"label": "小店助手", "forgotten": 1}
