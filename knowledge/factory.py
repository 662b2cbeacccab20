"""The knowledge provider that the configuration names."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, assert_never

import aiohttp

from agent_core.errors import ConfigMissing
from agent_core.ports import KnowledgeBase
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge


@dataclass(frozen=True, slots=True)
class KnowledgeConfig:
    """Plain values, already checked one by one. ``path`` is the embedded store's file; ``timeout`` in seconds."""

    provider: Literal["embedded", "dify"] = "embedded"
    path: Path = Path("knowledge.db")
    base_url: str = ""
    dataset_id: str = ""
    token: str = field(default="", repr=False)
    timeout: float = 10.0
    min_score: float = 0.6


def build(config: KnowledgeConfig, *, session: aiohttp.ClientSession | None = None) -> KnowledgeBase:
    """The provider; nothing is opened or asked yet. ConfigMissing where a value that it needs is blank."""
    if config.provider == "embedded":
        return EmbeddedKnowledge(config.path)
    if config.provider == "dify":
        for name in ("base_url", "dataset_id", "token"):
            if not str(getattr(config, name)).strip():
                raise ConfigMissing(
                    f"The knowledge provider dify needs {name}.",
                    advice=f"Set PHONEDESK_KNOWLEDGE__{name.upper()}.",
                )
        return DifyKnowledge(
            config.base_url,
            config.dataset_id,
            config.token,
            timeout=config.timeout,
            min_score=config.min_score,
            session=session,
        )
    assert_never(config.provider)
