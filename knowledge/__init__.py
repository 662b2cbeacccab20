"""What is answered: the knowledge providers, the embedded store, and choosing among records."""

from knowledge.choose import choose
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge, Entry, read_entries, sample_entries
from knowledge.factory import KnowledgeConfig, build

__all__ = [
    "DifyKnowledge",
    "EmbeddedKnowledge",
    "Entry",
    "KnowledgeConfig",
    "build",
    "choose",
    "read_entries",
    "sample_entries",
]
