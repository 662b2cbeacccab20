"""The sender of webhooks, over real HTTP, and as a process that is killed."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from bot.app.server import server
from bot.app.settings.loading import load
from bot.desk.webhook_client import TargetRules, WebhookClient
from bot.desk.webhook_messages import new_secret
from bot.desk.webhooks import WebhookSender
from storage.engine import Database, utc_now
from storage.events import Events
from storage.webhooks import CLAIM, Webhooks
from tests.support.clock import Clock
from tests.support.database import empty_sqlite
from tests.support.environment import without_settings
from tests.support.shop import make_shop
from tests.support.webhook_receiver import Receiver, Reply, receiver


@asynccontextmanager
async def sending(url: str, ahead: timedelta = timedelta()) -> AsyncIterator[Database]:
    """Send webhooks as ``phonedesk serve`` does. ``ahead``: how far the clock is ahead of the machine's."""
    db = Database(url, clock=lambda: utc_now() + ahead)
    desk = make_shop(url, Clock()).desk
    desk.context.db = db
    desk.context.webhook_client = WebhookClient(TargetRules(("127.0.0.1",)))
    sender = WebhookSender(db, type(desk.webhooks)(desk.context))
    await sender.start()
    try:
        yield db
    finally:
        await sender.stop()
        await desk._db.close()
        await db.close()


async def add(db: Database, to: Receiver, *kinds: str) -> int:
    to.secret = new_secret()
    return (await Webhooks(db).add(to.url, kinds, to.secret)).id


async def test_a_slow_receiver_delays_no_other(tmp_path: Path) -> None:
    url = await empty_sqlite(tmp_path / "desk.db")
    async with receiver() as slow, receiver() as dead, receiver() as quick, sending(url) as db:
        held = asyncio.Event()
        slow.replies = [Reply(until=held)]
        dead.replies = [Reply(500) for _ in range(100)]
        for to in (slow, dead, quick):
            await add(db, to, "question")
        sent = [await Events(db).append("r1", "question", {"number": number}) for number in range(5)]
        await quick.until(5)
        assert [one.id for one in quick.taken] == [f"evt_{number}" for number in sent]
        assert len(slow.tried) <= 1
        held.set()
        await slow.until(5)
        assert [one.id for one in slow.taken] == [one.id for one in quick.taken]
        assert {one.id for one in dead.tried} <= {f"evt_{sent[0]}"}
        assert slow.wrong == dead.wrong == quick.wrong == []


async def test_a_removed_webhook_is_sent_nothing_more(tmp_path: Path) -> None:
    url = await empty_sqlite(tmp_path / "desk.db")
    async with receiver() as gone, receiver() as other, sending(url) as db:
        hook = await add(db, gone, "question")
        await add(db, other, "question")
        await Events(db).append("r1", "question")
        await gone.until(1)
        await Webhooks(db).remove(hook)
        await Events(db).append("r1", "question")
        await other.until(2)
        assert len(gone.tried) == 1


async def test_after_a_kill_everything_is_delivered_in_order(tmp_path: Path) -> None:
    url = await empty_sqlite(tmp_path / "desk.db")
    db = Database(url)
    async with receiver() as to:
        await add(db, to, "question")
        sent = [f"evt_{await Events(db).append('r1', 'question', {'number': number})}" for number in range(30)]
        await db.close()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])  # what is killed three times is loaded once
        for kills in range(3):
            to.replies = [Reply(), Reply(), Reply(until=asyncio.Event())]  # killed in the middle of the third attempt
            count = len(to.tried)
            process = context.Process(target=_serve_ahead, args=(url, kills), daemon=True)
            process.start()
            try:
                await to.until(count + 3)
            finally:
                process.kill()
                await asyncio.to_thread(process.join)
        async with sending(url, ahead=10 * CLAIM):
            async with asyncio.timeout(60):
                while len({one.id for one in to.taken}) < len(sent):
                    await to.until(len(to.tried) + 1)
        assert to.wrong == []
        assert list(dict.fromkeys(one.id for one in to.tried)) == sent, "in order, whatever came twice"
        assert len(to.tried) == len(sent) + 3


def _serve_ahead(url: str, kills: int) -> None:
    """Serve as if CLAIM had passed since each kill."""

    async def forever() -> None:
        async with sending(url, ahead=kills * (CLAIM + timedelta(seconds=1))):
            await asyncio.Event().wait()

    asyncio.run(forever())


async def test_the_server_sends_them_and_takes_over_what_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_settings(monkeypatch, tmp_path)
    (tmp_path / "data").mkdir()
    url = await empty_sqlite(tmp_path / "data" / "phonedesk.sqlite3")
    allowed = {"allow_private": ["127.0.0.1"]}
    settings = load(device={"here": False}, web={"port": 0}, webhooks=allowed, alerts={"after_minutes": 0})
    async with receiver() as to, server(settings) as running:
        db = running.desk.context.db
        assert str(db.url.database) in url
        await add(db, to, "alert")
        await Events(db).append("", "alert", {"subject": "model"})
        await to.until(1)
        assert (to.taken[0].type, to.wrong) == ("alert", [])
        running.desk.context.webhook_client.rules = TargetRules()
        await Events(db).append("", "alert", {"subject": "model"})
        async with asyncio.timeout(30):
            while not [row for row in await Webhooks(db).deliveries(1) if "private network" in row.error]:
                await db.signal("never").waiter().wait(0.1)
