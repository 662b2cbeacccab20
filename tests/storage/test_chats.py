"""The topic of each phone, and a chat that goes on under another id."""

from __future__ import annotations

from datetime import timedelta

from storage.chats import Chats, TopicTable
from storage.engine import Database
from storage.messages import QUESTION, RUN, Cards, OutboxTable
from storage.people import People
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.schedules import NewSchedule, Schedules

OLD = {"channel": "telegram", "chat_id": "-5", "thread_id": "", "kind": "group"}
OTHER = {**OLD, "chat_id": "-6"}


async def test_a_topic_is_found_by_its_phone_and_by_its_number(db: Database) -> None:
    topics = TopicTable(db)
    assert await topics.of("-1", "S1") is None
    made = await topics.put("-1", "S1", thread_id="7", name="Pixel")
    assert (made.serial, made.thread_id, made.name, made.closed) == ("S1", "7", "Pixel", False)
    await topics.put("-2", "S2", thread_id="7", name="Mate")
    found = await topics.at("-1", "7")
    assert found is not None
    assert found.serial == "S1"
    await topics.named("-1", "S1", "Pixel 8")
    await topics.closed("-1", "7", closed=True)
    found = await topics.of("-1", "S1")
    assert found is not None
    assert (found.name, found.closed) == ("Pixel 8", True)
    await topics.put("-1", "S1", thread_id="9", name="Pixel 8")
    found = await topics.of("-1", "S1")
    assert found is not None
    assert (found.thread_id, found.closed) == ("9", False)
    assert await topics.at("-1", "7") is None
    await topics.forget("-1", "9")
    assert await topics.of("-1", "S1") is None
    assert await topics.of("-2", "S2") is not None


async def test_what_names_a_chat_follows_it_and_its_messages_do_not(db: Database) -> None:
    runs, cards, people = Runs(db), Cards(db), People(db)
    mine = await runs.create(NewRun("x", "S1", chat=OLD))
    other = await runs.create(NewRun("y", "S1", chat=OTHER))
    assert mine is not None
    assert other is not None
    schedule = await Schedules(db).add(
        NewSchedule(expression="0 9 * * *", timezone="UTC", task="x", serial="", chat=OLD, options={})
    )
    await Questions(db).ask("q1", run_id=mine, kind="interact", payload={})
    await Questions(db).copy("q1", "again", OLD)
    await Questions(db).copy("q1", "elsewhere", OTHER)
    await people.add_code("code", role="operator", lifetime=timedelta(hours=1))
    await people.add_code("other", role="viewer", lifetime=timedelta(hours=1), chats=["telegram:-5"])
    person = await people.pair("code", telegram_id=11, name="A")
    assert person is not None
    await people.limit(person.id, chats=["telegram:-6", "telegram:-5"])
    for subject, subject_id, chat in ((RUN, mine, OLD), (QUESTION, "q1", OLD), (RUN, other, OTHER)):
        await cards.put(subject, subject_id, chat=chat, message_id="5", picture=False)
    await TopicTable(db).put("-5", "S1", thread_id="7", name="Pixel")
    assert sorted(await Chats(db).move("telegram", "-5", "-1005")) == [(QUESTION, "q1"), (RUN, mine)]
    assert await Chats(db).move("telegram", "-5", "-1005") == []
    moved, stayed = await runs.get(mine), await runs.get(other)
    assert moved is not None
    assert stayed is not None
    assert (moved.chat, stayed.chat) == ({**OLD, "chat_id": "-1005"}, OTHER)
    row = await Schedules(db).get(schedule.id)
    assert row is not None
    assert row.chat == {**OLD, "chat_id": "-1005"}
    assert {copy.name: copy.chat["chat_id"] for copy in await Questions(db).copies("q1")} == {
        "again": "-1005",
        "elsewhere": "-6",
    }
    limited = await people.get(person.id)
    assert limited is not None
    assert limited.chats == ["telegram:-6", "telegram:-1005"]
    assert [code.chats for code in await people.codes()] == [["telegram:-1005"]]
    assert await cards.get(RUN, mine) is None
    assert await cards.get(RUN, other) is not None
    assert await TopicTable(db).of("-5", "S1") is None


async def test_what_waits_for_a_chat_follows_it_without_its_numbers(db: Database) -> None:
    waiting = OutboxTable(db)
    await waiting.put("-5", {"text": "x", "reply_to": 7, "edit": 8, "edit_picture": True, "thread_id": 9})
    await waiting.put("-6", {"text": "y", "reply_to": 7})
    await waiting.move_chat("-5", "-1005")
    assert {row.chat_key: row.payload for row in await waiting.due()} == {
        "-1005": {"text": "x"},
        "-6": {"text": "y", "reply_to": 7},
    }


async def test_the_cards_of_a_topic_are_forgotten(db: Database) -> None:
    cards = Cards(db)
    for subject_id, chat in (("a", {**OLD, "thread_id": "7"}), ("b", OLD), ("c", {**OTHER, "thread_id": "7"})):
        await cards.put(RUN, subject_id, chat=chat, message_id="5", picture=False)
    assert await Chats(db).forget_topic("telegram", "-5", "7") == [(RUN, "a")]
    assert [await cards.get(RUN, name) is None for name in "abc"] == [True, False, False]
