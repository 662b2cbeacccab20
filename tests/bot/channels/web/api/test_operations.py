"""What the API does, as a program uses it."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from bot.channels.web.app import MAX_BODY
from bot.desk.actors import Role
from storage import engine
from storage.runs import Runs
from tests.bot.channels.web.api.conftest import Api
from tests.support.shop import PHONE, QUESTION


async def test_a_run_from_its_start_to_its_end(api: Api) -> None:
    status, run, _ = await api.ask(
        "POST", "/runs", role=Role.OPERATOR, json={"task": "QQ回复联系人12", "device": PHONE}
    )
    assert (status, run["task"], run["status"], run["device"]) == (201, "QQ回复联系人12", "queued", PHONE)
    assert run["contacts"] is None, "it is no sweep"
    assert run["by"] == "a-operator"
    assert (await api.ask("GET", f"/runs/{run['id']}"))[1]["id"] == run["id"]
    assert (await api.ask("GET", f"/runs/{run['id']}/steps"))[1] == {"items": []}
    assert (await api.ask("POST", f"/runs/{run['id']}/resume"))[0] == 409, "it is not held"
    assert (await api.ask("POST", f"/runs/{run['id']}/hold"))[1]["held"] is True
    assert (await api.ask("POST", f"/runs/{run['id']}/resume"))[1]["held"] is False
    _, stopped, _ = await api.ask("POST", f"/runs/{run['id']}/stop")
    assert (stopped["status"], stopped["stopped_by"]) == ("stopped", "a-owner")
    status, problem, response = await api.ask("POST", f"/runs/{run['id']}/stop")
    assert (status, problem["type"], response.content_type) == (409, "desk.conflict", "application/problem+json")
    assert (await api.ask("GET", "/runs/none"))[0] == 404


async def test_a_run_without_a_chat_has_none(api: Api) -> None:
    _, run, _ = await api.ask("POST", "/runs", json={"task": "打开设置"})
    row = await Runs(api.db).get(run["id"])
    assert row is not None
    assert row.chat is None


async def test_a_sweep_shows_its_contacts(api: Api) -> None:
    _, run, _ = await api.ask("POST", "/runs", json={"task": "QQ回复联系人12和13"})
    assert run["contacts"] == [], "it has not looked yet"
    row = await Runs(api.db).get(run["id"])
    assert row is not None
    assert row.options["kind"] == "sweep"


async def test_a_request_that_is_repeated_is_done_once(api: Api) -> None:
    one = {"Idempotency-Key": "order-1"}
    first = (await api.ask("POST", "/runs", json={"task": "打开设置"}, headers=one))[1]["id"]
    assert (await api.ask("POST", "/runs", json={"task": "打开设置"}, headers=one))[1]["id"] == first
    assert (await api.ask("POST", "/runs", json={"task": "打开设置"}))[1]["id"] != first
    other = await api.ask("POST", "/runs", json={"task": "打开设置"}, headers=one, role=Role.OPERATOR)
    assert other[1]["id"] != first, "another key's requests have names of their own"
    status, problem, _ = await api.ask("POST", "/runs", json={"task": "打开微信"}, headers=one)
    assert (status, problem["type"]) == (409, "desk.conflict"), "another task under the name of the first"
    status, problem, _ = await api.ask(
        "POST", "/runs", json={"task": "打开设置"}, headers={"Idempotency-Key": "x" * 201}
    )
    assert (status, problem["field"]) == (400, "Idempotency-Key")
    entry = {"question": "发票怎么开", "answer": "在订单页"}
    added = [await api.ask("POST", "/knowledge/entries", json=entry, headers=one) for _ in range(2)]
    assert added[0][1]["id"] == added[1][1]["id"]
    assert (await api.ask("POST", "/knowledge/entries", json=entry))[0] == 409, "there is one for this question"


async def test_a_list_is_read_page_by_page(api: Api) -> None:
    for number in range(5):
        await api.ask("POST", "/runs", json={"task": f"打开设置{number}"})
    seen, cursor, pages = [], "", 0
    while True:
        _, page, _ = await api.ask("GET", "/runs", params={"limit": 2, "cursor": cursor})
        seen += [run["number"] for run in page["items"]]
        pages += 1
        if not (cursor := page["next"]):
            break
    assert (seen, pages, page["total"]) == ([6, 5, 4, 3, 2, 1], 3, 6)
    _, found, _ = await api.ask("GET", "/runs", params={"words": "打开设置3"})
    assert [run["task"] for run in found["items"]] == ["打开设置3"]
    _, found, _ = await api.ask("GET", "/runs", params={"status": "queued"})
    assert len(found["items"]) == 5


async def test_a_question_is_answered_once(api: Api) -> None:
    (asked,) = (await api.ask("GET", "/questions"))[1]["items"]
    assert (asked["id"], asked["device"], asked["open"]) == (QUESTION.id, PHONE, True)
    values = [choice["value"] for choice in asked["choices"]]
    assert values == [choice.value for choice in QUESTION.choices]
    path = f"/questions/{QUESTION.id}/answer"
    assert (await api.ask("POST", path, json={"choice": "none of these"}))[0] == 400
    assert (await api.ask("POST", path, json={}))[0] == 400
    assert (await api.ask("POST", path, json={"choice": values[0], "text": "x"}))[0] == 400
    assert (await api.ask("POST", path, json={"choice": "skip"}))[1] == {"answer": "skip", "by": "a-owner"}
    assert (await api.ask("POST", path, json={"choice": "skip"}))[0] == 200, "the same again is no other answer"
    status, problem, _ = await api.ask("POST", path, json={"choice": "skip"}, role=Role.OPERATOR)
    assert (status, problem["type"]) == (409, "desk.conflict")
    assert problem["detail"] == "It was answered by a-owner before: 跳过"  # the button, not its value
    assert (await api.ask("GET", "/questions"))[1]["items"] == []
    assert (await api.ask("GET", f"/questions/{QUESTION.id}"))[1]["answer"] == "skip"
    assert (await api.ask("POST", "/questions/none/answer", json={"choice": "skip"}))[0] == 404
    assert (await api.ask("GET", f"/questions/{QUESTION.id}/picture"))[0] == 404


async def test_a_schedule_from_its_making_to_its_end(api: Api) -> None:
    wish = {"expression": "每天9点", "task": "QQ回复联系人11", "quiet": "22:00-07:00"}
    _, made, _ = await api.ask("POST", "/schedules", json=wish)
    assert (made["expression"], made["means"], made["quiet"]) == ("每天9点", "0 9 * * *", "22:00-07:00")
    assert len(made["next_times"]) == 3
    path = f"/schedules/{made['id']}"
    assert (await api.ask("POST", f"{path}/pause"))[1]["paused"] is True
    assert (await api.ask("POST", f"{path}/resume"))[1]["paused"] is False
    _, changed, _ = await api.ask("PATCH", path, json={"expression": "每天10点"})
    assert (changed["means"], changed["quiet"]) == ("0 10 * * *", "22:00-07:00")
    assert (await api.ask("POST", f"{path}/run"))[1]["task"] == "QQ回复联系人11"
    assert (await api.ask("DELETE", path))[0] == 200
    assert (await api.ask("GET", path))[0] == 404
    assert (await api.ask("POST", f"{path}/undo"))[0] == 200
    assert (await api.ask("GET", path))[1]["means"] == "0 10 * * *"
    assert (await api.ask("POST", f"{path}/undo"))[1]["means"] == "0 9 * * *", "as it was before it was changed"
    assert (await api.ask("POST", "/schedules", json={**wish, "expression": "whenever"}))[0] == 400


async def test_a_regular_sweep_is_a_schedule(api: Api) -> None:
    await api.ask("POST", "/contacts", json={"app": "wechat", "name": "小王", "tags": ["VIP"]})
    regular = {"every": 30, "start": "09:00", "end": "18:00", "days": [1, 2, 3, 4, 5]}
    _, coming, _ = await api.ask("POST", "/schedules/next-times", json=regular, role=Role.VIEWER)
    wish = {"app": "wechat", "whom": "chosen", "contacts": ["小王"], "tags": ["VIP"], "quiet": "12:00-13:00"}
    status, made, _ = await api.ask("POST", "/sweeps", json={**wish, **regular})
    assert (status, made["kind"], made["quiet"], made["means"]) == (
        201, "sweep", "12:00-13:00", "every 30m 09:00-18:00 * * 1,2,3,4,5",
    )  # fmt: skip
    assert made["sweep"] == {"app": "wechat", "everybody": False, "contacts": ["小王"], "tags": ["VIP"]}
    assert made["next_times"] == coming["next_times"]
    _, other, _ = await api.ask("POST", "/sweeps", json={"whom": "unread", "expression": "daily at 9"})
    assert (other["means"], other["sweep"]["app"], other["sweep"]["everybody"]) == ("0 9 * * *", "qq", True)
    items = (await api.ask("GET", "/sweeps", role=Role.VIEWER))[1]["items"]
    assert [each["id"] for each in items] == [made["id"], other["id"]], "the schedule that is none is left out"
    run = (await api.ask("POST", f"/schedules/{made['id']}/run"))[1]
    row = await Runs(api.db).get(run["id"])
    assert row is not None
    assert row.options["kind"] == "sweep"
    assert (await api.ask("GET", "/schedules/1"))[1]["sweep"] is None


async def test_a_regular_sweep_is_changed_and_its_change_undone(api: Api) -> None:
    wish = {"whom": "unread", "every": 30, "start": "09:00", "end": "18:00", "quiet": "12:00-13:00", "device": PHONE}
    _, made, _ = await api.ask("POST", "/sweeps", json={**wish, "timezone": "Europe/Berlin"})
    assert (made["timezone"], made["next_times"][0][-6:]) == ("Europe/Berlin", "+01:00")
    path = f"/sweeps/{made['id']}"
    change = {"whom": "chosen", "contacts": ["11"], "every": 60, "device": "", "quiet": ""}
    for _ in range(2):
        status, changed, _ = await api.ask("PATCH", path, json=change)
        assert (status, changed["means"], changed["sweep"]["contacts"]) == (200, "every 1h 09:00-18:00", ["11"])
    assert (changed["device"], changed["quiet"], changed["timezone"]) == ("", "", "Europe/Berlin")
    wrong = {
        "contacts": {"contacts": []},
        "tags": {"tags": ["none"]},
        "start": {"start": ""},
        "days": {"days": []},
        "expression": {"expression": "friday 9"},
        "quiet": {"quiet": "night"},
        "timezone": {"timezone": "Moon"},
    }
    for field, body in wrong.items():
        status, problem, _ = await api.ask("PATCH", path, json=body)
        assert (status, problem["field"]) == (400, f"body.{field}")
    assert (await api.ask("PATCH", path, json={"device": "nobody's"}))[1]["field"] == "body.device"
    assert (await api.ask("PATCH", path, json={}, role=Role.OPERATOR))[0] == 403
    assert (await api.ask("PATCH", "/sweeps/1", json=change))[0] == 404, "it is no sweep"
    assert (await api.ask("POST", f"/schedules/{made['id']}/undo"))[1] == made
    await api.ask("PATCH", path, json={"expression": "daily at 9"})
    status, problem, _ = await api.ask("PATCH", path, json={"start": "09:00", "end": "18:00"})
    assert (status, problem["field"]) == (400, "body.every")


async def test_answers_contacts_and_knowledge(api: Api) -> None:
    (answer,) = (await api.ask("GET", "/answers"))[1]["items"]
    assert (answer["contact"], answer["question"], answer["state"]) == ("11", "怎么退货", "skipped")
    assert (await api.ask("PUT", f"/answers/{answer['id']}/rating", json={"rating": -1}))[1]["rating"] == -1
    assert (await api.ask("PUT", f"/answers/{answer['id']}/rating", json={"rating": -1}))[1]["rating"] == -1
    assert (await api.ask("GET", f"/answers/{answer['id']}/before"))[0] == 404
    assert [each["example"] for each in (await api.ask("GET", "/unanswered"))[1]["items"]] == ["怎么退货"]

    _, made, _ = await api.ask("POST", "/contacts", json={"name": "张三/李四", "tags": ["VIP"]})
    assert (made["app"], made["name"], made["tags"]) == ("qq", "张三/李四", ["VIP"])
    path = "/contacts/qq/%E5%BC%A0%E4%B8%89%2F%E6%9D%8E%E5%9B%9B"
    assert (await api.ask("PATCH", path, json={"note": "常客"}))[1]["note"] == "常客"
    assert len((await api.ask("GET", "/contacts", params={"tag": "VIP"}))[1]["items"]) == 1
    assert (await api.ask("DELETE", path))[0] == 200
    assert (await api.ask("DELETE", path))[0] == 404
    assert (await api.ask("POST", f"{path}/undo"))[1]["note"] == "常客"
    assert (await api.ask("GET", "/contacts"))[1]["items"][0]["name"] == "张三/李四"

    _, waits, _ = await api.ask(
        "POST", "/knowledge/entries", json={"question": "怎么退货", "answer": "七天"}, role=Role.OPERATOR
    )
    assert waits["live"] is False
    assert (await api.ask("GET", "/knowledge/pending"))[1]["items"] == [waits]
    assert (await api.ask("POST", f"/knowledge/entries/{waits['id']}/approve"))[1]["live"] is True
    _, found, _ = await api.ask("GET", "/knowledge/search", params={"words": "退货"}, role=Role.VIEWER)
    assert [each["entry"]["answer"] for each in found["items"]] == ["七天"]
    assert (await api.ask("GET", "/knowledge"))[1]["live"] == 1
    _, changed, _ = await api.ask("PATCH", f"/knowledge/entries/{waits['id']}", json={"answer": "十五天"})
    assert changed["answer"] == "十五天"
    assert (await api.ask("POST", f"/knowledge/entries/{waits['id']}/undo"))[1]["answer"] == "七天"
    assert (await api.ask("DELETE", f"/knowledge/entries/{waits['id']}"))[0] == 200


async def test_what_is_going_on(api: Api) -> None:
    _, status, _ = await api.ask("GET", "/status")
    assert [phone["serial"] for phone in status["devices"]] == [PHONE]
    assert [run["id"] for run in status["runs"]] == [api.run_id]
    assert [question["id"] for question in status["questions"]] == [QUESTION.id]
    assert (await api.ask("GET", "/devices"))[1]["items"] == status["devices"]
    assert (await api.ask("GET", f"/devices/{PHONE}/screen"))[0] == 503, "the phone is not there"


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("verb", "path", "how", "status", "field"),
    [
        ("POST", "/runs", {"json": {}}, 400, "body.task"),
        ("POST", "/runs", {"json": {"task": "打开设置", "devise": "x"}}, 400, "body.devise"),
        ("POST", "/runs", {"json": {"task": 1}}, 400, "body.task"),
        ("POST", "/runs", {"json": {"task": "a\0b"}}, 400, "body.task"),
        ("POST", "/runs", {"data": b"{"}, 400, "body"),
        ("POST", "/runs", {"data": b"\xff"}, 400, "body"),
        ("POST", "/runs", {"json": {"task": "打开设置", "device": "nobody's"}}, 404, "body.device"),
        ("POST", "/runs", {"json": {"task": "打开设置", "policy": "nothing"}}, 400, None),
        ("POST", "/sweeps", {"json": {"every": 5}}, 400, "body.whom"),
        ("POST", "/sweeps", {"json": {"whom": "chosen", "every": 5}}, 400, "body.contacts"),
        ("POST", "/sweeps", {"json": {"whom": "chosen", "contacts": ['say "x"'], "every": 5}}, 400, "body.contacts"),
        ("POST", "/sweeps", {"json": {"whom": "chosen", "tags": ["none"], "every": 5}}, 400, "body.tags"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "start": "09:00"}}, 400, "body.start"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "start": "9"}}, 400, "body.start"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "days": []}}, 400, "body.days"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "days": [8]}}, 400, "body.days.0"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "quiet": "night"}}, 400, "body.quiet"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "device": "nobody's"}}, 404, "body.device"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "expression": "whenever"}}, 400, "body.expression"),
        ("POST", "/sweeps", {"json": {"whom": "unread"}}, 400, "body.expression"),
        ("POST", "/sweeps", {"json": {"whom": "unread", "every": 5, "app": "telex"}}, 400, None),
        ("POST", "/schedules/next-times", {"json": {"expression": "friday 9"}}, 400, "body.expression"),
        ("POST", "/runs", {"data": b"x" * (MAX_BODY + 1)}, 413, None),
        ("POST", "/runs/1/stop", {"params": {"x": "1"}}, 400, "query"),
        ("GET", "/runs", {"params": {"limit": 101}}, 400, "query.limit"),
        ("GET", "/runs", {"params": {"limit": 0}}, 400, "query.limit"),
        ("GET", "/runs", {"params": {"cursor": "-1"}}, 400, "query.cursor"),
        ("GET", "/runs", {"params": {"unknown": "1"}}, 400, "query.unknown"),
        ("GET", "/runs", {"params": [("limit", "1"), ("limit", "2")]}, 400, "query.limit"),
        ("GET", "/runs", {"params": {"since": "whenever"}}, 400, None),
        ("GET", "/answers/x", {}, 404, None),
        ("GET", "/events/x/picture", {}, 404, None),
        ("GET", "/no-such-path", {}, 404, None),
        ("PUT", "/runs", {}, 405, None),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_said(
    api: Api, verb: str, path: str, how: dict[str, object], status: int, field: str | None
) -> None:
    got, problem, response = await api.ask(verb, path, **how)  # type: ignore[arg-type]
    assert (got, response.content_type) == (status, "application/problem+json")
    assert problem["status"] == status
    assert problem["detail"]
    assert problem.get("field") == field
    if status == 405:
        assert response.headers["Allow"] == "GET,POST"


async def test_a_key_looks_as_often_as_it_likes_and_acts_as_often_as_a_person(api: Api) -> None:
    api.desk.context.pace.per_minute = 2
    for _ in range(5):
        assert (await api.ask("GET", "/status", role=Role.OPERATOR))[0] == 200
    for _ in range(2):
        assert (await api.ask("POST", "/runs", role=Role.OPERATOR, json={"task": "打开设置"}))[0] == 201
    for _ in range(2):
        status, problem, response = await api.ask("POST", "/runs", role=Role.OPERATOR, json={"task": "打开设置"})
        assert (status, problem["type"]) == (429, "security.rate")
        assert 0 < int(response.headers["Retry-After"]) <= 60


async def test_more_requests_than_can_be_answered(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "GUEST_SECONDS", 1.0)
    async with AsyncExitStack() as reading:
        with engine.as_guest():
            for _ in range(engine.GUESTS):
                await reading.enter_async_context(api.db.read())
        status, body, response = await api.ask("GET", "/questions")
        assert (status, body["type"], response.headers["Retry-After"]) == (429, "security.rate", "1")
    assert (await api.ask("GET", "/questions"))[0] == 200
