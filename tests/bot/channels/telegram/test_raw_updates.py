"""Raw updates of every kind, valid and broken, by polling and by webhook: nothing falls over, nothing gets in."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from aiohttp import ClientSession, web
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from telegram import Bot

from bot.channels.telegram import updates
from bot.channels.telegram.adapter import SECRET_HEADER, WEBHOOK_PATH, TelegramAdapter
from bot.channels.telegram.inbox import ordering_key, stops
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.request import QUIET_SECONDS, RateLimitedLog, public
from bot.channels.telegram.updates import UnreadableUpdate
from simulator.telegram import FakeTelegram
from storage.engine import Database
from storage.messages import InboxTable, OutboxTable
from storage.people import Audit
from storage.runs import Runs
from storage.tables import inbox
from tests.bot.channels.telegram.door import OPERATOR, Door, message
from tests.bot.channels.telegram.house import FAST, until
from tests.bot.channels.telegram.raw import COMMAND, KINDS, Maker, Raw, broken, places
from tests.support.days import examples

SECRET = "s-e-c"
OF_EACH = examples(8)
BROKEN = 200
FAULTS = {f"telegram_{name}_failed" for name in ("update", "loop", "outbox", "event")}
TASK = COMMAND.removeprefix("/run ")


class House(Door):
    """The door by polling, and behind a webhook."""

    @asynccontextmanager
    async def webhook(self) -> AsyncIterator[str]:
        app = web.Application()
        runner = web.AppRunner(app)
        holder: list[TelegramAdapter] = []

        async def serve(request: web.Request) -> web.Response:
            return await holder[0].webhook(request)

        app.router.add_post(WEBHOOK_PATH, serve)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}{WEBHOOK_PATH}"
        options = TelegramOptions(self.tg.token, base_url=self.tg.url, webhook_url=url, webhook_secret=SECRET, **FAST)
        holder.append(TelegramAdapter(self.desk, InboxTable(self.db), OutboxTable(self.db), options))
        try:
            async with holder[0]:
                await asyncio.wait_for(holder[0].ready.wait(), 10)
                yield url
        finally:
            await runner.cleanup()

    async def bring(self, mode: str, raws: list[Raw]) -> None:
        """Telegram brings these, and a plain command behind them, which is answered."""
        user = await self.user(OPERATOR)
        async with self.adapter() if mode == "polling" else self.webhook():
            for raw in raws:
                self.tg.world.push_raw(raw)
            await until(lambda: not self.tg.world.updates, 60)
            await user.send("/whoami")
            await user.sees(lambda chat: chat.saying("身份"), timeout=60)
            async with asyncio.timeout(60):
                while await InboxTable(self.db).waiting():
                    await asyncio.sleep(0.02)

    async def given_up(self) -> list[tuple[int, str]]:
        """How often it was tried, and why not any more."""
        wanted = sa.select(inbox.c.attempts, inbox.c.error).where(inbox.c.state == "failed")
        async with self.db.read() as connection:
            return [(row.attempts, row.error) for row in await connection.execute(wanted)]


@pytest.fixture
async def house(tg: FakeTelegram, db: Database) -> House:
    house = House(tg, db)
    await house.open()
    return house


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("mode", ["polling", "webhook"])
async def test_no_kind_but_a_message_has_an_effect(house: House, mode: str) -> None:
    people = await house.desk.people.members("telegram")
    maker = Maker(seed=1)
    kinds = [kind for kind in KINDS if kind != "message"] * OF_EACH
    await house.bring(mode, [maker.update(kind, 10_000 + n) for n, kind in enumerate(kinds)])
    assert await Runs(house.db).find() == []
    assert await house.desk.people.members("telegram") == people
    assert await house.given_up() == []
    refused = {why for _, _, why in await house.refused()}
    assert refused >= {"inline", "edited"}
    assert refused <= {"inline", "edited", "forged", "old", "button", "channel", "forwarded"}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("mode", ["polling", "webhook"])
async def test_what_is_broken_stops_nothing(house: House, mode: str) -> None:
    people = await house.desk.people.members("telegram")
    maker, chance = Maker(seed=2), random.Random(2)
    kinds = [chance.choice([*KINDS, "message", "message", "callback_query"]) for _ in range(BROKEN)]
    raws = [broken(maker.update(kind, 10_000 + n), chance) for n, kind in enumerate(kinds)]
    with capture_logs() as logs:
        await house.bring(mode, raws)
    assert [line for line in logs if line["event"] in FAULTS] == []
    assert {tries for tries, _ in await house.given_up()} == {1}  # once, and without a fault of ours
    assert len(await house.given_up()) > BROKEN // 10
    assert await house.desk.people.members("telegram") == people
    runs = await Runs(house.db).find(limit=BROKEN)
    commands = [raw for raw in raws if COMMAND in str(raw.get("message"))]
    assert len(runs) <= len(commands)
    assert {run.task for run in runs} == {TASK}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
OFFLINE = Bot("1:offline")


@given(st.sampled_from(KINDS), st.integers(0, 10_000), st.data())
def test_an_update_is_read_or_unreadable_and_nothing_else(kind: str, seed: int, data: st.DataObject) -> None:
    raw = Maker(seed).update(kind, 1)
    for place in data.draw(st.lists(st.sampled_from(places(raw)), max_size=3)):
        inside: Any = raw
        for key in place[:-1]:
            inside = inside[key] if isinstance(inside, dict | list) and _has(inside, key) else None
        if isinstance(inside, dict | list) and _has(inside, place[-1]):
            inside[place[-1]] = data.draw(JSON)
    ordering_key(raw)
    stops(raw)
    try:
        update = updates.understood(json.loads(json.dumps(raw)), OFFLINE)
    except UnreadableUpdate:
        return
    incoming = updates.read(update, bot_id=4242, bot_name="desk_bot")
    refused = updates.refused(update, bot_name="desk_bot")
    assert incoming is None or kind in {"message", "callback_query"}
    assert incoming is None or incoming.person.user_id.isdecimal()
    assert incoming is None or (incoming.text + incoming.action).encode() is not None  # can be stored
    assert refused is None or refused[0].user_id.isdecimal()


def _has(inside: Any, key: Any) -> bool:
    return key in inside if isinstance(inside, dict) else isinstance(key, int) and key < len(inside)


NO_UPDATES = [
    b"",
    b"no json",
    b"[1]",
    b'{"update_id": true}',
    b'{"update_id": "5"}',
    b'{"update_id": -1}',
    b'{"update_id": 99999999999999999999}',
    b'{"message": {}}',
    b"[" * 100_000,
    b"\xff\xfe\x00",
]


async def test_what_is_no_update_is_refused(house: House) -> None:
    async with house.webhook() as url, ClientSession(headers={SECRET_HEADER: SECRET}) as session:
        for body in NO_UPDATES:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                assert response.status == 400, body[:40]
        odd = {"Content-Type": "application/json; charset=no-such"}
        async with session.post(url, data=b"{}", headers=odd) as response:
            assert response.status == 400
        async with session.post(url, data=b'{"update_id": 7, "x": "' + b"x" * 1_100_000 + b'"}') as response:
            assert response.status == 413
    assert await InboxTable(house.db).waiting() == []


async def test_a_flood_with_a_wrong_secret_is_one_line(house: House) -> None:
    with capture_logs() as logs:
        async with house.webhook() as url, ClientSession() as session:
            for n in range(60):
                headers = {SECRET_HEADER: f"guess{n}"} if n else {}
                raw = {"update_id": 9000 + n, "message": message(10)}
                async with session.post(url, json=raw, headers=headers) as response:
                    assert response.status == 403
    assert await house.refused() == [("telegram:webhook", "secret", "secret")]
    assert len([line for line in logs if line["event"] == "telegram_webhook_secret_wrong"]) == 1
    assert await Runs(house.db).find() == []
    assert "guess" not in str(await Audit(house.db).last())


def test_refusals_are_told_once_in_a_while_with_their_number() -> None:
    refusals = RateLimitedLog()
    assert [refusals.count(now) for now in (100.0, 101.0, 102.0)] == [1, 0, 0]
    assert refusals.count(100.0 + QUIET_SECONDS) == 3
    assert refusals.count(101.0 + QUIET_SECONDS) == 0


@pytest.mark.parametrize(
    ("address", "kept"),
    [("8.8.8.8", "8.8.8.8"), ("127.0.0.1", ""), ("10.0.0.3", ""), ("::1", ""), (None, ""), ("unix", "")],
)
def test_an_address_is_kept_where_it_says_who(address: str | None, kept: str) -> None:
    assert public(address) == kept
