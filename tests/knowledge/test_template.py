"""The provider by template: what is sent, where things stand in the answer, and what is refused at load."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

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
from bot.app.settings.loading import load
from knowledge.config import Template
from knowledge.template import TemplateKnowledge

SECRET = "header-geheim-99"


class Echo:
    """Keeps what it was sent and answers ``answer``."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Any = {"records": []}
        self.status = 200
        self.method = self.path = self.body = ""
        self.headers: dict[str, str] = {}

    async def serve(self, request: web.Request) -> web.Response:
        self.method, self.path, self.body = request.method, request.raw_path, await request.text()
        self.headers = dict(request.headers)
        return web.json_response(self.answer, status=self.status)


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    fake = Echo()
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", fake.serve)
    async with TestServer(app, host="127.0.0.1") as server:
        fake.url = str(server.make_url("/search"))
        yield fake


async def no_wait(_: float) -> None:
    return


@pytest.fixture
async def ask(echo: Echo) -> Callable[..., Any]:
    async def asked(query: str = "q", *, url: str = "", dataset: str = "", token: str = "", **template: Any) -> Any:
        base = TemplateKnowledge(
            url or echo.url, dataset, token, template=Template.model_validate(template), sleep=no_wait
        )
        try:
            return await base.retrieve(query)
        finally:
            await base.close()

    return asked


NASTY = '"}], {query} {dataset_id} \\u0022 \n😀 &x=1#?/../'


async def test_the_query_is_data_wherever_it_stands(echo: Echo, ask: Callable[..., Any]) -> None:
    body = {"a": {"list": ["{query}", 5, None, "{dataset_id}: {query}"]}, "fix": True}
    await ask(NASTY, url=echo.url + "/{dataset_id}?q={query}", dataset="d/1 {query}", body=body)
    assert json.loads(echo.body) == {"a": {"list": [NASTY, 5, None, f"d/1 {{query}}: {NASTY}"]}, "fix": True}
    path, _, query = echo.path.partition("?")
    assert path == "/search/d%2F1%20%7Bquery%7D"
    assert parse_qs(query) == {"q": [NASTY]}


async def test_get_sends_no_body(echo: Echo, ask: Callable[..., Any]) -> None:
    await ask("几天", url=echo.url + "?q={query}", method="GET")
    assert (echo.method, echo.body) == ("GET", "")
    assert echo.path == "/search?q=%E5%87%A0%E5%A4%A9"


@pytest.mark.parametrize(
    ("token", "headers", "sent"),
    [
        ("", {}, {}),
        ("t0ken", {}, {"Authorization": "Bearer t0ken"}),
        ("bearer t0ken", {}, {"Authorization": "Bearer t0ken"}),
        ("t0ken", {"X-Key": "{token}", "X-Set": "{dataset_id}"}, {"X-Key": "t0ken", "X-Set": "set1"}),
        ("Bearer t0ken", {"Authorization": "Bearer {token}"}, {"Authorization": "Bearer t0ken"}),
        ("t0ken", {"authorization": "Basic abc"}, {"Authorization": "Basic abc"}),
    ],
)
async def test_headers(echo: Echo, ask: Callable[..., Any], token: str, headers: Any, sent: dict[str, str]) -> None:
    await ask(token=token, headers=headers, dataset="set1")
    ours = {name: value for name, value in echo.headers.items() if name.lower() in {"authorization", "x-key", "x-set"}}
    assert ours == sent


