"""Knowledge entries in the database, seen by several processes: each store has an index and a pool of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent_core.errors import InputRejected, KnowledgeUnreachable
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from storage.engine import Database
from storage.tables import knowledge_entries, knowledge_revision
from tests.support.knowledge import OwnKnowledge

Process = Callable[[], OwnKnowledge]


@pytest.fixture
async def process(url: str) -> AsyncIterator[Process]:
    """The store as another process sees it each time."""
    async with AsyncExitStack() as stack:

        def opened() -> OwnKnowledge:
            store = OwnKnowledge(Database(url))
            stack.push_async_callback(store.close)
            return store

        yield opened


def refuse(doubles: Sequence[Entry]) -> None:
    raise InputRejected(f"double: {doubles[0].id}")


async def test_what_one_process_writes_another_answers_with_at_once(process: Process) -> None:
    server, worker = process(), process()
    assert await worker.retrieve("怎么退货") == ()
    entry = await server.add(Entry(question="怎么退货", answer="七天内可退", aliases=("能退吗",), tags=("售后",)))
    (record,) = await worker.retrieve("能退吗")
    assert (record.id, record.text, record.aliases) == (entry.id, "七天内可退", ("能退吗",))
    waiting = await worker.add(Entry(question="几天发货", answer="两天", live=False, origin="person:x"))
    assert await server.pending() == (waiting,)
    approved = await server.approve(waiting.id, answer="三天")
    assert [record.text for record in await worker.retrieve("几天发货")][:1] == ["三天"]
    found = await worker.get(waiting.id)
    assert found is not None
    assert (found.origin, found.created_at, found.updated_at) == (
        "person:x",
        waiting.created_at,
        approved.updated_at,
    )
    assert await worker.delete(entry.id)
    assert not await server.delete(entry.id)
    assert await server.retrieve("能退吗") == ()
    assert await server.count() == await worker.count() == 1
    assert not await server.doubles(Entry(question="能退吗", answer="x"))
    assert await server.list() == await worker.list() == await process().list() == (approved,)


async def test_two_that_write_at_once_lose_nothing_and_make_no_double(process: Process) -> None:
    stores = [process(), process()]
    adding = [
        store.add(Entry(id=f"{name}{n}", question=f"第{n if n % 2 else f'{name}{n}'}个问题", answer="x"), refuse=refuse)
        for n in range(12)
        for name, store in zip("ab", stores, strict=True)
    ]
    done = await asyncio.gather(*adding, return_exceptions=True)
    refused = [result for result in done if isinstance(result, InputRejected)]
    assert len(refused) == 6  # of each odd number one, whoever came second
    assert len([result for result in done if isinstance(result, Entry)]) == 18
    first, second = [await store.list() for store in stores]
    assert first == second
    assert len(first) == len({entry.question for entry in first}) == 18


async def test_writes_that_are_cut_off_are_whole_or_nothing(process: Process) -> None:
    one, other = process(), process()
    await one.count()
    dice = random.Random(5)
    for n in range(20):
        task = asyncio.create_task(one.add(Entry(id=f"cut{n}", question="问题", answer="x")))
        await asyncio.sleep(dice.random() * 0.012)
        task.cancel()
        await asyncio.wait([task])
    await one.add(Entry(id="kept", question="问题", answer="x"))
    entries = await other.list()
    assert await one.list() == entries
    assert entries[-1].id == "kept"
    assert {found.entry.id for found in await other.search("问题", limit=30)} == {entry.id for entry in entries}


async def test_what_fails_leaves_neither_rows_nor_words(process: Process) -> None:
    one, other = process(), process()
    await one.add(Entry(id="1", question="几天发货", answer="两天"))

    async def fails() -> None:
        async with one._store.writing() as writer:
            await writer.delete("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()
    await other.add(Entry(id="2", question="怎么退货", answer="七天"))  # the write that failed counted one up, too
    for process_of in (one, other):
        assert [entry.id for entry in await process_of.list()] == ["1", "2"]
        assert [record.id for record in await process_of.retrieve("怎么退货")] == ["2", "1"]


async def test_entries_keep_their_order_and_come_back_behind_the_others(process: Process) -> None:
    one, other = process(), process()
    for entry_id in "abc":
        await one.add(Entry(id=entry_id, question=f"问题{entry_id}", answer="x"))
    await other.add(Entry(id="a", question="改了", answer="y"))
    assert [entry.id for entry in await one.list()] == ["a", "b", "c"]
    assert await other.delete("c")
    assert await one.delete("a")
    await one.add(Entry(id="a", question="又来了", answer="z"))
    assert [entry.id for entry in await other.list()] == ["b", "a"]
    assert [entry.id for entry in await other.begins("a")] == ["a"]
    assert [record.id for record in await other.retrieve("又来了")] == ["a"]


async def test_an_index_that_is_ahead_of_its_database_is_made_anew(process: Process) -> None:
    """The database was put back to an earlier time behind the process's back."""
    store = process()
    await store.add(Entry(id="1", question="几天发货", answer="两天"))
    async with store.db.read() as connection:
        (before,) = (await connection.execute(sa.select(knowledge_entries))).mappings().all()
    await store.edit("1", question="怎么退货")
    assert await store.means("怎么退货") is not None
    async with store.db.write() as connection:
        await connection.execute(sa.update(knowledge_entries).values(**before))
        await connection.execute(sa.update(knowledge_revision).values(revision=1))
    found = await store.means("几天发货")
    assert found is not None
    assert found.id == "1"
    assert await store.means("怎么退货") is None


async def test_a_database_that_is_away_is_told(tmp_path: Path) -> None:
    (tmp_path / "desk.db").write_bytes(b"no database" * 500)
    for url in (f"postgresql://postgres@/desk?host={tmp_path}", f"sqlite:///{tmp_path / 'desk.db'}"):
        db = Database(url)
        store = EmbeddedKnowledge(db)
        with pytest.raises(KnowledgeUnreachable, match="database") as caught:
            await store.retrieve("怎么退货")
        assert "PHONEDESK_DATABASE_URL" in caught.value.advice
        with pytest.raises(KnowledgeUnreachable, match="database"):
            await store.delete("1")
        await db.close()
