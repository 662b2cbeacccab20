"""Knowledge services that are asked through real proxies."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent_core.errors import ConfigInvalid, KnowledgeUnreachable
from agent_core.proxies import ProxySetting
from agent_core.texts import told
from bot.app.knowledge import knowledge_config
from bot.app.settings.loading import load
from knowledge.config import KNOWLEDGE_PROXY
from knowledge.dify import DifyKnowledge
from knowledge.factory import build, routes
from tests.support.knowledge_servers import FakeDify
from tests.support.proxies import HttpProxy, SocksProxy
from tests.support.tls import certificate, leaving_tls

NAME = KNOWLEDGE_PROXY.name


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


async def at_once(_: float) -> None:
    """The pause before a retry."""


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
async def test_a_service_far_away_is_asked_through_the_proxy_and_one_here_is_not(
    monkeypatch: pytest.MonkeyPatch, kind: type[HttpProxy | SocksProxy]
) -> None:
    async with FakeDify() as service, kind({}, login=("user", "p@ss/word")) as proxy:
        proxy.hosts = {"kb.example": urlsplit(service.base_url).port or 0}
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        for url in ("http://kb.example", service.base_url):
            base = DifyKnowledge(url, service.dataset_id, service.token)
            assert await base.retrieve("几天能发货")
            await base.close()
        assert proxy.asked == ["kb.example:80"]
        assert (service.calls, service.refused) == (2, [])


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
async def test_an_error_through_a_proxy_tells_of_it(kind: type[HttpProxy | SocksProxy]) -> None:
    async with (
        kind({}, login=("user", "geheim-9")) as proxy,
        (SocksProxy if kind is HttpProxy else HttpProxy)({}) as other,
    ):
        for setting in (
            proxy.url,  # which does not know the host
            f"{kind.scheme}://{proxy.address}",  # without the login
            f"{kind.scheme}://{other.address}",  # a proxy of the other kind
        ):
            wanted = ProxySetting(NAME, setting)
            base = DifyKnowledge("http://kb.example", "d", "t", timeout=30, proxy=wanted, sleep=at_once)
            with pytest.raises(KnowledgeUnreachable) as raised:
                await base.retrieve("q")
            await base.close()
            assert raised.value.values["source"] == NAME
            assert f"（来自 {NAME}）" in told(raised.value, "zh")
            assert raised.value.values["source"] == raised.value.values["setting"] == NAME
            assert f"from {NAME}: turn that proxy on" in raised.value.advice
            assert "geheim" not in str(raised.value)


def test_a_proxy_of_the_environment_that_is_none_is_told_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "socks4://127.0.0.1:1")
    remote = {"provider": "dify", "base_url": "https://kb.example", "dataset_id": "d"}
    with pytest.raises(ConfigInvalid, match="The proxy in https_proxy cannot be used"):
        build(knowledge_config(load(knowledge=remote)))
    assert [route.source for route in routes(knowledge_config(load(knowledge={**remote, "proxy": "none"})))] == [NAME]


async def test_a_connection_that_leaves_tls_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with leaving_tls(pem) as url:
        base = DifyKnowledge(url, "11111111-2222-3333-4444-555555555555", "dataset-token", sleep=at_once)
        with pytest.raises(KnowledgeUnreachable):
            await base.retrieve("几天能发货")
        await base.close()


async def test_why_there_is_no_connection() -> None:
    async with FakeDify() as service:
        for url, key in (
            (service.base_url.replace("http://", "https://"), "knowledge_not_reached_tls"),
            ("http://127.0.0.1:9", "knowledge_not_reached_refused"),
        ):
            base = DifyKnowledge(url, service.dataset_id, service.token, sleep=at_once)
            with pytest.raises(KnowledgeUnreachable) as caught:
                await base.retrieve("几天能发货")
            await base.close()
            assert caught.value.key == key
            assert "PHONEDESK_" in told(caught.value, "zh")
