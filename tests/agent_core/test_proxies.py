"""Which proxy an address is asked through, and models that are asked through real ones."""

from __future__ import annotations

import os
from typing import cast
from urllib.parse import urlsplit

import pytest

from agent_core import errors
from agent_core.model.client import ChatModel
from agent_core.planner import Executor, PlannerTask
from agent_core.planner.base import PlanFailed
from agent_core.planner.planner import Planner
from agent_core.ports import Record
from agent_core.proxies import NONE, ProxySetting, checked_proxy, environment_secrets, secrets_of
from agent_core.texts import told
from knowledge.choosing import ModelChooser
from tests.support.model_server import ScriptedModel
from tests.support.planner import Nothing, quiet
from tests.support.proxies import HttpProxy, SocksProxy, free_port

NAME = "PHONEDESK_MODEL__PROXY"
FAR = "https://api.example.com/v1"
CLASH = "http://127.0.0.1:7890"
MESSAGE = [{"role": "user", "content": "Hello"}]
REPLY = '<answer>finish(message="好了")</answer>'


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def route(url: str, value: str = "") -> tuple[str, str]:
    found = ProxySetting(NAME, value).route(url)
    return found.proxy, found.source


# -- the rule


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "localhost", "a.localhost", "[::1]", "0.0.0.0", "LOCALHOST."]
)
def test_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("all_proxy", CLASH)
    monkeypatch.setenv("http_proxy", "no proxy at all !")  # what would not be used is not looked at
    assert route(f"http://{host}:8000/v1") == ("", "loopback")
    assert route(f"http://{host}:8000/v1", "socks5://10.0.0.1:1080") == ("", "loopback")


@pytest.mark.parametrize(
    "host",
    [
        "10.1.2.3",
        "172.16.0.9",
        "192.168.1.20",
        "169.254.7.7",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "vllm",
        "mac.local",
    ],
)
def test_the_local_network_is_asked_through_the_settings_proxy_only(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("http_proxy", CLASH)
    assert route(f"http://{host}:8000/v1") == ("", "local_network")
    assert route(f"http://{host}:8000/v1", CLASH) == (CLASH, NAME)


def test_the_setting_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert route(FAR) == ("", "")
    monkeypatch.setenv("https_proxy", CLASH)
    assert route(FAR) == (CLASH, "https_proxy")
    assert route(FAR, "socks5://a.example:1") == ("socks5://a.example:1", NAME)
    assert route(FAR, NONE) == route(FAR, "None") == ("", NAME)


@pytest.mark.parametrize(
    ("given", "url", "found"),
    [
        ({"http_proxy": CLASH}, FAR, ("", "")),
        ({"http_proxy": CLASH}, "http://api.example.com", (CLASH, "http_proxy")),
        ({"HTTPS_PROXY": CLASH}, FAR, (CLASH, "HTTPS_PROXY")),
        ({"https_proxy": CLASH, "HTTPS_PROXY": "http://b:2"}, FAR, (CLASH, "https_proxy")),
        ({"https_proxy": CLASH, "all_proxy": "socks5://127.0.0.1:7891"}, FAR, (CLASH, "https_proxy")),
        ({"ALL_PROXY": "socks5h://127.0.0.1:7891/"}, FAR, ("socks5h://127.0.0.1:7891", "ALL_PROXY")),
        ({"https_proxy": " ", "all_proxy": "127.0.0.1:7890"}, FAR, (CLASH, "all_proxy")),
        ({"all_proxy": "SOCKS://127.0.0.1:7891"}, FAR, ("socks5://127.0.0.1:7891", "all_proxy")),
    ],
)
def test_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], url: str, found: tuple[str, str]
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert route(url) == found


@pytest.mark.parametrize(
    ("entries", "direct", "through"),
    [
        ("*", [FAR], []),
        ("example.com", [FAR, "https://example.com"], ["https://notexample.com", "https://example.com.cn"]),
        (".example.com, *.example.org", [FAR, "https://a.example.org"], ["https://a.example.net"]),
        ("API.example.com:443", [FAR], ["https://api.example.com:8443"]),
        ("8.8.0.0/16;9.9.9.9", ["https://8.8.4.4", "https://9.9.9.9:1"], ["https://8.9.0.1"]),
        ("11.22.*", ["https://11.22.33.44"], ["https://11.23.33.44"]),
        ("[2001:db8::]/32 2001:db9::1", ["https://[2001:db9::1]"], ["https://[2001:dba::1]"]),
    ],
)
def test_exceptions(monkeypatch: pytest.MonkeyPatch, entries: str, direct: list[str], through: list[str]) -> None:
    monkeypatch.setenv("all_proxy", CLASH)
    monkeypatch.setenv("NO_PROXY", entries)
    assert [route(url) for url in direct] == [("", "NO_PROXY")] * len(direct)
    assert [route(url) for url in through] == [(CLASH, "all_proxy")] * len(through)
    assert route(FAR, CLASH) == (CLASH, NAME)  # the setting is about this service: it needs no exceptions


@pytest.mark.parametrize(
    "written",
    [
        "socks4://127.0.0.1:1080",
        "ftp://127.0.0.1:21",
        "http://",
        "http://:7890",
        "phonedesk-demo",
        "proxy.example.com",
        "me:secret@proxy",
        "127.0.0.1:0",
        "127.0.0.1:70000",
        "127.0.0.1：7890",
        "http://127.0.0.1:7890/proxy.pac",
        "http://a b:1",
        "http://user:geheim@300.1.1.1:1",
        "http://[1:2]:3",
        "socks5//127.0.0.1:7890",
    ],
)
def test_what_is_no_proxy_is_told_with_its_name_and_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    with pytest.raises(ValueError, match="a proxy is"):
        checked_proxy(written)
    monkeypatch.setenv("all_proxy", written)
    with pytest.raises(errors.ConfigInvalid) as raised:
        route(FAR)
    assert raised.value.values == {"source": "all_proxy", "setting": NAME}
    assert "all_proxy" in raised.value.message
    assert f"set {NAME} to another proxy or to none" in raised.value.advice
    assert "geheim" not in str(raised.value)


