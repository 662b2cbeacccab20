"""What is answered: the knowledge providers and the embedded store."""

from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge, Entry, read_entries, sample_entries
from knowledge.factory import KnowledgeConfig, build

__all__ = [
    "DifyKnowledge",
    "EmbeddedKnowledge",
    "Entry",
    "KnowledgeConfig",
    "build",
    "read_entries",
    "sample_entries",
]
