"""Dify's knowledge API, and everything with the same retrieve call.

``POST {base_url}/v1/datasets/{dataset_id}/retrieve`` with ``{"query": …}`` answers ``{"records": [{"segment": {"id",
"content", "answer", "document": {"id", "name"}}, "score"}]}``; external datasets answer flat records with ``content``,
``title`` and ``score``. Errors are ``{"code", "message", "status"}``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_core import retry
from agent_core.errors import ConfigMissing, KnowledgeError, KnowledgeNotReady, KnowledgeQuota
from agent_core.ports import Record
from agent_core.proxies import ProxySetting
from knowledge.config import KNOWLEDGE_PROXY
from knowledge.http_client import Endpoint, Names, ServiceProblem, bearer, checked_url, cut_query
from knowledge.records import Hit, best, member, records_of

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


class DifyKnowledge:
    """A dataset in Dify. A record is sure from ``min_score`` (0–1) on, and without a score only if that is 0.

    Connections are opened by the first call and closed by ``close``.

    timeout: seconds for a call with all its tries.
    """

    def __init__(
        self,
        base_url: str,
        dataset_id: str,
        token: str,
        *,
        timeout: float = 10.0,
        min_score: float = 0.6,
        names: Names | None = None,
        proxy: ProxySetting = KNOWLEDGE_PROXY,
        sleep: retry.Sleep = asyncio.sleep,
    ) -> None:
        names = names or Names()
        self._url = _retrieve_url(base_url, dataset_id, names)
        headers, secret = bearer(token, names)
        self._min_score = min_score
        self._endpoint = Endpoint(
            self._url,
            headers=headers,
            secrets=[secret],
            find_problem=_find_problem,
            timeout=timeout,
            names=names,
            proxy=proxy,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"DifyKnowledge({self._url!r})"

    @property
    def name(self) -> str:
        return "dify"

    async def close(self) -> None:
        await self._endpoint.close()

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return the records for ``query`` (cut at 250 characters), best first; empty if none has a text.

        Raises KnowledgeError if the service could not be asked, after the retries of the table.
        """
        if not query.strip():
            return ()
        return await self._endpoint.ask(self._url, {"query": cut_query(query, MAX_QUERY)}, self._records)

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


def _find_problem(status: int, answer: Any) -> ServiceProblem | None:
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


def _retrieve_url(base_url: str, dataset_id: str, names: Names) -> str:
    base = checked_url(base_url, names).rstrip("/").removesuffix("/v1").rstrip("/")
    if not dataset_id.strip():
        raise ConfigMissing(
            "The knowledge dataset is missing.",
            advice=f"Set {names.dataset_id}.",
            key="knowledge_missing",
            names=names.dataset_id,
        )
    return f"{base}/v1/datasets/{quote(dataset_id.strip(), safe='')}/retrieve"