def test_a_login_is_used_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "http://user:p%40ss-word@proxy.example:3128"
    found = ProxySetting(NAME, proxy).route(FAR)
    assert found.proxy == proxy
    assert found.shown == "http://proxy.example:3128"
    assert "ss-word" not in repr(found) + found.advice + repr(ProxySetting(NAME, proxy))
    assert secrets_of(proxy, "token@b.example", "", NONE) == ["p%40ss-word", "p@ss-word", "token"]
    monkeypatch.setenv("HTTP_PROXY", "http://u:other-secret@b.example:1")
    assert environment_secrets() == ["other-secret"]


# -- models


def model_at(url: str, setting: str = "") -> ChatModel:
    return ChatModel(url, "scripted", "key", timeout=5, proxy=ProxySetting(NAME, setting), alone=False)


async def asked(model: ChatModel) -> str:
    try:
        return (await model.complete(MESSAGE)).text
    finally:
        await model.close()


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
@pytest.mark.parametrize("login", [None, ("user", "p@ss/word")])
async def test_a_model_far_away_is_asked_through_the_proxy_and_one_here_is_not(
    monkeypatch: pytest.MonkeyPatch, kind: type[HttpProxy | SocksProxy], login: tuple[str, str] | None
) -> None:
    async with ScriptedModel([REPLY], repeat_last=True) as server, kind({}, login=login) as proxy:
        proxy.hosts = {"model.example": urlsplit(server.url).port or 0}
        far = "http://model.example/v1"
        assert "finish" in await asked(model_at(far, proxy.url))
        assert proxy.asked == ["model.example:80"]
        monkeypatch.setenv("all_proxy", proxy.url)
        assert "finish" in await asked(model_at(far))
        assert "finish" in await asked(model_at(server.url, proxy.url))
        assert proxy.asked == ["model.example:80"] * 2
        assert len(server.requests) == 3


async def test_https_goes_through_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy is told the host and the port, and sees nothing of what is asked."""
    async with HttpProxy({}) as proxy:
        with pytest.raises(errors.ModelUnreachable):
            await asked(model_at("https://model.example/v1", proxy.url))
        assert proxy.asked == ["model.example:443"]


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
async def test_an_error_through_a_proxy_tells_of_it(kind: type[HttpProxy | SocksProxy]) -> None:
    async with kind({}, login=("user", "geheim-9")) as proxy:
        cases = {
            proxy.url: "the host is not known there",
            f"{kind.scheme}://{proxy.address}": "nobody logs in",
            f"{kind.scheme}://user:wrong@{proxy.address}": "with another password",
            f"{kind.scheme}://127.0.0.1:{free_port()}": "nothing listens",
        }
        for setting, case in cases.items():
            model = model_at("http://model.example/v1", setting)
            with pytest.raises(errors.ModelUnreachable) as raised:
                await asked(model)
            assert raised.value.values["source"] == NAME, case
            assert f"（来自 {NAME}）" in told(raised.value, "zh"), case
            assert f"from {NAME}" in told(raised.value, "en"), case
            assert (
                raised.value.values.items()
                >= {
                    "model": "scripted",
                    "proxy": model.route.shown,
                    "source": NAME,
                    "setting": NAME,
                }.items()
            ), case
            assert f"through the proxy {model.route.shown}, from {NAME}: turn that proxy on" in str(raised.value), case
            assert "geheim" not in str(raised.value), case


async def test_a_proxy_of_the_other_kind_is_an_error_and_no_crash() -> None:
    async with HttpProxy({}) as http, SocksProxy({}) as socks:
        for wrong in (f"socks5://{http.address}", f"http://{socks.address}"):
            with pytest.raises((errors.ModelUnreachable, errors.ModelTimeout)) as raised:
                await asked(model_at("http://model.example/v1", wrong))
            assert "turn that proxy on" in str(raised.value)


async def test_an_error_without_a_proxy_says_nothing_of_any() -> None:
    with pytest.raises(errors.ModelUnreachable) as raised:
        await asked(model_at(f"http://127.0.0.1:{free_port()}/v1", CLASH))
    assert "proxy" not in str(raised.value)
    assert "proxy" not in raised.value.values
    assert "代理" not in told(raised.value, "zh")


async def test_the_planner_and_the_chooser_go_by_the_same_setting() -> None:
    async with SocksProxy({}) as proxy:
        setting = ProxySetting(NAME, proxy.url)
        planner = Planner("http://plans.example/v1", "plans", "key", tools=(), timeout=5, proxy=setting)
        end = await planner.plan(PlannerTask("x"), cast("Executor", None), Nothing(), quiet)
        await planner.close()
        assert isinstance(end, PlanFailed)
        assert f"把 {NAME} 设为别的代理" in end.message  # the planner's other settings have names of their own
        chooser = ModelChooser("http://chooser.example/v1", "chooser", "key", timeout=1, proxy=setting)
        assert await chooser.choose("q", "q", [Record(id="1", text="a", source="x:y", score=0.9)]) is None
        await chooser.close()
        assert set(proxy.asked) == {"plans.example:80", "chooser.example:80"}
