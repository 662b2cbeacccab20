"""RAGFlow's retrieval over one or more datasets.

``POST {base_url}/api/v1/retrieval`` with ``{"question", "dataset_ids", "page_size", "top_k"}`` answers ``{"code": 0,
"data": {"chunks": [{"id", "content", "similarity", "document_keyword"}]}}``. Errors come with HTTP 200, too: ``{"code",
"message"}`` with a code that is not 0. A chunk of the Q&A method holds both sides, as ``Question: …⇥Answer: …``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_core.errors import (
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.ports import Record
from knowledge.http_client import Names, ServiceProblem, cut_query, missing
from knowledge.service import Hit, RemoteKnowledge, best, member, records_of

MAX_QUERY = 1000  # characters; a longer text is not a question, and costs an embedding
PAGE_SIZE = 5  # records that come back
TOP_K = 1024  # chunks that are compared by vector, the service's own default; a small number misses matches

# The service's return codes; for the remaining 101 (argument) and 103 (operating) the query was refused.
_ERRORS: Mapping[int, type[KnowledgeError]] = {
    100: KnowledgeUnreachable,  # an exception inside
    105: KnowledgeUnreachable,  # its own connections
    106: KnowledgeNotReady,  # running: still being parsed
    108: KnowledgeAuth,
    109: KnowledgeAuth,
    401: KnowledgeAuth,
    403: KnowledgeAuth,
    404: KnowledgeNotFound,
    429: KnowledgeQuota,
    500: KnowledgeUnreachable,
}
# 100 and 102 have many meanings; the words tell them apart.
_WORDS: Sequence[tuple[re.Pattern[str], type[KnowledgeError]]] = (
    (re.compile(r"don't own the dataset|dataset not found|can't find this knowledgebase", re.I), KnowledgeNotFound),
    (re.compile(r"no chunk found|index_not_found|not parsed|doesn't own parsed", re.I), KnowledgeNotReady),
    (re.compile(r"rate limit|quota|too many requests|balance|arrears", re.I), KnowledgeQuota),
    (re.compile(r"`?authorization`? can't be empty|api key is invalid|authorization format", re.I), KnowledgeAuth),
)
_QA = re.compile(r"\s*(?:Question: |问题：)(?P<question>.*?)\t(?:Answer: |回答：)(?P<answer>.*)", re.DOTALL)


class _Chunk(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: str | None = None
    content: str | None = None
    similarity: Any = None
    document_keyword: str | None = None


class _Data(BaseModel):
    model_config = ConfigDict(extra="ignore")
    chunks: list[_Chunk]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")
    data: _Data


class _Problem(BaseModel):
    model_config = ConfigDict(extra="ignore")
    code: int
    message: str | None = None


class RagflowKnowledge(RemoteKnowledge):
    """Datasets in RAGFlow; ``dataset_id`` may be a list with commas."""

    name = "ragflow"

    def _address(self, base_url: str, dataset_id: str, names: Names) -> str:
        self._datasets = [part.strip() for part in dataset_id.split(",") if part.strip()]
        if not self._datasets:
            raise missing("dataset", names.dataset_id)
        return f"{base_url.rstrip('/').removesuffix('/api/v1').rstrip('/')}/api/v1/retrieval"

    def _request(self, query: str) -> tuple[str, object]:
        body = {
            "question": cut_query(query, MAX_QUERY),
            "dataset_ids": self._datasets,
            "page_size": PAGE_SIZE,
            "top_k": TOP_K,
        }
        return self._url, body

    def _find_problem(self, status: int, answer: Any) -> ServiceProblem | None:
        try:
            problem = _Problem.model_validate(answer)
        except ValidationError:
            return None  # no code: another service, or a proxy; the HTTP status and the form of the answer decide
        message = problem.message or ""
        fine = problem.code == 0 and 200 <= status < 300
        if fine and not (message and isinstance(answer.get("data"), bool)):
            return None
        # A missing key is reported with code 0 and "data": false.
        error = next((error for words, error in _WORDS if words.search(message)), None)
        if error is None and 200 <= status < 300:
            error = _ERRORS.get(problem.code, KnowledgeError)
        return ServiceProblem(str(problem.code), message, error)

    def _records(self, answer: Any) -> Sequence[Record]:
        found = member(member(answer, "data"), "chunks")
        if isinstance(found, list):
            answer = {"data": {"chunks": best(found, lambda raw: member(raw, "similarity"))}}
        hits = [_hit(chunk) for chunk in _Answer.model_validate(answer).data.chunks]
        return records_of(hits, provider=self.name, min_score=self._min_score)


def _hit(chunk: _Chunk) -> Hit:
    content = (chunk.content or "").strip()
    pair = _QA.fullmatch(content)
    return Hit(
        text=pair["answer"].strip() if pair else content,
        question=pair["question"].strip() if pair else "",
        id=chunk.id or "",
        document=chunk.document_keyword or "",
        score=chunk.similarity,
    )
