"""Documents in both directions: what the stand-in refuses, what is read of an update, what goes out."""

from __future__ import annotations

import base64

import aiohttp
import pytest
from telegram import Bot, Message, Update
from telegram.error import BadRequest, NetworkError

from bot.channels.chat.cards import Button, Card, Document, Line
from bot.channels.chat.turn import Attached, Incoming
from bot.channels.telegram import render, updates
from bot.channels.telegram.files import TelegramFiles
from bot.channels.telegram.options import TELEGRAM_PROXY
from bot.channels.telegram.sending import ShownMessage, Telegram
from bot.desk import actors
from simulator.telegram import FakeTelegram, FakeUser
from tests.support.telegram import picture

MEGABYTE = 1024 * 1024
DIRECT = TELEGRAM_PROXY.route("http://127.0.0.1")
SHEET = "问题,答案\n怎么退货,七天内可退\n".encode()


def read(tg: FakeTelegram, bot: Bot) -> Incoming | None:
    """What the newest update means to us."""
    return updates.read(Update.de_json(tg.world.updates[-1], bot), bot_id=tg.world.bot.id, bot_name="desk_bot")


class TestTheStandIn:
    async def test_a_document_goes_out_and_comes_back(self, bot: Bot, user: FakeUser) -> None:
        sent = await bot.send_document(user.id, SHEET, filename="知识.csv", caption="<b>全部</b>", parse_mode="HTML")
        assert (user.chat.last.caption, user.chat.last.file) == ("全部", SHEET)
        assert sent.document is not None
        assert (sent.document.file_name, sent.document.file_size) == ("知识.csv", len(SHEET))
        assert bytes(await (await bot.get_file(sent.document.file_id)).download_as_bytearray()) == SHEET

    async def test_what_telegram_refuses_is_refused(self, bot: Bot, user: FakeUser) -> None:
        with pytest.raises(BadRequest, match=r"(?i)file must be non-empty"):
            await bot.send_document(user.id, b"", filename="a.csv")
        with pytest.raises(BadRequest, match=r"(?i)caption is too long"):
            await bot.send_document(user.id, SHEET, filename="a.csv", caption="字" * 1025)
        with pytest.raises(BadRequest, match=r"(?i)wrong file identifier"):
            await bot.send_document(user.id, "F999999")
        with pytest.raises(BadRequest, match=r"(?i)invalid file_id"):
            await bot.get_file("F999999")
        photo = await bot.send_photo(user.id, picture())
        with pytest.raises(BadRequest, match=r"(?i)file of type Photo as Document"):
            await bot.send_document(user.id, photo.photo[0].file_id)

    async def test_a_bot_gets_nothing_over_20_megabytes(self, bot: Bot, user: FakeUser) -> None:
        sent = await user.send_file(b"x" * (20 * MEGABYTE + 1), "large.csv")
        assert sent.content.file is not None
        with pytest.raises(BadRequest, match=r"(?i)file is too big"):
            await bot.get_file(sent.content.file.file_id)

    async def test_privacy_mode_holds_for_captions(self, tg: FakeTelegram, user: FakeUser) -> None:
        group = tg.group(-100, "Shop")
        await user.send_file(SHEET, "a.csv", caption="see this", chat=group)
        assert tg.world.updates == []
        await user.send_file(SHEET, "a.csv", caption="/kb import", chat=group)
        assert tg.world.updates[-1]["message"]["caption_entities"] == [
            {"type": "bot_command", "offset": 0, "length": 3},
        ]

    async def test_a_document_can_be_sent_from_outside(self, tg: FakeTelegram, user: FakeUser) -> None:
        body = {"user": user.id, "name": "a.csv", "data": base64.b64encode(SHEET).decode(), "caption": "/kb import"}
        async with aiohttp.ClientSession() as session, session.post(f"{tg.root}/control/document", json=body) as done:
            assert done.status == 200
        assert (user.chat.last.file, user.chat.last.caption) == (SHEET, "/kb import")
        assert tg.world.updates[-1]["message"]["document"]["file_name"] == "a.csv"


