"""Alerts and digests to other services, by Apprise over real HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import structlog
from aiohttp import web
from typer.testing import CliRunner

from agent_core.errors import ConfigInvalid
from bot.app import notify
from bot.app.doctor.examine import CHECKS, CheckStatus, examine
from bot.app.notify import Notifier, services_of
from bot.app.server import server
from bot.app.settings.loading import load
from bot.channels.cli.main import app
from storage.digests import Digests
from storage.outages import Outages
from tests.bot.app.yesterday import what_was_yesterday
from tests.support.environment import without_settings
from tests.support.shop import Shop

NOW = timedelta(0)
HOUR = timedelta(hours=1)


class Service:
    """What speaks the form of Apprise's ``json://``."""

    def __init__(self) -> None:
        self.port = 0
        self.refuses = 0  # so many messages
        self.taken: list[str] = []
        self.tried = 0
        self._more = asyncio.Event()

    @property
    def url(self) -> str:
        return f"json://me:geheim-77@127.0.0.1:{self.port}/"

    async def handle(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.tried += 1
        self._more.set()
        if self.refuses:
            self.refuses -= 1
            return web.Response(status=500)
        self.taken.append(f"{said['title']}\n{said['message']}")
        return web.Response()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.taken) < count:
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def serving() -> AsyncIterator[Service]:
    service = Service()
    web_app = web.Application()
    web_app.router.add_post("/", service.handle)
    runner = web.AppRunner(web_app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.port = site.port or 0
    try:
        yield service
    finally:
        await runner.cleanup()


@asynccontextmanager
async def telling(shop: Shop, *services: Service) -> AsyncIterator[None]:
    notifier = Notifier(shop.db, shop.desk, services_of([one.url for one in services]), "en")
    await notifier.start()
    try:
        yield
    finally:
        await notifier.stop()


async def test_each_service_is_told_once_also_after_a_restart(shop: Shop) -> None:
    outages = Outages(shop.db)
    await outages.down("model", "before", after=NOW, gap=HOUR)
    async with serving() as one, serving() as other:
        async with telling(shop, one):
            await outages.down("phone:S1", "offline", after=NOW, gap=HOUR)
            await one.until(1)
            await outages.up("phone:S1")
            await one.until(2)
        await outages.down("knowledge", "HTTP 500", after=NOW, gap=HOUR)
        async with telling(shop, one, other):
            await one.until(3)
            await outages.up("knowledge")
            await one.until(4)
            await other.until(1)
        assert [told.split("\n")[0] for told in one.taken] == [
            "⚠️ The phone S1 cannot be reached", "✅ The phone S1 is back",
            "⚠️ The knowledge base cannot be reached", "✅ The knowledge base is back",
        ]  # fmt: skip
        assert "Reason: HTTP 500" in one.taken[2]
        assert "phonedesk answers unanswered" in one.taken[2], "there is no chat to type /answers in"
        assert [told.split("\n")[0] for told in other.taken] == ["✅ The knowledge base is back"]


async def test_one_that_is_away_is_tried_again_and_delays_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notify, "DELAYS", (0.01,))
    caplog.set_level(logging.DEBUG)
    async with serving() as away, serving() as there:
        away.refuses = 3
        with structlog.testing.capture_logs() as lines:
            async with telling(shop, away, there):
                for subject in ("model", "knowledge"):
                    await Outages(shop.db).down(subject, "", after=NOW, gap=HOUR)
                await there.until(2)
                await away.until(2)
        assert away.taken == there.taken
        assert away.tried == 5
        assert [line["event"] for line in lines].count("notify_failed") == 3
        assert "geheim" not in caplog.text + str(lines)
        away.refuses = 1
        async with telling(shop, away):
            await Outages(shop.db).up("model")
            async with asyncio.timeout(30):
                while away.refuses:
                    await shop.db.signal("never").waiter().wait(0.01)
            shop.clock.move(hours=25)
            await Outages(shop.db).up("knowledge")
            await away.until(3)
        assert "back" in away.taken[-1]


