"""One suite of behaviour over every provider, against servers that refuse what the real ones refuse.

The settings of FastGPT and MaxKB are those of the how-to page, word for word.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent_core.errors import (
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.ports import KnowledgeBase, Record
from bot.app.knowledge import knowledge_config
from bot.app.settings.loading import load
from knowledge.entries import Entry
from knowledge.factory import build, embedded_in
from tests.support.knowledge import open_knowledge
from tests.support.knowledge_servers import (
    BROKEN,
    HANG,
    HTML,
    HUGE,
    NOT_READY,
    SHOP,
    TOKEN,
    FakeDify,
    FakeFastgpt,
    FakeMaxkb,
    FakeRagflow,
    Item,
    KnowledgeServer,
    Plain,
    settings_of,
)

PAGE = (Path(__file__).parents[2] / "docs/how-to/use-any-http-knowledge-base.md").read_text(encoding="utf-8")
QUERY = '你们几天能发货"}{query}{dataset_id}\\ 😀'


class Waits(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@dataclass(frozen=True)
class Remote:
    """How a provider is set up against its server: the settings of ``knowledge``."""

    server: type[KnowledgeServer]
    settings: Callable[[KnowledgeServer], dict[str, Any]]


def plain(provider: str) -> Callable[[KnowledgeServer], dict[str, Any]]:
    return lambda server: {
        "provider": provider,
        "base_url": server.base_url,
        "dataset_id": server.dataset_id,
        "token": server.token,
    }


def recipe(heading: str) -> Callable[[KnowledgeServer], dict[str, Any]]:
    """As the page says; only the host and the token are ours."""

    def settings(server: KnowledgeServer) -> dict[str, Any]:
        written = settings_of(PAGE, heading)["knowledge"]
        _, _, path = written["base_url"].removeprefix("https://").partition("/")
        assert written["dataset_id"] == server.dataset_id
        return {**written, "base_url": f"{server.base_url}/{path}", "token": server.token}

    return settings


def in_chain(server: KnowledgeServer) -> dict[str, Any]:
    """After an embedded store that knows nothing."""
    return {**plain("dify")(server), "provider": "embedded,dify"}


REMOTES = {
    "dify": Remote(FakeDify, plain("dify")),
    "ragflow": Remote(FakeRagflow, plain("ragflow")),
    "http-fastgpt": Remote(FakeFastgpt, recipe("FastGPT")),
    "http-maxkb": Remote(FakeMaxkb, recipe("MaxKB")),
    "chain": Remote(FakeDify, in_chain),
}
REMOTE = pytest.mark.parametrize("kind", REMOTES)
EVERY = pytest.mark.parametrize("kind", [*REMOTES, "embedded"])


@dataclass
class Stage:
    base: KnowledgeBase
    server: Any
    waits: Waits


Open = Callable[..., Any]


@pytest.fixture
def stage(tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(kind: str, items: Sequence[Item] = SHOP, **changed: Any) -> AsyncIterator[Stage]:
        waits = Waits()
        if kind == "embedded":
            store = await open_knowledge(tmp_path / "k.db")
            await store.add_all([Entry(id=f"s{n}", question=i.question, answer=i.answer) for n, i in enumerate(items)])
            try:
                yield Stage(store, None, waits)
            finally:
                await store.close()
            return
        async with REMOTES[kind].server(items) as server:
            settings = load(data_dir=tmp_path, knowledge={**REMOTES[kind].settings(server), **changed})
            own = await open_knowledge(tmp_path / "k.db") if "embedded" in settings.knowledge.providers else None
            base = build(knowledge_config(settings), embedded=own, sleep=waits)
            try:
                yield Stage(base, server, waits)
            finally:
                await base.close()

    return opened


def texts(records: Sequence[Record]) -> list[str]:
    return [record.text for record in records]


@EVERY
async def test_records_come_as_they_are_the_best_first(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        records = await on.base.retrieve("几天能发货")
        assert records[0].text == "48小时内发货 🚚"
        assert records[0].question == "几天能发货"
        assert records[0].sure is (kind != "embedded")  # a lexical score tells nothing
        assert all(record.id and 0 <= (record.score or 0) <= 1 for record in records)
        assert [record.sure for record in records[1:]] == [False] * len(records[1:])
        if on.server:
            assert texts(records) == [item.answer for item in SHOP]
            assert [record.score for record in records] == [0.92, 0.55, 0.2]
            assert all(record.source.endswith(":faq.csv") for record in records)
            assert on.server.refused == []


@EVERY
async def test_blank_asks_nothing_and_nothing_found_is_empty(kind: str, stage: Open) -> None:
    async with stage(kind, items=()) as on:
        assert list(await on.base.retrieve("几天能发货")) == []
        calls = on.server.calls if on.server else 0
        assert list(await on.base.retrieve(" \n ")) == []
        if on.server:
            assert on.server.calls == calls == 1


@REMOTE
async def test_what_a_customer_writes_arrives_as_it_is(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        await on.base.retrieve(f" {QUERY} ")
        assert on.server.queries == [QUERY]


@EVERY
async def test_a_long_query_is_taken(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        assert await on.base.retrieve("几天能发货。" * 2000)
        if on.server:
            assert on.server.refused == []
            assert 200 < len(on.server.queries[0]) <= 1000
            assert on.server.queries[0].endswith("。")


@REMOTE
async def test_records_without_a_score_or_a_text(kind: str, stage: Open) -> None:
    async with stage(kind, items=[Item("a", "没有分数", None), Item("", "")]) as on:
        (record,) = await on.base.retrieve("a")
        assert (record.text.endswith("没有分数"), record.score, record.sure) == (True, None, False)
    async with stage(kind, items=[Item("a", "没有分数", None)], min_score=0) as on:
        (record,) = await on.base.retrieve("a")
        assert record.sure


@REMOTE
async def test_a_score_of_another_measure_is_not_sure(kind: str, stage: Open) -> None:
    async with stage(kind, items=[Item("a", "b", 37.0)]) as on:
        (record,) = await on.base.retrieve("a")
        assert (record.score, record.sure) == (None, False)


@REMOTE
async def test_it_goes_on_when_the_service_is_back(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        on.server.then(Plain(500), Plain(503, headers={"Retry-After": "7"}))
        assert len(await on.base.retrieve("q")) == 3
        assert on.waits == [1, 7]


@REMOTE
async def test_a_short_pause_that_is_asked_for_is_kept(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        on.server.then(Plain(429, headers={"Retry-After": "3"}))
        assert len(await on.base.retrieve("q")) == 3
        assert on.waits == [3]
        on.server.then(*[Plain(429, headers={"Retry-After": "3"})] * 9)
        with pytest.raises(KnowledgeQuota):
            await on.base.retrieve("q")
        assert on.waits == [3, 3, 3]


ERRORS = {
    "quota": ([Plain(429)], KnowledgeQuota, []),
    "long pause": ([Plain(429, headers={"Retry-After": "600"})], KnowledgeQuota, []),
    "long pause of a failure": ([Plain(503, headers={"Retry-After": "600"})], KnowledgeUnreachable, []),
    "key": ([Plain(401)], KnowledgeAuth, []),
    "not found": ([Plain(404)], KnowledgeNotFound, []),
    "no such page": ([Plain(404, "<html>404</html>", content_type="text/html")], KnowledgeNotFound, []),
    "down": ([Plain(500)] * 3, KnowledgeUnreachable, [1, 2]),
    "gateway": ([Plain(502, "<html>502</html>", content_type="text/html")] * 3, KnowledgeUnreachable, [1, 2]),
    "page": ([HTML] * 3, KnowledgeUnreachable, [1, 2]),
    "broken JSON": ([BROKEN] * 3, KnowledgeUnreachable, [1, 2]),
    "deep JSON": ([Plain(200, "[" * 100_000)] * 3, KnowledgeUnreachable, [1, 2]),
    "huge": ([HUGE] * 3, KnowledgeUnreachable, [1, 2]),
    "another form": ([Plain(200, "[1]")] * 3, KnowledgeUnreachable, [1, 2]),
    "redirect": ([Plain(302, "", {"Location": "/elsewhere"})] * 3, KnowledgeUnreachable, [1, 2]),
    "redirect that keeps the method": ([Plain(307, "", {"Location": "/elsewhere"})] * 3, KnowledgeUnreachable, [1, 2]),
}


@pytest.mark.rotating(parts=3)
@REMOTE
@pytest.mark.parametrize("name", ERRORS)
async def test_errors_are_told_apart_and_hold_no_token(kind: str, name: str, stage: Open) -> None:
    answers, error, waits = ERRORS[name]
    async with stage(kind) as on:
        on.server.then(*answers)
        with capture_logs() as logs, pytest.raises(KnowledgeError) as caught:
            await on.base.retrieve("q")
        assert type(caught.value) is error
        assert on.waits == waits
        assert on.server.elsewhere == 0
        assert TOKEN not in f"{caught.value} {caught.value!r} {on.base!r} {logs}"
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("kind", ["dify", "ragflow", "chain"])
async def test_a_dataset_that_is_not_ready(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        on.server.then(NOT_READY)
        with pytest.raises(KnowledgeNotReady):
            await on.base.retrieve("q")
        assert on.waits == []


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        (109, "no", KnowledgeAuth),
        (108, "no", KnowledgeAuth),
        (0, "`Authorization` can't be empty", KnowledgeAuth),
        (106, "no", KnowledgeNotReady),
        (100, "No chunk found, please upload file and parse it.", KnowledgeNotReady),
        (100, "RateLimitError('too many requests')", KnowledgeQuota),
        (100, "ValueError('x')", KnowledgeUnreachable),
        (105, "no", KnowledgeUnreachable),
        (404, "no", KnowledgeNotFound),
        (101, "no", KnowledgeError),
        (102, "Datasets use different embedding models.", KnowledgeError),
    ],
)
async def test_the_codes_of_ragflow(code: int, message: str, error: type[KnowledgeError], stage: Open) -> None:
    async with stage("ragflow") as on:
        on.server.then(*[Plain(200, json.dumps({"code": code, "data": False, "message": message}))] * 3)
        with pytest.raises(KnowledgeError) as caught:
            await on.base.retrieve("q")
        assert type(caught.value) is error


@REMOTE
async def test_a_service_that_hangs_uses_up_the_time_of_the_call(kind: str, stage: Open) -> None:
    async with stage(kind, timeout_seconds=0.3) as on:  # less, and a busy machine has not even taken the call
        on.server.then(HANG, HANG)
        with pytest.raises(KnowledgeUnreachable, match=r"within 0\.3 s"):
            await on.base.retrieve("q")
        assert on.waits == []
        assert on.server.calls == 1


@REMOTE
async def test_no_try_is_made_that_the_time_of_the_call_does_not_allow(kind: str, stage: Open) -> None:
    async with stage(kind, timeout_seconds=1.95) as on:
        on.server.then(Plain(500), Plain(500), Plain(500))
        with pytest.raises(KnowledgeUnreachable, match="HTTP 500"):
            await on.base.retrieve("q")
        assert on.waits == [1]  # another two seconds are not left
        assert on.server.calls == 2


@REMOTE
async def test_a_wrong_token_and_a_wrong_dataset(kind: str, stage: Open) -> None:
    async with stage(kind, token="key-of-somebody-else") as on:
        with pytest.raises(KnowledgeAuth, match="PHONEDESK_KNOWLEDGE__TOKEN"):
            await on.base.retrieve("q")
    async with stage(kind, dataset_id="ffffffffffffffffffffffff") as on:
        with pytest.raises(KnowledgeNotFound, match="PHONEDESK_KNOWLEDGE__DATASET_ID"):
            await on.base.retrieve("q")


@REMOTE
async def test_a_service_that_is_gone(kind: str, stage: Open) -> None:
    async with stage(kind) as on:
        gone = replace_host(REMOTES[kind].settings(on.server))
        base = build(knowledge_config(load(knowledge=gone)), embedded=embedded_in(on.base), sleep=Waits())
        with pytest.raises(KnowledgeUnreachable, match="cannot be reached") as caught:
            await base.retrieve("q")
        await base.close()
        assert TOKEN not in str(caught.value)


def replace_host(settings: dict[str, Any]) -> dict[str, Any]:
    scheme, _, rest = str(settings["base_url"]).partition("://")
    _, slash, path = rest.partition("/")
    return {**settings, "base_url": f"{scheme}://127.0.0.1:1{slash}{path}"}
