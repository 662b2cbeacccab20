"""Photos, files, films and albums: what the stand-in refuses, and how what is too much for a photo goes out."""

from __future__ import annotations

import random

import pytest
from telegram import Bot, InputMediaAnimation, InputMediaPhoto
from telegram.error import BadRequest

from bot.channels.chat.cards import Button, Card, Document, Line
from bot.channels.telegram import render
from bot.channels.telegram.sending import ShownMessage, Telegram
from simulator.telegram import FakeTelegram, FakeUser
from tests.support.telegram import picture

GIF = picture(kind="GIF")


def heavy() -> bytes:
    """Over 10 MB."""
    return picture() + random.Random(1).randbytes(10 * 1024 * 1024)


class TestTheStandIn:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (picture(10, 201), "PHOTO_INVALID_DIMENSIONS"),
            (picture(4000, 6001), "PHOTO_INVALID_DIMENSIONS"),
            (heavy(), "too big for a photo"),
            (b"no picture", "IMAGE_PROCESS_FAILED"),
        ],
        ids=["too long", "too large", "too heavy", "none"],
    )
    async def test_of_photos(self, bot: Bot, user: FakeUser, data: bytes, words: str) -> None:
        with pytest.raises(BadRequest, match=f"(?i){words}"):
            await bot.send_photo(user.id, data)
        with pytest.raises(BadRequest, match=f"(?i){words}"):
            await bot.send_media_group(user.id, [InputMediaPhoto(picture()), InputMediaPhoto(data)])
        assert user.chat.from_bot == []
        await bot.send_document(user.id, data, filename="a.jpg")

    async def test_of_films(self, bot: Bot, user: FakeUser) -> None:
        sent = await bot.send_animation(user.id, GIF, filename="a.gif")
        assert sent.animation is not None
        assert (sent.animation.width, sent.animation.height, sent.animation.file_name) == (60, 120, "a.gif")
        assert sent.document is not None
        await bot.send_animation(user.id, b"\x00\x00\x00\x18ftypmp42", filename="a.mp4")
        for data in (picture(), b"GIF89a", b"none"):
            with pytest.raises(BadRequest, match=r"(?i)wrong type of the animation"):
                await bot.send_animation(user.id, data, filename="a.gif")
        with pytest.raises(BadRequest, match=r"(?i)caption is too long"):
            await bot.send_animation(user.id, GIF, caption="字" * 1025)
        with pytest.raises(BadRequest, match=r"(?i)of type Document as Photo"):
            await bot.send_photo(user.id, sent.animation.file_id)

    async def test_of_albums(self, bot: Bot, user: FakeUser) -> None:
        photos = [InputMediaPhoto(picture()) for _ in range(11)]
        for media in (photos[:1], photos):
            with pytest.raises(BadRequest, match=r"(?i)2-10 media"):
                await bot.send_media_group(user.id, media)
        with pytest.raises(BadRequest, match=r"(?i)can't parse parameter \"media\""):
            await bot.send_media_group(user.id, [photos[0], InputMediaAnimation(GIF)])  # type: ignore[list-item]  # that is refused
        with pytest.raises(BadRequest, match=r"(?i)caption is too long"):
            await bot.send_media_group(user.id, photos[:2], caption="字" * 1025)
        assert user.chat.from_bot == []

    async def test_of_a_group_without_the_right(self, tg: FakeTelegram, bot: Bot) -> None:
        group = tg.group(-100, "Shop")
        group.no_media = True
        for call in (
            bot.send_photo(-100, picture()),
            bot.send_animation(-100, GIF),
            bot.send_media_group(-100, [InputMediaPhoto(picture())] * 2),
        ):
            with pytest.raises(BadRequest, match=r"(?i)not enough rights to send"):
                await call
        await bot.send_message(-100, "words")


class TestOutgoing:
    @pytest.mark.parametrize(
        ("data", "fits"),
        [
            (picture(), True),
            (picture(10, 200), True),
            (picture(10, 201), False),
            (picture(201, 10), False),
            (picture(4000, 6000), True),
            (picture(4000, 6001), False),
            (heavy(), False),
        ],
    )
    async def test_a_picture_that_is_no_photo_goes_as_a_file(
        self, bot: Bot, user: FakeUser, data: bytes, fits: bool
    ) -> None:
        card = Card("屏幕", picture=data, buttons=((Button("x:1", "x"),),))
        shown = await Telegram(bot).send(user.id, render.outgoing(card))
        assert shown.picture
        last = user.chat.last
        assert (last.content.media, last.file, last.caption) == ("photo" if fits else "document", data, "屏幕")
        assert last.buttons == [["x"]]
        assert last.content.file is not None
        assert fits or last.content.file.name == "screen.jpg"
        await Telegram(bot).edit(user.id, ShownMessage(last.id, shown.picture), render.outgoing(Card("b")))
        assert user.chat.last.caption == "b"

    async def test_a_live_card_keeps_its_picture_where_the_new_one_is_no_photo(self, bot: Bot, user: FakeUser) -> None:
        telegram = Telegram(bot)
        at = await telegram.send(user.id, render.outgoing(Card("a", picture=picture())))
        await telegram.edit(user.id, at, render.outgoing(Card("b", picture=picture(10, 201))))
        assert (user.chat.last.caption, user.chat.last.photo) == ("b", picture())
        assert len(user.chat.from_bot) == 1

    @pytest.mark.parametrize("had_picture", [True, False])
    async def test_a_card_whose_picture_was_not_written_down_is_still_edited_in_place(
        self, bot: Bot, user: FakeUser, had_picture: bool
    ) -> None:
        at = await Telegram(bot).send(user.id, render.outgoing(Card("a", picture=picture() if had_picture else None)))
        stale = ShownMessage(at.message_id, not had_picture)  # as the process knew it that was killed
        assert await Telegram(bot).edit(user.id, stale, render.outgoing(Card("b"))) == at
        assert user.chat.last.words == "b"
        assert len(user.chat.from_bot) == 1

    async def test_a_film(self, bot: Bot, user: FakeUser) -> None:
        card = Card("回放", buttons=((Button("x:1", "x"),),), animation=Document("a/run-1.gif", GIF))
        assert (await Telegram(bot).send(user.id, render.outgoing(card))).picture
        assert (user.chat.last.content.media, user.chat.last.file) == ("animation", GIF)
        assert (user.chat.last.caption, user.chat.last.buttons) == ("回放", [["x"]])

    async def test_an_album_has_its_words_under_the_first(self, bot: Bot, user: FakeUser) -> None:
        pictures = tuple(picture(colour=colour) for colour in ("red", "blue", "green"))
        card = Card("回放 <1>", (Line("字" * 2000),), album=pictures, picture=picture())
        shown = await Telegram(bot).send(user.id, render.outgoing(card))
        first, *others = user.chat.from_bot
        assert shown == ShownMessage(first.id, True)
        assert [message.photo for message in user.chat.from_bot] == list(pictures)
        assert first.caption.startswith("回放 <1>")
        assert [message.caption for message in others] == ["", ""]

    async def test_a_film_that_telegram_does_not_take_goes_in_words(self, bot: Bot, user: FakeUser) -> None:
        card = Card("回放", album=(picture(), b"broken"))
        assert not (await Telegram(bot).send(user.id, render.outgoing(card))).picture
        assert user.chat.last.text == "回放"
