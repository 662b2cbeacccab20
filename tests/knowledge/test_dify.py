"""The Dify provider against a server that answers and refuses as Dify does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

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
from knowledge.dify import MAX_QUERY, DifyKnowledge
from knowledge.http_client import cut_query

TOKEN = "dataset-geheim42"


def problem(status: int, code: str, message: str = "no") -> web.Response:
    return web.json_response({"code": code, "message": message, "status": status}, status=status)


def record(answer: str | None, content: str = "Q", score: float | None = 0.9) -> dict[str, object]:
    segment = {
        "id": "s1",
        "content": content,
        "answer": answer,
        "position": 1,
        "document": {"id": "d", "name": "faq.csv"},
    }
    return {"segment": segment, "score": score, "tsne_position": None}


@dataclass
class Dify:
    """One dataset, ``d 1``. Answers ``replies`` in turn, the last one again and again."""

    base_url: str = ""
    replies: list[web.Response | dict[str, object] | str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    hang: asyncio.Event | None = None

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(request.headers.get("Authorization", ""))
        if request.headers.get("Authorization", "").split(" ", 1)[-1] != TOKEN:
            return problem(401, "unauthorized", f"Access token {TOKEN} is invalid")
        if request.match_info["dataset"] != "d 1":
            return problem(404, "not_found", "Dataset not found.")
        body = await request.json()
        if body.keys() != {"query"} or not 0 < len(body["query"]) <= 250:
            return problem(400, "invalid_param", "Query is too long")
        self.queries.append(body["query"])
        if self.hang:
            await self.hang.wait()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, str):
            return web.Response(text=reply, content_type="text/html")
        if isinstance(reply, dict):
            return web.json_response({"query": {"content": body["query"]}, **reply})
        return reply


@pytest.fixture
async def dify() -> AsyncIterator[Dify]:
    fake = Dify()
    app = web.Application()
    app.router.add_post("/v1/datasets/{dataset}/retrieve", fake.retrieve)
    async with TestServer(app, host="127.0.0.1") as server:
        fake.base_url = str(server.make_url("")).rstrip("/")
        yield fake


class Waits(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


Connect = Callable[..., DifyKnowledge]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make providers that are closed at the end."""
    async with AsyncExitStack() as stack:

        def connected(*values: str, **options: Any) -> DifyKnowledge:
            base = DifyKnowledge(*values, **options)
            stack.push_async_callback(base.close)
            return base

        yield connected


async def test_the_answer_else_the_content(dify: Dify, connect: Connect) -> None:
    dify.replies = [
        {"records": [record(" 48小时 "), record(None, " 只有内容 ", 0.5), record("", " "), record("x", score=None)]},
        {"records": [{"content": "外部", "title": "t.md", "score": 0.7, "metadata": {}}]},
        {"records": []},
    ]
    base = connect(dify.base_url, "d 1", TOKEN)
    first, second, third = await base.retrieve(" 几天能发货 ")
    assert (first.id, first.text, first.question, first.score, first.sure) == ("s1", "48小时", "Q", 0.9, True)
    assert first.source == "dify:faq.csv"
    assert (second.text, second.sure) == ("只有内容", False)
    assert (third.score, third.sure) == (None, False)
    assert dify.queries == ["几天能发货"]
    (flat,) = await base.retrieve("a")
    assert (flat.text, flat.source, flat.sure) == ("外部", "dify:t.md", True)
    assert list(await base.retrieve("a")) == []
    assert list(await base.retrieve("  ")) == []
    assert len(dify.queries) == 3


async def test_without_a_score_it_is_sure_only_at_zero(dify: Dify, connect: Connect) -> None:
    dify.replies = [{"records": [record("a", score=None)]}]
    zero = connect(dify.base_url, "d 1", TOKEN, min_score=0)
    assert [(found.text, found.sure) for found in await zero.retrieve("q")] == [("a", True)]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("token", [TOKEN, f"Bearer {TOKEN}", f"bearer {TOKEN}", f" BEARER {TOKEN}\n"])
async def test_base_url_and_token_in_each_form(dify: Dify, tail: str, token: str) -> None:
    dify.replies = [{"records": [record("a")]}]
    base = DifyKnowledge(dify.base_url + tail, "d 1", token)
    assert len(await base.retrieve("q")) == 1
    assert dify.headers == [token.strip() if " " in token.strip() else f"Bearer {TOKEN}"]
    await base.close()


FORBIDDEN = "Sorry, you have reached the knowledge base request rate limit of your subscription."


