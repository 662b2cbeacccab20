"""Dify's knowledge API, and everything with the same retrieve call.

``POST {base_url}/v1/datasets/{dataset_id}/retrieve`` with ``{"query": …}`` answers ``{"records": [{"segment": {"id",
"content", "answer", "document": {"id", "name"}}, "score"}]}``; external datasets answer flat records with ``content``,
``title`` and ``score``. Errors are ``{"code", "message", "status"}``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_core.errors import KnowledgeError, KnowledgeNotReady, KnowledgeQuota
from agent_core.ports import Record
from knowledge.http_client import Names, ServiceProblem, cut_query, missing
from knowledge.service import Hit, RemoteKnowledge, best, member, records_of

MAX_QUERY = 250  # characters; the service refuses longer ones
_QUOTA_CODES = frozenset({"provider_quota_exceeded", "rate_limit_error", "too_many_requests"})
_NOT_READY_CODES = frozenset({"dataset_not_initialized", "provider_not_initialize", "model_currently_not_support"})
_RATE_WORDS = re.compile(r"rate limit|quota|subscription|too many", re.IGNORECASE)


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")
    name: str | None = None


class _Segment(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: str | None = None
    content: str | None = None
    answer: str | None = None
    document: _Document | None = None


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")
    segment: _Segment | None = None
    content: str | None = None
    title: str | None = None
    score: Any = None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")
    records: list[_Record]


class _Problem(BaseModel):
    model_config = ConfigDict(extra="ignore")
    code: str = ""
    message: str = ""


class DifyKnowledge(RemoteKnowledge):
    """A dataset in Dify."""

    name = "dify"

    def _address(self, base_url: str, dataset_id: str, names: Names) -> str:
        if not dataset_id:
            raise missing("dataset", names.dataset_id)
        base = base_url.rstrip("/").removesuffix("/v1").rstrip("/")
        return f"{base}/v1/datasets/{quote(dataset_id, safe='')}/retrieve"

    def _request(self, query: str) -> tuple[str, object]:
        return self._url, {"query": cut_query(query, MAX_QUERY)}

    def _find_problem(self, status: int, answer: Any) -> ServiceProblem | None:
        if 200 <= status < 300:
            return None
        try:
            problem = _Problem.model_validate(answer)
        except ValidationError:
            return None
        limited = status == 403 and _RATE_WORDS.search(problem.message) is not None
        error: type[KnowledgeError] | None = None
        if problem.code in _QUOTA_CODES or limited:
            error = KnowledgeQuota
        elif problem.code in _NOT_READY_CODES:
            error = KnowledgeNotReady
        return ServiceProblem(problem.code, problem.message, error)

    def _records(self, answer: Any) -> Sequence[Record]:
        found = member(answer, "records")
        if isinstance(found, list):
            answer = {"records": best(found, lambda raw: member(raw, "score"))}
        hits = [_hit(raw) for raw in _Answer.model_validate(answer).records]
        return records_of(hits, provider=self.name, min_score=self._min_score)


def _hit(raw: _Record) -> Hit:
    segment = raw.segment or _Segment()
    content = (segment.content or raw.content or "").strip()
    answer = (segment.answer or "").strip()
    document = segment.document.name if segment.document else raw.title
    return Hit(
        text=answer or content,
        question=content if answer else "",
        id=segment.id or raw.title or "",
        document=document or "",
        score=raw.score,
    )
