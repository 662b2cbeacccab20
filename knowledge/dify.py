"""Dify's knowledge API, and everything that speaks its retrieve call.

``POST {base_url}/v1/datasets/{dataset_id}/retrieve`` with ``{"query": …}`` answers ``{"records": [{"segment": {"id",
"content", "answer", "document": {"id", "name"}}, "score"}]}``; external datasets answer flat records with ``content``,
``title`` and ``score``. Errors are ``{"code", "message", "status"}``.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core import retry
from agent_core.errors import (
    ConfigInvalid,
    ConfigMissing,
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.ports import Record

MAX_QUERY = 250  # characters; more is refused by the service
_MAX_BODY = 4 * 1024 * 1024  # bytes
_QUOTA_CODES = frozenset({"provider_quota_exceeded", "rate_limit_error", "too_many_requests"})
_NOT_READY_CODES = frozenset({"dataset_not_initialized", "provider_not_initialize", "model_currently_not_support"})
_RATE_WORDS = re.compile(r"rate limit|quota|subscription|too many", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[。！？!?；;\n]|[.](?=\s)")
_CLAUSE_END = re.compile(r"[，,、\s]")


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
    score: float | None = None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")
    records: list[_Record]


class _Problem(BaseModel):
    model_config = ConfigDict(extra="ignore")
    code: str = ""
    message: str = Field(default="")


class DifyKnowledge:
    """A dataset in Dify. ``timeout`` in seconds for each try; a record is sure from ``min_score`` (0–1) on.

    A record without a score is sure only where ``min_score`` is 0. A session that is given stays open; one of its own
    is opened with the first call and closed by ``close``.
    """

    def __init__(
        self,
        base_url: str,
        dataset_id: str,
        token: str,
        *,
        timeout: float = 10.0,
        min_score: float = 0.6,
        session: aiohttp.ClientSession | None = None,
        sleep: retry.Sleep = asyncio.sleep,
    ) -> None:
        self._url = _retrieve_url(base_url, dataset_id)
        if not token.strip():
            raise ConfigMissing("The knowledge token is missing.", advice="Set PHONEDESK_KNOWLEDGE__TOKEN.")
        self._token = token.strip()
        if not self._token.isascii() or not self._token.isprintable():
            raise ConfigInvalid(
                "The knowledge token holds characters that no token has.",
                advice="Set PHONEDESK_KNOWLEDGE__TOKEN again.",
            )
        self._timeout = timeout
        self._min_score = min_score
        self._session = session
        self._own_session = session is None
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"DifyKnowledge({self._url!r})"

    @property
    def name(self) -> str:
        return "dify"

    async def close(self) -> None:
        if self._own_session and self._session is not None:
            await self._session.close()
            self._session = None

    async def retrieve(self, query: str) -> Sequence[Record]:
        """The records for ``query`` (cut at 250 characters), best first; empty where none has a text.

        KnowledgeError where the service could not be asked, after the retries of the table.
        """
        if not query.strip():
            return ()
        asked = cut_query(query)
        return await retry.with_retries(lambda: self._ask(asked), sleep=self._sleep)

    async def _ask(self, query: str) -> Sequence[Record]:
        bearer = self._token if self._token.lower().startswith("bearer ") else f"Bearer {self._token}"
        try:
            async with self._client().post(
                self._url,
                json={"query": query},
                headers={"Authorization": bearer, "Accept": "application/json"},
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                allow_redirects=False,  # the token goes to the configured host and to no other
            ) as response:
                body = await _body(response)
                if response.status != 200:
                    raise self._failure(response, body)
        except TimeoutError:
            raise KnowledgeUnreachable(f"The knowledge service did not answer within {self._timeout:g} s.") from None
        except aiohttp.ClientError as error:
            # not chained and not quoted in full: an error of the client can hold the request's headers
            raise KnowledgeUnreachable(f"The knowledge service cannot be reached ({type(error).__name__}).") from None
        return self._records(body)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session

    def _records(self, body: bytes) -> Sequence[Record]:
        try:
            answer = _Answer.model_validate(_json(body))
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the answer"
            raise KnowledgeUnreachable(
                f"The knowledge service answered in an unknown form: {where} is not what it must be."
            ) from None
        records = [self._record(index, raw) for index, raw in enumerate(answer.records)]
        return tuple(record for record in records if record.text)

    def _record(self, index: int, raw: _Record) -> Record:
        segment = raw.segment or _Segment()
        content = (segment.content or raw.content or "").strip()
        answer = (segment.answer or "").strip()
        document = segment.document.name if segment.document else raw.title
        score = raw.score if raw.score is None or math.isfinite(raw.score) else None
        return Record(
            id=segment.id or raw.title or str(index),
            text=answer or content,
            question=content if answer else "",
            score=score,
            sure=self._min_score <= 0 if score is None else score >= self._min_score,
            source=f"dify:{document}" if document else "dify",
        )

    def _failure(self, response: aiohttp.ClientResponse, body: bytes) -> KnowledgeError:
        try:
            problem = _Problem.model_validate(_json(body))
        except (KnowledgeUnreachable, ValidationError):
            problem = _Problem()
        status = response.status
        detail = self._masked(f" ({problem.code}: {problem.message[:200]})" if problem.code or problem.message else "")
        said = f"HTTP {status}{detail}"
        limited = problem.code in _QUOTA_CODES or (status == 403 and _RATE_WORDS.search(problem.message) is not None)
        if status == 429 or limited:
            return KnowledgeQuota(f"The knowledge service refuses more for now: {said}.")
        if status in {401, 403}:
            return KnowledgeAuth(f"The knowledge service refused the token: {said}.")
        if status == 404:
            return KnowledgeNotFound(f"The knowledge service does not know the dataset: {said}.")
        if problem.code in _NOT_READY_CODES:
            return KnowledgeNotReady(f"The dataset cannot be asked yet: {said}.")
        if status >= 500:
            return KnowledgeUnreachable(f"The knowledge service failed: {said}.")
        if 300 <= status < 400:
            return KnowledgeUnreachable(
                f"The knowledge service redirects elsewhere: {said}.",
                advice="Set PHONEDESK_KNOWLEDGE__BASE_URL to the address that it redirects to.",
            )
        return KnowledgeError(f"The knowledge service refused the query: {said}.")

    def _masked(self, text: str) -> str:
        secret = self._token.split(" ", 1)[-1].strip()
        return text.replace(secret, "***") if secret else text


def cut_query(query: str, limit: int = MAX_QUERY) -> str:
    """``query`` stripped and at most ``limit`` characters: cut after a sentence, a clause, or where it must be."""
    query = query.strip()
    if len(query) <= limit:
        return query
    head = query[:limit]
    for pattern in (_SENTENCE_END, _CLAUSE_END):
        ends = [match.end() for match in pattern.finditer(head)]
        if ends and ends[-1] >= limit // 3:
            return head[: ends[-1]].strip()
    return head


def _retrieve_url(base_url: str, dataset_id: str) -> str:
    base = base_url.strip().rstrip("/").removesuffix("/v1").rstrip("/")
    parts = urlsplit(base)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigInvalid(
            "The knowledge base URL must begin with http:// or https:// and name a host.",
            advice="Check PHONEDESK_KNOWLEDGE__BASE_URL.",
        )
    if not dataset_id.strip():
        raise ConfigMissing("The knowledge dataset is missing.", advice="Set PHONEDESK_KNOWLEDGE__DATASET_ID.")
    return f"{base}/v1/datasets/{quote(dataset_id.strip(), safe='')}/retrieve"


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = await response.content.read(_MAX_BODY + 1)
    while len(body) <= _MAX_BODY:
        more = await response.content.read(_MAX_BODY + 1 - len(body))
        if not more:
            return body
        body += more
    raise KnowledgeUnreachable("The knowledge service answered with more than 4 MB.")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip()[:1] == b"<"
        what = "an HTML page" if page else "something that is not JSON"
        raise KnowledgeUnreachable(f"The knowledge service answered with {what}.") from None