@pytest.mark.parametrize(
    ("score", "template", "found"),
    [
        (0.5, {}, 0.5),
        ("0.5", {}, 0.5),
        (87, {"score_scale": 100}, 0.87),
        (-0.2, {}, 0.0),
        (1.0000001, {}, 1.0),
        (87, {}, None),
        (True, {}, None),
        ("good", {}, None),
        ({"value": 1}, {}, None),
        (None, {}, None),
        ([{"type": "rrf", "value": 0.0164}, {"type": "embedding", "value": 0.8}], {}, None),
        (
            [{"type": "rrf", "value": 0.0164}, {"type": "embedding", "value": 0.8}],
            {"score_types": "reRank, embedding"},
            0.8,
        ),
        (
            [{"type": "embedding", "value": 0.8}, {"type": "reRank", "value": 0.3}],
            {"score_types": "reRank,embedding"},
            0.3,
        ),
        ([{"type": "rrf", "value": 0.9}], {"score_types": "embedding"}, None),
        ([5, {"type": "embedding"}], {"score_types": "embedding"}, None),
    ],
)
async def test_scores(echo: Echo, ask: Callable[..., Any], score: Any, template: Any, found: float | None) -> None:
    echo.answer = {"records": [{"text": "a", "score": score}]}
    (record,) = await ask(**template)
    assert record.score == (None if found is None else pytest.approx(found))
    assert record.sure is (found is not None and found >= 0.6)


async def test_paths(echo: Echo, ask: Callable[..., Any]) -> None:
    echo.answer = [{"m": {"a": "", "q": " 问 "}, "n": 7}, {"m": {"a": "答", "q": "问"}}, {"m": {}}]
    first, second = await ask(records="", text="m.a,m.q", question="m.q", id="n")
    assert (first.text, first.question, first.id) == ("问", "", "7")
    assert (second.text, second.question, second.id) == ("答", "问", "1")
    echo.answer = {"data": {"0": [["x"], ["一", "二"]]}}
    assert [record.text for record in await ask(records="data.0.1", text="", question="", score="")] == ["一", "二"]
    echo.answer = {"records": None}
    assert list(await ask()) == []


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({}, "RECORDS"),
        ({"records": {"a": 1}}, "RECORDS"),
        ({"records": [{"content": "a"}]}, "TEXT"),
        ("text", "RECORDS"),
    ],
)
async def test_an_answer_that_does_not_fit_names_the_setting(
    echo: Echo, ask: Callable[..., Any], answer: Any, named: str
) -> None:
    echo.answer = answer
    with pytest.raises(KnowledgeUnreachable, match=f"PHONEDESK_KNOWLEDGE__HTTP__{named}"):
        await ask()


@pytest.mark.parametrize(
    ("status", "answer", "template", "error"),
    [
        (200, {"code": 0, "records": []}, {"ok_value": "0"}, None),
        (200, {"code": "0", "records": []}, {"ok_value": "0"}, None),
        (200, {"code": 5, "message": "no"}, {"ok_value": "0"}, KnowledgeError),
        (200, {"records": []}, {"ok_value": "0"}, KnowledgeError),
        (200, {"code": None, "records": []}, {}, None),
        (200, {"code": False, "records": []}, {}, None),
        (200, {"code": "", "records": []}, {}, None),
        (200, {"code": 0, "records": []}, {}, KnowledgeError),
        (200, {"code": {"why": 1}, "records": []}, {}, KnowledgeError),
        (200, {"code": "E1"}, {"error_kinds": {"E1": "key"}}, KnowledgeAuth),
        (200, {"code": "E1"}, {"error_kinds": {"E1": "quota"}}, KnowledgeQuota),
        (200, {"code": "E1"}, {"error_kinds": {"E1": "not_found"}}, KnowledgeNotFound),
        (200, {"code": "E1"}, {"error_kinds": {"E1": "not_ready"}}, KnowledgeNotReady),
        (200, {"code": "E1"}, {"error_kinds": {"E1": "network"}}, KnowledgeUnreachable),
        (500, {"code": "E1"}, {"error_kinds": {"E1": "query"}}, KnowledgeError),
        (500, {"code": 514}, {"error_kinds": {"514": "key"}}, KnowledgeAuth),
        (500, {"code": 515}, {"error_kinds": {"514": "key"}}, KnowledgeUnreachable),
        (201, {"records": []}, {}, None),
        (400, {"code": "E9"}, {}, KnowledgeError),
        (402, {}, {}, KnowledgeQuota),
    ],
)
async def test_how_an_error_shows(
    echo: Echo, ask: Callable[..., Any], status: int, answer: Any, template: Any, error: type[KnowledgeError] | None
) -> None:
    echo.status, echo.answer = status, answer
    if error is None:
        assert list(await ask(error_path="code", **template)) == []
        return
    with pytest.raises(KnowledgeError) as caught:
        await ask(error_path="code", **template)
    assert type(caught.value) is error


