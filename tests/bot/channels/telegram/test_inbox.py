"""What cannot be parsed, and what takes the process with it: neither holds up the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from aiohttp import ClientSession
from telegram.error import TelegramError

from bot.channels.telegram.adapter import SECRET_HEADER
from bot.channels.telegram.inbox import TRIES, Inbox, UpdatesRequest, salvaged
from bot.channels.telegram.options import TelegramOptions
from simulator.telegram import FakeUser
from storage.engine import Database
from storage.messages import InboxTable
from tests.bot.channels.telegram.house import House, until, until_handled

DEEP = '{"update_id": 7001, "message": ' + '{"reply_to_message": ' * 50_000 + "1" + "}" * 50_001
BROKEN = ['{"update_id": 7002, "message": {"text": "half', '{"update_id": 7003, "message": {"date": 00}}', DEEP]


def test_each_update_that_is_one_is_kept() -> None:
    good = {"update_id": 6, "message": {"text": 'a "quoted" {"update_id": 99, word'}}
    last = {"update_id": 9, "x": [1]}
    text = ",\n".join([json.dumps(good), *BROKEN, json.dumps(last)])
    found = UpdatesRequest.parse_json_payload(f'{{"ok": true, "result": [{text}]}}'.encode())["result"]
    assert [update["update_id"] for update in found] == [6, 7002, 7003, 7001, 9]
    assert (found[0], found[-1]) == (good, last)
    assert "too deep" in found[3]["unparsed"]
    assert max(len(update["unparsed"]) for update in found[1:4]) < 400


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"ok": false, "x": ', b'{"ok": true, "result": ['])
def test_what_holds_no_update_is_an_error(body: bytes) -> None:
    with pytest.raises(TelegramError):
        UpdatesRequest.parse_json_payload(body)
    assert salvaged(body.decode()) == []


async def test_polling_goes_on_behind_what_cannot_be_parsed(house: House, operator: FakeUser) -> None:
    await operator.send("/run one")
    for number, text in enumerate(BROKEN, start=7001):
        house.tg.world.push_text(int(json.loads(text[: text.index(",")] + "}")["update_id"]) or number, text)
    await operator.send("/run two")
    house.tg.world.updates[-1]["update_id"] = 7004
    async with house.adapter():
        await operator.sees(lambda chat: chat.saying("two"))
        await until(lambda: house.tg.world.updates == [])
        await until_handled(house)
    assert [run.task for run in await house.stage.runs()] == ["one", "two"]
    rows = [await InboxTable(house.db).get(number) for number in (7001, 7002, 7003)]
    assert all(row is not None and row.state == "failed" and row.error for row in rows)


async def test_by_webhook_it_is_taken_so_that_it_does_not_come_again(house: House) -> None:
    async with house.webhook() as (_, url), ClientSession(headers={SECRET_HEADER: "s-e-c"}) as session:
        for body in BROKEN:
            async with session.post(url, data=body.encode()) as response:
                assert response.status == (200 if len(body) < 1_000_000 else 413)
        await until_handled(house)
    row = await InboxTable(house.db).get(7002)
    assert row is not None
    assert (row.state, row.attempts) == ("failed", 1)


class Process:
    """A process that ends, without having a say, once an update that holds ``deadly`` is handled."""

    def __init__(self, db: Database, deadly: str) -> None:
        self.deadly = deadly
        self.done: list[int] = []
        self.told: list[int] = []
        self.ended = asyncio.Event()
        self.db = db

    async def handle(self, raw: Mapping[str, Any], received_at: datetime) -> None:
        await asyncio.sleep(0)
        if self.ended.is_set() or raw["message"]["text"] == self.deadly:
            self.ended.set()
            await asyncio.Event().wait()
        self.done.append(raw["update_id"])

    async def gave_up(self, raw: Mapping[str, Any]) -> None:
        self.told.append(raw["update_id"])

    async def live(self, *, until_done: int) -> None:
        """Run until it ends, or so many updates are over."""

        class Cut(InboxTable):
            """What a killed process does not get to."""

            async def put_back(self, update_id: int) -> None:
                return None

        box = Inbox(Cut(self.db), TelegramOptions("t", retry=(0.01,)), self.handle, self.gave_up)
        task = asyncio.create_task(box.run())
        async with asyncio.timeout(10):
            while not self.ended.is_set() and await InboxTable(self.db).waiting():
                await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await box.finish(0)


async def test_what_ends_the_process_each_time_is_put_aside(db: Database) -> None:
    for number, text in enumerate(["a", "deadly", "b", "c"], start=1):
        raw = {"update_id": number, "message": {"text": text, "chat": {"id": number}}}
        await InboxTable(db).store(number, json.dumps(raw))
    lives = [Process(db, "deadly") for _ in range(TRIES + 1)]
    for life in lives:
        await life.live(until_done=4)
    assert [life.ended.is_set() for life in lives] == [True] * TRIES + [False]
    assert sorted(number for life in lives for number in life.done) == [1, 3, 4]
    assert [life.told for life in lives] == [[]] * TRIES + [[2]]
    row = await InboxTable(db).get(2)
    assert row is not None
    assert (row.state, row.attempts) == ("failed", TRIES)
    assert "process ended" in row.error


async def test_an_orderly_end_is_no_try(db: Database) -> None:
    await InboxTable(db).store(1, '{"update_id": 1}')
    for _ in range(TRIES + 1):
        started = asyncio.Event()

        async def hangs(raw: Mapping[str, Any], received_at: datetime, started: asyncio.Event = started) -> None:
            started.set()
            await asyncio.Event().wait()

        async def gave_up(raw: Mapping[str, Any]) -> None:
            raise AssertionError(raw)

        box = Inbox(InboxTable(db), TelegramOptions("t"), hangs, gave_up)
        task = asyncio.create_task(box.run())
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await box.finish(0)
    (row,) = await InboxTable(db).waiting()
    assert row.attempts == 0


async def test_the_person_gets_an_apology(house: House, operator: FakeUser) -> None:
    await operator.send("/run one")
    (update,) = house.tg.world.updates
    await InboxTable(house.db).store(update["update_id"], json.dumps(update))
    for _ in range(TRIES):
        await InboxTable(house.db).begun(update["update_id"])
    async with house.adapter():
        await operator.sees(lambda chat: chat.saying("没能处理完"))
    assert await house.stage.runs() == []
