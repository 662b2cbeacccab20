"""Runs that were, through the whole channel: a real desk behind it, the stand-in server before it."""

from __future__ import annotations

import io
import json

import sqlalchemy as sa
from PIL import Image

from bot.channels.chat.cards import ReplayOrder
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.desk.actors import Role
from storage.messages import OutboxTable
from storage.tables import outbox
from tests.bot.channels.telegram.shop import Shop
from tests.bot.desk.past import past_run


def frames(gif: bytes | None) -> int:
    assert gif is not None
    with Image.open(io.BytesIO(gif)) as image:
        assert image.format == "GIF"
        return int(getattr(image, "n_frames", 1))


async def test_from_the_list_to_the_card_to_the_film(tg_shop: Shop) -> None:
    viewer = await tg_shop.person(11, Role.VIEWER)
    await past_run(tg_shop.db, "打开设置", status="failed")
    await past_run(tg_shop.db, steps=4, sent={"11": "七天内可退"})
    async with tg_shop.adapter():
        await viewer.send("历史")
        listed = await viewer.sees(lambda chat: chat.saying("任务历史")[0])
        assert listed.buttons == [["#2", "#1"]]
        await viewer.tap(listed, "#2")
        card = await viewer.sees(lambda chat: [at for at in chat.saying("✅ 已完成") if at is not listed][-1])
        assert card.buttons[-1] == ["🎬 回放"]
        assert "正在制作" in (await viewer.tap(card, "🎬 回放")).text
        film = await viewer.sees(lambda chat: chat.saying("回放 #2")[0])
        assert (film.content.media, frames(film.file)) == ("animation", 5)
        assert film.content.file is not None
        assert film.content.file.name == "run-2.gif"
        assert film.reply_to is card
        assert "任务：QQ回复联系人11" in film.caption
        assert viewer.chat.actions == ["upload_video"]
        await viewer.send("/replay 1 相册")
        await viewer.sees(lambda chat: chat.saying("回放 #1")[0])
        album = [message for message in viewer.chat.from_bot if message.media_group_id]
        assert [message.content.media for message in album] == ["photo"] * 3
        assert [bool(message.caption) for message in album] == [True, False, False]
        assert album[0].reply_to is not None
        assert album[0].reply_to.text == "/replay 1 相册"
        await viewer.send("/replay 1 拼图")
        await viewer.sees(lambda chat: chat.last.content.media == "photo" and not chat.last.media_group_id)
        assert len(viewer.chat.saying("回放 #2")) == 1


async def test_the_store_holds_no_film(tg_shop: Shop) -> None:
    viewer = await tg_shop.person(11, Role.VIEWER)
    await past_run(tg_shop.db, steps=3)
    async with tg_shop.adapter():
        await viewer.send("/replay")
        await viewer.sees(lambda chat: chat.saying("回放 #1")[0])
    async with tg_shop.db.read() as connection:
        payloads = list((await connection.execute(sa.select(outbox.c.payload))).scalars())
    (payload,) = [payload for payload in payloads if "film" in payload]
    assert len(json.dumps(payload)) < 1000


async def test_a_film_that_telegram_did_not_take_at_once_is_sent_once(tg_shop: Shop) -> None:
    viewer = await tg_shop.person(11, Role.VIEWER)
    await past_run(tg_shop.db, steps=3)
    tg_shop.tg.world.break_next("sendAnimation", times=2)
    tg_shop.tg.world.limit_next(11, times=1, retry_after=1)
    async with tg_shop.adapter():
        await viewer.send("/replay 1")
        film = await viewer.sees(lambda chat: chat.saying("回放 #1")[0])
        assert frames(film.file) == 3
        await viewer.send("/whoami")
        await viewer.sees(lambda chat: chat.last.content.media == "")
        assert len(viewer.chat.saying("回放 #1")) == 1


async def test_a_group_that_takes_no_pictures_gets_words(tg_shop: Shop) -> None:
    viewer = await tg_shop.person(11, Role.VIEWER)
    group = tg_shop.tg.group(-100, "Shop")
    group.no_media = True
    await past_run(tg_shop.db, steps=3)
    async with tg_shop.adapter():
        for kind in ("gif", "album"):
            await viewer.send(f"/replay 1 {kind}", chat=group)
        said = await viewer.sees(lambda chat: chat.saying("回放 #1")[:2] * (len(chat.from_bot) == 2), chat=group)
        assert [(message.content.media, "回放 #1" in message.words) for message in said] == [("", True)] * 2


async def test_a_film_that_cannot_be_made_holds_nothing_up(tg_shop: Shop) -> None:
    viewer = await tg_shop.person(11, Role.VIEWER)
    await viewer.send("/start")
    order = OutgoingMessage(text="t", caption="t", film=ReplayOrder(run_id="of another database"))
    await OutboxTable(tg_shop.db).put("11", order.payload())
    async with tg_shop.adapter():
        await viewer.sees(lambda chat: chat.saying("回放没有做成")[0])
        await viewer.send("/whoami")
        await viewer.sees(lambda chat: chat.saying("身份")[0])


def test_an_order_survives_the_store() -> None:
    outgoing = OutgoingMessage(
        text="t", caption="c", film=ReplayOrder(run_id="r", kind="album", lang="en"), album=[b"a", b"b"]
    )
    assert OutgoingMessage.model_validate(outgoing.payload()) == outgoing
