"""Who gets in through Telegram, and who does not: raw updates, a real desk, and the lists of commands."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
import sqlalchemy as sa

from bot.channels.chat.commands import usable
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import Role
from simulator.telegram import FakeTelegram
from storage.engine import Database
from storage.messages import InboxRow, InboxTable, OutboxTable
from storage.people import Audit
from storage.runs import Runs
from storage.tables import inbox
from tests.bot.channels.telegram.door import OPERATOR, STRANGER, Door, message, private, user
from tests.bot.channels.telegram.house import FAST, until

BOT = {"id": 4242, "is_bot": True, "first_name": "Helper", "username": "helper_bot"}
PRIVATE = '{"type":"all_private_chats"}'
GROUPS = '{"type":"all_group_chats"}'


GROUP = {"id": -1001, "type": "supergroup", "title": "shop"}


def forwarded(**origin: Any) -> dict[str, Any]:
    return {"forward_origin": {"date": 1_700_000_000, **origin}}


BY_USER = forwarded(type="user", sender_user=user(10))
BY_HIDDEN = forwarded(type="hidden_user", sender_user_name="Chief")
CHANNEL = {"id": -1002, "type": "channel", "title": "news"}
TAP = {"id": "q1", "from": user(STRANGER), "chat_instance": "1", "data": "go"}
BOTS_CARD = message(0, "作为任务执行吗？", **{"from": {**BOT, "id": 1}, "chat": GROUP})

OLD = {"message_id": 5, "date": 0}


def tapped(data: str | None, *, chat: dict[str, Any] | None = None) -> dict[str, Any]:
    """The operator's tap on a button under a message of ours."""
    there = message(0, "…", **{"from": {**BOT, "id": 1}, "chat": chat or private(OPERATOR)})
    query = {**TAP, "from": user(OPERATOR), "message": there, "data": data}
    return {"callback_query": {key: value for key, value in query.items() if value is not None}}


# What comes in, and what stands in the audit log afterwards: actor, command, why.
NOBODY_GETS_IN: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "stranger": ({"message": message(STRANGER)}, [("telegram:99", "run", "stranger")]),
    "stranger with the name and username of the owner": (
        {"message": message(STRANGER, **{"from": user(STRANGER, first_name="Chief", username="chief")})},
        [("telegram:99", "run", "stranger")],
    ),
    "stranger in a group": ({"message": message(STRANGER, chat=GROUP)}, [("telegram:99", "run", "stranger")]),
    "wrong code": ({"message": message(STRANGER, "/start WRONGONE")}, [("telegram:99", "pair", "")]),
    "stranger's tap": ({"callback_query": {**TAP, "message": BOTS_CARD}}, [("telegram:99", "button", "stranger")]),
    "viewer's tap that was made up": (
        {"callback_query": {**TAP, "from": user(12), "data": "people:role:3:owner", "message": BOTS_CARD}},
        [("3", "people role", "role")],
    ),
    "tap under a message of nobody": (
        {"callback_query": {**TAP, "from": user(OPERATOR), "inline_message_id": "i1"}},
        [("2", "button", "button")],
    ),
    "forwarded command": ({"message": message(OPERATOR, **BY_USER)}, [("2", "forwarded", "forwarded")]),
    "forwarded by somebody hidden": ({"message": message(OPERATOR, **BY_HIDDEN)}, [("2", "forwarded", "forwarded")]),
    "stranger forwards the owner": (
        {"message": message(STRANGER, **BY_USER)},
        [("telegram:99", "forwarded", "stranger")],
    ),
    "edited": ({"edited_message": message(OPERATOR, edit_date=1_700_000_001)}, [("2", "edited", "edited")]),
    "by way of another bot": ({"message": message(OPERATOR, via_bot=BOT)}, [("2", "inline", "inline")]),
    "inline query": (
        {"inline_query": {"id": "1", "from": user(OPERATOR), "query": "/run x", "offset": ""}},
        [("2", "inline", "inline")],
    ),
    "inline result": (
        {"chosen_inline_result": {"result_id": "1", "from": user(STRANGER), "query": "/run x"}},
        [("telegram:99", "inline", "stranger")],
    ),
    "in the name of the group": (
        {"message": message(OPERATOR, chat=GROUP, sender_chat=GROUP)},
        [("2", "channel", "channel")],
    ),
    # Buttons tapped again, elsewhere, or made up
    "Stop of a run that is gone": (tapped("stop:none"), [("2", "old", "old")]),
    "choice of a question that is gone": (tapped("q:none:0"), [("2", "old", "old")]),
    "choice that is no number": (tapped("q:none:²"), [("2", "old", "old")]),
    "person of another release": (tapped("people:what"), [("2", "old", "old")]),
    "made-up button": (tapped("🙂:1"), [("2", "forged", "forged")]),
    "button without anything": (tapped(None), [("2", "forged", "forged")]),
    "button in somebody else's chat": (tapped("stop:none", chat=private(10)), [("2", "forged", "forged")]),
    "button under a message that is not to be seen": (
        {
            "callback_query": {
                **TAP,
                "from": user(OPERATOR),
                "data": "q:1:0",
                "message": {**OLD, "chat": private(OPERATOR)},
            }
        },
        [("2", "old", "old")],
    ),
    "command in somebody else's chat": ({"message": message(OPERATOR, chat=private(10))}, [("2", "forged", "forged")]),
    # What names no person
    "anonymous admin": (
        {"message": message(0, chat=GROUP, sender_chat=GROUP, **{"from": {**BOT, "username": "GroupAnonymousBot"}})},
        [],
    ),
    "another bot": ({"message": message(0, chat=GROUP, **{"from": BOT})}, []),
    "nobody": ({"message": message(OPERATOR, **{"from": None})}, []),
    "channel post": ({"channel_post": message(0, chat=CHANNEL, sender_chat=CHANNEL, **{"from": None})}, []),
    "edited channel post": ({"edited_channel_post": message(0, chat=CHANNEL, **{"from": None})}, []),
    # What was not meant for us
    "command for another bot": ({"message": message(OPERATOR, "/run@other_bot x", chat=GROUP, **BY_USER)}, []),
    "edited talk": ({"edited_message": message(OPERATOR, "hello", edit_date=1_700_000_001)}, []),
    "stranger's talk in a group": ({"message": message(STRANGER, "hello", chat=GROUP)}, []),
}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("name", NOBODY_GETS_IN)
async def test_nobody_gets_in_and_it_is_written_down(door: Door, name: str) -> None:
    raw, rows = NOBODY_GETS_IN[name]
    people = await door.desk.people.members("telegram")
    await door.comes_in(raw)
    assert await Runs(door.db).find() == []
    assert await door.desk.people.members("telegram") == people
    assert await door.refused() == rows