class TestIncoming:
    async def test_a_document_with_and_without_a_caption(self, tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
        sent = await user.send_file(SHEET, "知识.xlsx", caption="/kb import")
        incoming = read(tg, bot)
        assert incoming is not None
        assert sent.content.file is not None
        assert (incoming.kind, incoming.text) == ("text", "/kb import")
        assert incoming.document == Attached(sent.content.file.file_id, "知识.xlsx", len(SHEET))
        await user.send_file(SHEET, "a.csv")
        incoming = read(tg, bot)
        assert incoming is not None
        assert (incoming.text, incoming.document is not None) == ("", True)

    async def test_a_caption_that_was_handed_on_is_no_command(self, tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
        await user.send_file(SHEET, "a.csv", caption="/kb import", forwarded=True)
        incoming = read(tg, bot)
        assert incoming is not None
        assert (incoming.text, incoming.document is not None) == ("", True)

    @pytest.mark.parametrize(
        ("written", "name"),
        [
            ("../../etc/passwd.csv", "passwd.csv"),
            ("..", "file"),
            ("a\u202egpj.csv", "a_gpj.csv"),
            ("a  b|c?.csv", "a_b_c_.csv"),
            ("x" * 300 + ".xlsx", "x" * 75 + ".xlsx"),
            ("", "file"),
        ],
    )
    def test_a_name_is_only_a_name(self, written: str, name: str) -> None:
        assert render.file_name(written) == name

    async def test_a_tap_brings_the_document_that_its_message_answers(
        self, tg: FakeTelegram, bot: Bot, user: FakeUser
    ) -> None:
        sent = await user.send_file(SHEET, "a.csv")
        outgoing = render.outgoing(Card("?", buttons=((Button("kb:x", "Go"),),)), reply_to=str(sent.id))
        await Telegram(bot).send(user.id, outgoing)
        query, _ = user.tapped(user.chat.last, "Go")
        tg.world.push("callback_query", query)
        incoming = read(tg, bot)
        assert incoming is not None
        assert sent.content.file is not None
        assert incoming.document == Attached(sent.content.file.file_id, "a.csv", len(SHEET))


class TestFetching:
    async def test_what_was_sent_is_what_is_got(self, bot: Bot, user: FakeUser) -> None:
        sent = await user.send_file(SHEET, "a.csv")
        assert sent.content.file is not None
        file = Attached(sent.content.file.file_id, "a.csv", len(SHEET))
        assert await TelegramFiles(bot, DIRECT).fetch(file, MEGABYTE) == SHEET

    @pytest.mark.parametrize("said", [0, 2 * MEGABYTE], ids=["size not told", "size told"])
    async def test_one_that_is_too_large_is_refused(self, bot: Bot, user: FakeUser, said: int) -> None:
        sent = await user.send_file(b"x" * (2 * MEGABYTE), "a.csv")
        assert sent.content.file is not None
        with pytest.raises(actors.BadRequest, match="larger than 1 MB"):
            await TelegramFiles(bot, DIRECT).fetch(Attached(sent.content.file.file_id, "a.csv", said), MEGABYTE)

    async def test_one_that_is_gone_is_said_so(self, tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
        with pytest.raises(actors.BadRequest, match="any more"):
            await TelegramFiles(bot, DIRECT).fetch(Attached("F999999", "a.csv"), MEGABYTE)

    async def test_a_network_that_fails_is_not_called_so(self, tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
        sent = await user.send_file(SHEET, "a.csv")
        assert sent.content.file is not None
        tg.world.break_next("getFile", how="502")
        with pytest.raises(NetworkError):
            await TelegramFiles(bot, DIRECT).fetch(Attached(sent.content.file.file_id, "a.csv"), MEGABYTE)


class TestOutgoing:
    async def test_a_card_with_a_document_carries_it(self, bot: Bot, user: FakeUser) -> None:
        card = Card("知识库", (Line("3", "条目"),), document=Document("kb/知识.csv", SHEET))
        shown = await Telegram(bot).send(user.id, render.outgoing(card))
        assert shown.picture
        assert (user.chat.last.caption, user.chat.last.file) == ("知识库\n条目：3", SHEET)
        assert user.chat.last.content.file is not None
        assert user.chat.last.content.file.name == "知识.csv"

    async def test_its_words_are_changed_as_a_caption(self, bot: Bot, user: FakeUser) -> None:
        outgoing = render.outgoing(Card("a", buttons=((Button("x:1", "x"),),), document=Document("a.csv", SHEET)))
        await Telegram(bot).send(user.id, outgoing)
        query, _ = user.tapped(user.chat.last, "x")
        message = Update.de_json({"update_id": 1, "callback_query": query}, bot).callback_query
        assert message is not None
        assert isinstance(message.message, Message)
        at = updates.message_ref(message.message)
        await Telegram(bot).edit(user.id, ShownMessage(int(at.message_id), at.picture), render.outgoing(Card("b")))
        assert (user.chat.last.caption, user.chat.last.file) == ("b", SHEET)

    def test_a_parcel_with_a_document_is_kept_as_data(self) -> None:
        outgoing = render.outgoing(Card("t", document=Document("a.csv", SHEET)))
        assert type(outgoing).model_validate(outgoing.payload()) == outgoing
