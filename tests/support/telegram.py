"""A stand-in server of Telegram, a bot that speaks to it, and a person there."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import structlog
from PIL import Image

if TYPE_CHECKING:
    from telegram import Bot

    from simulator.telegram import FakeTelegram, FakeUser


def picture(width: int = 60, height: int = 120, colour: str = "white", kind: str = "JPEG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, kind)
    return out.getvalue()


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Logs as lines; the default draws every frame with its locals, which takes seconds."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])
    yield
    structlog.reset_defaults()


@pytest.fixture
async def tg() -> AsyncIterator[FakeTelegram]:
    from simulator.telegram import FakeTelegram

    async with FakeTelegram() as server:
        yield server


@pytest.fixture
async def bot(tg: FakeTelegram) -> AsyncIterator[Bot]:
    from telegram import Bot
    from telegram.request import HTTPXRequest

    client = Bot(
        tg.token,
        base_url=tg.url,
        base_file_url=tg.file_url,
        request=HTTPXRequest(connection_pool_size=8),
        get_updates_request=HTTPXRequest(),
    )
    async with client:
        yield client


@pytest.fixture
async def user(tg: FakeTelegram) -> FakeUser:
    """A person who has started the bot's chat; nothing waits for the bot."""
    person = tg.user(11, "Operator A", "zh")
    await person.send("/start")
    tg.world.updates.clear()
    return person