async def test_headers_are_in_no_message(echo: Echo, ask: Callable[..., Any]) -> None:
    echo.status, echo.answer = 500, {"message": f"bad {SECRET} and t0ken-1 in {'x' * 190}{SECRET}"}
    with capture_logs() as logs, pytest.raises(KnowledgeUnreachable) as caught:
        await ask(headers={"X-Key": SECRET}, token="t0ken-1")
    said = f"{caught.value} {caught.value!r} {logs}"
    assert "bad ***" in said
    assert not {SECRET, SECRET[:8], "t0ken-1"} & set(said.split())
    assert SECRET[:8] not in said
    base = TemplateKnowledge(f"http://x/?key={SECRET}", template=Template(headers={"X-Key": SECRET}))
    assert SECRET not in repr(base) + repr(Template(headers={"X-Key": SECRET}))


# -- at load


@pytest.mark.parametrize(
    ("http", "named"),
    [
        ({"records": "data..list"}, "HTTP__RECORDS"),
        ({"text": "a b"}, "HTTP__TEXT"),
        ({"score": ".x"}, "HTTP__SCORE"),
        ({"score_scale": 0}, "HTTP__SCORE_SCALE"),
        ({"method": "DELETE"}, "HTTP__METHOD"),
        ({"body": {"q": "{qery}"}}, "{qery}"),
        ({"body": {"q": ["{token}"]}}, "HTTP__BODY"),
        ({"body": "text"}, "HTTP__BODY"),
        ({"headers": {"X Y": "1"}}, "HTTP__HEADERS"),
        ({"headers": {"X": "a\r\nY: b"}}, "HTTP__HEADERS"),
        ({"headers": {"X": "{query}"}}, "HTTP__HEADERS"),
        ({"error_kinds": {"1": "bad"}}, "HTTP__ERROR_KINDS"),
        ({"recods": "x"}, "RECODS"),
    ],
)
def test_a_wrong_template_is_refused_with_the_name_of_the_setting(http: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(knowledge={"provider": "http", "http": http})
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("url", "template", "error", "named"),
    [
        ("http://x/{dataset_id}", {}, ConfigMissing, "DATASET_ID"),
        ("http://x", {"headers": {"K": "{token}"}}, ConfigMissing, "TOKEN"),
        ("http://x", {"body": {"q": "fixed"}}, ConfigInvalid, "HTTP__BODY"),
        ("http://x", {"method": "GET"}, ConfigInvalid, "BASE_URL"),
        ("http://x/{qery}", {}, ConfigInvalid, "BASE_URL"),
        ("http://u:p@x/", {}, ConfigInvalid, "BASE_URL"),
        ("http://x:port/", {}, ConfigInvalid, "BASE_URL"),
        ("x", {}, ConfigInvalid, "BASE_URL"),
    ],
)
def test_what_does_not_go_together_is_said_before_anything_is_asked(
    url: str, template: dict[str, Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        TemplateKnowledge(url, template=Template.model_validate(template))


def test_headers_of_the_settings_are_secret() -> None:
    settings = load(knowledge={"http": {"headers": {"X-Key": SECRET, "Accept": "application/json"}}})
    assert SECRET not in repr(settings)
    assert SECRET in settings.secrets()
    assert "application/json" not in settings.secrets()
