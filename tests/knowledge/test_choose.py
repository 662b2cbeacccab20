"""Choosing among records, and building the provider that is configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.errors import ConfigMissing
from agent_core.ports import KnowledgeBase, Record
from knowledge import DifyKnowledge, EmbeddedKnowledge, KnowledgeConfig, build, choose


def record(text: str = "a", *, score: float | None = 0.9, sure: bool = True) -> Record:
    return Record(id=text, text=text, score=score, sure=sure)


@pytest.mark.parametrize(
    ("records", "min_score", "chosen"),
    [
        ([], 0.0, None),
        ([record()], 0.6, "a"),
        ([record(score=0.6)], 0.6, "a"),
        ([record(score=0.59)], 0.6, None),
        ([record(sure=False)], 0.0, None),
        ([record("  ")], 0.0, None),
        ([record(sure=False), record("b")], 0.6, "b"),
        ([record("a"), record("b")], 0.6, "a"),
        ([record(score=None)], 0.6, None),
        ([record(score=None)], 0.0, "a"),
        ([record(score=None), record("b", score=None)], 0.0, None),
        ([record(score=None), record("a", score=None)], 0.0, "a"),
    ],
)
def test_only_a_sure_record_is_chosen(records: list[Record], min_score: float, chosen: str | None) -> None:
    found = choose(records, min_score)
    assert (found.text if found else None) == chosen


def test_the_provider_is_built_from_plain_values(tmp_path: Path) -> None:
    embedded: KnowledgeBase = build(KnowledgeConfig(path=tmp_path / "k.db"))
    assert isinstance(embedded, EmbeddedKnowledge)
    assert not (tmp_path / "k.db").exists()
    config = KnowledgeConfig(provider="dify", base_url="http://x/v1", dataset_id="d", token="geheim")
    assert isinstance(build(config), DifyKnowledge)
    assert "geheim" not in repr(config)
    with pytest.raises(ConfigMissing, match="base_url"):
        build(KnowledgeConfig(provider="dify", token="t"))
