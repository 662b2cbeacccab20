"""What all knowledge services over HTTP share: how they are asked, and how their answers become records.

A service may answer anything. At most 50 records are read, an invalid score counts as none, and a text with invisible
characters is never sure (``Record.unclean``).
"""

from __future__ import annotations

import asyncio
import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from agent_core import retry
from agent_core.ports import Record
from agent_core.proxies import ProxySetting
from agent_core.texts.clean import clean_text
from knowledge.config import KNOWLEDGE_PROXY
from knowledge.entries import LONGEST_ANSWER
from knowledge.http_client import Endpoint, Names, ServiceProblem, checked_token, checked_url, without_scheme

log = structlog.get_logger(__name__)

MOST_RECORDS = 50
_LONGEST_NAME = 200  # characters of an id, and of a document's name
_LONGEST_SCORE = 40  # characters of a score given as a text
_SCORE_OF_ANOTHER_MEASURE = 1.01  # some services round 1 up


class RemoteKnowledge(ABC):
    """A knowledge service over HTTP.

    A record is sure from ``min_score`` (0–1) on. One without a score is sure only if ``min_score`` is 0.
    Connections are opened by the first call and closed by ``close``.

    timeout: seconds for a call with all its tries.
    """

    name: str
    method = "POST"

    def __init__(
        self,
        base_url: str,
        dataset_id: str = "",
        token: str = "",
        *,
        timeout: float = 10.0,
        min_score: float = 0.6,
        names: Names | None = None,
        proxy: ProxySetting = KNOWLEDGE_PROXY,
        sleep: retry.Sleep = asyncio.sleep,
    ) -> None:
        names = names or Names()
        self._min_score = min_score
        self._url = self._address(checked_url(base_url, names), dataset_id.strip(), names)
        headers, secrets = self._headers(checked_token(token, names), names)
        self._endpoint = Endpoint(
            self._url,
            method=self.method,
            headers=headers,
            secrets=secrets,
            find_problem=self._find_problem,
            timeout=timeout,
            names=names,
            proxy=proxy,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url.partition('?')[0]!r})"

    async def close(self) -> None:
        await self._endpoint.close()

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return the records for ``query`` in the service's order; empty if none has a text. A long query is cut.

        Raises KnowledgeError if the service could not be asked, after the retries of ``agent_core.retry``.
        """
        if not query.strip():
            return ()
        url, body = self._request(query)
        return await self._endpoint.ask(url, body, self._records)

    @abstractmethod
    def _address(self, base_url: str, dataset_id: str, names: Names) -> str:
        """Return the address of the call. Called first: it also keeps what ``_headers`` and ``_request`` need.

        Raises ConfigMissing if the service needs a dataset and there is none.
        """

    def _headers(self, token: str, names: Names) -> tuple[Mapping[str, str], Sequence[str]]:
        """Return the headers, and the secrets in them. ``token``: with or without Bearer before it; "" for none."""
        bare = without_scheme(token)
        return ({"Authorization": f"Bearer {bare}" if bare == token else token} if token else {}), [bare]

    @abstractmethod
    def _request(self, query: str) -> tuple[str, object]:
        """Return the address and the body, None for none."""

    @abstractmethod
    def _find_problem(self, status: int, answer: Any) -> ServiceProblem | None:
        """Return the problem that an answer reports; ``answer`` is None if it is not JSON."""

    @abstractmethod
    def _records(self, answer: Any) -> Sequence[Record]:
        """Read the records of an answer. A ValidationError means that it has an unknown form."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One record as the service gave it. ``score`` is whatever the service gave as such."""

    text: str
    question: str = ""
    id: str = ""
    document: str = ""
    score: object = None


def member(raw: Any, name: str) -> object:
    """Return the member ``name`` of ``raw``; None if ``raw`` is not an object, or has no such member."""
    return raw.get(name) if isinstance(raw, dict) else None


def best(found: Sequence[Any], score_of: Callable[[Any], object], *, scale: float = 1.0) -> Sequence[Any]:
    """Return the best 50 of ``found``, in the service's order: by score if each has one, else the first 50."""
    if len(found) <= MOST_RECORDS:
        return found
    scores: list[float] = []
    for raw in found:
        score = unit_score(score_of(raw), scale)
        if score is None:
            return found[:MOST_RECORDS]
        scores.append(score)
    return [found[at] for at in sorted(heapq.nlargest(MOST_RECORDS, range(len(found)), key=scores.__getitem__))]


def records_of(hits: Sequence[Hit], *, provider: str, min_score: float, scale: float = 1.0) -> tuple[Record, ...]:
    """Return ``hits`` as records of ``provider``, in order, without those that have no text or too long a text.

    scale: the score that means 1.
    """
    records = []
    for index, hit in enumerate(hits):
        if max(len(hit.text), len(hit.question)) > LONGEST_ANSWER:
            log.info("record_too_long", provider=provider, characters=max(len(hit.text), len(hit.question)))
            continue
        score, document = unit_score(hit.score, scale), _name(hit.document)
        record = Record(
            id=_name(hit.id) or str(index),
            text=hit.text,
            question=clean_text(hit.question),
            score=score,
            sure=is_sure(score, min_score),
            source=f"{provider}:{document}" if document else provider,
        )
        if record.text:
            records.append(record)
    return tuple(records)


def unit_score(value: object, scale: float = 1.0) -> float | None:
    """Return a score (a number, or a text that is one) as 0–1; None for anything else.

    A score over 1 also gives None, because it has another scale, and 1 would make it look sure.
    """
    if isinstance(value, str) and len(value) <= _LONGEST_SCORE:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        score = value / scale
    except OverflowError:  # an integer with hundreds of digits
        return None
    if not math.isfinite(score) or score > _SCORE_OF_ANOTHER_MEASURE:
        return None
    return min(1.0, max(0.0, score))


def is_sure(score: float | None, min_score: float) -> bool:
    """Tell whether a record with this score answers without a person; without a score only if ``min_score`` is 0."""
    return min_score <= 0 if score is None else score >= min_score


def _name(text: str) -> str:
    """Return ``text`` on one line, cut to the length of a name."""
    return " ".join(clean_text(text[: 2 * _LONGEST_NAME]).split())[:_LONGEST_NAME]
