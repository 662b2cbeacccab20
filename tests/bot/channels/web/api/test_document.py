"""The OpenAPI document, and requests that are made from it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import CHECKS, load_all_checks

from bot.channels.web.api.openapi import document
from bot.channels.web.api.routes import OPERATIONS
from bot.desk.actors import Role
from tests.bot.channels.web.api.conftest import Api
from tests.support.days import examples

KEPT = Path(__file__).parents[5] / "docs/reference/openapi.json"
STREAMS = {"follow_events", "follow_run"}
EXAMPLES = examples(8)  # of requests to each operation
WANTED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


async def test_the_document_is_served_and_kept_in_the_docs(api: Api) -> None:
    _, served, _ = await api.ask("GET", "/openapi.json", role=Role.VIEWER)
    assert served == document(OPERATIONS)
    assert served == json.loads(KEPT.read_text(encoding="utf-8")), "python -m bot.channels.web.api writes it anew"


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does() -> None:
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    for operation in OPERATIONS:
        assert operation.summary.endswith("."), operation.name
        assert operation.summary[0].isupper(), operation.name


async def test_whatever_is_sent_the_answer_is_as_documented(api: Api) -> None:
    await asyncio.to_thread(_try_all, api.url, api.keys[Role.OWNER])


def _try_all(url: str, key: str) -> None:
    load_all_checks()
    checks = CHECKS.get_by_names(WANTED)
    headers = {"Authorization": f"Bearer {key}"}
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=headers)
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]  # an invalid one raises
        name = operation.definition.raw["operationId"]
        if name in STREAMS:
            continue
        tried.add(name)

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def answered(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(base_url=url, headers=headers, checks=checks, timeout=30)  # type: ignore[arg-type]

        answered()
    assert tried == {operation.name for operation in OPERATIONS} - STREAMS


@pytest.mark.parametrize("page", ["use-over-http.md", "use-over-http.zh-CN.md"])
def test_the_pages_name_paths_that_there_are(page: str) -> None:
    text = (KEPT.parents[1] / "how-to" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"/api/v1(?:/[A-Za-z-]+)+", text))
    there = {re.sub(r"{\w+}", "X", operation.path) for operation in OPERATIONS}
    parents = {"/".join(path.split("/")[:4]) for path in there}
    assert {re.sub(r"/(RUN|QUESTION)\b", "/X", path) for path in named} <= there | parents
    assert parents <= named, "each kind of thing is named"
