"""The stand-in for WebDriverAgent refuses what the real one refuses, in its shapes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from simulator.phone.wda.server import RunningIPhone, serve_iphone

DOWN, UP = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}


def move(x: float, y: float) -> dict[str, Any]:
    return {"type": "pointerMove", "duration": 0, "x": x, "y": y}


def finger(*items: object, **other: object) -> dict[str, Any]:
    one = {"type": "pointer", "id": "f", "parameters": {"pointerType": "touch"}, "actions": list(items), **other}
    return {"actions": [one]}


@pytest.fixture
async def served() -> AsyncIterator[tuple[RunningIPhone, httpx2.AsyncClient]]:
    async with (
        serve_iphone() as running,
        httpx2.AsyncClient(base_url=f"http://{running.address}", trust_env=False) as http,
    ):
        yield running, http


async def session(http: httpx2.AsyncClient) -> str:
    answer = (await http.post("/session", json={"capabilities": {"alwaysMatch": {}}})).json()
    assert answer["value"]["sessionId"] == answer["sessionId"]
    return f"/session/{answer['sessionId']}"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/wda/tap", 404, "unknown command"),
        ("POST", "/screenshot", 404, "unknown command"),
        ("POST", "/session/nobody/actions", 404, "invalid session id"),
        ("GET", "/session/nobody/wda/batteryInfo", 404, "invalid session id"),
        ("GET", "/source", 400, "invalid argument"),
    ],
)
async def test_what_it_does_not_serve(
    served: tuple[RunningIPhone, httpx2.AsyncClient], method: str, path: str, status: int, code: str
) -> None:
    answer = await served[1].request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == status
    assert answer.json()["value"].keys() == {"error", "message", "traceback"}
    assert answer.json()["value"]["error"] == code
    assert answer.json()["sessionId"] is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/actions", finger(DOWN, UP)),
        ("/actions", finger(move(10, 10), DOWN)),
        ("/actions", finger(move(10, 10), DOWN, DOWN, UP)),
        ("/actions", finger(move(360, 10), DOWN, UP)),
        ("/actions", finger(move(10, -1), DOWN, UP)),
        ("/actions", finger(move(10, 10), DOWN, UP, type="key")),
        ("/actions", finger(move(10, 10), DOWN, UP, parameters={"pointerType": "mouse"})),
        ("/actions", finger({**move(10, 10), "x": "10"}, DOWN, UP)),
        ("/actions", {"actions": []}),
        ("/wda/keys", {"value": "text"}),
        ("/wda/keys", {"value": []}),
        ("/wda/apps/launch", {}),
        ("/wda/apps/launch", {"bundleId": "no.such"}),
        ("/url", {"url": "mqqwpa://x"}),
        ("/element/none/clear", {}),
        ("/appium/settings", {"setting": {}}),
    ],
)
async def test_wrong_bodies_do_nothing(
    served: tuple[RunningIPhone, httpx2.AsyncClient], path: str, body: object
) -> None:
    running, http = served
    answer = await http.post(f"{await session(http)}{path}", json=body)
    assert answer.status_code in {400, 404, 500}
    assert answer.json()["value"]["message"]
    assert running.phone.report()["taps"] == []
    assert running.phone.report()["opened"] == []


async def test_a_new_session_ends_the_one_before(served: tuple[RunningIPhone, httpx2.AsyncClient]) -> None:
    _, http = served
    first, second = await session(http), await session(http)
    assert (await http.get(f"{first}/wda/batteryInfo")).json()["value"]["error"] == "invalid session id"
    assert (await http.get(f"{second}/wda/batteryInfo")).json()["value"] == {"level": 0.87, "state": 2}


async def test_keys_need_the_keyboard(served: tuple[RunningIPhone, httpx2.AsyncClient]) -> None:
    _, http = served
    answer = await http.post(f"{await session(http)}/wda/keys", json={"value": ["a"]})
    assert (answer.status_code, answer.json()["value"]["error"]) == (400, "invalid element state")
