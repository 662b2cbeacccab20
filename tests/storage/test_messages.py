"""The event log, the inbox, the outbox and its cards, the answer log, people."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from storage.engine import Database
from storage.events import EventLogReader, Events, append_event
from storage.messages import QUESTION, RUN, Cards, InboxTable, OutboxTable
from storage.people import Audit, People
from storage.retention import Retention
from tests.support.clock import Clock


async def test_consumers_read_on_from_where_they_were(db: Database, other_db: Database) -> None:
    events = Events(db)
    for index in range(5):
        await events.append(f"r{index % 2}", "step", {"n": index})
    first = await events.after(await events.position("card"), limit=3)
    await events.advance("card", first[-1].id)
    await events.advance("card", first[0].id)
    position = await Events(other_db).position("card")
    assert [event.data["n"] for event in await Events(other_db).after(position)] == [3, 4]
    assert [event.data["n"] for event in await events.after(0, run_id="r1")] == [1, 3]
    assert await events.position("web") == 0


async def test_a_reader_never_passes_an_event_that_is_committed_later(db: Database, other_db: Database) -> None:
    """Many writers, one reader that follows: it sees every event once and in order."""
    total = 60
    seen: list[int] = []

    async def write(one: Database, name: str) -> None:
        for index in range(total // 4):
            await Events(one).append(name, "step", {"n": index}, picture=b"x" if index % 3 else None)

    async def follow() -> None:
        reader = EventLogReader(db, 0)
        while len(seen) < total:
            for event in await reader.more(seconds=0.05):
                assert event.id > reader.position
                reader.position = event.id
                seen.append(event.id)

    async with asyncio.timeout(30):
        await asyncio.gather(follow(), *(write(one, str(n)) for n, one in enumerate([db, other_db] * 2)))
    assert len(set(seen)) == total


async def test_events_are_numbered_in_the_order_of_their_commits(db: Database, other_db: Database) -> None:
    async with other_db.write() as connection:
        early = await append_event(connection, other_db, "r", "note")
        later = asyncio.create_task(Events(db).append("r", "note"))
        done, _ = await asyncio.wait([later], timeout=0.2)
        assert not done, "it must not be seen while an earlier one is not"
    assert await later > early


async def test_pictures_lie_beside_the_events_and_go_with_age(db: Database, clock: Clock) -> None:
    events = Events(db)
    await events.append("r", "step", picture=b"\xff\xd8old")
    clock.move(days=2)
    await events.append("r", "step", picture=b"\xff\xd8new")
    old, new = await events.after(0)
    assert old.picture_id is not None
    assert new.picture_id is not None
    assert await events.picture(old.picture_id) == b"\xff\xd8old"
    assert await Retention(db).events(clock() - timedelta(days=1)) == 1
    assert await events.picture(old.picture_id) is None
    assert await events.picture(new.picture_id) == b"\xff\xd8new"
    await Retention(db).events(clock() + timedelta(days=1))
    assert await events.append("r", "step") > new.id, "a number is never given twice"


async def test_a_picture_that_a_run_shows_again_is_stored_once(db: Database, clock: Clock) -> None:
    events = Events(db)
    for run_id, picture in (("r", b"one"), ("r", b"two"), ("other", b"one"), ("r", b"one"), ("r", None)):
        await events.append(run_id, "step", picture=picture)
        clock.move(days=1)
    first, second, elsewhere, again, without = [row.picture_id for row in await events.after(0)]
    assert again == first
    assert without is None
    assert len({first, second, elsewhere}) == 3
    assert first is not None
    assert second is not None
    assert await Retention(db).events(clock() - timedelta(days=3)) == 2
    assert await events.picture(second) is None
    assert await events.picture(first) == b"one", "a newer event shows it, too"
    assert [row.picture_id for row in await events.after(0)] == [elsewhere, first, None]
    await Retention(db).events(clock() + timedelta(days=1))
    assert await events.picture(first) is None


async def test_an_update_is_stored_once_and_done_once(db: Database, other_db: Database) -> None:
    stored = await asyncio.gather(*(InboxTable(one).store(10, '{"update_id":10}') for one in [db, other_db] * 3))
    assert sorted(stored) == [False] * 5 + [True]
    inbox = InboxTable(db)
    assert await inbox.store(9, "{}")
    assert [row.update_id for row in await inbox.waiting()] == [9, 10]
    await inbox.done(10)
    await inbox.begun(9)
    await inbox.failed(9, "boom", give_up=False)
    await inbox.begun(9)
    await inbox.put_back(9)
    await inbox.put_back(10)  # it is done
    assert [(row.update_id, row.attempts, row.error) for row in await inbox.waiting()] == [(9, 1, "boom")]
    await inbox.failed(9, "boom", give_up=True)
    assert await inbox.waiting() == []
    assert not await inbox.store(10, "{}"), "a second delivery of what was done"
    large = 2**53
    assert await inbox.store(large, "{}")
    assert await Retention(db).inbox(db.now() + timedelta(days=1)) == 2
    assert [row.update_id for row in await inbox.waiting()] == [large]


async def test_messages_of_a_chat_go_in_order(db: Database, clock: Clock) -> None:
    outbox = OutboxTable(db)
    first = await outbox.put("a", {"text": "1"})
    second = await outbox.put("a", {"text": "2"})
    other = await outbox.put("b", {"text": "3"})
    assert [row.id for row in await outbox.due()] == [first, other]
    await outbox.retry(first, at=clock() + timedelta(seconds=7), error="429")
    assert [row.id for row in await outbox.due()] == [other], "the second waits for the first, the other chat does not"
    await outbox.sent(other, {"message_id": 5})
    assert await outbox.next_time() == clock() + timedelta(seconds=7)
    clock.move(seconds=7)
    await outbox.failed(first, "blocked")
    due = await outbox.due()
    assert [(row.id, row.attempts) for row in due] == [(second, 0)]
    await outbox.delay_chat("a", clock() + timedelta(seconds=3))
    assert await outbox.due() == []
    await outbox.move_chat("a", "supergroup")
    clock.move(seconds=3)
    assert [row.chat_key for row in await outbox.due()] == ["supergroup"]


async def test_of_edits_the_newest_wins(db: Database, clock: Clock) -> None:
    outbox = OutboxTable(db)
    created = await outbox.put("a", {"step": 0}, ref="run:1:card")
    await outbox.sent(created, {"message_id": 77})
    first = await outbox.put("a", {"step": 1}, ref="run:1:card", replace=True)
    await outbox.retry(first, at=clock() + timedelta(seconds=5))
    last = await outbox.put("a", {"step": 2}, ref="run:1:card", replace=True)
    assert await outbox.due() == [], "a replaced message hands on its wait"
    clock.move(seconds=5)
    assert [(row.id, row.payload) for row in await outbox.due()] == [(last, {"step": 2})]
    sent = await outbox.get(created)
    assert sent is not None
    assert sent.result == {"message_id": 77}
    await outbox.sent(first, {"message_id": 1})
    replaced = await outbox.get(first)
    assert replaced is not None
    assert replaced.state == "replaced"


async def test_a_code_pairs_one_person_once(db: Database, other_db: Database, clock: Clock) -> None:
    people = People(db)
    await people.add_code("ABCD-1234", role="owner", lifetime=timedelta(minutes=10))
    assert await people.pair("wrong", telegram_id=1, name="甲") is None
    results = await asyncio.gather(
        *(
            People(one).pair(" abcd-1234", telegram_id=index, name="甲", lang="en")
            for index, one in enumerate([db, other_db] * 2, start=2**40)
        )
    )
    assert sum(person is not None for person in results) == 1
    assert await people.count() == 1
    owner = (await people.all())[0]
    assert (owner.role, owner.lang) == ("owner", "en")
    assert owner.telegram_id is not None
    assert await people.by_telegram(owner.telegram_id) == owner
    await people.add_code("LATE", role="viewer", lifetime=timedelta(minutes=10))
    clock.move(minutes=10)
    assert await people.pair("LATE", telegram_id=5, name="乙") is None


async def test_the_last_owner_stays(db: Database) -> None:
    people = People(db)
    for code, role in (("A", "owner"), ("B", "operator")):
        await people.add_code(code, role=role, lifetime=timedelta(minutes=1))
    owner = await people.pair("A", telegram_id=1, name="甲")
    operator = await people.pair("B", telegram_id=2, name="乙")
    assert owner is not None
    assert operator is not None
    with pytest.raises(LookupError):
        await people.update(owner.id, role="viewer")
    with pytest.raises(LookupError):
        await people.remove(owner.id)
    assert await people.update(operator.id, role="owner", serials=["p1"])
    assert await people.update(owner.id, role="viewer")
    changed = await people.get(operator.id)
    assert changed is not None
    assert (changed.role, changed.serials) == ("owner", ["p1"])
    with pytest.raises(ValueError, match="role"):
        await people.update(owner.id, role="king")


async def test_the_audit_log(db: Database) -> None:
    await Audit(db).write("1", "telegram", "run", {"task": "回复"})
    await Audit(db).write("2", "telegram", "stop", allowed=False)
    assert [(row.actor, row.command, row.allowed) for row in await Audit(db).last()] == [
        ("2", "stop", False),
        ("1", "run", True),
    ]


def chat(channel: str = "telegram", chat_id: str = "7") -> dict[str, str]:
    return {"channel": channel, "chat_id": chat_id, "thread_id": "3", "kind": "group"}


async def test_the_newest_message_counts(db: Database, other_db: Database) -> None:
    cards = Cards(db)
    assert await cards.get(RUN, "r1") is None
    await cards.put(RUN, "r1", chat=chat(), message_id="10", picture=False)
    await cards.put(RUN, "r1", chat=chat(chat_id="8"), message_id="11", picture=True)
    row = await Cards(other_db).get(RUN, "r1")
    assert row is not None
    assert (row.subject, row.subject_id, row.chat_id, row.message_id, row.picture) == (RUN, "r1", "8", "11", True)
    assert row.chat == chat(chat_id="8")
    assert await cards.get(QUESTION, "r1") is None


async def test_what_a_message_shows(db: Database) -> None:
    cards = Cards(db)
    await cards.put(RUN, "r1", chat=chat(), message_id="10", picture=False)
    await cards.put(QUESTION, "q1", chat=chat(), message_id="11", picture=False)
    found = await cards.at(QUESTION, channel="telegram", chat_id="7", message_id="11")
    assert found is not None
    assert found.subject_id == "q1"
    for wrong in (
        {"channel": "telegram", "chat_id": "7", "message_id": "10"},
        {"channel": "telegram", "chat_id": "8", "message_id": "11"},
        {"channel": "web", "chat_id": "7", "message_id": "11"},
    ):
        assert await cards.at(QUESTION, **wrong) is None


async def test_two_channels_may_use_the_same_numbers(db: Database) -> None:
    cards = Cards(db)
    for channel in ("telegram", "web"):
        await cards.put(QUESTION, f"q-{channel}", chat=chat(channel), message_id="11", picture=False)
    for channel in ("telegram", "web"):
        found = await cards.at(QUESTION, channel=channel, chat_id="7", message_id="11")
        assert found is not None
        assert found.subject_id == f"q-{channel}"
