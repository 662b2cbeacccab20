"""A Bot API server that wants to do harm: each answer ends in an error, in time, within memory, and the bot goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from telegram.error import TelegramError

from bot.chat.turn import Attached
from bot.desk.actors import BadRequest
from bot.telegram.batch import MOST, UpdatesRequest
from bot.telegram.files import TelegramFiles
from bot.telegram.request import BEYOND_SECONDS, bot_at, introduce
from simulator.telegram_hostile import TOKEN, HostileTelegram
from tests.bot.telegram.test_adapter import db, desk, empty_database, house
from tests.support.child import measure_beside

__all__ = ["db", "desk", "empty_database", "house"]  # fixtures

SECONDS = 1.0
LATE = 3.0  # what a machine that is busy adds
AT_ONCE = ["endless_body", "large_body", "gzip_bomb", "many_values", "many_names", "deep", "one_byte_pieces"]
AT_ONCE += ["endless_head", "large_error", "large_description", "redirect", "many_updates", "many_broken_updates"]
LATER = ["silence", "slow_head", "slow_body", "endless_promises"]


async def ask(url: str) -> str:
    """Ask as the commands do, and then for updates as the adapter does."""
    async with bot_at(TOKEN, url, SECONDS) as bot:
        try:
            await introduce(bot)
        except TelegramError as error:
            return f"{type(error).__name__}: {error}"
        return "none"


async def poll(url: str) -> str:
    request = UpdatesRequest(SECONDS)
    try:
        return str(len(await request.post(f"{url}/bot{TOKEN}/getUpdates")))
    except TelegramError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await request.shutdown()


async def fetch(url: str) -> str:
    """A file, through the bot."""
    async with bot_at(TOKEN, url, SECONDS) as bot:
        try:
            return (await TelegramFiles(bot).fetch(Attached("F", "a.csv"), 1024 * 1024)).decode()
        except (BadRequest, TelegramError) as error:
            return f"{type(error).__name__}: {error}"


Told = list[tuple[str, float]]


async def one_by_one(urls: list[str]) -> Told:
    return [told for url in urls for told in (await _timed(ask, url), await _timed(poll, url))]


async def together(urls: list[str]) -> Told:
    return list(await asyncio.gather(*(_timed(work, url) for url in urls for work in (ask, poll))))


async def _timed(work: Callable[[str], Awaitable[str]], url: str) -> tuple[str, float]:
    before = time.monotonic()
    return await work(url), time.monotonic() - before


@pytest.mark.parametrize(("work", "cases"), [(one_by_one, AT_ONCE), (together, LATER)], ids=["at once", "later"])
async def test_every_answer_ends_in_its_error_within_bounds(work: Any, cases: list[str]) -> None:
    async with AsyncExitStack() as stack:
        elsewhere = await stack.enter_async_context(HostileTelegram("good"))
        servers = [
            await stack.enter_async_context(HostileTelegram(case, elsewhere=elsewhere.url)) for case in cases
        ]
        cost = await measure_beside(work, [server.url for server in servers])
        assert elsewhere.requests == []
    assert cost.error == "", cost.message
    for case, asked, polled in zip(cases, cost.result[::2], cost.result[1::2], strict=True):
        for told, seconds in (asked, polled):
            assert told.partition(":")[0] != "none", case
            assert len(told) < 700, case
            assert TOKEN not in told, case
            assert seconds < SECONDS + BEYOND_SECONDS + LATE, (case, seconds)
    assert cost.memory < 200, cost
    assert cost.longest_block < 1 + LATE, cost
    if work is one_by_one:
        told = dict(zip(cases, [text for text, _ in cost.result[1::2]], strict=True))
        assert (told["many_updates"], told["many_broken_updates"]) == ("60000", str(MOST))
        assert "compressed" in told["gzip_bomb"]
        assert "more than 8.4 MB" in told["endless_body"] == told["large_body"]
        assert "too many values" in told["many_values"] == told["many_names"]
        assert "too many pieces" in told["one_byte_pieces"]
        assert told["large_error"] == "NetworkError: Bad Gateway (502)"
