"""Several providers in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent_core.errors import KnowledgeAuth, KnowledgeUnreachable
from agent_core.ports import KnowledgeBase
from agent_core.reply.choosing import sure_record
from bot.app.knowledge import build_knowledge
from bot.app.settings.loading import load
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from knowledge.factory import ChainKnowledge, embedded_in
from knowledge.ragflow import RagflowKnowledge
from storage.engine import Database
from tests.support.knowledge import open_knowledge
from tests.support.knowledge_servers import SHOP, FakeDify, FakeRagflow, Item, Plain


async def no_wait(_: float) -> None:
    return


def dify(server: FakeDify) -> DifyKnowledge:
    return DifyKnowledge(server.base_url, server.dataset_id, server.token, sleep=no_wait)


def ragflow(server: FakeRagflow) -> RagflowKnowledge:
    return RagflowKnowledge(server.base_url, server.dataset_id, server.token, sleep=no_wait)


UNSURE = (Item("a", "五成", 0.5), Item("b", "一成", 0.1))


async def test_the_first_that_is_sure_ends_the_search() -> None:
    async with FakeDify(SHOP) as first, FakeRagflow(SHOP) as second:
        chain = ChainKnowledge([dify(first), ragflow(second)])
        records = await chain.retrieve("几天能发货")
        assert sure_record(records) == records[0]
        assert {record.source for record in records} == {"dify:faq.csv"}
        assert (first.calls, second.calls) == (1, 0)
        first.items = UNSURE
        records = await chain.retrieve("几天能发货")
        assert sure_record(records) == records[0]
        assert {record.source for record in records} == {"ragflow:faq.csv"}
        await chain.close()
    assert chain.name == "dify,ragflow"


async def test_where_none_is_sure_the_records_of_all_stand_by_their_scores() -> None:
    async with FakeDify(UNSURE) as first, FakeRagflow([Item("c", "三成", 0.3), Item("a", "五成", 0.55)]) as second:
        chain = ChainKnowledge([dify(first), ragflow(second)])
        records = await chain.retrieve("q")
        assert [(record.text, record.score) for record in records] == [("五成", 0.55), ("三成", 0.3), ("一成", 0.1)]
        first.items = (Item("a", "没有分数", None), Item("b", "一成", 0.1))
        assert [record.text for record in await chain.retrieve("q")] == ["没有分数", "一成", "三成", "五成"]
        await chain.close()


async def test_what_is_unsure_alone_is_not_sure_together() -> None:
    """The first has its sure record in second place; by the scores of all it would come first."""
    async with FakeDify([Item("a", "低", 0.1), Item("b", "高", 0.9)]) as first, FakeRagflow(UNSURE) as second:
        chain = ChainKnowledge([dify(first), ragflow(second)])
        records = await chain.retrieve("q")
        assert records[0].text == "高"
        assert sure_record(records) is None
        await chain.close()


async def test_one_that_fails_is_passed_over_where_another_is_sure() -> None:
    async with FakeDify(SHOP) as first, FakeRagflow(SHOP) as second:
        chain = ChainKnowledge([dify(first), ragflow(second)])
        first.then(*[Plain(500)] * 3)
        with capture_logs() as logs:
            records = await chain.retrieve("几天能发货")
        assert sure_record(records)
        assert logs[0]["event"] == "knowledge_provider_failed"
        assert (logs[0]["provider"], logs[0]["kind"]) == ("dify", "knowledge.network")
        await chain.close()


async def test_where_none_is_sure_the_first_failure_is_told_after_all_were_asked() -> None:
    async with FakeDify(UNSURE) as first, FakeRagflow(UNSURE) as second:
        chain: KnowledgeBase = ChainKnowledge([dify(first), ragflow(second)])
        first.then(Plain(401))
        with pytest.raises(KnowledgeAuth):
            await chain.retrieve("q")
        assert second.calls == 1
        first.then(*[Plain(500)] * 3)
        second.then(Plain(401))
        with pytest.raises(KnowledgeUnreachable) as caught:
            await chain.retrieve("q")
        assert caught.value.retried  # nobody begins anew
        second.then(Plain(401))
        with pytest.raises(KnowledgeAuth):
            await chain.retrieve("q")
        await chain.close()


async def test_close_closes_every_one(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'k.db'}")
    closed: list[str] = []

    class Failing(EmbeddedKnowledge):
        async def close(self) -> None:
            closed.append("failing")
            raise KnowledgeUnreachable("no")

    class Other(EmbeddedKnowledge):
        async def close(self) -> None:
            closed.append("other")

    chain = ChainKnowledge([Failing(db), Other(db)])
    with pytest.raises(KnowledgeUnreachable):
        await chain.close()
    assert closed == ["failing", "other"]


async def test_the_settings_build_it_and_the_sample_goes_into_the_embedded_one(tmp_path: Path) -> None:
    async with FakeDify(SHOP) as server:
        remote = {"base_url": server.base_url, "dataset_id": server.dataset_id, "token": server.token}
        settings = load(data_dir=tmp_path, knowledge={"provider": "dify, embedded", "sample": True, **remote})
        assert settings.knowledge.providers == ("dify", "embedded")
        chain = await build_knowledge(settings, await open_knowledge(tmp_path / "k.db"))
        store = embedded_in(chain)
        assert store is not None
        assert chain.name == "dify,embedded"
        assert await store.count() > 0
        server.items = UNSURE
        await store.add(Entry(question="你们几楼", answer="我们的"))
        assert (await chain.retrieve("你们几楼"))[0].text == "我们的"
        await chain.close()


async def test_the_embedded_store_is_found_or_not(tmp_path: Path) -> None:
    store = await open_knowledge(tmp_path / "k.db")
    remote = DifyKnowledge("http://x", "d", "t")
    assert embedded_in(store) is store
    assert embedded_in(ChainKnowledge([remote, store])) is store
    assert embedded_in(remote) is None
    assert embedded_in(ChainKnowledge([remote])) is None
