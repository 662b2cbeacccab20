"""Where webhooks may be sent; and one attempt: to which address it goes, and what it says about itself there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import InputRejected
from agent_core.proxies import ProxySetting
from bot.desk.actors import BadRequest
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


# Targets --------------------------------------------------------------------------------------------------------------


def rules_of(*allowed: str, **names: Sequence[str]) -> TargetRules:
    """Rules with a resolver that knows these names, with _ for dots."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return names[host.replace(".", "_").replace("-", "_")]

    return TargetRules(allowed, resolve)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "100.100.100.200", "224.0.0.1", "239.1.1.1", "255.255.255.255", "240.0.0.1",
        "192.0.2.1", "198.18.0.1", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:0:0:0:0:5601:5601", "2001:db8::1", "fec0::1",
    ],
)  # fmt: skip
async def test_no_address_of_this_or_a_private_network(address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(InputRejected):
        await rules_of().target(f"https://{literal}/x")
    for found in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(InputRejected):
            await rules_of(shop_example=found).target("https://shop.example/x")
    found_at = (await rules_of("shop.example", shop_example=[address]).target("http://shop.example/x")).address
    assert ip_address(found_at) == ip_address(address)


@given(st.ip_addresses(v=4))
async def test_an_ipv6_address_that_stands_for_an_ipv4_one_is_judged_as_that(plain: IPv4Address) -> None:
    async def is_refused(address: str) -> bool:
        try:
            await rules_of().target(f"https://[{address}]/" if ":" in address else f"https://{address}/")
        except InputRejected:
            return True
        return False

    mapped = f"::ffff:{plain}"
    translated = str(ip_address(int(ip_address("64:ff9b::")) + int(plain)))
    assert await is_refused(mapped) == await is_refused(translated) == await is_refused(str(plain))


async def test_a_public_name_is_asked_at_the_address_that_was_checked() -> None:
    target = await rules_of(shop_example=[PUBLIC]).target("https://shop.example/a/b?c=%20d")
    assert (target.url, target.host, target.host_header) == (
        f"https://{PUBLIC}:443/a/b?c=%20d", "shop.example", "shop.example",
    )  # fmt: skip
    target = await rules_of(shop_example=["2606:2800:21f::1"]).target("https://shop.example:8443")
    assert (target.url, target.host_header) == ("https://[2606:2800:21f::1]:8443/", "shop.example:8443")


async def test_http_is_for_allowed_hosts_alone() -> None:
    with pytest.raises(InputRejected) as refused:
        await rules_of(shop_example=[PUBLIC]).target("http://shop.example/")
    assert refused.value.key == "webhook_https"
    for allowed in ("shop.example", "SHOP.example", PUBLIC, "93.184.215.0/24"):
        assert (await rules_of(allowed, shop_example=[PUBLIC]).target("http://shop.example/")).scheme == "http"
    with pytest.raises(InputRejected):  # one address of it is in the network, another is not
        await rules_of("10.0.0.0/8", shop_example=["10.0.0.1", "192.168.0.1"]).target("https://shop.example/")
    with pytest.raises(InputRejected):
        await rules_of("10.0.0.0/8").target("https://[::ffff:192.168.0.1]/")
    assert (await rules_of("10.0.0.0/8").target("https://[::ffff:10.0.0.1]/")).port == 443


@pytest.mark.parametrize(
    "url",
    [
        "", "shop.example", "ftp://shop.example/", "file:///etc/passwd", "https://", "https:///x", "https://a:0/",
        "https://a:99999/", "https://user@shop.example/", "https://u:p@shop.example/", "https://shop.example/#x",
        "https://shop.example/a b", "https://shop.example/\nX: y", "https://店.example/", "https://[::1/",
        "https://shop.example/" + "x" * 2000, "gopher://127.0.0.1/", "javascript:alert(1)",
    ],
)  # fmt: skip
async def test_what_is_no_address_of_a_webhook(url: str) -> None:
    with pytest.raises(BadRequest):
        await rules_of(shop_example=[PUBLIC]).target(url)
