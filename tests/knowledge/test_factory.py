"""Building the providers that are configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.errors import ConfigInvalid, ConfigMissing, KnowledgeAuth
from agent_core.ports import KnowledgeBase
from bot.app.knowledge import knowledge_config
from bot.app.settings.loading import load
from knowledge.config import KnowledgeConfig, OwnConfig, providers_of
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge
from knowledge.factory import ChainKnowledge, build, embedded_in
from knowledge.ragflow import RagflowKnowledge
from knowledge.template import TemplateKnowledge
from storage.engine import Database
from tests.support.knowledge_servers import FakeDify, FakeRagflow


@pytest.fixture
def own(tmp_path: Path) -> EmbeddedKnowledge:
    """The shop's own entries, which nothing here opens."""
    return EmbeddedKnowledge(Database(f"sqlite:///{tmp_path / 'desk.db'}"))


def test_the_provider_is_built_from_plain_values(own: EmbeddedKnowledge, tmp_path: Path) -> None:
    built: KnowledgeBase = build(KnowledgeConfig(), embedded=own)
    assert built is own
    assert not (tmp_path / "desk.db").exists()
    config = KnowledgeConfig(provider="dify", base_url="http://x/v1", dataset_id="d", token="geheim")
    assert isinstance(build(config), DifyKnowledge)
    assert "geheim" not in repr(config)
    with pytest.raises(ConfigMissing, match="base_url"):
        build(KnowledgeConfig(provider="dify", token="t"))


def test_several_in_the_order_in_which_they_are_named(own: EmbeddedKnowledge) -> None:
    config = KnowledgeConfig(provider=" http, Embedded,ragflow,dify", base_url="http://x", dataset_id="d", token="t")
    chain = build(config, embedded=own)
    assert isinstance(chain, ChainKnowledge)
    kinds = [type(provider) for provider in chain.providers]
    assert kinds == [TemplateKnowledge, EmbeddedKnowledge, RagflowKnowledge, DifyKnowledge]
    assert chain.name == "http,embedded,ragflow,dify"
    assert embedded_in(chain) is own
    assert isinstance(build(KnowledgeConfig(provider="http", base_url="http://x")), TemplateKnowledge)  # needs no token


@pytest.mark.parametrize("written", ["", " , ", "difi", "dify,dify", "dify;embedded"])
def test_what_names_no_provider_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="provider"):
        providers_of(written)
    with pytest.raises(ConfigInvalid, match="PHONEDESK_KNOWLEDGE__PROVIDER"):
        build(KnowledgeConfig(provider=written))
    with pytest.raises(ConfigInvalid, match="PHONEDESK_KNOWLEDGE__PROVIDER"):
        load(knowledge={"provider": written})


@pytest.mark.parametrize("provider", ["dify", "ragflow"])
@pytest.mark.parametrize("name", ["base_url", "dataset_id"])
def test_what_is_missing_is_named_where_it_belongs(provider: str, name: str) -> None:
    values = {"base_url": "http://x", "dataset_id": "d", "token": "t", name: ""}
    with pytest.raises(ConfigMissing, match=f"PHONEDESK_KNOWLEDGE__{name.upper()}"):
        build(knowledge_config(load(knowledge={"provider": provider, **values})))
    if name != "base_url":
        with pytest.raises(ConfigMissing, match=f"PHONEDESK_KNOWLEDGE__{provider.upper()}__{name.upper()}"):
            build(knowledge_config(load(knowledge={"provider": provider, provider: values})))


async def test_a_token_goes_to_no_other_address_than_it_was_meant_for() -> None:
    async with FakeDify() as one, FakeRagflow() as two:
        one.items = ()
        two.token = ""  # takes no header
        first = {"base_url": one.base_url, "dataset_id": one.dataset_id, "token": one.token}
        second = {"base_url": two.base_url, "dataset_id": two.dataset_id}
        chain = build(knowledge_config(load(knowledge={"provider": "dify,ragflow", **first, "ragflow": second})))
        assert [record.source for record in await chain.retrieve("q")][:1] == ["ragflow:faq.csv"]
        await chain.close()


@pytest.mark.parametrize("service", [FakeDify, FakeRagflow])
async def test_a_service_without_a_token_is_sent_no_header(service: type[FakeDify | FakeRagflow]) -> None:
    async with service() as server:
        server.token = ""
        name = "dify" if service is FakeDify else "ragflow"
        where = {"base_url": server.base_url, "dataset_id": server.dataset_id}
        base = build(knowledge_config(load(knowledge={"provider": name, **where})))
        assert await base.retrieve("q")
        server.token = "wanted-after-all"
        with pytest.raises(KnowledgeAuth, match="Check PHONEDESK_KNOWLEDGE__TOKEN"):
            await base.retrieve("q")
        await base.close()


async def test_each_section_is_for_its_provider_and_the_rest_for_all() -> None:
    async with FakeDify() as one, FakeRagflow() as two:
        settings = load(
            knowledge={
                "provider": "dify,ragflow",
                "base_url": one.base_url,
                "dataset_id": "another",
                "token": one.token,
                "min_score": 0.95,
                "dify": {"dataset_id": one.dataset_id},
                "ragflow": {
                    "base_url": two.base_url,
                    "dataset_id": two.dataset_id,
                    "token": two.token,
                    "min_score": 0.5,
                },
            }
        )
        chain = build(knowledge_config(settings))
        records = await chain.retrieve("q")
        await chain.close()
        assert records[0].source == "ragflow:faq.csv"  # 0.92 is sure there, and not for the first
        assert (one.calls, two.calls) == (1, 1)
        assert one.refused == two.refused == []


def test_sections_may_come_from_the_environment(
    own: EmbeddedKnowledge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PROVIDER": "embedded,http",
        "HTTP__BASE_URL": "http://b/{dataset_id}",
        "HTTP__DATASET_ID": "7",
        "HTTP__TIMEOUT_SECONDS": "3",
        "HTTP__BODY": '{"q": "{query}"}',
        "HTTP__HEADERS": '{"X-Key": "{token}"}',
        "HTTP__TOKEN": "geheim-77",
    }.items():
        monkeypatch.setenv(f"PHONEDESK_KNOWLEDGE__{name}", value)
    config = knowledge_config(load())
    assert config.own["http"] == OwnConfig("http://b/{dataset_id}", "7", "geheim-77", 3.0, None)
    assert config.template.body == {"q": "{query}"}
    assert "geheim-77" not in repr(config)
    assert isinstance(build(config, embedded=own), ChainKnowledge)


def test_the_old_names_go_on_working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"BASE_URL": "http://a", "DATASET_ID": "d", "AUTH_TOKEN": "t"}.items():
        monkeypatch.setenv(f"PHONE_AGENT_KNOWLEDGE_{name}", value)
    assert isinstance(build(knowledge_config(load())), DifyKnowledge)
