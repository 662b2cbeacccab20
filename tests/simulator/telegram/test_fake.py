"""The stand-in for Telegram: it takes what a real client sends, and refuses what Telegram refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from telegram import (
    Bot,
    BotCommand,
    BotCommandScopeChat,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    InputMediaPhoto,
    LinkPreviewOptions,
    ReplyParameters,
    Update,
)
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter

from simulator.telegram import FakeTelegram, FakeUser
from tests.support.telegram import picture

ROWS = InlineKeyboardMarkup([[InlineKeyboardButton("停止", callback_data="stop:1")]])


async def raw(tg: FakeTelegram, method: str, *, token: str | None = None, **options: Any) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{tg.url}{token or tg.token}/{method}", **options) as response,
    ):
        return response.status, json.loads(await response.text())


async def texts_of(bot: Bot) -> list[str | None]:
    """What waits for the bot, as texts."""
    return [update.message.text for update in await bot.get_updates() if update.message]


class TestGoodCalls:
    async def test_a_text_with_html_and_buttons_is_shown_as_a_person_sees_it(self, bot: Bot, user: FakeUser) -> None:
        sent = await bot.send_message(
            user.id,
            "<b>任务</b> 1 &lt; 2 <code>x</code>",
            parse_mode="HTML",
            reply_markup=ROWS,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        seen = user.chat.last
        assert (seen.id, seen.text, seen.buttons) == (sent.message_id, "任务 1 < 2 x", [["停止"]])
        assert [(entity.type, entity.offset, entity.length) for entity in sent.entities] == [
            ("bold", 0, 2),
            ("code", 9, 1),
        ]
        assert sent.parse_entities() == {sent.entities[0]: "任务", sent.entities[1]: "x"}

    async def test_a_photo_comes_back_by_its_file_id(self, bot: Bot, user: FakeUser) -> None:
        data = picture()
        sent = await bot.send_photo(user.id, data, caption="屏幕")
        assert user.chat.last.photo == data
        assert (sent.photo[0].width, sent.photo[0].height) == (60, 120)
        assert bytes(await (await bot.get_file(sent.photo[0].file_id)).download_as_bytearray()) == data
        again = await bot.send_photo(user.id, sent.photo[0].file_id)
        assert user.chat.last.photo == data
        assert again.photo[0].file_id == sent.photo[0].file_id

    async def test_a_card_is_edited_in_place_and_its_history_kept(self, bot: Bot, user: FakeUser) -> None:
        sent = await bot.send_message(user.id, "第 1 步", reply_markup=ROWS)
        await bot.edit_message_text("第 2 步", user.id, sent.message_id)
        await bot.edit_message_media(
            InputMediaPhoto(picture(), caption="<i>第 3 步</i>", parse_mode="HTML"), user.id, sent.message_id
        )
        await bot.edit_message_caption(user.id, sent.message_id, caption="第 4 步")
        await bot.edit_message_reply_markup(user.id, sent.message_id, reply_markup=ROWS)
        card = user.chat.last
        assert [edit.content.text or edit.content.caption for edit in card.edits] == [
            *("第 1 步", "第 2 步", "第 3 步", "第 4 步", "第 4 步"),
        ]
        assert card.buttons == [["停止"]]
        assert card.photo == picture()
        assert len(user.chat.from_bot) == 1

    async def test_the_other_kinds_of_messages(self, bot: Bot, user: FakeUser) -> None:
        await bot.send_document(user.id, b"a,b", filename="table.csv")
        assert user.chat.last.file == b"a,b"
        await bot.send_animation(user.id, picture(kind="GIF"), filename="run.gif", caption="回放")
        assert user.chat.last.content.media == "animation"
        album = await bot.send_media_group(user.id, [InputMediaPhoto(picture(colour=c)) for c in ("red", "blue")])
        assert [message.photo for message in user.chat.messages[-2:]] == [picture(colour="red"), picture(colour="blue")]
        assert len({message.media_group_id for message in album}) == 1
        await bot.send_message(user.id, "?", reply_markup=ForceReply(selective=True, input_field_placeholder="回答"))
        assert user.chat.last.force_reply
        reply = await bot.send_message(user.id, "!", reply_parameters=ReplyParameters(user.chat.last.id))
        assert reply.reply_to_message is not None
        await bot.delete_message(user.id, reply.message_id)
        assert user.chat.last.text == "?"
        await bot.send_chat_action(user.id, "typing")
        assert user.chat.actions == ["typing"]

    async def test_who_and_what_the_bot_is(self, bot: Bot, user: FakeUser) -> None:
        assert (await bot.get_me()).username == "desk_bot"
        assert (await bot.get_chat(user.id)).first_name == "Operator A"
        await bot.set_my_commands([BotCommand("run", "运行任务")], language_code="zh")
        assert (await bot.get_my_commands(language_code="zh"))[0].description == "运行任务"
        assert await bot.get_my_commands() == ()
        await bot.delete_my_commands(language_code="zh")
        assert await bot.get_my_commands(language_code="zh") == ()

    async def test_json_and_query_parameters_work_too(self, tg: FakeTelegram, user: FakeUser) -> None:
        status, answer = await raw(tg, "sendMessage", json={"chat_id": user.id, "text": "json"})
        assert (status, answer["result"]["text"]) == (200, "json")
        status, _ = await raw(tg, "SENDMESSAGE", params={"chat_id": str(user.id), "text": "query"})
        assert (status, user.chat.last.text) == (200, "query")


class TestUpdates:
    async def test_a_command_is_marked_and_offset_confirms(self, bot: Bot, user: FakeUser) -> None:
        await user.send("/run QQ回复联系人11")
        await user.send("你好")
        first, second = await bot.get_updates()
        assert first.message is not None
        assert first.message.from_user is not None
        assert [(e.type, e.offset, e.length) for e in first.message.entities] == [("bot_command", 0, 4)]
        assert first.message.from_user.language_code == "zh"
        assert len(await bot.get_updates()) == 2  # not confirmed yet
        assert [update.update_id for update in await bot.get_updates(offset=second.update_id)] == [second.update_id]
        assert await bot.get_updates(offset=second.update_id + 1) == ()

    async def test_a_long_poll_waits_for_what_comes(self, bot: Bot, user: FakeUser) -> None:
        poll = asyncio.create_task(bot.get_updates(timeout=20))
        await asyncio.sleep(0.05)
        assert not poll.done()
        await user.send("hi")
        (update,) = await asyncio.wait_for(poll, 5)
        assert update.effective_message is not None
        assert update.effective_message.text == "hi"

    async def test_a_tapped_button_shows_the_toast(self, bot: Bot, user: FakeUser) -> None:
        await bot.send_message(user.id, "card", reply_markup=ROWS)
        tap = asyncio.create_task(user.tap(user.chat.last, "停止"))
        (update,) = await bot.get_updates(timeout=10)
        assert update.callback_query is not None
        assert update.callback_query.data == "stop:1"
        await bot.answer_callback_query(update.callback_query.id, "已停止", show_alert=True)
        toast = await tap
        assert (toast.text, toast.alert) == ("已停止", True)
        with pytest.raises(BadRequest, match=r"(?i)Query is too old"):
            await bot.answer_callback_query(update.callback_query.id)

    async def test_allowed_updates_leave_the_rest_out(self, bot: Bot, user: FakeUser) -> None:
        await bot.get_updates(allowed_updates=["message"])
        await user.edit(await user.send("one"), "two")
        assert [update.message is not None for update in await bot.get_updates()] == [True]

    async def test_two_pollers_conflict(self, bot: Bot, tg: FakeTelegram) -> None:
        older = asyncio.create_task(raw(tg, "getUpdates", json={"timeout": 20}))
        await asyncio.sleep(0.05)
        await bot.get_updates(timeout=0)
        status, answer = await older
        assert status == 409
        assert "terminated by other getUpdates request" in answer["description"]

    async def test_a_group_in_privacy_mode(self, bot: Bot, tg: FakeTelegram, user: FakeUser) -> None:
        group = tg.group(-1001, "shop")
        await bot.send_message(group.id, "card")
        said = (
            "small talk",
            "/run@other_bot x",
            "/run@desk_bot x",
            "/status",
            "／status",
            "运行 x",
            "/运行 x",
            "see /help",
        )
        for text in said:
            await user.send(text, chat=group)
        await user.send("answer", chat=group, reply_to=group.from_bot[-1])
        assert await texts_of(bot) == ["/run@desk_bot x", "/status", "answer"]
        group.bot_admin = True
        await user.send("all of it", chat=group)
        group.bot_admin, tg.world.privacy = False, False
        await user.send("this too", chat=group)
        group.kicked = True
        await user.send("/status", chat=group)
        assert (await texts_of(bot))[3:] == ["all of it", "this too"]
        assert (await bot.get_me()).can_read_all_group_messages
        with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
            await bot.send_message(group.id, "card")

    async def test_topics_of_a_forum(self, bot: Bot, tg: FakeTelegram, user: FakeUser) -> None:
        group, plain = tg.group(-1001, "shop", forum=True), tg.group(-1002, "plain")
        with pytest.raises(BadRequest, match="not a forum"):
            await bot.create_forum_topic(plain.id, "x")
        with pytest.raises(BadRequest, match="Not enough rights to create a topic"):
            await bot.create_forum_topic(group.id, "x")
        theirs = user.make_topic(group, "orders")
        assert (await bot.send_message(group.id, "x", message_thread_id=theirs.id)).is_topic_message
        with pytest.raises(BadRequest, match="Not enough rights"):
            await bot.close_forum_topic(group.id, theirs.id)
        user.close_topic(group, theirs.id)
        with pytest.raises(BadRequest, match="Topic_closed"):
            await bot.send_message(group.id, "x", message_thread_id=theirs.id)
        group.manages_topics = True
        await bot.send_message(group.id, "a manager may", message_thread_id=theirs.id)
        await bot.reopen_forum_topic(group.id, theirs.id)
        with pytest.raises(BadRequest, match="Topic_not_modified"):
            await bot.reopen_forum_topic(group.id, theirs.id)
        with pytest.raises(BadRequest, match="too long"):
            await bot.create_forum_topic(group.id, "x" * 129)
        made = await bot.create_forum_topic(group.id, "Pixel")
        await bot.edit_forum_topic(group.id, made.message_thread_id, name="Pixel 8")
        with pytest.raises(BadRequest, match="Topic_not_modified"):
            await bot.edit_forum_topic(group.id, made.message_thread_id, name="Pixel 8")
        assert [topic.name for topic in group.topics.values()] == ["orders", "Pixel 8"]
        await bot.delete_forum_topic(group.id, made.message_thread_id)
        for chat, thread in ((group, made.message_thread_id), (plain, 7), (user.chat, 7)):
            with pytest.raises(BadRequest, match="Message thread not found"):
                await bot.send_message(chat.id, "x", message_thread_id=thread)
        with pytest.raises(BadRequest, match="Topic_id_invalid"):
            await bot.edit_forum_topic(group.id, made.message_thread_id, name="x")
        assert (await bot.get_chat(group.id)).is_forum

    async def test_a_group_becomes_a_supergroup(self, bot: Bot, tg: FakeTelegram, user: FakeUser) -> None:
        old = tg.group(-5, "shop", "group")
        new = tg.world.upgrade(old, -1005, user.member)
        told = [update.message for update in await bot.get_updates() if update.message]
        assert [(m.chat.id, m.migrate_to_chat_id, m.migrate_from_chat_id) for m in told] == [
            (old.id, new.id, None),
            (new.id, None, old.id),
        ]
        with pytest.raises(ChatMigrated):
            await bot.send_message(old.id, "x")

    async def test_the_webhook_is_served_until_it_takes_the_update(
        self, bot: Bot, tg: FakeTelegram, user: FakeUser
    ) -> None:
        got: list[tuple[str | None, Update | None]] = []

        async def hook(request: web.Request) -> web.Response:
            secret = request.headers.get("X-Telegram-Bot-Api-Secret-Token")
            got.append((secret, Update.de_json(await request.json(), bot)))
            return web.Response(status=500 if len(got) == 1 else 200)

        app = web.Application()
        app.router.add_post("/hook", hook)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            await bot.set_webhook(f"http://127.0.0.1:{runner.addresses[0][1]}/hook", secret_token="s-1")
            await user.send("one")
            async with asyncio.timeout(5):
                while len(got) < 2:
                    await asyncio.sleep(0.01)
            assert [secret for secret, _ in got] == ["s-1", "s-1"]
            assert got[0][1] == got[1][1]
            with pytest.raises(Conflict, match=r"(?i)webhook is active"):
                await bot.get_updates()
            await bot.delete_webhook()
            assert (await bot.get_webhook_info()).url == ""
            assert await bot.get_updates() == ()
        finally:
            await runner.cleanup()


class TestRefusals:
    async def test_of_texts(self, bot: Bot, user: FakeUser) -> None:
        await bot.send_message(user.id, "😀" * 2048)
        await bot.send_message(user.id, f"<b>{'x' * 4096}</b>", parse_mode="HTML")
        for text, words in {
            "😀" * 2049: "message is too long",
            "  ": "message text is empty",
            "<b></b>": "message text is empty",
        }.items():
            with pytest.raises(BadRequest, match=f"(?i){words}"):
                await bot.send_message(user.id, text, parse_mode="HTML")
        await bot.send_photo(user.id, picture(), caption="字" * 1024)
        with pytest.raises(BadRequest, match=r"(?i)caption is too long"):
            await bot.send_photo(user.id, picture(), caption="字" * 1025)

    @pytest.mark.parametrize(
        ("html", "words"),
        [
            ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
            ("x</b>", "Unexpected end tag at byte offset 1"),
            ("<b>字<i>x</b>", 'Unmatched end tag at byte offset 10, expected "</i>", found "</b>"'),
            ("<div>x</div>", 'Unsupported start tag "div" at byte offset 0'),
            ("1 < 2", "Unclosed start tag at byte offset 2"),
            ("<span>x</span>", 'Tag "span" must have class "tg-spoiler"'),
        ],
    )
    async def test_of_bad_html(self, bot: Bot, user: FakeUser, html: str, words: str) -> None:
        with pytest.raises(BadRequest, match=r"(?i)can't parse entities") as caught:
            await bot.send_message(user.id, html, parse_mode="HTML")
        assert words.lower() in caught.value.message.lower()

    async def test_of_buttons_and_toasts(self, bot: Bot, user: FakeUser) -> None:
        def rows(**button: Any) -> InlineKeyboardMarkup:
            return InlineKeyboardMarkup([[InlineKeyboardButton("x", **button)]])

        await bot.send_message(user.id, "ok", reply_markup=rows(callback_data="字" * 21 + "x"))
        with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
            await bot.send_message(user.id, "no", reply_markup=rows(callback_data="字" * 22))
        with pytest.raises(BadRequest, match=r"(?i)Text buttons are unallowed"):
            await bot.send_message(user.id, "no", reply_markup=rows())
        with pytest.raises(BadRequest, match=r"(?i)style"):
            await bot.send_message(user.id, "no", reply_markup=rows(callback_data="1", style="violet"))
        await bot.send_message(user.id, "ok", reply_markup=rows(callback_data="1", style="danger"))
        with pytest.raises(BadRequest, match=r"(?i)placeholder"):
            await bot.send_message(user.id, "?", reply_markup=ForceReply(input_field_placeholder="x" * 65))
        tap = asyncio.create_task(user.tap(user.chat.last, "x"))
        (update,) = await bot.get_updates(timeout=10)
        assert update.callback_query is not None
        with pytest.raises(BadRequest, match=r"(?i)message_too_long"):
            await bot.answer_callback_query(update.callback_query.id, "x" * 201)
        await bot.answer_callback_query(update.callback_query.id, "x" * 200)
        await tap

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"no picture", "image_process_failed"),
            (picture()[:300], "image_process_failed"),
            (picture(10, 201), "photo_invalid_dimensions"),
            (picture(9400, 601), "photo_invalid_dimensions"),
            (picture() + bytes(10 * 1024 * 1024), "too big for a photo"),
            (b"", "non-empty"),
        ],
    )
    async def test_of_pictures(self, bot: Bot, user: FakeUser, data: bytes, words: str) -> None:
        with pytest.raises(BadRequest, match=f"(?i){words}"):
            await bot.send_photo(user.id, data)

    async def test_of_edits(self, bot: Bot, user: FakeUser) -> None:
        text = await bot.send_message(user.id, "<b>a</b>", parse_mode="HTML", reply_markup=ROWS)
        photo = await bot.send_photo(user.id, picture(), caption="a")
        theirs = await user.send("mine")
        with pytest.raises(BadRequest, match=r"(?i)not modified"):
            await bot.edit_message_text(
                "<strong>a</strong>", user.id, text.message_id, parse_mode="HTML", reply_markup=ROWS
            )
        with pytest.raises(BadRequest, match=r"(?i)not modified"):
            await bot.edit_message_media(InputMediaPhoto(picture(), caption="a"), user.id, photo.message_id)
        with pytest.raises(BadRequest, match=r"(?i)no text in the message"):
            await bot.edit_message_text("b", user.id, photo.message_id)
        with pytest.raises(BadRequest, match=r"(?i)no caption in the message"):
            await bot.edit_message_caption(user.id, text.message_id, caption="b")
        with pytest.raises(BadRequest, match=r"(?i)to edit not found"):
            await bot.edit_message_text("b", user.id, 99)
        with pytest.raises(BadRequest, match=r"(?i)can't be edited"):
            await bot.edit_message_text("b", user.id, theirs.id)
        with pytest.raises(BadRequest, match=r"(?i)to delete not found"):
            await bot.delete_message(user.id, 99)
        with pytest.raises(BadRequest, match=r"(?i)replied not found"):
            await bot.send_message(user.id, "b", reply_parameters=ReplyParameters(99))
        await bot.send_message(user.id, "b", reply_parameters=ReplyParameters(99, allow_sending_without_reply=True))

    async def test_of_chats(self, bot: Bot, tg: FakeTelegram, user: FakeUser) -> None:
        with pytest.raises(BadRequest, match=r"(?i)chat not found"):
            await bot.send_message(404, "x")
        with pytest.raises(Forbidden, match=r"(?i)initiate conversation"):
            await bot.send_message(tg.user(12).id, "x")
        await user.block()
        with pytest.raises(Forbidden, match=r"(?i)blocked by the user"):
            await bot.send_message(user.id, "x")
        group = tg.group(-5, "old", "group")
        group.migrated_to = -1005
        with pytest.raises(ChatMigrated, match=r"(?i)-1005"):
            await bot.send_message(group.id, "x")

    async def test_of_albums_and_commands_and_webhooks(self, bot: Bot, user: FakeUser) -> None:
        with pytest.raises(BadRequest, match=r"(?i)2-10"):
            await bot.send_media_group(user.id, [InputMediaPhoto(picture())])
        with pytest.raises(BadRequest, match=r"(?i)one album"):
            await bot.send_media_group(user.id, [InputMediaPhoto(picture()), InputMediaDocument(b"x")])
        with pytest.raises(BadRequest, match=r"(?i)command_invalid"):
            await bot.set_my_commands([BotCommand("Run", "x")])
        with pytest.raises(BadRequest, match=r"(?i)commands_too_much"):
            await bot.set_my_commands([BotCommand(f"c{number}", "x") for number in range(101)])
        with pytest.raises(BadRequest, match=r"(?i)description_invalid"):
            await bot.set_my_commands([BotCommand("run", "x" * 257)])
        with pytest.raises(BadRequest, match=r"(?i)language code"):
            await bot.set_my_commands([BotCommand("run", "x")], language_code="zh-hans")
        with pytest.raises(BadRequest, match=r"(?i)chat not found"):
            await bot.set_my_commands([BotCommand("run", "x")], BotCommandScopeChat(12345))
        with pytest.raises(BadRequest, match=r"(?i)HTTPS URL"):
            await bot.set_webhook("http://example.org/hook")
        with pytest.raises(BadRequest, match=r"(?i)unallowed characters"):
            await bot.set_webhook("https://example.org/hook", secret_token="no blanks")

    async def test_of_what_is_no_call_at_all(self, tg: FakeTelegram, user: FakeUser) -> None:
        assert await raw(tg, "sendMesage") == (
            404,
            {"ok": False, "error_code": 404, "description": "Not Found: method not found"},
        )
        assert (await raw(tg, "getMe", token="1:x"))[0] == 401
        good = {"chat_id": user.id, "text": "x"}
        nested = {"inline_keyboard": [[{"text": "x", "callback_data": "1", "colour": "red"}]]}
        for body, words in [
            ({"chat_id": user.id}, "message text is empty"),
            ({"text": "x"}, "chat_id is empty"),
            (good | {"txt": "y"}, 'unknown parameter "txt"'),
            (good | {"text": 5}, "text"),
            (good | {"message_thread_id": "seven"}, "message_thread_id"),
            (good | {"reply_markup": nested}, 'unknown field "colour"'),
            (good | {"reply_markup": "{"}, "can't parse reply_markup JSON object"),
            (good | {"parse_mode": "Markdown"}, "unsupported parse_mode"),
        ]:
            status, answer = await raw(tg, "sendMessage", json=body)
            assert status == 400
            assert words in answer["description"]
        assert (await raw(tg, "sendMessage", data=b"{", headers={"Content-Type": "application/json"}))[0] == 400
        assert (await raw(tg, "sendDice", json={"chat_id": user.id}))[0] == 400
        assert (await raw(tg, "sendPhoto", json={"chat_id": user.id, "photo": "attach://x"}))[0] == 400
        assert user.chat.from_bot == []

    async def test_a_wrong_token_is_told_as_such(self, tg: FakeTelegram) -> None:
        with pytest.raises(InvalidToken):
            await Bot("1:wrong", base_url=tg.url).initialize()


class TestTrouble:
    async def test_too_many_requests_for_one_chat_alone(self, bot: Bot, tg: FakeTelegram, user: FakeUser) -> None:
        other = tg.user(12)
        await other.send("/start")
        tg.world.limit_next(user.chat, 2, retry_after=7)
        for _ in range(2):
            with pytest.raises(RetryAfter) as caught:
                await bot.send_message(user.id, "x")
        assert "7" in str(caught.value)
        await bot.send_message(other.id, "x")
        await bot.send_message(user.id, "x")

    async def test_lost_calls_and_lost_answers(self, bot: Bot, tg: FakeTelegram, user: FakeUser) -> None:
        tg.world.break_next("sendMessage")
        with pytest.raises(NetworkError):
            await bot.send_message(user.id, "before")
        tg.world.break_next("sendMessage", how="after")
        with pytest.raises(NetworkError):
            await bot.send_message(user.id, "after")
        tg.world.break_next("sendMessage", how="502")
        with pytest.raises(NetworkError):
            await bot.send_message(user.id, "gateway")
        assert [message.text for message in user.chat.from_bot] == ["after"]


class TestControl:
    async def test_a_conversation_over_http(self, bot: Bot, tg: FakeTelegram) -> None:
        async with aiohttp.ClientSession(tg.root) as session:

            async def post(path: str, **body: object) -> Any:
                async with session.post(f"/control/{path}", json=body) as response:
                    assert response.status == 200, await response.text()
                    return await response.json()

            await post("users", id=5, name="Operator B", lang="zh")
            await post("send", user=5, text="/start")
            (update,) = await bot.get_updates(timeout=5)
            await bot.send_photo(5, picture(), caption="card", reply_markup=ROWS)
            async with session.get("/control/chats/5") as response:
                card = (await response.json())["messages"][-1]
            assert (card["caption"], card["buttons"][0][0]["text"]) == ("card", "停止")
            async with session.get(card["picture"]) as response:
                assert await response.read() == picture()
            tap = asyncio.create_task(post("tap", user=5, message_id=card["id"], button="停止"))
            (update,) = await bot.get_updates(offset=update.update_id + 1, timeout=5)
            assert update.callback_query is not None
            await bot.answer_callback_query(update.callback_query.id, "ok")
            assert await tap == {"text": "ok", "alert": False}
            async with session.get("/control/chats/5/text") as response:
                assert "[photo] card [停止]" in await response.text()
            async with session.post("/control/send", json={"user": 6, "text": "x"}) as response:
                assert response.status == 404
            async with session.post("/control/send", json={"usr": 5}) as response:
                assert response.status == 400

    async def test_what_was_not_seen_is_told(self, tg: FakeTelegram, user: FakeUser) -> None:
        with pytest.raises(TimeoutError, match=r"(?i)Operator A: /start"):
            await tg.wait_for(lambda chat: chat.saying("never"), timeout=0.05)
