"""A topic a phone, in groups that are forums."""

from __future__ import annotations

import pytest

from agent_core.devices.base import DeviceEntry
from agent_core.session import QuestionKind
from bot.desk.actors import Role
from bot.desk.context import chat_data
from simulator.telegram import Chat, FakeUser, Message
from storage.chats import TopicTable
from storage.runs import NewRun, Runs
from tests.bot.channels.telegram.house import CHOICES, House, WithARun, card_of, refused, until
from tests.support.telegram import picture


@pytest.fixture
def forum(house: House) -> Chat:
    """A forum in which the bot may manage topics."""
    group = house.tg.group(-1001234, "shop", forum=True)
    group.bot_admin = group.manages_topics = True
    return group


async def in_topic(operator: FakeUser, forum: Chat, words: str, topic: str = "Pixel") -> Message:
    """The newest message of ours in this topic that shows these words."""

    def newest(chat: Chat) -> Message:
        return [message for message in chat.in_topic(topic) if words in message.words][-1]

    return await operator.sees(newest, chat=forum)


async def run_of(house: House, task: str) -> str:
    async def found() -> str:
        return next((run.id for run in await house.stage.runs() if run.task == task), "")

    return str(await until(found))


class TestCards(WithARun):
    async def test_a_run_is_shown_in_the_topic_of_its_phone(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        async with house.adapter():
            asked = await operator.send("/run one", chat=forum)
            card = await in_topic(operator, forum, "one")
            where = await in_topic(operator, forum, "进展在这台手机的话题里", topic="")
            assert where.reply_to is asked
            assert where.content.entities[0] == (
                ("length", 5),
                ("offset", where.text.index("Pixel")),
                ("type", "text_link"),
                ("url", f"https://t.me/c/1234/{card.thread_id}/{card.id}"),
            )
            run_id = await run_of(house, "one")
            await house.stage.begin(run_id)
            await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
            asks = await in_topic(operator, forum, "怎么退货")
            await until(house.question_cards)
            await house.stage.tell(run_id, "reminder", {"question": (await house.question_cards())[0], "number": 1})
            assert (await in_topic(operator, forum, "还在等回答")).reply_to is asks
            assert (await operator.tap(asks, "退货")).text == "收到，已采用你的回答。"
            await house.stage.end(run_id, "succeeded", "好了")
            await operator.sees(lambda chat: "已完成" in card.words, chat=forum)
        assert [topic.name for topic in forum.topics.values()] == ["Pixel"]
        assert len([m for m in forum.from_bot if not m.service]) == 4
        assert await refused(house) == []

    async def test_a_card_that_gets_a_picture_stays_where_it_is(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            card = await in_topic(operator, forum, "one")
            run_id = await run_of(house, "one")
            await house.stage.begin(run_id)
            await house.stage.step(run_id, self.step(1), picture=picture())
            await operator.sees(lambda chat: card.photo, chat=forum)
            await house.stage.end(run_id, "succeeded", "好了")
            await operator.sees(lambda chat: "已完成" in card.words, chat=forum)
        assert len([m for m in forum.from_bot if not m.service]) == 2  # the card, and where it is

    async def test_the_topic_is_found_again_by_another_process(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        for task in ("one", "two"):
            async with house.adapter():
                await operator.send(f"/run {task}", chat=forum)
                await in_topic(operator, forum, task)
        assert len(forum.topics) == 1

    async def test_each_phone_has_its_own(self, house: House, operator: FakeUser, forum: Chat) -> None:
        house.stage.attached.append(DeviceEntry("S2", "device", "Mate"))
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            await in_topic(operator, forum, "one")
            run = await house.stage.run(await run_of(house, "one"))
            assert run.chat is not None
            other = await Runs(house.db).create(NewRun("two", "S2", chat=chat_data(run.chat)))
            assert other is not None
            await house.stage.step(other, self.step(1))
            await in_topic(operator, forum, "two", topic="Mate")

    async def test_in_the_topic_of_a_phone_that_phone_is_meant(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        house.stage.attached.append(DeviceEntry("S2", "device", "Mate"))
        topic = operator.make_topic(forum, "Mate").id
        await TopicTable(house.db).put(str(forum.id), "S2", thread_id=str(topic), name="Mate")
        async with house.adapter():
            await operator.send("/stop", chat=forum, thread_id=topic)
            await in_topic(operator, forum, "没有可以停止的任务", topic="Mate")
            await operator.send("/run first", chat=forum)
            await in_topic(operator, forum, "first")
            await operator.send("/run second", chat=forum, thread_id=topic)
            card = await in_topic(operator, forum, "second", topic="Mate")
            assert (await house.stage.run(await run_of(house, "second"))).serial == "S2"
            await operator.send("/run -d S1 third", chat=forum, thread_id=topic)
            await in_topic(operator, forum, "third", topic="Mate")  # named: that phone, shown where it was asked for
            await operator.send("/stop", chat=forum, thread_id=topic)
            await operator.sees(lambda chat: "已停止" in card.words, chat=forum)
            assert not (await house.stage.run(await run_of(house, "first"))).status.final
            await operator.send("/screen", chat=forum, thread_id=topic)
            assert (await in_topic(operator, forum, "手机屏幕", topic="Mate")).caption.endswith("Mate")

    async def test_in_any_other_topic_the_card_stays_where_it_was_asked_for(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        topic = operator.make_topic(forum, "orders").id
        async with house.adapter():
            await operator.send("/run one", chat=forum, thread_id=topic)
            card = await in_topic(operator, forum, "one", topic="orders")
            run_id = await run_of(house, "one")
            await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            await in_topic(operator, forum, "怎么退货", topic="orders")
            house.tg.world.delete_topic(forum, topic)
            assert card.deleted
            await house.stage.end(run_id, "succeeded", "好了")
            await in_topic(operator, forum, "已完成")  # its topic is gone: then that of its phone

    async def test_a_deleted_topic_is_made_anew(self, house: House, operator: FakeUser, forum: Chat) -> None:
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            first = await in_topic(operator, forum, "one")
            run_id = await run_of(house, "one")
            await until(lambda: house.desk.runs.card(run_id))
            house.tg.world.delete_topic(forum, first.thread_id or 0)
            await house.stage.step(run_id, self.step(1))
            anew = await in_topic(operator, forum, "第 1 步")
            assert anew.thread_id != first.thread_id
            await operator.send("/run two", chat=forum, thread_id=anew.thread_id)
            await in_topic(operator, forum, "two")
            house.tg.world.delete_topic(forum, anew.thread_id or 0)
            await house.stage.step(await run_of(house, "two"), self.step(2))  # it was asked for in that topic
            await in_topic(operator, forum, "想法2")
        assert [topic.name for topic in forum.topics.values()] == ["Pixel"]
        assert await refused(house) == []

    async def test_an_open_question_in_a_deleted_topic_is_asked_again(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            first = await in_topic(operator, forum, "one")
            run_id = await run_of(house, "one")
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
            await in_topic(operator, forum, "怎么退货")
            await until(lambda: house.desk.questions.card(question_id))
            house.tg.world.delete_topic(forum, first.thread_id or 0)
            await operator.send("/run two", chat=forum)  # the next message for that phone
            await in_topic(operator, forum, "two")
            card = await in_topic(operator, forum, "怎么退货")
            assert card.photo == picture()
            await operator.tap(card, "退货")
            await operator.sees(lambda _: "Operator A 已回答：退货" in card.words, chat=forum)
        assert len(forum.saying("怎么退货")) == 1
        assert await refused(house) == []

    async def test_a_closed_topic_is_opened_again(self, house: House, operator: FakeUser, forum: Chat) -> None:
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            first = await in_topic(operator, forum, "one")
            operator.close_topic(forum, first.thread_id or 0)
            await operator.send("/run two", chat=forum)
            await in_topic(operator, forum, "two")
            assert not forum.topics[first.thread_id or 0].closed
        operator.close_topic(forum, first.thread_id or 0)  # say_nothing: the bot is no administrator any more
        house.tg.world.updates.clear()
        forum.manages_topics, forum.topics[first.thread_id or 0].creator = False, operator.member
        operator.chat.started = True  # the owner is told there that the right is missing
        async with house.adapter():
            await operator.send("/run three", chat=forum)
            await in_topic(operator, forum, "three", topic="")
            await operator.sees(lambda chat: chat.saying("话题"))
        assert await refused(house) == []

    async def test_a_renamed_phone_renames_its_topic(self, house: House, operator: FakeUser, forum: Chat) -> None:
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            await in_topic(operator, forum, "one")
            house.desk.context.names = {"S1": "Front desk"}
            await operator.send("/run two", chat=forum)
            await in_topic(operator, forum, "two", topic="Front desk")
        assert [topic.name for topic in forum.topics.values()] == ["Front desk"]

    async def test_a_run_that_waits_for_any_phone_moves_once_it_has_one(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            await in_topic(operator, forum, "one")
            house.desk.context.serial = ""  # no phone is the usual one any more
            await operator.send("/run two", chat=forum)
            card = await in_topic(operator, forum, "two", topic="")
            assert card.buttons
            run_id = await run_of(house, "two")
            await until(lambda: house.desk.runs.card(run_id))
            await house.stage.begin(run_id)
            await in_topic(operator, forum, "two")
            await operator.sees(lambda _: "进展在这台手机的话题里" in card.words and not card.buttons, chat=forum)


class TestWithout(WithARun):
    async def test_without_the_right_it_comes_where_it_was_asked_for_and_owners_are_told_once(
        self, house: House, operator: FakeUser, forum: Chat
    ) -> None:
        second = house.tg.user(12, "Operator B", "en")
        await house.stage.join(12, "Operator B", Role.OPERATOR, "en")
        await operator.send("/start")
        await second.send("/start")
        forum.manages_topics = False
        for task in ("one", "two"):
            async with house.adapter():
                asked = await operator.send(f"/run {task}", chat=forum)
                card = await in_topic(operator, forum, task, topic="")
                assert card.reply_to is asked
                await operator.sees(lambda chat: chat.saying("没有权限建立话题"))
        async with house.adapter():
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
        assert len(operator.chat.saying("没有权限建立话题")) == 1
        assert "shop" in operator.chat.saying("没有权限建立话题")[0].text
        assert second.chat.saying("topics") == []
        assert forum.topics == {}
        assert await refused(house) == []

    async def test_switched_off(self, house: House, operator: FakeUser, forum: Chat) -> None:
        async with house.adapter(topics=False):
            await operator.send("/run one", chat=forum)
            await in_topic(operator, forum, "one", topic="")
        assert forum.topics == {}

    async def test_a_group_without_topics(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1009, "plain")
        group.bot_admin = group.manages_topics = True
        async with house.adapter():
            asked = await operator.send("/run one", chat=group)
            assert (await operator.sees(lambda chat: card_of(chat, "one"), chat=group)).reply_to is asked
        assert [call for call in house.tg.world.calls if "ForumTopic" in call.method] == []

    async def test_the_network_fails_while_a_topic_is_made(self, house: House, operator: FakeUser, forum: Chat) -> None:
        house.tg.world.break_next("createForumTopic", 2, "502")
        async with house.adapter():
            await operator.send("/run one", chat=forum)
            await in_topic(operator, forum, "one")
        assert len(forum.topics) == 1
