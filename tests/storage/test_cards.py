from __future__ import annotations

from storage.engine import Database
from storage.outbox import QUESTION, RUN, Cards


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
