from __future__ import annotations

import asyncio
import io
from contextlib import aclosing

import pytest
from PIL import Image

from bot.desk.actors import NotFound, Role
from bot.desk.views import EventView
from storage.events import Events
from tests.support.lab import lab
from tests.support.shop import CHAT, PHONE, Shop, make_shop


async def read(shop: Shop, consumer: str, count: int) -> list[EventView]:
    found = []
    after = await shop.desk.position(consumer)
    async with asyncio.timeout(10), aclosing(shop.desk.events(after)) as events:  # type: ignore[type-var]
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_each_consumer_reads_on_from_its_own_place(shop: Shop, url: str) -> None:
    log = Events(shop.db)
    ids = [await log.append("r1", "step", {"n": n}, picture=b"jpeg" if n == 1 else None) for n in range(4)]
    first = await read(shop, "card", 2)
    assert [(event.id, event.run_id, event.kind, event.data["n"]) for event in first] == [
        (ids[0], "r1", "step", 0),
        (ids[1], "r1", "step", 1),
    ]
    assert [await shop.desk.event_picture(event) for event in first] == [None, b"jpeg"]
    assert (await read(shop, "card", 1))[0].id == ids[0]  # not confirmed: told again
    await shop.desk.confirm("card", ids[1])
    await shop.desk.confirm("card", ids[0])  # never back
    restarted = make_shop(url, shop.clock)
    try:
        assert [event.id for event in await read(restarted, "card", 2)] == ids[2:]
        assert (await read(restarted, "other", 1))[0].id == ids[0]
    finally:
        await restarted.db.close()


async def test_what_comes_later_is_told_at_once(shop: Shop) -> None:
    task = asyncio.create_task(read(shop, "card", 1))
    await asyncio.sleep(0)
    event_id = await Events(shop.db).append("r1", "outcome", {})
    assert (await task)[0].id == event_id


async def test_a_run_tells_its_status_by_itself(shop: Shop) -> None:
    who = await shop.person(Role.OPERATOR)
    view = await shop.desk.runs.start(who, "打开设置", chat=CHAT)
    await shop.desk.runs.stop(who)
    told = [event for event in await read(shop, "card", 3) if event.run_id]  # the first is of the pairing
    assert [(event.run_id, event.kind, event.data["status"]) for event in told] == [
        (view.id, "status", "queued"),
        (view.id, "status", "stopped"),
    ]


async def test_the_screen_as_jpeg(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    async with lab() as bench:
        shop.devices[""] = shop.devices[PHONE] = bench.device
        jpeg = await shop.desk.phones.screenshot(who, PHONE)
        with Image.open(io.BytesIO(jpeg)) as image:
            assert image.format == "JPEG"
            assert image.height > image.width
        assert (await shop.desk.phones.screenshot(who))[:2] == jpeg[:2]
        seen = await shop.desk.phones.page(who, PHONE)
        assert (seen.app, seen.page.chat, seen.page.rows) == ("", None, ())  # the home screen
        await bench.open_chat()
        seen = await shop.desk.phones.page(who)
        assert seen.app == "QQ"
        assert seen.page.chat is not None
        assert seen.page.chat.title == "11"
    for made_up in ("ghost", "10.0.0.1:5555"):  # nothing is connected to because somebody wrote it
        with pytest.raises(NotFound, match=made_up):
            await shop.desk.phones.screenshot(who, made_up)
        with pytest.raises(NotFound, match=made_up):
            await shop.desk.phones.page(who, made_up)
