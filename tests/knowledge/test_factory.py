"""Building the provider that is configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.errors import ConfigMissing
from agent_core.ports import KnowledgeBase
from knowledge import DifyKnowledge, EmbeddedKnowledge, KnowledgeConfig, build


def test_the_provider_is_built_from_plain_values(tmp_path: Path) -> None:
    embedded: KnowledgeBase = build(KnowledgeConfig(path=tmp_path / "k.db"))
    assert isinstance(embedded, EmbeddedKnowledge)
    assert not (tmp_path / "k.db").exists()
    config = KnowledgeConfig(provider="dify", base_url="http://x/v1", dataset_id="d", token="geheim")
    assert isinstance(build(config), DifyKnowledge)
    assert "geheim" not in repr(config)
    with pytest.raises(ConfigMissing, match="base_url"):
        build(KnowledgeConfig(provider="dify", token="t"))
