"""One attempt of a webhook: to which address it goes, and what it says about itself there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from agent_core.proxies import ProxySetting
from bot.desk.webhook_client import TargetRules, WebhookClient
from bot.desk.webhook_messages import new_secret
from storage.webhooks import Attempt, DeliveryRow, WebhookRow
from tests.support.proxies import HttpProxy
from tests.support.tls import certificate, server_context
from tests.support.webhook_receiver import receiver

NOW = datetime(2026, 11, 24, tzinfo=UTC)
PUBLIC = "93.184.215.14"


def row_of(url: str, secret: str = "") -> WebhookRow:
    return WebhookRow(secret or new_secret(), "", None, 1, url, ["question"], 0, None, "", NOW)


def message() -> DeliveryRow:
    body = '{"type":"test","timestamp":"2026-11-24T00:00:00Z","data":{}}'
    return DeliveryRow(1, 1, "evt_1", "test", body, "pending", 1, NOW, NOW, None, None, "", "", NOW, NOW)


def rules(address: str, *allowed: str) -> TargetRules:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return [address] if host.endswith(".example") else []

    return TargetRules(allowed, resolve)


async def sent(url: str, client: WebhookClient, secret: str = "") -> Attempt:
    return await client.attempt(row_of(url, secret), message(), NOW)


async def test_a_certificate_must_be_that_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = certificate(tmp_path)
    names: list[str | None] = []

    async def taken(request: web.Request) -> web.Response:
        names.append(request.headers["Host"])
        return web.Response(text="thanks")

    app = web.Application()
    app.router.add_post("/hook", taken)
    runner = web.AppRunner(app)
    await runner.setup()
    server = server_context(pem)
    server.sni_callback = lambda _, name, __: names.append(name)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server)
    await site.start()
    try:
        client = WebhookClient(rules("127.0.0.1", "127.0.0.1"))
        untrusted = await sent(f"https://shop.example:{site.port}/hook", client)
        assert untrusted.status is None
        assert "certificate" in untrusted.error.lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        client = WebhookClient(rules("127.0.0.1", "127.0.0.1"))
        names.clear()
        assert (await sent(f"https://shop.example:{site.port}/hook", client)).answer == "thanks"
        assert names == ["shop.example", f"shop.example:{site.port}"]
        other = await sent(f"https://other.example:{site.port}/hook", client)
        assert other.status is None
        assert "other.example" in other.error or "mismatch" in other.error.lower()
    finally:
        await runner.cleanup()


async def test_a_proxy_is_given_the_address_that_was_checked() -> None:
    async with receiver() as to:
        to.secret = new_secret()
        port = int(to.url.rsplit(":", 1)[1].split("/")[0])
        async with HttpProxy({PUBLIC: port}) as proxy:
            client = WebhookClient(rules(PUBLIC, "shop.example"), ProxySetting("X", proxy.url))
            attempt = await sent("http://shop.example/hook", client, to.secret)
            assert (attempt.status, proxy.asked, to.wrong) == (204, [f"{PUBLIC}:80"], [])
            client = WebhookClient(rules("10.0.0.1"), ProxySetting("X", proxy.url))
            assert "private network" in (await sent("https://shop.example/hook", client)).error
            assert len(proxy.asked) == 1


async def test_a_name_without_an_address_is_a_failure() -> None:
    attempt = await sent("https://nobody.test/", WebhookClient(rules(PUBLIC)))
    assert (attempt.status, attempt.delivered) == (None, False)
    assert "nobody.test" in attempt.error


async def test_an_answer_is_read_as_it_is_and_no_further() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        while True:
            await response.write(b"x" * 1000)

    app = web.Application()
    app.router.add_post("/", endless)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        attempt = await sent(f"http://127.0.0.1:{site.port}/", WebhookClient(TargetRules(("127.0.0.1",))))
        assert (attempt.status, attempt.answer) == (200, "x" * 1024)
    finally:
        await runner.cleanup()
