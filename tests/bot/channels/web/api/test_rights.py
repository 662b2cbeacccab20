"""Who may do what over the API."""

from __future__ import annotations

import re

import pytest

from bot.channels.web.api.operations import Operation, Stream
from bot.channels.web.api.routes import OPERATIONS
from bot.desk.actors import Role
from bot.desk.request_limits import NOTED_OF_ONE
from storage.api_keys import ApiKeys
from storage.people import Audit
from tests.bot.channels.web.api.conftest import Api
from tests.support.shop import PHONE, QUESTION

BODIES: dict[str, dict[str, object]] = {
    "start_run": {"task": "打开设置"},
    "answer_question": {"choice": "skip"},
    "rate_answer": {"rating": 1},
    "add_schedule": {"expression": "0 9 * * *", "task": "打开设置"},
    "list_next_times": {"expression": "0 9 * * *"},
    "add_sweep": {"whom": "unread", "every": 5},
    "add_contact": {"name": "12"},
    "add_entry": {"question": "问", "answer": "答"},
    "add_key": {"name": "ERP"},
    "act": {"action": {"kind": "back"}},
    "import_knowledge": {"name": "faq.csv", "content": "cSxhCg=="},
    "add_incoming_webhook": {"name": "shop", "may": "run"},
    "add_webhook": {"url": "https://192.168.1.1/", "events": ["question"]},
}
IN_PATH = {
    "run_id": "1",
    "question_id": QUESTION.id,
    "answer_id": "1",
    "schedule_id": "1",
    "serial": PHONE,
    "app": "qq",
}
QUERIES = {"search_knowledge": {"words": "x"}}


def _path(operation: Operation) -> str:
    return re.sub(r"{(\w+)}", lambda found: IN_PATH.get(found[1], "none"), operation.path)


async def _asked(api: Api, operation: Operation, **how: object) -> int:
    body = BODIES.get(operation.name, {}) if operation.body is not None else None
    query = QUERIES.get(operation.name, {})
    status, _, _ = await api.ask(operation.verb, _path(operation), json=body, params=query, **how)  # type: ignore[arg-type]
    return status


async def test_without_a_key_there_is_nothing(api: Api) -> None:
    for verb, path in [(each.verb, _path(each)) for each in OPERATIONS] + [
        ("GET", "/openapi.json"),
        ("GET", "/no-such-path"),
        ("OPTIONS", "/runs"),
    ]:
        for headers in ({}, {"Authorization": "Bearer pdk_wrong"}, {"Authorization": "Basic eDp4"}):
            status, body, response = await api.ask(verb, path, role=None, headers=headers)
            assert (status, response.content_type) == (401, "application/problem+json"), (verb, path)
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
            assert body["type"] == "unauthorized"
    noted = [row.command for row in await Audit(api.db).refused()]
    assert noted == ["api key"] * NOTED_OF_ONE, "with a limit, so that strangers cannot fill the log"


async def test_a_page_of_another_origin_is_refused(api: Api) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example:8737"):
        status, body, _ = await api.ask("POST", "/runs", json={"task": "打开设置"}, headers={"Origin": origin})
        assert (status, body["type"]) == (403, "foreign_origin")
    status, _, _ = await api.ask("GET", "/runs", headers={"Origin": api.url})
    assert status == 200


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_the_role_of_the_documentation_is_the_one_that_is_needed(api: Api, role: Role) -> None:
    for operation in OPERATIONS:
        if operation.returns is Stream or operation.name == "undo_entry":
            continue  # a stream does not end; what one has not changed oneself can be undone by nobody
        status = await _asked(api, operation, role=role)
        if role.covers(operation.least):
            assert status != 403 or operation.name in {"change_entry", "rate_answer"}, operation.name
        else:
            # What is not there may be said before the role is looked at, as long as nothing is told of what is there.
            assert status in {403, 404}, (operation.name, status)
            if status == 403:
                (row,) = await Audit(api.db).last(1)
                assert (row.allowed, row.detail["why"]) == (False, "role")


async def test_a_key_of_another_phone_sees_and_does_nothing_here(api: Api) -> None:
    key, _ = await ApiKeys(api.db).add("other", role="operator", serials=["127.0.0.1:16002"])
    for verb, path, body in (
        ("GET", "/runs/1", None),
        ("GET", "/runs/1/steps", None),
        ("GET", f"/runs/{api.run_id}/events", None),
        ("POST", "/runs/1/stop", None),
        ("POST", "/runs", {"task": "打开设置", "device": PHONE}),
        ("GET", f"/questions/{QUESTION.id}", None),
        ("GET", f"/questions/{QUESTION.id}/picture", None),
        ("POST", f"/questions/{QUESTION.id}/answer", {"choice": "skip"}),
        ("GET", "/answers/1", None),
        ("GET", "/answers/1/before", None),
        ("PUT", "/answers/1/rating", {"rating": 1}),
        ("GET", "/schedules/1", None),
        ("GET", f"/devices/{PHONE}/screen", None),
    ):
        status, problem, _ = await api.ask(verb, path, key=key, json=body)
        assert (status, problem["type"]) == (403, "security.access"), path
    for path in ("/runs", "/questions", "/answers", "/schedules", "/devices", "/unanswered"):
        assert (await api.ask("GET", path, key=key))[1]["items"] == [], path


async def test_a_key_that_was_rotated_or_removed_is_refused_at_once(api: Api) -> None:
    _, made, _ = await api.ask("POST", "/keys", json={"name": "ERP", "role": "viewer"})
    assert (await api.ask("GET", "/runs", key=made["key"]))[0] == 200
    _, again, _ = await api.ask("POST", "/keys/ERP/rotate")
    assert (await api.ask("GET", "/runs", key=made["key"]))[0] == 401
    assert (await api.ask("GET", "/runs", key=again["key"]))[0] == 200
    assert (await api.ask("DELETE", "/keys/ERP"))[1] == {"name": "ERP", "stopped": 0}
    assert (await api.ask("GET", "/runs", key=again["key"]))[0] == 401
    assert (await api.ask("POST", "/keys/ERP/rotate"))[0] == 404
    names = [key["name"] for key in (await api.ask("GET", "/keys"))[1]["items"]]
    assert "ERP" not in names
    assert len(names) == 3
