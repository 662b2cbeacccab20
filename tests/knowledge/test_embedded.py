"""The embedded knowledge base: what it finds, and when it is sure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import InputRejected, KnowledgeUnreachable
from agent_core.ports import Record
from knowledge import EmbeddedKnowledge, Entry, read_entries, sample_entries
from knowledge.tokens import stripped, tokens
from tests.knowledge.queries import QUERIES


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[EmbeddedKnowledge]:
    base = EmbeddedKnowledge(tmp_path / "folder" / "knowledge.db")
    await base.seed_sample_if_empty()
    yield base
    await base.close()


def sure_of(records: Sequence[Record]) -> Record | None:
    """The record that answers by itself: the first, and never one further down."""
    assert not any(record.sure for record in records[1:])
    return next((record for record in records[:1] if record.sure), None)


async def test_colloquial_queries_find_their_entry(base: EmbeddedKnowledge) -> None:
    first = third = 0
    missed = []
    for query, wanted in QUERIES:
        ids = [record.id for record in await base.retrieve(query)]
        first += ids[:1] == [wanted]
        third += wanted in ids[:3]
        if ids[:1] != [wanted]:
            missed.append((query, wanted, ids[:3]))
    assert first >= 0.85 * len(QUERIES), missed
    assert third >= 0.95 * len(QUERIES), missed


async def test_no_lexical_score_makes_a_record_sure(base: EmbeddedKnowledge) -> None:
    for query, _ in QUERIES:
        records = await base.retrieve(query)
        assert sure_of(records) is None, query
        assert all(record.score is not None and 0 <= record.score < 1 for record in records)


@pytest.mark.parametrize(
    "query",
    [
        "几天能发货",
        "你好，请问几天能发货？",
        "亲，几天能发货呀~",
        "老板 麻烦问下 几天能发货呢？？",
        "请问下单后多久发货啊",
        "在吗？啥时候能寄出来呀，谢谢",
    ],
)
async def test_the_very_words_are_sure_whatever_the_politeness(base: EmbeddedKnowledge, query: str) -> None:
    record = sure_of(await base.retrieve(query))
    assert record is not None
    assert (record.id, record.score, record.source) == ("delivery-time", 1.0, "embedded:delivery-time")
    assert "48小时" in record.text


@pytest.mark.parametrize(
    "query", ["几天能发货到火星", "不能退货吗我要投诉你们", "在吗", "你好呀", "?", "", "   ", "今天天气怎么样"]
)
async def test_anything_else_is_not(base: EmbeddedKnowledge, query: str) -> None:
    assert sure_of(await base.retrieve(query)) is None


async def test_every_question_and_alias_of_the_sample_is_sure_of_its_own_entry(base: EmbeddedKnowledge) -> None:
    entries = await base.list()
    assert len(entries) == 40
    for entry in entries:
        for text in (entry.question, *entry.aliases):
            record = sure_of(await base.retrieve(text))
            assert record is not None, text
            assert record.id == entry.id, text


async def test_a_form_that_two_entries_share_is_not_sure(base: EmbeddedKnowledge) -> None:
    await base.add(Entry(id="other", question="几天能发货呢", answer="看情况"))
    records = await base.retrieve("几天能发货")
    assert {record.id for record in records[:2]} == {"other", "delivery-time"}
    assert sure_of(records) is None


SIGNS = ['"', '发货"', "*", "发货*", "NEAR(发货, 2)", "-发货", "question:发货", "发货 AND", "^发货", "\x00", "(" * 600]


@pytest.mark.parametrize("query", [*SIGNS, "'; DROP TABLE entries; --"])
async def test_signs_in_a_query_are_data(base: EmbeddedKnowledge, query: str) -> None:
    await base.retrieve(query)
    assert await base.count() == 40


async def test_entries_are_added_replaced_approved_and_deleted(base: EmbeddedKnowledge) -> None:
    waiting = await base.add(Entry(question="有彩虹色的绳子吗", answer="有", live=False))
    assert sure_of(await base.retrieve("有彩虹色的绳子吗")) is None
    assert [entry.id for entry in await base.list(live=False)] == [waiting.id]
    assert (await base.approve(waiting.id)) == waiting.model_copy(update={"live": True})
    assert sure_of(await base.retrieve("有彩虹色的绳子吗？")) is not None
    await base.add(Entry(id=waiting.id, question="有紫色的绳子吗", answer="没有"))
    assert sure_of(await base.retrieve("有彩虹色的绳子吗")) is None
    found = sure_of(await base.retrieve("有紫色的绳子吗"))
    assert found is not None
    assert found.text == "没有"
    assert await base.delete(waiting.id)
    assert not await base.delete(waiting.id)
    assert await base.get(waiting.id) is None
    assert await base.approve(waiting.id) is None
    assert sure_of(await base.retrieve("有紫色的绳子吗")) is None


async def test_it_is_seeded_once_and_kept_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    one = EmbeddedKnowledge(path)
    assert await one.seed_sample_if_empty() == 40
    assert await one.seed_sample_if_empty() == 0
    await one.close()
    two = EmbeddedKnowledge(path)
    assert await two.list() == sample_entries()
    await two.close()


async def test_many_callers_at_once(base: EmbeddedKnowledge) -> None:
    await asyncio.gather(
        *(base.add(Entry(id=f"n{n}", question=f"编号{n}的问题", answer="x")) for n in range(20)),
        *(base.retrieve(query) for query, _ in QUERIES),
    )
    assert await base.count() == 60


async def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    path.write_bytes(b"no database at all" * 100)
    base = EmbeddedKnowledge(path)
    with pytest.raises(KnowledgeUnreachable):
        await base.retrieve("几天能发货")
    await base.close()


def test_lines_that_are_no_entry_are_named() -> None:
    good = '{"question": "a", "answer": "b"}'
    assert len(read_entries(f"{good}\n\n{good}\n")) == 2
    for bad in (
        "{",
        '{"question": " ", "answer": "b"}',
        '{"question": "a"}',
        '{"question": "a", "answer": "b", "x": 1}',
    ):
        with pytest.raises(InputRejected, match="Line 2"):
            read_entries(f"{good}\n{bad}")


def test_words() -> None:
    assert tokens("能发iPhone15吗？") == ["能", "发", "能发", "iphone15", "吗"]
    assert tokens("６５Ｗ 充电") == ["65w", "充", "电", "充电"]
    assert stripped("你好，请问在吗？") == ""
    assert stripped("这是什么？") == "这是什么"
    assert stripped("history 呢") == "history"


@given(st.text(max_size=60))
def test_stripping_ends_and_is_stable(text: str) -> None:
    assert stripped(stripped(text)) == stripped(text)
    tokens(text)
