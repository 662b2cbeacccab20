"""What the doctor says of proxies: which was used for each service, where it stands, and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bot.app.doctor.examine import CHECKS, CheckResult, CheckStatus, examine
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from simulator.telegram import FakeTelegram
from tests.support.knowledge_servers import FakeDify
from tests.support.model_server import ScriptedModel
from tests.support.proxies import HttpProxy, SocksProxy, free_port

WANTED = ("settings", "model", "knowledge", "token")
FAR = {
    "model": {"base_url": "http://model.example/v1", "name": "scripted"},
    "telegram": {"token": "1:a", "api_base_url": "http://telegram.example"},
    "knowledge": {"provider": "dify", "base_url": "http://kb.example", "dataset_id": "d"},
}


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no proxies but the test's."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("PHONEDESK_", "PHONE_AGENT_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


async def look(settings: Settings) -> dict[str, CheckResult]:
    checks = [check for check in CHECKS if check.key in WANTED]
    return {result.check: result async for result in examine(settings, lang="en", checks=checks)}


async def test_each_service_is_asked_by_its_proxy_and_the_doctor_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        ScriptedModel(["4719"], repeat_last=True) as model,
        FakeTelegram() as tg,
        FakeDify() as kb,
        HttpProxy({"model.example": urlsplit(model.url).port or 0}, login=("me", "geheim-77")) as http,
        SocksProxy({"telegram.example": urlsplit(tg.root).port or 0}) as socks,
    ):
        monkeypatch.setenv("http_proxy", http.url)
        near = {"provider": "dify", "base_url": kb.base_url, "dataset_id": kb.dataset_id, "token": kb.token}
        far = {**FAR["telegram"], "token": tg.token, "proxy": socks.url}
        found = await look(load(model=FAR["model"], telegram=far, knowledge=near))
        assert [result.status for result in found.values()] == [CheckStatus.OK] * len(WANTED)
        assert found["model"].seen.endswith(f"Through the proxy http://{http.address} (from http_proxy).")
        assert found["token"].seen.endswith(f"Through the proxy {socks.url} (from PHONEDESK_TELEGRAM__PROXY).")
        assert found["knowledge"].seen.endswith("Without a proxy: it is on this machine.")
        assert "geheim" not in str(found)
        assert set(http.asked) == {"model.example:80"}
        assert set(socks.asked) == {"telegram.example:80"}


async def test_what_cannot_be_reached_names_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("ALL_PROXY", f"socks5://me:geheim-77@{proxy}")
    found = await look(load(**FAR))
    for key, setting in (("model", "MODEL"), ("knowledge", "KNOWLEDGE"), ("token", "TELEGRAM")):
        result = found[key]
        assert result.status is CheckStatus.FAILED, key
        for words in (f"socks5://{proxy}", "ALL_PROXY", f"PHONEDESK_{setting}__PROXY"):
            assert words in result.advice, (key, result)
    assert "geheim" not in str(found)


async def test_a_proxy_that_is_none_is_an_error_of_that_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks4://me:geheim-77@127.0.0.1:1")
    found = await look(load(**{**FAR, "telegram": {**FAR["telegram"], "proxy": "none"}}))
    for key in ("model", "knowledge"):
        assert found[key].status is CheckStatus.FAILED
        assert "all_proxy" in found[key].seen, found[key]
        assert "Correct all_proxy" in found[key].advice, found[key]
    assert "all_proxy" not in str(found["token"])  # it is not asked through one
    assert "Without a proxy: PHONEDESK_TELEGRAM__PROXY says so." in found["token"].seen or found["token"].advice
    assert "geheim" not in str(found)
