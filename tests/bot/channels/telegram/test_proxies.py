"""The Bot API through real proxies, and what is said if it cannot be reached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from telegram.error import InvalidToken, TelegramError

from agent_core.errors import ConfigInvalid
from agent_core.proxies import ProxySetting
from bot.channels.chat.turn import Attached
from bot.channels.telegram.files import TelegramFiles
from bot.channels.telegram.options import TELEGRAM_PROXY, TelegramOptions
from bot.channels.telegram.request import bot_at, failure_of, introduce
from simulator.telegram import FakeTelegram
from tests.support.proxies import HttpProxy, SocksProxy, free_port

FAR = "http://telegram.example"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def setting(value: str) -> ProxySetting:
    return ProxySetting(TELEGRAM_PROXY.name, value)


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
async def test_calls_and_files_go_through_the_proxy_and_to_this_machine_do_not(
    monkeypatch: pytest.MonkeyPatch, kind: type[HttpProxy | SocksProxy]
) -> None:
    async with FakeTelegram() as tg, kind({}, login=("user", "p@ss/word")) as proxy:
        proxy.hosts = {"telegram.example": urlsplit(tg.root).port or 0}
        user = tg.user(1, "店主", "zh")
        sent = await user.send_file(b"a,b\n", "a.csv")
        assert sent.content.file is not None
        monkeypatch.setenv("all_proxy", proxy.url)
        async with bot_at(tg.token, FAR, TELEGRAM_PROXY, 10) as bot:
            await introduce(bot)
            file = Attached(sent.content.file.file_id, "a.csv", 4)
            assert await TelegramFiles(bot, TELEGRAM_PROXY.route(FAR)).fetch(file, 100) == b"a,b\n"
        assert set(proxy.asked) == {"telegram.example:80"}
        before = len(proxy.asked)
        async with bot_at(tg.token, tg.root, TELEGRAM_PROXY, 10) as bot:
            await introduce(bot)
        assert len(proxy.asked) == before


async def failure(url: str, token: str, proxy: str = "") -> str:
    async with bot_at(token, url, setting(proxy), 2) as bot:
        with pytest.raises(TelegramError) as raised:
            await introduce(bot)
    assert isinstance(raised.value, InvalidToken) == (failure_of(raised.value) == "refused")
    return failure_of(raised.value)


async def test_why_telegram_cannot_be_used_is_told_apart() -> None:
    async with FakeTelegram() as tg, HttpProxy({}) as http, SocksProxy({}, login=("u", "p")) as socks:
        assert await failure(tg.root, "1:wrong") == "refused"
        assert await failure(f"http://127.0.0.1:{free_port()}", tg.token) == "not_reached"
        for proxy in (
            http.url,  # the host is not known there
            f"socks5://{socks.address}",  # without the login
            f"socks5://{http.address}",  # a proxy of the other kind
            f"http://127.0.0.1:{free_port()}",
        ):
            assert await failure(FAR, tg.token, proxy) == "not_reached", proxy
    async with silent() as url:
        assert await failure(url, "1:a") == "silent"


@asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """A server that takes connections and never answers."""
    ended = asyncio.Event()

    async def wait(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ended.set()


def test_a_proxy_that_is_none_keeps_the_bot_from_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks4://127.0.0.1:1")
    with pytest.raises(ConfigInvalid, match="The proxy in all_proxy cannot be used"):
        assert TelegramOptions("1:a").route
    assert TelegramOptions("1:a", proxy=setting("none")).route.source == TELEGRAM_PROXY.name
