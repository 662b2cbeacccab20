"""Where webhooks may be sent."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import InputRejected
from bot.desk.actors import BadRequest
from bot.desk.webhook_client import TargetRules

PUBLIC = "93.184.215.14"


def rules(*allowed: str, **names: Sequence[str]) -> TargetRules:
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
        await rules().target(f"https://{literal}/x")
    for found in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(InputRejected):
            await rules(shop_example=found).target("https://shop.example/x")
    found_at = (await rules("shop.example", shop_example=[address]).target("http://shop.example/x")).address
    assert ip_address(found_at) == ip_address(address)


@given(st.ip_addresses(v=4))
async def test_an_ipv6_address_that_stands_for_an_ipv4_one_is_judged_as_that(plain: IPv4Address) -> None:
    async def is_refused(address: str) -> bool:
        try:
            await rules().target(f"https://[{address}]/" if ":" in address else f"https://{address}/")
        except InputRejected:
            return True
        return False

    mapped = f"::ffff:{plain}"
    translated = str(ip_address(int(ip_address("64:ff9b::")) + int(plain)))
    assert await is_refused(mapped) == await is_refused(translated) == await is_refused(str(plain))


async def test_a_public_name_is_asked_at_the_address_that_was_checked() -> None:
    target = await rules(shop_example=[PUBLIC]).target("https://shop.example/a/b?c=%20d")
    assert (target.url, target.host, target.host_header) == (
        f"https://{PUBLIC}:443/a/b?c=%20d", "shop.example", "shop.example",
    )  # fmt: skip
    target = await rules(shop_example=["2606:2800:21f::1"]).target("https://shop.example:8443")
    assert (target.url, target.host_header) == ("https://[2606:2800:21f::1]:8443/", "shop.example:8443")


async def test_http_is_for_allowed_hosts_alone() -> None:
    with pytest.raises(InputRejected) as refused:
        await rules(shop_example=[PUBLIC]).target("http://shop.example/")
    assert refused.value.key == "webhook_https"
    for allowed in ("shop.example", "SHOP.example", PUBLIC, "93.184.215.0/24"):
        assert (await rules(allowed, shop_example=[PUBLIC]).target("http://shop.example/")).scheme == "http"
    with pytest.raises(InputRejected):  # one address of it is in the network, another is not
        await rules("10.0.0.0/8", shop_example=["10.0.0.1", "192.168.0.1"]).target("https://shop.example/")
    with pytest.raises(InputRejected):
        await rules("10.0.0.0/8").target("https://[::ffff:192.168.0.1]/")
    assert (await rules("10.0.0.0/8").target("https://[::ffff:10.0.0.1]/")).port == 443


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
        await rules(shop_example=[PUBLIC]).target(url)
