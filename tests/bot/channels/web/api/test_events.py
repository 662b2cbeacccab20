"""Events over the API, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse

from bot.desk.actors import Role
from bot.desk.desk import KEPT
from storage import engine
from storage.api_keys import ApiKeys
from storage.events import Events
from storage.people import Audit
from storage.runs import NewRun, Runs
from tests.bot.channels.web.api.conftest import Api
from tests.support.shop import PHONE


class Stream:
    """An open stream. ``next`` returns the next event and ``beats`` the comments before it."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response

    async def next(self) -> dict[str, Any]:
        fields: dict[str, str] = {}
        while True:
            line = (await asyncio.wait_for(self._response.content.readline(), 30)).decode()
            if not line:
                raise EOFError
            if line == "\n" and fields:
                data = json.loads(fields["data"])
                assert (fields["id"], fields["event"]) == (str(data["id"]), data["kind"])
                return dict(data)
            name, colon, value = line.rstrip("\n").partition(": ")
            if name and colon:
                fields[name] = value

    async def ends(self) -> bool:
        """Whether it ends, without a further event."""
        try:
            await self.next()
        except EOFError:
            return True
        return False


@asynccontextmanager
async def stream(api: Api, path: str, *, key: str = "", last: int | None = None) -> AsyncIterator[Stream]:
    headers = {"Authorization": f"Bearer {key or api.keys[Role.VIEWER]}"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    async with api.client.get(f"{api.url}/api/v1{path}", headers=headers) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert await response.content.readline() == b": here\n"
        yield Stream(response)


async def test_a_run_is_followed_from_its_beginning(api: Api) -> None:
    known = await Events(api.db).after(0, run_id=api.run_id)
    assert known
    async with stream(api, f"/runs/{api.run_id}/events") as followed:
        got = [await followed.next() for _ in known]
        assert [event["id"] for event in got] == [row.id for row in known]
        await Events(api.db).append("another", "step", {})
        added = await Events(api.db).append(api.run_id, "step", {"index": 1}, picture=b"jpeg")
        event = await followed.next()
        assert (event["id"], event["kind"], event["data"], event["picture"]) == (added, "step", {"index": 1}, True)
    status, jpeg, response = await api.ask("GET", f"/events/{added}/picture", role=Role.VIEWER)
    assert (status, jpeg, response.content_type) == (200, b"jpeg", "image/jpeg")
    assert (await api.ask("GET", f"/events/{known[0].id}/picture"))[0] == 404
    assert (await api.ask("GET", f"/events/{added + 1}/picture"))[0] == 404


async def test_the_pictures_of_a_run_that_somebody_looks_at_are_one_look_in_the_audit_log(api: Api) -> None:
    for number in range(3):
        added = await Events(api.db).append(api.run_id, "step", {"index": number}, picture=b"jpeg")
        assert (await api.ask("GET", f"/events/{added}/picture"))[0] == 200
    looks = [row.detail for row in await Audit(api.db).last() if row.command == "event picture"]
    assert looks == [{"run": api.run_id}]


async def test_who_comes_back_misses_nothing_and_gets_nothing_twice(api: Api) -> None:
    async with stream(api, "/events") as followed:
        first = await Events(api.db).append(api.run_id, "step", {"index": 0})
        assert (await followed.next())["id"] == first, "without a position new events only"
    missed = [await Events(api.db).append(api.run_id, "step", {"index": number}) for number in range(KEPT + 5)]
    async with stream(api, "/events", last=first) as followed:
        assert [(await followed.next())["id"] for _ in missed] == missed
        last = await Events(api.db).append(api.run_id, "step", {})
        assert (await followed.next())["id"] == last
    async with stream(api, f"/events?after={missed[-1]}") as followed:
        assert (await followed.next())["id"] == last


@pytest.mark.parametrize("wrong", ["evt_7", "-1", "1.5", "٣", "1" * 19])
async def test_a_last_event_id_that_is_none_is_refused(api: Api, wrong: str) -> None:
    for path in ("/events", f"/runs/{api.run_id}/events"):
        status, problem, _ = await api.ask("GET", path, headers={"Last-Event-ID": wrong})
        assert (status, problem["type"], problem["field"]) == (400, "invalid_request", "Last-Event-ID")
        status, problem, _ = await api.ask("GET", f"{path}?after=x")
        assert (status, problem["field"]) == (400, "query.after")


async def test_an_id_from_before_a_restore_misses_nothing_new(api: Api) -> None:
    ahead = await Events(api.db).newest() + 1000
    for path in ("/events", f"/runs/{api.run_id}/events"):
        async with stream(api, path, last=ahead) as followed, stream(api, f"{path}?after={ahead}") as other:
            added = await Events(api.db).append(api.run_id, "step", {})
            assert (await followed.next())["id"] == added
            assert (await other.next())["id"] == added


async def test_several_follow_at_once_and_a_slow_one_gets_all(api: Api) -> None:
    async with stream(api, "/events") as slow, stream(api, "/events") as quick:
        added = [await Events(api.db).append(api.run_id, "step", {"index": number}) for number in range(KEPT + 50)]
        assert [(await quick.next())["id"] for _ in added] == added
        assert [(await slow.next())["id"] for _ in added] == added


async def test_a_stream_goes_on_though_there_are_more_requests_than_can_be_answered(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stream(api, "/events") as open_stream, AsyncExitStack() as reading:
        with engine.as_guest():
            for _ in range(engine.GUESTS):
                await reading.enter_async_context(api.db.read())
        monkeypatch.setattr(engine, "GUEST_SECONDS", 0.01)
        for number in range(3):
            await asyncio.sleep(0.1)  # a heartbeat, which asks whether the key is still there
            await Events(api.db).append(api.run_id, "step", {"number": number})
            assert (await open_stream.next())["data"] == {"number": number}


async def test_a_key_sees_the_events_of_its_phones(api: Api) -> None:
    key, _ = await ApiKeys(api.db).add("limited", role="viewer", serials=["127.0.0.1:16002"])
    elsewhere = await Runs(api.db).create(NewRun("打开设置", "127.0.0.1:16002"))
    assert elsewhere is not None
    async with stream(api, "/events", key=key) as followed:
        await Events(api.db).append(api.run_id, "step", {})
        await Events(api.db).append("", "alert", {})
        own = await Events(api.db).append(elsewhere, "step", {})
        assert (await followed.next())["id"] == own
    hidden = await Events(api.db).append(api.run_id, "step", {}, picture=b"jpeg")
    assert (await api.ask("GET", f"/events/{hidden}/picture", key=key))[0] == 403


async def test_a_stream_ends_when_its_key_is_removed(api: Api) -> None:
    key, _ = await ApiKeys(api.db).add("gone", role="viewer", serials=[PHONE])
    async with stream(api, "/events", key=key) as followed:
        await ApiKeys(api.db).remove("gone")
        assert await followed.ends()


async def test_a_run_that_is_not_there_has_no_events(api: Api) -> None:
    status, problem, _ = await api.ask("GET", "/runs/none/events")
    assert (status, problem["type"]) == (404, "desk.not_found")
