"""Knowledge entries that machines share, over a real PostgreSQL: each store has a mirror and a pool of its own."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from agent_core.errors import InputRejected, KnowledgeUnreachable
from knowledge.embedded import EmbeddedKnowledge, Entry, sample_entries
from storage.engine import Database
from tests.knowledge.queries import QUERIES
from tests.storage.conftest import _command

Machine = Callable[..., EmbeddedKnowledge]
OfFile = Callable[[Path], EmbeddedKnowledge]


@pytest.fixture
def socket_folder(postgres_folder: Path) -> Path:
    return postgres_folder


@pytest.fixture
async def machine(url: str, tmp_path: Path) -> AsyncIterator[Machine]:
    """The store of a machine, by the name of its folder; as another process each time."""
    async with AsyncExitStack() as stack:

        def opened(name: str, *, at: str = url) -> EmbeddedKnowledge:
            db = Database(at)
            folder = tmp_path / name
            store = EmbeddedKnowledge.shared(db, folder / "mirror.sqlite3", former=folder / "knowledge.sqlite3")
            stack.push_async_callback(db.close)
            stack.push_async_callback(store.close)
            return store

        yield opened


@pytest.fixture
async def of_file() -> AsyncIterator[OfFile]:
    """The store in a file of its own."""
    async with AsyncExitStack() as stack:

        def opened(path: Path) -> EmbeddedKnowledge:
            store = EmbeddedKnowledge(path)
            stack.push_async_callback(store.close)
            return store

        yield opened


def refuse(doubles: Sequence[Entry]) -> None:
    raise InputRejected(f"double: {doubles[0].id}")


async def test_what_one_machine_writes_another_answers_with_at_once(machine: Machine) -> None:
    server, worker = machine("server"), machine("worker")
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
    assert not await server.doubles(Entry(question="能退吗", answer="x"))
    assert await server.list() == await worker.list() == await machine("new").list() == (approved,)


async def test_two_that_write_at_once_lose_nothing_and_make_no_double(machine: Machine) -> None:
    stores = [machine("a"), machine("b")]
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


async def test_writes_that_are_cut_off_are_whole_or_nothing(machine: Machine) -> None:
    one, other = machine("a"), machine("b")
    await one.count()
    dice = random.Random(5)
    for n in range(20):
        task = asyncio.create_task(one.add(Entry(id=f"cut{n}", question="问题", answer="x")))
        await asyncio.sleep(dice.random() * 0.012)
        task.cancel()
        await asyncio.wait([task])
    await one.add(Entry(id="kept", question="问题", answer="x"))
    assert await one.list() == await other.list()
    assert (await one.list())[-1].id == "kept"


async def test_a_mirror_may_be_thrown_away(
    machine: Machine, db: Database, postgres_folder: Path, tmp_path: Path
) -> None:
    """Lost, broken, put back as it was before (so leaves it a crash), or of another database."""
    mirror, other = tmp_path / "a" / "mirror.sqlite3", machine("b")

    async def left_by(store: EmbeddedKnowledge, *ids: str) -> bytes:
        for entry_id in ids:
            await store.add(Entry(id=entry_id, question="几天发货", answer=entry_id))
        await store.close()
        return mirror.read_bytes()

    elsewhere = f"t{uuid.uuid4().hex}"
    await _command(postgres_folder, f"CREATE DATABASE {elsewhere} TEMPLATE template")
    far = machine("a", at=f"postgresql://postgres@/{elsewhere}?host={postgres_folder}")
    of_fewer = await left_by(far, "x")
    of_as_many = await left_by(far, "y", "z")
    mirror.unlink()
    before = await left_by(machine("a"), "1")
    now = await left_by(machine("a"), "2")
    assert await other.delete("1")  # the third write
    later = await left_by(far, "later")
    for data in (None, b"no database" * 500, before, now, of_fewer, of_as_many, later):
        if data is None:
            mirror.unlink()
        else:
            mirror.write_bytes(data)
        again = machine("a")
        (record,) = await again.retrieve("几天发货")
        assert record.id == "2"
        await again.close()
    async with db.write() as connection:
        await connection.execute(sa.text("TRUNCATE knowledge_entries, knowledge_revision"))
    assert await machine("a").count() == 0
    await other.add(Entry(id="2", question="几天发货", answer="2"))
    mirror.write_bytes(of_fewer)
    await machine("a").add(Entry(id="4", question="退货", answer="z"))  # what writes first looks, too
    assert [entry.id for entry in await other.list()] == [entry.id for entry in await machine("a").list()] == ["2", "4"]


async def test_all_find_in_the_order_of_a_file_of_ones_own(machine: Machine, of_file: OfFile, tmp_path: Path) -> None:
    plain, machines = of_file(tmp_path / "plain.db"), [machine("a"), machine("b")]
    dice = random.Random(3)
    samples = list(sample_entries())
    for entry in [*samples, *dice.sample(samples, 10), *dice.sample(samples, 10)]:  # some of them once more
        shared = dice.choice(machines)
        if dice.random() < 0.3:
            assert await plain.delete(entry.id) == await shared.delete(entry.id)
        for store in (plain, shared):
            await store.add(entry)
    for store in (*machines, machine("c")):
        assert [entry.id for entry in await store.list()] == [entry.id for entry in await plain.list()]
        for query in [query for query, _ in QUERIES][::6]:
            expected = await plain.retrieve(query)
            assert await store.retrieve(query) == expected
            assert await store.search(query) == await plain.search(query)


async def test_the_entries_of_before_are_shared_once(machine: Machine, of_file: OfFile, tmp_path: Path) -> None:
    for name, ids in {"a": ("1", "2"), "b": ("2", "3")}.items():
        own = of_file(tmp_path / name / "knowledge.sqlite3")
        for entry_id in ids:
            await own.add(Entry(id=entry_id, question=f"{name}{entry_id}", answer=f"of {name}", live=entry_id != "2"))
        await own.close()
    with capture_logs() as logs:
        first, second = await asyncio.gather(machine("a").list(), machine("b").list())  # both begin at once
        assert first == second
        assert {(entry.id, entry.answer, entry.live) for entry in first} in (
            {("1", "of a", True), ("2", "of a", False)},
            {("2", "of b", False), ("3", "of b", True)},
        )
        assert await machine("b").delete("2")
        for name in "ab":  # what was deleted does not come back
            assert await machine(name).list() == tuple(entry for entry in first if entry.id != "2")
    told = [(log["event"], log["entries"]) for log in logs if log["event"].startswith("knowledge_file")]
    assert told.count(("knowledge_file_shared", 2)) == 1
    assert set(told) == {("knowledge_file_shared", 2), ("knowledge_file_not_shared", 1)}
    kept = of_file(tmp_path / "b" / "knowledge.sqlite3")
    assert [entry.id for entry in await kept.list()] == ["2", "3"]


async def test_a_database_that_is_away_is_told(machine: Machine, tmp_path: Path) -> None:
    store = machine("a", at=f"postgresql://postgres@/desk?host={tmp_path}")
    with pytest.raises(KnowledgeUnreachable, match="database") as caught:
        await store.retrieve("怎么退货")
    assert "PHONEDESK_DATABASE_URL" in caught.value.advice
    with pytest.raises(KnowledgeUnreachable, match="database"):
        await store.delete("1")
