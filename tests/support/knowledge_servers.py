"""Strict stand-ins for knowledge services, on 127.0.0.1: each answers and refuses as its original does.

async with FakeDify(SHOP) as service:
    base = DifyKnowledge(service.base_url, service.dataset_id, service.token)
    service.then(Plain(500), Plain(429, headers={"Retry-After": "2"}))   # the next answers, then as usual
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

TOKEN = "key-geheim-0123456789"


@dataclass(frozen=True)
class Item:
    """A question with its answer. ``score`` None: none is given. Without an ``answer`` it is a piece of a document."""

    question: str
    answer: str
    score: float | None = 0.9


SHOP = (
    Item("几天能发货", "48小时内发货 🚚", 0.92),
    Item("发什么快递", "默认发中通快递", 0.55),
    Item("能退货吗", "支持7天无理由退货", 0.2),
)


@dataclass(frozen=True)
class Plain:
    """Any answer. ``body`` None: the service's own error for this status."""

    status: int = 200
    body: str | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


HTML = Plain(200, "<html><body>Login</body></html>", content_type="text/html")
BROKEN = Plain(200, '{"records": [')
HUGE = Plain(200, b'{"records": "' + b"x" * (5 * 1024 * 1024) + b'"}')
HANG = Plain(0)
NOT_READY = Plain(-1)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class KnowledgeServer(ABC):
    """``items`` are what every query finds, the best first. ``queries`` are what was asked. With ``token`` "" no header
    with one is taken.
    """

    path: str
    dataset_id: str
    token: str = TOKEN

    def __init__(self, items: Sequence[Item] = SHOP) -> None:
        self.items = tuple(items)
        self.queries: list[str] = []
        self.calls = 0
        self.refused: list[str] = []  # requests that the original would not take, and why
        self.elsewhere = 0  # calls of the address that a redirect leads to
        self.base_url = ""
        self._next: list[Plain] = []
        self._ended = asyncio.Event()
        self._runner: web.AppRunner | None = None

    def then(self, *answers: Plain) -> None:
        self._next.extend(answers)

    async def __aenter__(self) -> Any:
        app = web.Application()
        app.router.add_post(self.path, self._serve)
        app.router.add_route("*", "/elsewhere", self._elsewhere)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _elsewhere(self, request: web.Request) -> web.Response:
        self.elsewhere += 1
        return web.json_response({})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        if self._next:
            answer = self._next.pop(0)
            if answer is HANG:
                await self._ended.wait()
            if answer is NOT_READY:
                return self.not_ready()
            if answer.body is None:
                return self.error(answer.status, answer.headers)
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            kind = answer.content_type
            return web.Response(body=body, status=answer.status, headers=answer.headers, content_type=kind)
        if request.headers.get("Authorization") != (f"Bearer {self.token}" if self.token else None):
            return self.error(401)
        if request.content_type != "application/json":
            self.refused.append("not JSON")
            return self.refuse("use application/json")
        return self._answer(request, await request.json())

    def _answer(self, request: web.Request, body: Any) -> web.Response:
        try:
            dataset, query = self.read(request, body)
        except (ValidationError, ValueError) as error:
            self.refused.append(str(error))
            return self.refuse(str(error))
        if dataset != self.dataset_id:
            return self.error(404)
        self.queries.append(query)
        return web.json_response(self.answer(query))

    @abstractmethod
    def read(self, request: web.Request, body: Any) -> tuple[str, str]:
        """Dataset and query of a request; ValidationError or ValueError where it is not one."""

    @abstractmethod
    def answer(self, query: str) -> Any: ...

    @abstractmethod
    def error(self, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
        """The service's own way to say this; the message holds the token, as some do."""

    @abstractmethod
    def refuse(self, why: str) -> web.Response: ...

    @abstractmethod
    def not_ready(self) -> web.Response: ...


# -- Dify


class _DifyBody(_Strict):
    query: Annotated[str, Field(min_length=1, max_length=250)]


class FakeDify(KnowledgeServer):
    path = "/v1/datasets/{dataset}/retrieve"
    dataset_id = "set 1/a"

    def read(self, request: web.Request, body: Any) -> tuple[str, str]:
        return request.match_info["dataset"], _DifyBody.model_validate(body).query

    def answer(self, query: str) -> Any:
        records = [
            {
                "segment": {
                    "id": f"s{index}",
                    "position": index,
                    "content": item.question,
                    "answer": item.answer,
                    "document": {"id": "d", "name": "faq.csv", "data_source_type": "upload_file"},
                    "status": "completed",
                },
                "score": item.score,
                "tsne_position": None,
            }
            for index, item in enumerate(self.items)
        ]
        return {"query": {"content": query}, "records": records}

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
        code = {401: "unauthorized", 404: "not_found", 429: "too_many_requests"}.get(status, "internal_server_error")
        body = {"code": code, "message": f"{status} for {self.token}", "status": status}
        return web.json_response(body, status=status, headers=headers)

    def refuse(self, why: str) -> web.Response:
        return web.json_response({"code": "invalid_param", "message": why, "status": 400}, status=400)

    def not_ready(self) -> web.Response:
        body = {"code": "dataset_not_initialized", "message": "The dataset is still being initialized", "status": 400}
        return web.json_response(body, status=400)


# -- RAGFlow


class _RagflowBody(_Strict):
    question: str
    dataset_ids: Annotated[list[str], Field(min_length=1)]
    page: int = 1
    page_size: Annotated[int, Field(gt=0)] = 30
    similarity_threshold: Annotated[float, Field(ge=0, le=1)] = 0.2
    top_k: Annotated[int, Field(gt=0)] = 1024


class FakeRagflow(KnowledgeServer):
    """``data`` and errors with HTTP 200. Q&A chunks hold both sides in one text."""

    path = "/api/v1/retrieval"
    dataset_id = "kb1,kb2"

    def read(self, request: web.Request, body: Any) -> tuple[str, str]:
        asked = _RagflowBody.model_validate(body)
        return ",".join(asked.dataset_ids), asked.question

    def answer(self, query: str) -> Any:
        chunks = [
            {
                "id": f"s{index}",
                "content": f"问题：{item.question}\t回答：{item.answer}",
                "document_id": "d",
                "document_keyword": "faq.csv",
                "dataset_id": "kb1",
                "similarity": item.score,
                "term_similarity": 1.0,
                "vector_similarity": 0.4,
                "positions": [[""]],
            }
            for index, item in enumerate(self.items)
        ]
        return {"code": 0, "data": {"chunks": chunks, "doc_aggs": [], "total": len(chunks)}}

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
        if status == 401:
            return self._say(109, f"Authentication error: API key is invalid! {self.token}")
        if status == 404:
            return self._say(102, "You don't own the dataset kb1.")
        body = {"code": status, "message": f"{status} for {self.token}"}
        return web.json_response(body, status=status, headers=headers)

    def refuse(self, why: str) -> web.Response:
        return self._say(101, why)

    def not_ready(self) -> web.Response:
        return self._say(102, "No chunk found! Check the chunk status please!")

    def _say(self, code: int, message: str) -> web.Response:
        return web.json_response({"code": code, "data": None, "message": message})


# -- FastGPT


class _FastgptBody(_Strict):
    datasetId: Annotated[str, Field(pattern=r"^[0-9a-f]{24}$")]  # noqa: N815 - the service's own name
    text: Annotated[str, Field(min_length=1)]
    limit: Annotated[int, Field(ge=50)] = 1500  # tokens, not records
    similarity: float | None = None
    searchMode: Literal["embedding", "fullTextRecall", "mixedRecall"] | None = None  # noqa: N815 - the service's name
    usingReRank: bool | None = None  # noqa: N815 - the service's own name


class FakeFastgpt(KnowledgeServer):
    """Scores by kind: that by rank is tiny, that by words has no upper end. A wrong key is HTTP 500 with code 514."""

    path = "/api/core/dataset/searchTest"
    dataset_id = "66ee8939b2e1e065a337800e"

    def read(self, request: web.Request, body: Any) -> tuple[str, str]:
        asked = _FastgptBody.model_validate(body)
        return asked.datasetId, asked.text

    def answer(self, query: str) -> Any:
        found = [
            {
                "id": f"s{index}",
                "q": item.question,
                "a": item.answer,
                "chunkIndex": 0,
                "datasetId": self.dataset_id,
                "collectionId": "66ee94edb2e1e065a3378390",
                "sourceName": "faq.csv",
                "score": [
                    {"type": "rrf", "value": 1 / (60 + index), "index": index},
                    {"type": "fullText", "value": 12.5, "index": index},
                    *([{"type": "embedding", "value": item.score, "index": index}] if item.score is not None else []),
                ],
                "tokens": 19,
            }
            for index, item in enumerate(self.items)
        ]
        data = {"list": found, "duration": "0.120s", "searchMode": "embedding", "limit": 5000, "similarity": 0}
        return {"code": 200, "statusText": "", "message": "", "data": data}

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
        code, text = {401: (514, "unAuthApiKey"), 404: (501002, "unExistDataset")}.get(status, (status, "error"))
        http = 500 if status in {401, 404} else status
        body = {"code": code, "statusText": text, "message": f"{text} for {self.token}", "data": None}
        return web.json_response(body, status=http, headers=headers)

    def refuse(self, why: str) -> web.Response:
        return web.json_response({"code": 400, "statusText": "error", "message": why, "data": None}, status=400)

    def not_ready(self) -> web.Response:
        raise NotImplementedError  # it answers with an empty list


# -- MaxKB


class _MaxkbBody(_Strict):
    query_text: Annotated[str, Field(min_length=1, max_length=8000)]
    top_number: Annotated[int, Field(ge=1, le=50)] = 5
    similarity: Annotated[float, Field(ge=0, le=1)] = 0.0
    search_mode: Literal["embedding", "keywords", "blend"] = "embedding"


class FakeMaxkb(KnowledgeServer):
    path = "/chat/api/v3/knowledge/{dataset}/retrieve"
    dataset_id = "0197a3c0-0000-7000-8000-000000000001"

    def read(self, request: web.Request, body: Any) -> tuple[str, str]:
        return request.match_info["dataset"], _MaxkbBody.model_validate(body).query_text

    def answer(self, query: str) -> Any:
        hits = [
            {
                "paragraph_id": f"s{index}",
                "document_id": "d",
                "title": item.question,
                "content": item.answer,
                "similarity": item.score,
                "comprehensive_score": item.score,
                "source_type": "1",
                "source_id": f"s{index}",
                "citation": {"knowledge_id": self.dataset_id, "document_name": "faq.csv", "paragraph_id": f"s{index}"},
            }
            for index, item in enumerate(self.items)
        ]
        return {"knowledge_id": self.dataset_id, "hits": hits}

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
        code = {401: "invalid_api_key", 404: "service_unavailable"}.get(status, "retrieval_failed")
        body = {"error": {"code": code, "message": f"{code} for {self.token}"}}
        return web.json_response(body, status=status, headers=headers)

    def refuse(self, why: str) -> web.Response:
        return web.json_response({"error": {"code": "invalid_request", "message": why}}, status=400)

    def not_ready(self) -> web.Response:
        raise NotImplementedError  # it answers with an empty list


def settings_of(page: str, heading: str) -> dict[str, Any]:
    """The settings of the first ``toml`` block under a heading of a page."""
    import tomllib

    text = page.split(f"## {heading}\n", 1)[1].split("```toml\n", 1)[1].split("```", 1)[0]
    return tomllib.loads(text)
