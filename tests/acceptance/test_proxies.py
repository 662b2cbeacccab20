"""The product in environments that name proxies, as those of people who need one do."""

from __future__ import annotations

import signal
from urllib.parse import urlsplit

import pytest

from tests.acceptance.stage import ANSWER, QUICK_TASK, Stage
from tests.support.proxies import HttpProxy, SocksProxy, free_port

FAR_MODEL = "http://model.example/v1"
FAR_BOT = "http://telegram.example"


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_the_demo_needs_no_proxy_and_uses_none(on: Stage, lang: str) -> None:
    """Not even one that cannot be used is in its way."""
    async with HttpProxy({}) as http, SocksProxy({}) as socks:
        given = {"http_proxy": http.url, "all_proxy": socks.url}
        if lang == "en":
            given = {"HTTP_PROXY": "socks4://127.0.0.1:1", "ALL_PROXY": "no proxy at all"}
        done = await on.command("demo", "--headless", "--json", PHONEDESK_LANG=lang, **given)
        assert done.code == 0, done.err
        assert done.json["phone"]["sent"] == {"11": [ANSWER]}
        assert http.asked == socks.asked == []


async def test_a_run_asks_its_model_through_the_proxy_of_the_environment(on: Stage) -> None:
    """The options of ``run`` come before the settings."""
    async with SocksProxy({"model.example": port_of(on.model.url)}, login=("me", "geheim-77")) as socks:
        options = ("--endpoint", FAR_MODEL, "--model", "another")
        gone = {"PHONEDESK_MODEL__BASE_URL": "http://127.0.0.1:1/v1", "all_proxy": socks.url}
        done = await on.command("run", QUICK_TASK, "--json", *options, **gone)
        assert done.code == 0, done.out + done.err
        assert set(socks.asked) == {"model.example:80"}
        assert {request["model"] for request in on.model.requests} == {"another"}
        assert "geheim" not in done.out + done.err


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("lang", "said", "advice"),
    [
        ("zh", "模型服务连不上", "请打开这个代理"),
        ("en", "The model server cannot be reached", "turn that proxy on"),
    ],
)
async def test_a_proxy_that_is_off_or_none_is_told_in_both_languages(
    on: Stage, lang: str, said: str, advice: str
) -> None:
    proxy = f"127.0.0.1:{free_port()}"
    settings = {"PHONEDESK_LANG": lang, "PHONEDESK_MODEL__BASE_URL": FAR_MODEL}
    level = {"zh": "info", "en": "error"}[lang]
    done = await on.command("run", QUICK_TASK, "--log-level", level, **settings, HTTP_PROXY=f"me:geheim-77@{proxy}")
    assert done.code == 1, done.err
    assert ("run_cut_short" in done.err) == (lang == "zh")
    lines = (done.out + done.err).split("\n")
    told = {"zh": "", "en": " "}[lang].join(line.strip() for line in lines)  # broken where a language may be
    for words in (said, advice, f"http://{proxy}", "HTTP_PROXY", "PHONEDESK_MODEL__PROXY"):
        assert words in told, told
    assert "geheim" not in told

    done = await on.command("run", QUICK_TASK, "--endpoint", f"http://me:geheim-77@{proxy}/v1", PHONEDESK_LANG=lang)
    told = " ".join((done.out + done.err).split())
    assert f"--endpoint http://<login>@{proxy}/v1" in told
    assert "geheim" not in told

    done = await on.command("run", QUICK_TASK, **settings, all_proxy="socks4://me:geheim-77@127.0.0.1:1")
    assert done.code == 2, done.err
    told = done.err.replace("\n", "")
    assert "all_proxy" in told
    assert "PHONEDESK_MODEL__PROXY" in told
    assert ("不能用" if lang == "zh" else "cannot be used") in told
    assert "geheim" not in told


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("lang", "away", "back"),
    [
        ("zh", "连不上 Telegram", "机器人已上线：@"),
        ("en", "Telegram cannot be reached", "The bot is there: @"),
    ],
)
async def test_serve_shows_no_code_until_the_proxy_is_on(on: Stage, lang: str, away: str, back: str) -> None:
    port = free_port()
    given = {"PHONEDESK_TELEGRAM__PROXY": f"socks5://127.0.0.1:{port}", "PHONEDESK_TELEGRAM__API_BASE_URL": FAR_BOT}
    server = await on.serve(**given, PHONEDESK_LANG=lang)
    assert away in await server.line()
    assert FAR_BOT in await server.line(), "it is not Telegram's own"
    assert f"socks5://127.0.0.1:{port}" in await server.line()
    async with SocksProxy({"telegram.example": port_of(on.telegram.root)}, port=port) as socks:
        assert back in await server.line()
        user = on.telegram.user(11001, "店主", "zh")
        await user.send(f"/start {await server.pairing_code()}")
        await on.sees(user, "配对成功")
        assert set(socks.asked) == {"telegram.example:80"}
        assert await server.end() == 0
    assert "httpx" not in server.complaints()


async def test_a_wrong_token_does_not_look_like_success(on: Stage) -> None:
    server = await on.serve(PHONEDESK_TELEGRAM__TOKEN="700000001:another-token")
    assert "不认识这个令牌" in await server.line()
    server.signal(signal.SIGTERM)
    ended = await server.ended()
    assert (ended.code, "/start" in ended.out) == (0, False)

    malformed = await on.command("serve", PHONEDESK_TELEGRAM__TOKEN="my bot's token")
    assert malformed.code == 2
    assert "PHONEDESK_TELEGRAM__TOKEN" in malformed.err
    assert "123456789:AA" in malformed.err
    assert "my bot" not in malformed.err
