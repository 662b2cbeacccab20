"""A Bot API server that wants to do harm: each answer ends in an error, in time, within memory, and the bot goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from structlog.testing import capture_logs
from telegram.error import RetryAfter, TelegramError

from bot.channels.telegram.adapter import SECRET_HEADER, TelegramAdapter
from bot.channels.telegram.inbox import MOST
from bot.channels.telegram.options import TELEGRAM_PROXY, TelegramOptions
from bot.channels.telegram.request import BEYOND_SECONDS, LONGEST_WAIT, BotRequest
from simulator.telegram.hostile import NONSENSE, ODD_PARAMETERS, TOKEN, HostileTelegram
from storage.messages import InboxTable, OutboxTable
from tests.bot.channels.telegram.asking import SECONDS, ask, ask_all, ask_together, fetch, poll
from tests.bot.channels.telegram.house import FAST, House, until
from tests.support.child import Child

LATE = 3.0  # what a machine that is busy adds
AT_ONCE = ["endless_body", "large_body", "gzip_bomb", "many_values", "many_names", "deep", "one_byte_pieces"]
AT_ONCE += ["endless_head", "large_error", "large_description", "many_updates", "many_broken_updates"]
LATER = ["silence", "slow_head", "slow_body", "endless_promises"]


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child() as made:
        yield made


@pytest.mark.parametrize(("work", "cases"), [(ask_all, AT_ONCE), (ask_together, LATER)], ids=["at once", "later"])
async def test_every_answer_ends_in_its_error_within_bounds(
    work: Callable[[str, list[str]], Awaitable[list[str]]], cases: list[str], child: Child
) -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(HostileTelegram(case)) for case in cases]
        cost = await child.measure_beside(work, TOKEN, [server.url for server in servers])
    assert cost.error == "", cost.message
    assert cost.memory < 200, cost
    assert cost.longest_block < 1, cost
    # A machine with other work gives what makes work only a part of its time.
    assert (cost.cpu if work is ask_all else cost.seconds) < SECONDS + BEYOND_SECONDS + LATE, cost
    assert all(len(told) < 700 and TOKEN not in told for told in cost.result)
    asked = dict(zip(cases, cost.result[::2], strict=True))
    polled = dict(zip(cases, cost.result[1::2], strict=True))
    if work is ask_together:
        assert set(cost.result) == {"TimedOut: Timed out"}
        return
    assert "none" not in asked.values()
    assert (polled["many_updates"], polled["many_broken_updates"]) == ("60000", str(MOST))
    assert "compressed" in polled["gzip_bomb"]
    assert "has more than 8.4 MB" in polled["endless_body"] == polled["large_body"]
    assert "too many values" in polled["many_values"] == polled["many_names"]
    assert "too many pieces" in polled["one_byte_pieces"]
    assert polled["large_error"] == "NetworkError: Bad Gateway (502)"
    assert polled["large_description"].startswith("BadRequest: \x1b(B")


async def test_no_redirect_is_followed() -> None:
    async with HostileTelegram("good") as elsewhere, HostileTelegram("redirect", elsewhere=elsewhere.url) as server:
        for _ in range(5):
            assert (await ask(TOKEN, server.url)).startswith("NetworkError: ")
        assert len(server.requests) == 5
        assert elsewhere.requests == []
        assert await ask(TOKEN, elsewhere.url) == "none"


async def test_nonsense_is_an_error_of_telegrams() -> None:
    async with HostileTelegram("nonsense") as server:
        for body in NONSENSE:
            told = await ask(TOKEN, server.url)
            assert told.startswith(("TelegramError: ", "UnfitAnswer: ")), (body, told)
    async with HostileTelegram("nonsense") as server:
        for body in NONSENSE:
            told = await poll(TOKEN, server.url)
            assert told.startswith("TelegramError: ") or (told in {"none", "0"} and b'"result"' in body), (body, told)


async def test_odd_errors_are_bounded() -> None:
    async with (
        HostileTelegram("odd_errors") as server,
        BotRequest(TELEGRAM_PROXY.route(server.url), SECONDS) as request,
    ):
        for parameters in ODD_PARAMETERS:
            with pytest.raises(TelegramError) as raised:
                await request.post(f"{server.url}/bot{TOKEN}/getMe")
            if isinstance(raised.value, RetryAfter):
                assert raised.value._retry_after.total_seconds() == LONGEST_WAIT, parameters


async def test_a_file_comes_from_the_server_alone(tmp_path: Path) -> None:
    ours = tmp_path / "secret.txt"
    ours.write_text("from this machine", encoding="utf-8")
    async with HostileTelegram("file_elsewhere") as server:
        assert await fetch(TOKEN, server.url) == "from the server"
    async with HostileTelegram("good") as elsewhere:
        host = elsewhere.url.removeprefix("http:")
        for path in (str(ours), f"file://{ours}", f"http:{host}/x", f"{host}/x", "../../x", "a?b#c d"):
            async with HostileTelegram("file_elsewhere", path=path) as server:
                told = await fetch(TOKEN, server.url)
                assert told == "from the server" or told.startswith("BadRequest: Telegram does not give"), (path, told)
        assert elsewhere.requests == []


async def test_a_file_is_bounded_as_it_comes(child: Child) -> None:
    async with HostileTelegram("file_too_large") as server:
        cost = await child.measure_beside(fetch, TOKEN, server.url)
    assert cost.result.startswith("BadRequest: The file a.csv is larger than 1 MB.")
    assert cost.memory < 30


async def test_the_adapter_goes_on_trying(house: House) -> None:
    async with HostileTelegram("nonsense") as server:
        options = TelegramOptions(TOKEN, base_url=f"{server.url}/bot", **FAST)
        adapter = TelegramAdapter(house.desk, InboxTable(house.db), OutboxTable(house.db), options)
        with capture_logs() as logs:
            async with adapter:
                await until(lambda: len(server.requests) > 2 * len(NONSENSE), 30)
                assert adapter.failed is None
                assert not adapter.ready.is_set()
        assert {line["event"] for line in logs} == {"telegram_not_reached", "telegram_error"}
        assert not any(TOKEN in str(line) for line in logs)


# The webhook ---------------------------------------------------------------------------------------------------------


async def slowly(url: str, secret: str, body: bytes, length: int) -> tuple[bytes, float]:
    """The status of a request whose body never comes as a whole, and after how many seconds it is told."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"POST {parts.path} HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n{SECRET_HEADER}: {secret}\r\n\r\n"
    before = time.monotonic()
    writer.write(head.encode() + body)
    try:
        async with asyncio.timeout(20):
            return (await reader.readline()).split()[1], time.monotonic() - before
    finally:
        writer.close()


async def test_the_webhook_waits_for_no_slow_body_and_reads_none_without_the_secret(house: House) -> None:
    async with house.webhook(body_seconds=0.3) as (_, url):
        assert (await slowly(url, "s-e-c", b'{"update', 100))[0] == b"408"
        assert (await slowly(url, "wrong", b'{"update', 100))[0] == b"403"
        status, _ = await slowly(url, "wrong", b"", 10**12)
        assert status == b"403"
        status, _ = await slowly(url, "s-e-c", b"", 10**12)
        assert status == b"413"

        async def unmeasured() -> AsyncIterator[bytes]:
            for _ in range(17):
                yield bytes(65536)

        async with (
            aiohttp.ClientSession(headers={SECRET_HEADER: "s-e-c"}) as session,
            session.post(url, data=unmeasured()) as refused,
        ):
            assert refused.status == 413