@pytest.mark.parametrize(
    ("reply", "error", "waits"),
    [
        (problem(401, "unauthorized"), KnowledgeAuth, []),
        (problem(403, "forbidden"), KnowledgeAuth, []),
        (problem(403, "forbidden", FORBIDDEN), KnowledgeQuota, []),
        (problem(429, "too_many_requests"), KnowledgeQuota, []),
        (problem(400, "provider_quota_exceeded"), KnowledgeQuota, []),
        (problem(404, "not_found"), KnowledgeNotFound, []),
        (problem(400, "dataset_not_initialized"), KnowledgeNotReady, []),
        (problem(400, "invalid_param", "bad"), KnowledgeError, []),
        (problem(500, "internal_server_error"), KnowledgeUnreachable, [1, 2]),
        (web.Response(status=502, text="<html>bad gateway</html>"), KnowledgeUnreachable, [1, 2]),
        (web.Response(status=302, headers={"Location": "/elsewhere"}), KnowledgeUnreachable, [1, 2]),
        ("<html>login</html>", KnowledgeUnreachable, [1, 2]),
        ("{broken", KnowledgeUnreachable, [1, 2]),
        ("[" * 100_000, KnowledgeUnreachable, [1, 2]),
        (web.json_response([1]), KnowledgeUnreachable, [1, 2]),
        ({"records": "none"}, KnowledgeUnreachable, [1, 2]),
        ({"records": [{"segment": 5}]}, KnowledgeUnreachable, [1, 2]),
        (web.json_response({"data": []}), KnowledgeUnreachable, [1, 2]),
    ],
)
async def test_errors_are_told_apart(
    dify: Dify,
    connect: Connect,
    reply: web.Response | str,
    error: type[KnowledgeError],
    waits: list[float],
) -> None:
    if isinstance(reply, web.Response):
        body, status, headers = reply.body, reply.status, reply.headers.copy()
        headers.pop("Content-Length", None)
        dify.replies = [web.Response(body=body, status=status, headers=headers) for _ in range(3)]
    else:
        dify.replies = [reply]
    waited = Waits()
    base = connect(dify.base_url, "d 1", TOKEN, sleep=waited)
    with pytest.raises(error) as caught:
        await base.retrieve("q")
    assert type(caught.value) is error
    assert waited == waits
    assert len(dify.queries) == 1 + len(waits)


async def test_it_goes_on_when_the_service_is_back(dify: Dify, connect: Connect) -> None:
    dify.replies = [problem(503, "x"), "<html>", {"records": [record("a")]}]
    waited = Waits()
    base = connect(dify.base_url, "d 1", TOKEN, sleep=waited)
    assert len(await base.retrieve("q")) == 1
    assert waited == [1, 2]


async def test_the_dataset_and_the_token_are_checked_by_the_service(dify: Dify, connect: Connect) -> None:
    with pytest.raises(KnowledgeNotFound):
        await connect(dify.base_url, "other/../d 1", TOKEN).retrieve("q")
    with pytest.raises(KnowledgeAuth):
        await connect(dify.base_url, "d 1", "wrong").retrieve("q")


async def test_the_token_is_never_shown(dify: Dify, connect: Connect) -> None:
    dify.replies = [problem(403, "forbidden", f"token {TOKEN} may not")]
    base = connect(dify.base_url, "d 1", f"Bearer {TOKEN}")
    with pytest.raises(KnowledgeAuth) as caught:
        await base.retrieve("q")
    assert TOKEN not in repr(base) + str(caught.value) + repr(caught.value)
    assert "forbidden" in str(caught.value)


async def test_a_service_that_hangs_or_is_gone(dify: Dify, connect: Connect) -> None:
    dify.hang = asyncio.Event()
    dify.replies = [{"records": []}]
    base = connect(dify.base_url, "d 1", TOKEN, timeout=0.3, sleep=Waits())
    with pytest.raises(KnowledgeUnreachable, match=r"within 0\.3 s"):
        await base.retrieve("q")
    assert len(dify.queries) == 1
    dify.hang.set()
    gone = connect("http://127.0.0.1:1", "d 1", TOKEN, sleep=Waits())
    with pytest.raises(KnowledgeUnreachable, match="cannot be reached") as caught:
        await gone.retrieve("q")
    assert TOKEN not in str(caught.value)


async def test_a_long_query_is_cut_at_a_sensible_place(dify: Dify, connect: Connect) -> None:
    dify.replies = [{"records": []}]
    query = "我昨天买的充电器还没有发货。" * 30
    await connect(dify.base_url, "d 1", TOKEN).retrieve(query)
    assert dify.queries[0].endswith("。")
    assert 200 < len(dify.queries[0]) <= 250
    assert len(cut_query("发" * 300, MAX_QUERY)) == 250
    assert cut_query("好，" * 200, MAX_QUERY).endswith("，")
    assert cut_query("短", MAX_QUERY) == "短"


@pytest.mark.parametrize(
    ("base_url", "dataset", "token", "error"),
    [
        ("ftp://x", "d", "t", ConfigInvalid),
        ("kb.example", "d", "t", ConfigInvalid),
        ("http://x", " ", "t", ConfigMissing),
        ("http://x", "d", "a\nb", ConfigInvalid),
    ],
)
def test_bad_settings_are_said_at_once(base_url: str, dataset: str, token: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        DifyKnowledge(base_url, dataset, token)
