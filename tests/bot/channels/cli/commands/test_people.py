"""``phonedesk pair`` and ``phonedesk people``, as a shell calls them."""

from __future__ import annotations

import asyncio
import json
import re
import sys

import pytest

from bot.channels.cli.commands.common import Exit
from bot.desk.people import actor_of
from simulator.telegram import FakeTelegram
from storage.engine import Database
from storage.people import People
from tests.support.command_line import call, empty_place

__all__ = ["empty_place"]  # an autouse fixture


async def _pair(code: str, number: int, name: str) -> str:
    db = Database("sqlite:///data/phonedesk.sqlite3")
    try:
        row = await People(db).pair(code, telegram_id=number, name=name)
        assert row is not None
        return actor_of(row).role.value
    finally:
        await db.close()


def invited(role: str, number: int, name: str) -> None:
    code, out, _ = call("pair", "--role", role, "--hours", "2", "--json")
    assert code == Exit.OK
    made = json.loads(out)
    assert (made["role"], made["link"]) == (role, "")  # no bot, no link
    assert made["expires_at"].endswith("+08:00")
    assert asyncio.run(_pair(made["code"], number, name)) == role


@pytest.mark.parametrize(("lang", "role", "word"), [("zh", "owner", "管理员"), ("en", "viewer", "viewer")])
def test_an_invitation_says_for_which_role_it_is_and_that_there_is_no_bot(
    monkeypatch: pytest.MonkeyPatch, lang: str, role: str, word: str
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    code, out, _ = call("pair", "--role", role)
    assert code == Exit.OK
    assert word in out
    assert "PHONEDESK_TELEGRAM__TOKEN" in out


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_task_for_several_cannot_be_rehearsed_and_one_for_nobody_says_whom_it_means(
    monkeypatch: pytest.MonkeyPatch, lang: str
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    code, _, err = call("run", "QQ回复11和12", "--dry-run")
    assert code == Exit.USAGE
    assert err.startswith("巡检不能演练" if lang == "zh" else "A sweep cannot be rehearsed")
    monkeypatch.setattr("bot.channels.cli.commands.run.sweep_for", lambda *_, **__: sys.exit(0))
    for task, said in (
        ("QQ回复", True),
        ("QQ回复11和12", False),
        ("QQ回复所有联系人", False),
        ("Reply to Everybody on QQ", False),
    ):
        _, out, _ = call("run", task)
        assert (("所有有未读消息的人" if lang == "zh" else "Everybody with unread messages") in out) is said


def test_from_the_invitation_to_the_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_DEVICE__NAMES", "S1=Counter,S2=Back office")
    assert json.loads(call("people", "list", "--json")[1]) == []
    assert call("people", "list")[1] == "Nobody is paired.\n"
    invited("owner", 11, "Chief")
    invited("operator", 12, "Anna")
    assert "#2  Anna" in call("people", "list")[1]
    assert json.loads(call("people", "role", "2", "viewer", "--json")[1])["role"] == "viewer"
    limited = call("people", "limit", "Anna", "--phone", "S1", "--phone", "Back office", "--chat", "12", "--json")
    assert limited[0] == Exit.OK, limited
    anna = json.loads(limited[1])
    assert (anna["phones"], anna["chats"]) == (["S1", "S2"], ["telegram:12"])
    lifted = json.loads(call("people", "limit", "#2", "--phone", "", "--json")[1])
    assert (lifted["phones"], lifted["chats"]) == ([], ["telegram:12"])
    assert "Anna is removed." in call("people", "remove", "2")[1]
    assert [person["name"] for person in json.loads(call("people", "list", "--json")[1])] == ["Chief"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["people", "remove", "1"], "last owner"),
        (["people", "role", "Chief", "viewer"], "last owner"),
        (["people", "limit", "1", "--phone", "S1"], "never limited"),
        (["people", "limit", "1"], "nothing to change"),
        (["people", "role", "7", "viewer"], "Nobody here is called #7"),
        (["pair", "--hours", "0"], "no time for an invitation"),
    ],
)
def test_what_cannot_be_done_is_said(words: list[str], said: str) -> None:
    invited("owner", 11, "Chief")
    code, _, err = call(*words)
    assert code == Exit.USAGE
    assert said in " ".join(err.split())


LINK = r"http://127\.0\.0\.1:8737/console/login#[\w-]{30,}"


def test_somebody_without_telegram_gets_a_link_and_later_another_one() -> None:
    code, out, _ = call("pair", "--name", "Anna", "--role", "viewer", "--json")
    made = json.loads(out)
    assert (code, made["name"], made["role"]) == (Exit.OK, "Anna", "viewer")
    assert re.fullmatch(LINK, made["link"])
    _, out, _ = call("pair", "--name", "Anna")
    assert re.search(LINK, out)
    assert "PHONEDESK_TELEGRAM__TOKEN" not in out
    invited("owner", 11, "Chief")
    for who in ("Chief", "1"):
        code, out, err = call("console", "--for", who)
        assert (code, bool(re.search(LINK, out)), "for a day" in err) == (Exit.OK, True, True)
    code, _, err = call("console", "--for", "Nobody")
    assert (code, "Nobody here is called Nobody" in err) == (Exit.USAGE, True)


async def test_with_a_bot_there_is_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeTelegram() as tg:
        monkeypatch.setenv("PHONEDESK_TELEGRAM__TOKEN", tg.token)
        monkeypatch.setenv("PHONEDESK_TELEGRAM__API_BASE_URL", tg.url.removesuffix("/bot"))
        _, out, _ = await asyncio.to_thread(call, "pair", "--json")
    made = json.loads(out)
    assert made["link"] == f"https://t.me/{tg.world.bot.username}?start={made['code']}"


def test_the_owner_at_this_machine_gets_a_link_to_the_console() -> None:
    code, out, _ = call("console", "--json")
    assert (code, json.loads(out)["served"]) == (Exit.OK, False)
    assert re.fullmatch(r"http://127\.0\.0\.1:8737/console/login#[\w-]{40,}", json.loads(out)["link"])
    code, out, err = call("console")
    assert (code, "/console/login#" in out) == (Exit.OK, True)
    assert "no phonedesk serve uses the data folder" in " ".join(err.split())
    assert "PHONEDESK_DATA_DIR" in err
