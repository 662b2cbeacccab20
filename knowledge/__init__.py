"""What is answered: the knowledge providers and the embedded store."""

from knowledge.chain import ChainKnowledge, embedded_in
from knowledge.dify import DifyKnowledge
from knowledge.embedded import EmbeddedKnowledge, Entry, read_entries, sample_entries
from knowledge.factory import KnowledgeConfig, OwnConfig, build, providers_of
from knowledge.ragflow import RagflowKnowledge
from knowledge.template import Template, TemplateKnowledge

__all__ = [
    "ChainKnowledge",
    "DifyKnowledge",
    "EmbeddedKnowledge",
    "Entry",
    "KnowledgeConfig",
    "OwnConfig",
    "RagflowKnowledge",
    "Template",
    "TemplateKnowledge",
    "build",
    "embedded_in",
    "providers_of",
    "read_entries",
    "sample_entries",
]
