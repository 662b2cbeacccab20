"""The knowledge base of the settings, and the shop's own entries."""

from __future__ import annotations

from pathlib import Path

import structlog

from agent_core.ports import KnowledgeBase
from bot.app.settings.layers import Settings
from bot.app.settings.sections import RemoteSettings
from knowledge.config import KnowledgeConfig, OwnConfig
from knowledge.embedded import EmbeddedKnowledge
from storage.engine import Database

log = structlog.get_logger(__name__)


async def build_knowledge(settings: Settings, own: EmbeddedKnowledge) -> KnowledgeBase:
    """Return the knowledge base of the settings. An empty embedded one gets the sample entries if the settings say so.

    own: the shop's own entries.
    """
    # With an HTTP client, which commands on own entries have no use for.
    from knowledge.factory import build, embedded_in

    base = build(knowledge_config(settings), embedded=own)
    embedded = embedded_in(base)
    if embedded is not None and settings.knowledge.sample:
        await embedded.seed_sample_if_empty()
    return base


def own_entries(settings: Settings, db: Database) -> EmbeddedKnowledge:
    """Return the shop's own entries, which are in the database. An older file of theirs is reported in the log."""
    if (file := former_file(settings)).is_file():
        log.warning("knowledge_file_not_read", file=str(file), advice="export it with the phonedesk that wrote it")
    return EmbeddedKnowledge(db)


def former_file(settings: Settings) -> Path:
    """Return the path of the file that held the shop's own entries before they were in the database."""
    return settings.data_dir / "knowledge.sqlite3"


def knowledge_config(settings: Settings) -> KnowledgeConfig:
    """Return the settings in the form that the knowledge package takes."""
    knowledge = settings.knowledge
    return KnowledgeConfig(
        provider=knowledge.provider,
        base_url=knowledge.base_url,
        dataset_id=knowledge.dataset_id,
        token=knowledge.token.get_secret_value(),
        timeout=knowledge.timeout_seconds,
        min_score=knowledge.min_score,
        own={
            "dify": _own_config(knowledge.dify),
            "ragflow": _own_config(knowledge.ragflow),
            "http": _own_config(knowledge.http),
        },
        proxy=settings.knowledge_proxy,
        template=knowledge.http,
    )


def _own_config(remote: RemoteSettings) -> OwnConfig:
    return OwnConfig(
        base_url=remote.base_url,
        dataset_id=remote.dataset_id,
        token=remote.token.get_secret_value(),
        timeout=remote.timeout_seconds,
        min_score=remote.min_score,
    )