async def test_a_digest_is_sent_as_text_but_not_that_of_a_chat(shop: Shop) -> None:
    day = datetime(2026, 3, 1, tzinfo=ZoneInfo("Asia/Shanghai"))
    (place,) = await shop.desk.digest.service_chats()
    told = {"kind": "daily", "since": day.isoformat(), "until": (day + timedelta(days=1)).isoformat()}
    async with serving() as service, telling(shop, service):
        digests = Digests(shop.db)
        chat = {"channel": "telegram", "chat_id": "77", "thread_id": "", "kind": "private"}
        await digests.take("telegram:77", "daily", day, state="sent", told={**told, "chat": chat, "person_id": 1})
        mine = {**told, "chat": dict(place.chat), "person_id": 0}
        assert await digests.take(place.key, "daily", day, state="sent", told=mine)
        assert not await digests.take(place.key, "daily", day, state="sent", told=mine)
        await Outages(shop.db).down("model", "", after=NOW, gap=HOUR)
        await service.until(2)
        digest, alert = service.taken
        assert "模型" not in digest + alert
        assert "每日小结" in digest
        assert "The model" in alert


async def test_the_server_tells_of_a_digest_without_telegram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    due = datetime.now(ZoneInfo("Asia/Shanghai")) - timedelta(minutes=1)
    async with serving() as service:
        settings = load(
            device={"here": False}, web={"port": 0}, alerts={"after_minutes": 0}, lang="en", timezone="Asia/Shanghai",
            notify={"urls": service.url}, digest={"daily": f"{due:%H:%M}", "weekly": "off"},
        )  # fmt: skip
        assert service.url in settings.secrets()
        assert "geheim" not in repr(settings)
        await what_was_yesterday(settings)
        async with server(settings):
            await service.until(1)
        async with server(settings) as running:
            await Outages(running.desk.context.db).once("webhook:7", "2026-03-01", {"why": "HTTP 500"})
            await service.until(2)
        digest, alert = service.taken
        assert "(100 %)" in digest
        assert "Webhook 7" in alert


@pytest.mark.server  # Apprise opens a socket when its plugins are loaded
def test_an_address_that_nobody_knows() -> None:
    with pytest.raises(ConfigInvalid) as refused:
        services_of(["json://localhost/", "nonsense://geheim-77"])
    assert refused.value.values["number"] == 2
    assert "geheim" not in str(refused.value)


async def test_the_command_and_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("PHONEDESK_LANG", "en")

    async def called(*arguments: str) -> tuple[int, str]:
        result = await asyncio.to_thread(CliRunner().invoke, app, ["alerts", "test", *arguments])
        return result.exit_code, result.stdout + result.stderr

    async def examined() -> tuple[CheckStatus, str]:
        checks = [check for check in CHECKS if check.key in {"settings", "notify"}]
        results = [one async for one in examine(load(), lang="en", checks=checks)]
        return results[-1].status, results[-1].seen + results[-1].advice

    code, said = await called()
    assert (code, "No address is set" in said, "PHONEDESK_NOTIFY__URLS" in said) == (0, True, True)
    assert (await examined())[0] is CheckStatus.SKIPPED
    async with serving() as service, serving() as away:
        away.refuses = 100
        monkeypatch.setenv("PHONEDESK_NOTIFY__URLS", f"{service.url} {away.url}")
        code, said = await called()
        assert (code, "1. JSON: sent" in said, "2. JSON: not taken" in said, "geheim" in said) == (1, True, True, False)
        assert "2. JSON: not taken: it answered with HTTP 500." in said
        assert json.loads((await called("--json"))[1]) == [
            {"number": 1, "service": "JSON", "sent": True, "why": "", "status": 0},
            {"number": 2, "service": "JSON", "sent": False, "why": "status", "status": 500},
        ]
        assert len(service.taken) == 2
        status, seen = await examined()
        assert (status, "JSON" in seen, "geheim" in seen) == (CheckStatus.OK, True, False)
        assert len(service.taken) == 2, "the doctor sends nothing"
    monkeypatch.setenv("PHONEDESK_NOTIFY__URLS", "json://me:geheim-77@127.0.0.1:9/")  # nobody listens there
    code, said = await called()
    assert (code, "1. JSON: not taken: it cannot be reached." in said, "geheim" in said) == (1, True, False)
    monkeypatch.setenv("PHONEDESK_NOTIFY__URLS", "nonsense://geheim-77")
    code, said = await called()
    assert (code, "Address 1" in said, "geheim" in said) == (2, True, False)
    status, seen = await examined()
    assert (status, "geheim" in seen) == (CheckStatus.FAILED, False)