async def test_the_buttons_of_a_run_that_is_over_are_refused(door: Door) -> None:
    await door.comes_in({"message": message(OPERATOR)})
    [run] = await Runs(door.db).find()
    await Runs(door.db).request_stop(run.id)
    for number in range(2):  # its own Stop, twice
        await door.comes_in_as(2000 + number, tapped(f"stop:{run.id}"))
    [after] = await Runs(door.db).find()
    assert (after.status, after.ended_at) == ("stopped", after.ended_at)
    assert await door.refused() == [("2", "old", "old")] * 2
    view = (await door.desk.team.refused(door.owner))[0]
    assert (view.who, view.why) == ("Person 11", "old")


async def test_an_update_that_is_handled_again_is_answered_once(door: Door) -> None:
    """A kill came after the answer was stored, and before the update was noted as done."""
    operator = await door.user(OPERATOR)
    asked = {"message": message(OPERATOR, "/whoami")}
    await door.comes_in_as(3000, asked)
    async with door.db.write() as connection:
        await connection.execute(sa.update(inbox).values(state="new"))
    async with door.adapter():
        await until(lambda: len(operator.chat.from_bot) == 1)
        async with asyncio.timeout(10):
            while await InboxTable(door.db).waiting() or await OutboxTable(door.db).due():
                await asyncio.sleep(0.01)
    assert len(operator.chat.from_bot) == 1


async def test_what_was_dealt_with_while_the_store_was_read_is_not_handled_again(door: Door) -> None:
    """The store's answer may be older than what was done meanwhile."""

    class Slow(InboxTable):
        async def waiting(self, limit: int = 100, *, without: Collection[int] = ()) -> list[InboxRow]:
            rows = await super().waiting(limit, without=without)
            await asyncio.sleep(0.1)  # long enough for what is at work to end
            return rows

    operator = await door.user(OPERATOR)
    options = TelegramOptions(door.tg.token, base_url=door.tg.url, base_file_url=door.tg.file_url, **FAST)
    async with TelegramAdapter(door.desk, Slow(door.db), OutboxTable(door.db), options) as adapter:
        await asyncio.wait_for(adapter.ready.wait(), 10)
        for _ in range(5):
            await operator.send("/history")
            await asyncio.sleep(0.03)
        async with asyncio.timeout(10):
            while await InboxTable(door.db).waiting() or len(operator.chat.from_bot) < 5:
                await asyncio.sleep(0.05)
    rows = [row for row in await Audit(door.db).last() if row.command == "history"]
    assert len(rows) == 5


