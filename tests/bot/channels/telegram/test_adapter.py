"""The whole channel against the stand-in server and a real store: people write and tap, the desk is asked."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import structlog

from agent_core.session import QuestionKind, ReplyRecord
from bot.channels.telegram.adapter import SECRET_HEADER, TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import Actor, Role
from simulator.telegram import Chat, FakeUser
from simulator.telegram.people import transcript
from simulator.telegram.world import Content
from storage.messages import InboxTable, OutboxTable
from storage.runs import NewRun, Runs
from tests.bot.channels.telegram.house import (
    CHOICES,
    FAST,
    House,
    WithARun,
    card_of,
    is_green,
    refused,
    until,
    until_handled,
)
from tests.support.telegram import picture


class TestCommands:
    async def test_a_stranger_pairs_and_runs_a_task(self, house: House) -> None:
        operator = house.tg.user(21, "Operator B", "zh")
        async with house.adapter():
            await operator.send("hello")
            await operator.sees(lambda chat: chat.saying("只服务于已配对的成员"))
            await operator.send("/start 4711")
            await operator.sees(lambda chat: chat.saying("配对成功，Operator B。你的身份：管理员。"))
            assert operator.chat.saying("发 /run QQ回复联系人11 试试")
            await operator.send("/run QQ回复联系人11")
            card = await operator.sees(lambda chat: card_of(chat, "任务：QQ回复联系人11"))
            assert card.buttons == [["停止", "看屏幕", "暂停"]]
            assert card.reply_to is not None
            assert card.reply_to.text == "/run QQ回复联系人11"
            toast = await operator.tap(card, "停止")
            assert toast.text == "正在停止。"
            await operator.sees(lambda chat: "已停止" in card.words)
            assert card.buttons == []
            assert len(operator.chat.saying("任务：QQ回复联系人11")) == 1

    async def test_a_stranger_gets_one_line_and_nothing_else(self, house: House) -> None:
        stranger = house.tg.user(99, "Who", "de")
        async with house.adapter():
            for text in ("hello", "/run x", "/status"):
                await stranger.send(text)
            await stranger.sees(lambda chat: chat.saying("paired members only"))
        async with house.adapter():  # after a restart too
            await stranger.send("/help")
            await until(lambda: house.tg.world.updates == [])
            await until_handled(house)
        assert len(stranger.chat.from_bot) == 1, transcript(stranger.chat)
        assert await house.stage.runs() == []

    async def test_the_screen_comes_as_a_photo(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            await operator.send("截图")
            photo = await operator.sees(lambda chat: card_of(chat, "手机屏幕"))
            assert is_green(photo.photo)
            await operator.tap(photo, "看屏幕")
            await operator.sees(lambda chat: len(chat.saying("手机屏幕")) == 2)

    async def test_an_offer_becomes_the_runs_card(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            await operator.send("打开微信 <b>&")
            offer = await operator.sees(lambda chat: card_of(chat, "作为任务执行吗"))
            assert (await operator.tap(offer, "执行")).text == "已安排。"
            await operator.sees(lambda chat: "排队中" in offer.words)
            (run,) = await house.stage.runs()
            assert run.task == "打开微信 <b>&"
            assert (await until(lambda: house.desk.runs.card(run.id))).message_id == str(offer.id)
            await house.stage.tell(run.id, "outcome", {"status": "succeeded", "message": "好了"})
            await operator.sees(lambda chat: "已完成" in offer.words)

    async def test_what_is_passed_over(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            await operator.send("/run forwarded", forwarded=True)
            message = await operator.send("/help")
            await operator.sees(lambda chat: chat.saying("使用说明"))
            await operator.edit(message, "/run edited")
            channel = Chat(-77, "channel", "news", started=True)
            house.tg.world.chats[-77] = channel
            await operator.send("/run in-channel", chat=channel)
            house.tg.world.push("message", {**message.json(), "from": {"id": 5, "is_bot": True, "first_name": "B"}})
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("账号"))
            await operator.sees(lambda chat: chat.saying("改过的消息不算数"))
        assert await house.stage.runs() == []
        assert len(operator.chat.saying("改过的消息不算数")) == 1
        assert len(operator.chat.from_bot) == 3

    async def test_in_a_group_and_its_topic(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1001, "shop", forum=True)
        topic = operator.make_topic(group, "orders").id
        async with house.adapter():
            await operator.send("/run@other_bot x", chat=group)
            await operator.send("/run@desk_bot QQ回复联系人11", chat=group, thread_id=topic)
            card = await operator.sees(lambda chat: card_of(chat, "QQ回复联系人11"), chat=group)
            assert card.thread_id == topic
            (run,) = await house.stage.runs()
            assert run.chat is not None
            assert (run.chat.kind, run.chat.thread_id) == ("group", str(topic))
            question_id = await house.stage.ask(run.id, QuestionKind.INTERACT, text="哪一个？")
            question = await operator.sees(lambda chat: card_of(chat, "哪一个"), chat=group)
            await operator.send("第二个", chat=group, reply_to=question, thread_id=topic)
            await operator.sees(lambda chat: chat.saying("已采用你的回答"), chat=group)
            assert (await house.stage.question(question_id)).answer == "第二个"


class TestCards(WithARun):
    async def test_one_live_card_is_edited_in_place(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await operator.sees(lambda chat: "执行中" in card.words)
            await house.stage.tell(run_id, "thinking", {"text": "先打开 QQ"})
            await operator.sees(lambda chat: "先打开 QQ" in card.words)
            await house.stage.step(run_id, self.step(1), picture=picture(colour="red"))
            await operator.sees(lambda chat: card.photo == picture(colour="red") and "第 1 步" in card.caption)
            await house.stage.step(run_id, self.step(2), picture=picture(colour="blue"))
            await operator.sees(lambda chat: card.photo == picture(colour="blue") and "想法2" in card.caption)
            reply = ReplyRecord(contact="11", question="怎么退货", text="七天", provenance="knowledge", score=0.9)
            await house.stage.end(run_id, "succeeded", "已回复", replies=(reply,))
            await operator.sees(lambda chat: "已完成" in card.caption and "七天" in card.caption)
            assert card.buttons == [["🎬 回放"]]
            assert operator.chat.from_bot == [card]

    async def test_edits_are_coalesced_and_keep_their_distance(self, house: House, operator: FakeUser) -> None:
        async with house.adapter(edit_private=0.3):
            run_id, card = await self.start(house, operator)
            begun = time.monotonic()
            for number in range(1, 21):
                await house.stage.step(run_id, self.step(number))
                await asyncio.sleep(0.01)
            await operator.sees(lambda chat: "第 20 步" in card.words)
            await house.stage.end(run_id, "succeeded", "好了")
            await operator.sees(lambda chat: "已完成" in card.words)
        times = [edit.at for edit in card.edits]
        assert len(times) <= 3 + (times[-1] - begun) / 0.3
        assert all(later - earlier >= 0.29 for earlier, later in itertools.pairwise(times))

    async def test_a_run_that_is_over_is_forgotten(self, house: House, operator: FakeUser) -> None:
        async with house.adapter() as adapter:
            run_id, card = await self.start(house, operator)
            await house.stage.end(run_id, "succeeded", "好了")
            await house.stage.tell(run_id, "status", {"status": "succeeded"})
            await house.stage.step(run_id, self.step(1))
            await operator.sees(lambda chat: "已完成" in card.words)
            await until(house.has_told_all)
            assert adapter._feed._seen == {}
            assert adapter._outbox._live == {}

    async def test_a_deleted_card_is_sent_anew(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            house.tg.world.delete(card)
            await house.stage.step(run_id, self.step(1))
            anew = await operator.sees(lambda chat: card_of(chat, "第 1 步"))
            await house.stage.step(run_id, self.step(2))
            await operator.sees(lambda chat: "第 2 步" in anew.words)

    async def test_a_restart_goes_on_with_the_same_card(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await house.stage.step(run_id, self.step(1), picture=picture())
            await operator.sees(lambda chat: card.photo is not None)
        await house.stage.step(run_id, self.step(2), picture=picture(colour="blue"))
        await house.stage.end(run_id, "failed", "没有电")
        async with house.adapter():
            await operator.sees(lambda chat: "失败" in card.words and "没有电" in card.words)
        assert operator.chat.from_bot == [card]

    async def test_a_run_from_elsewhere_has_no_card(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            other = await Runs(house.db).create(NewRun("QQ回复联系人12", "S1"))  # by nobody, in no chat
            assert other is not None
            await house.stage.step(other, self.step(1))
            await house.stage.tell("gone", "step")
            await house.stage.step(run_id, self.step(1))
            await operator.sees(lambda chat: "第 1 步" in card.words)
            await until(house.has_told_all)
        assert operator.chat.from_bot == [card]

    async def test_a_picture_that_telegram_refuses_is_left_out(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await house.stage.step(run_id, self.step(1), picture=b"no picture")
            await operator.sees(lambda chat: "第 1 步" in card.text)


class TestQuestions(WithARun):
    async def test_answered_with_a_button(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            assert asked.photo == picture()
            assert asked.buttons == [["退货", "跳过"], ["自己写"]]
            assert not (await operator.tap(asked, "自己写")).alert
            assert (await operator.tap(asked, "退货")).text == "收到，已采用你的回答。"
            assert (await house.stage.question(question_id)).answer == "record:0"
            await operator.sees(lambda chat: "Operator A 已回答：退货" in asked.caption)
            assert asked.buttons == []

    async def test_a_card_that_is_as_it_should_be_is_no_failure(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            await house.stage.tell(run_id, "answered", {"question": question_id})
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
            assert [call for call in house.tg.world.calls if call.code == 400] == []
        async with house.adapter():  # which does not know what was shown before it came
            await house.stage.tell(run_id, "answered", {"question": question_id})
            await until(lambda: [call for call in house.tg.world.calls if call.code == 400])
            await operator.send("/whoami")
            await operator.sees(lambda chat: len(chat.saying("管理员")) == 2)
        assert operator.chat.saying("怎么退货") == [asked]
        assert await refused(house) == []

    async def test_answered_by_a_reply_after_a_restart(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
        async with house.adapter():
            await operator.send("今天就给您退", reply_to=asked)
            await operator.sees(lambda chat: "Operator A 已回答：今天就给您退" in asked.words)
        assert len(operator.chat.saying("怎么退货")) == 1

    async def test_a_reply_to_a_card_that_was_not_remembered(self, house: House, operator: FakeUser) -> None:
        """Killed between sending a question and storing where it stands."""
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            await house.forget_card(question_id)
            await operator.send("今天就给您退", reply_to=asked)
            await until(lambda: house.is_answered(question_id))
        assert (await house.stage.question(question_id)).answer == "今天就给您退"

    async def test_asked_while_we_were_away(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
        await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
        async with house.adapter():
            await operator.sees(lambda chat: chat.saying("怎么退货"))

    async def test_answered_elsewhere_first(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            stale, answered = operator.tapped(asked, "退货")
            await house.desk.questions.answer(
                Actor("w", "web", "w", "Operator B", "en", Role.OWNER), question_id, choice="skip"
            )
            await operator.sees(lambda chat: "Operator B 已回答：跳过" in asked.words)
            house.tg.world.push("callback_query", stale)
            toast = await asyncio.wait_for(answered, 10)
            assert (toast["text"], toast["alert"]) == ("Operator B 已经先回答了：跳过", True)


class TestTrouble(WithARun):
    async def test_too_many_requests_hold_up_one_chat_alone(self, house: House, operator: FakeUser) -> None:
        other = house.tg.user(12, "Operator B", "en")
        await house.stage.join(12, "Operator B", Role.OPERATOR, "en")
        async with house.adapter():
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
            house.tg.world.limit_next(operator.chat, 1, retry_after=3)  # longer than a busy machine takes
            began = asyncio.get_running_loop().time()
            await operator.send("/help")
            await operator.send("/whoami")
            await until(lambda: [call for call in house.tg.world.calls if call.code == 429])
            await other.send("/whoami")
            await other.sees(lambda chat: chat.saying("operator"))
            assert asyncio.get_running_loop().time() - began < 3
            await operator.sees(lambda chat: len(chat.saying("管理员")) == 2)
            assert asyncio.get_running_loop().time() - began >= 3
            assert "使用说明" in operator.chat.from_bot[1].text  # the order is kept

    async def test_a_limited_card_shows_its_newest_state(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await operator.sees(lambda chat: "执行中" in card.words)
            house.tg.world.limit_next(operator.chat, 1, retry_after=1)
            for number in range(1, 5):
                await house.stage.step(run_id, self.step(number))
            await operator.sees(lambda chat: "第 4 步" in card.words)
        assert "第 1 步" not in "".join(edit.content.text for edit in card.edits)

    @pytest.mark.parametrize("ready", [True, False])
    async def test_at_its_end_it_takes_nothing_in_and_shows_what_happens(
        self, house: House, operator: FakeUser, ready: bool
    ) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
        if not ready:
            house.tg.world.break_next("getMe", 1, "502")  # it connects when its end has begun
        async with house.adapter(ready=ready) as adapter:
            await adapter.stop_intake()
            await asyncio.wait_for(adapter.ready.wait(), 10)
            await operator.send("/help")
            await house.stage.end(run_id, "succeeded", "好了")
            await adapter.show_rest(10)
            assert "已完成" in card.words
        assert not operator.chat.saying("使用说明")

    @pytest.mark.parametrize("how", ["before", "502"])
    async def test_the_network_comes_back(self, house: House, operator: FakeUser, how: Any) -> None:
        house.tg.world.break_next("getMe", 2, how)
        with structlog.testing.capture_logs() as logged:
            async with house.adapter():
                await self.is_back(house, operator, how)
        assert [line for line in logged if line["event"] == "telegram_polled_again"]  # people are told that, too

    async def is_back(self, house: House, operator: FakeUser, how: Any) -> None:
        house.tg.world.break_next("getUpdates", 2, how)
        house.tg.world.break_next("sendMessage", 2, how)
        await operator.send("/help")
        await operator.send("/whoami")
        await operator.sees(lambda chat: len(chat.from_bot) == 2)
        assert ["使用说明" in message.text for message in operator.chat.from_bot] == [True, False]

    async def test_a_blocked_chat_holds_nobody_up(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            operator.chat.blocked = True
            await house.stage.end(run_id, "succeeded", "好")
            await until(lambda: [call for call in house.tg.world.calls if call.code == 403])
            await operator.send("/help")
            await operator.sees(lambda chat: chat.saying("使用说明"))

    async def test_a_group_that_became_a_supergroup(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-5, "old", "group")
        new = house.tg.group(-1005, "old")
        async with house.adapter():
            group.migrated_to = new.id
            await operator.send("/help@desk_bot", chat=group)
            await operator.sees(lambda chat: chat.saying("使用说明"), chat=new)

    async def test_a_wrong_token_ends_the_channel_and_is_not_logged(
        self, house: House, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        options = TelegramOptions("1:secret-token", base_url=house.tg.url, **FAST)
        adapter = TelegramAdapter(house.desk, InboxTable(house.db), OutboxTable(house.db), options)
        with structlog.testing.capture_logs() as logs:
            async with adapter:
                await until(lambda: adapter.failed)
        assert "PHONEDESK_TELEGRAM__TOKEN" in str(adapter.failed)
        assert "secret-token" not in json.dumps(logs, default=str) + caplog.text + repr(options)
        assert logs[-1]["event"] == "telegram_token_refused"

    async def test_a_handler_that_fails_is_tried_again_and_then_said(self, house: House, operator: FakeUser) -> None:
        house.stage.broken = RuntimeError("bug")
        with structlog.testing.capture_logs() as logs:
            async with house.adapter():
                await operator.send("/status")
                await operator.sees(lambda chat: chat.saying("没能处理完"))
                house.stage.broken = None
                await operator.send("/status")
                await operator.sees(lambda chat: chat.saying("现状"))
        failures = [entry for entry in logs if entry["event"] == "telegram_update_failed"]
        assert [entry["tries"] for entry in failures] == [1, 2, 3]


class TestOnce:
    async def test_garbage_and_duplicates(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            house.tg.world.push_raw({"update_id": 1, "message": {"message_id": "?", "chat": 5}})
            house.tg.world.push_raw({"update_id": 2, "message": {"text": "no chat"}})
            house.tg.world.push_raw({"update_id": 3})
            house.tg.world.push_raw({"update_id": 4, "new_kind_of_update": {"x": 1}})
            message = await operator.send("/run one")
            house.tg.world.push("message", message.json(), update_id=house.tg.world.updates[-1]["update_id"])
            await operator.sees(lambda chat: chat.saying("one"))
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
        assert [run.task for run in await house.stage.runs()] == ["one"]

    async def test_killed_between_storing_and_handling(self, house: House, operator: FakeUser) -> None:
        """What is stored is handled by the next process; what it had begun takes effect once."""
        await operator.send("/run one")
        (update,) = house.tg.world.updates
        await InboxTable(house.db).store(update["update_id"], json.dumps(update))
        async with house.adapter():  # Telegram, not having heard, sends it again
            await operator.sees(lambda chat: chat.saying("one"))
            await until_handled(house)
        assert len(await house.stage.runs()) == 1

    async def test_killed_in_the_middle_of_handling(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started = asyncio.Event()
        original = house.desk.runs.start

        async def killed_after(*args: Any, **more: Any) -> Any:
            run = await original(*args, **more)
            started.set()
            await asyncio.Event().wait()
            return run

        monkeypatch.setattr(house.desk.runs, "start", killed_after)  # the process dies before it can say so
        adapter = TelegramAdapter(
            house.desk,
            InboxTable(house.db),
            OutboxTable(house.db),
            TelegramOptions(house.tg.token, base_url=house.tg.url, **FAST),
        )
        await adapter.start()
        await operator.send("/run one")
        await asyncio.wait_for(started.wait(), 10)
        assert adapter._task is not None
        adapter._task.cancel()
        await adapter._inbox.finish(0.01)
        await adapter.stop()
        monkeypatch.undo()  # the next process
        assert operator.chat.from_bot == []
        async with house.adapter():
            await operator.sees(lambda chat: chat.saying("one"))
            await until_handled(house)
        assert [run.task for run in await house.stage.runs()] == ["one"]
        assert len(operator.chat.from_bot) == 1


class TestWebhook:
    async def test_updates_come_by_webhook(self, house: House, operator: FakeUser) -> None:
        async with house.webhook():
            assert house.tg.world.webhook.secret == "s-e-c"
            assert house.tg.world.allowed_updates == ["message", "edited_message", "callback_query"]
            await operator.send("/run one")
            card = await operator.sees(lambda chat: card_of(chat, "one"))
            assert (await operator.tap(card, "停止")).text == "正在停止。"
            assert not [call for call in house.tg.world.calls if call.method == "getUpdates"]

    async def test_what_came_while_we_were_away_is_sent_again(self, house: House, operator: FakeUser) -> None:
        async with house.webhook():
            pass
        await operator.send("/run one")
        async with house.webhook():
            await operator.sees(lambda chat: chat.saying("one"))
        async with house.adapter():  # and from webhook to polling
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
        assert len(await house.stage.runs()) == 1

    @pytest.mark.parametrize(
        ("headers", "body", "status"),
        [
            ({}, b'{"update_id": 1}', 403),
            ({SECRET_HEADER: "wrong"}, b'{"update_id": 1}', 403),
            ({SECRET_HEADER: "s-e-ç"}, b'{"update_id": 1}', 403),
            ({SECRET_HEADER: "s-e-c"}, b"{", 400),
            ({SECRET_HEADER: "s-e-c"}, b"[1]", 400),
            ({SECRET_HEADER: "s-e-c"}, b'{"update_id": "one"}', 400),
            ({SECRET_HEADER: "s-e-c"}, b"\xff\xfe", 400),
            ({SECRET_HEADER: "s-e-c"}, b" " * (1024 * 1024 + 1), 413),
            ({SECRET_HEADER: "s-e-c"}, b'{"update_id": 1}', 200),
            ({SECRET_HEADER: "s-e-c"}, b'{"update_id": 1, "message": {"text": 5}}', 200),
        ],
    )
    async def test_requests(self, house: House, headers: dict[str, str], body: bytes, status: int) -> None:
        async with (
            house.webhook() as (_, url),
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=headers) as response,
        ):
            assert response.status == status
        stored = await InboxTable(house.db).get(1)
        assert (stored is not None) == (status == 200)

    async def test_a_secret_that_is_no_text(self, house: House) -> None:
        async with house.webhook() as (_, url):
            parts = urlsplit(url)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            head = f"POST {parts.path} HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n{SECRET_HEADER}: "
            writer.write(head.encode() + b"\xff\r\n\r\n{}")
            assert b" 403 " in await reader.readline()
            writer.close()
            await writer.wait_closed()

    async def test_the_same_update_twice(self, house: House, operator: FakeUser) -> None:
        async with house.webhook() as (_, url), aiohttp.ClientSession() as session:
            operator.chat.started = True
            message = house.tg.world.post(operator.chat, operator.member, Content("/run one"))
            update = {"update_id": 9, "message": message.json()}
            for _ in range(2):
                async with session.post(url, json=update, headers={SECRET_HEADER: "s-e-c"}) as response:
                    assert response.status == 200
            await operator.sees(lambda chat: chat.saying("one"))
            await until_handled(house)
        assert len(await house.stage.runs()) == 1