async def test_an_expired_invitation_lets_nobody_in(tg: FakeTelegram, db: Database) -> None:
    door = Door(tg, db)
    owner = await door.open()
    made = await door.desk.team.invite(owner, Role.OPERATOR, 1e-6)
    await door.comes_in({"message": message(STRANGER, f"/start {made.code}")})
    assert await door.desk.people.actor("telegram", str(STRANGER)) is None
    assert await door.refused() == [("telegram:99", "pair", "")]
    assert made.code not in str(await Audit(db).last())


async def test_what_is_no_trick_gets_in(door: Door) -> None:
    await door.comes_in({"message": message(OPERATOR)})
    assert [run.task for run in await Runs(door.db).find()] == ["打开设置"]
    assert await door.refused() == []


async def test_one_polite_line_and_nothing_more(door: Door) -> None:
    stranger = await door.user(STRANGER)
    async with door.adapter():
        for text in ("/people", "/run x", "hello"):
            await stranger.send(text)
        await stranger.sees(lambda chat: chat.saying("只服务于已配对的成员"))
        async with asyncio.timeout(10):
            while await InboxTable(door.db).waiting():
                await asyncio.sleep(0.01)
    assert len(stranger.chat.from_bot) == 1


# The lists of commands ------------------------------------------------------------------------------------------------


def calls(door: Door, method: str) -> int:
    return sum(call.method == method for call in door.tg.world.calls)


async def test_each_sees_the_commands_of_their_role_and_language(door: Door) -> None:
    for number in (10, OPERATOR, 12):
        await door.user(number)
    async with door.adapter():
        await until(lambda: door.commands('{"type":"chat","chat_id":12}/'))
    everybody = [*usable(Role.OPERATOR, plans=False)]
    for lang in ("zh", "en", ""):
        assert door.commands(f"{PRIVATE}/{lang}") == everybody
        in_groups = [name for name in everybody if name not in {"start", "console", "settings"}]
        assert door.commands(f"{GROUPS}/{lang}") == in_groups
    assert door.tg.world.commands[f"{PRIVATE}/"] == door.tg.world.commands[f"{PRIVATE}/en"]
    assert door.tg.world.commands[f"{PRIVATE}/"] != door.tg.world.commands[f"{PRIVATE}/zh"]
    assert door.commands('{"type":"chat","chat_id":10}/') == list(usable(Role.OWNER, plans=False))
    assert "people" in usable(Role.OWNER, plans=False)
    assert door.commands('{"type":"chat","chat_id":12}/') == list(usable(Role.VIEWER, plans=False))


async def test_they_are_sent_again_only_when_they_have_changed(door: Door) -> None:
    owner = await door.user(10)
    for number in (OPERATOR, 12):
        await door.user(number)
    async with door.adapter():
        await until(lambda: door.commands('{"type":"chat","chat_id":12}/'))
        sent = calls(door, "setMyCommands")
        await owner.send("/status")
        await owner.sees(lambda chat: chat.saying("现状"))
        await owner.send("/people role #2 owner")
        await until(lambda: "people" in door.commands('{"type":"chat","chat_id":11}/'))
        assert calls(door, "setMyCommands") == sent + 1
        await owner.send("/settings en")
        await until(lambda: "Who is in" in str(door.tg.world.commands['{"type":"chat","chat_id":10}/']))
        assert calls(door, "setMyCommands") == sent + 2
        await owner.send("/people remove #3")
        asked = await owner.sees(lambda chat: chat.saying("Remove Person 12?")[0])
        await owner.tap(asked, "Remove")
        await until(lambda: not door.commands('{"type":"chat","chat_id":12}/'))
    sent = calls(door, "setMyCommands")
    async with door.adapter():  # another start
        await until(lambda: calls(door, "getMyCommands") >= 2 * 8)
        await owner.send("/status")
        await owner.sees(lambda chat: chat.saying("Status"))
    assert calls(door, "setMyCommands") == sent


async def test_who_never_wrote_to_the_bot_does_not_stop_the_others(door: Door) -> None:
    await door.user(12)
    async with door.adapter():
        await until(lambda: door.commands('{"type":"chat","chat_id":12}/'))
        assert door.commands('{"type":"chat","chat_id":10}/') == []
