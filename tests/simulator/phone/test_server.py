from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from PIL import Image

from simulator.phone.phone import VirtualPhone
from simulator.phone.server import RunningPhone, run_virtual_phone, serve
from tests.simulator.phone.hand import QQ, chat


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningPhone]:
    path = tmp_path / "shop.toml"
    path.write_text(chat("在吗"), encoding="utf-8")
    async with serve(path) as phone:
        yield phone


@pytest.fixture
async def http(running: RunningPhone) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(running.state_url) as session:
        yield session


async def test_the_state_is_the_report(running: RunningPhone, http: aiohttp.ClientSession) -> None:
    await running.phone.launch(QQ)
    async with http.get("/state") as response:
        assert response.status == 200
        assert (await response.json())["opened"] == [QQ]


async def test_a_customer_writes_and_takes_it_back(http: aiohttp.ClientSession) -> None:
    for path, body in (
        ("/message", {"contact": "11", "text": "几天发货？"}),
        ("/message", {"contact": "11", "kind": "image"}),
        ("/recall", {"contact": "11", "text": "几天发货？"}),
        ("/colleague", {"contact": "11", "text": "两天"}),
    ):
        async with http.post(path, json=body) as response:
            assert response.status == 200
    async with http.get("/state") as response:
        state = await response.json()
    said = [(item["side"], item["kind"], item["from_here"]) for item in state["chats"]["11"]]
    assert said[1:] == [("them", "recalled", False), ("them", "image", False), ("me", "text", False)]
    assert state["sent"] == {}


async def test_the_screen_is_a_png(http: aiohttp.ClientSession) -> None:
    async with http.get("/screen.png") as response:
        assert response.content_type == "image/png"
        picture = Image.open(io.BytesIO(await response.read()))
    assert picture.size == (1080, 2400)


async def test_faults_and_tree_modes_are_set(running: RunningPhone, http: aiohttp.ClientSession) -> None:
    for path, body in (
        ("/fault", {"name": "slow"}),
        ("/fault", {"name": "send_slow", "value": 2.5}),
        ("/fault", {"name": "popup", "value": "更新？"}),
        ("/tree", {"mode": "empty"}),
    ):
        async with http.post(path, json=body) as response:
            assert response.status == 200
    assert (running.phone.faults.slow, running.phone.faults.send_slow, running.phone.faults.popup) == (3, 2.5, "更新？")
    assert running.phone.tree_mode == "empty"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/message", '{"contact": "99", "text": "x"}', "99"),
        ("/message", '{"contact": "11", "text": ""}', "needs one"),
        ("/message", '{"contact": "11", "text": "x", "from": "y"}', "from"),
        ("/message", '{"text": "x"}', "contact"),
        ("/message", '{"contact": "11", "text": "x", "kind": "film"}', "kind"),
        ("/message", "not json", "JSON"),
        ("/fault", '{"name": "fire"}', "there are slow"),
        ("/fault", '{"name": "slow", "value": "very"}', "slow"),
        ("/tree", '{"mode": "broken"}', "no_texts"),
        ("/recall", '{"contact": "11", "text": "never said"}', "no such message"),
    ],
)
async def test_bad_input_is_a_400_that_says_what_is_wrong(
    http: aiohttp.ClientSession, path: str, body: str, words: str
) -> None:
    async with http.post(path, data=body, headers={"Content-Type": "application/json"}) as response:
        assert response.status == 400
        assert words in (await response.json())["error"]


async def test_a_page_in_a_browser_can_not_steer_the_phone(http: aiohttp.ClientSession) -> None:
    async with http.post("/fault", data='{"name": "black"}') as response:
        assert response.status == 400
    async with http.get("/state", headers={"Host": "evil.example"}) as response:
        assert response.status == 403


async def test_dropped_refuses_connections_until_it_ends(running: RunningPhone) -> None:
    async def answers() -> bool:
        """Whether adbd keeps the connection: it waits for the host to speak first."""
        reader, writer = await asyncio.open_connection("127.0.0.1", running.adb_port)
        try:
            async with asyncio.timeout(0.3):
                await reader.read(1)
            return False
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            writer.close()

    assert await answers()
    running.phone.set_fault("dropped")
    assert not await answers()
    running.phone.set_fault("dropped", False)
    assert await answers()


async def test_the_command_serves_until_it_is_cancelled(tmp_path: Path) -> None:
    up: asyncio.Queue[RunningPhone] = asyncio.Queue()
    task = asyncio.create_task(run_virtual_phone(0, VirtualPhone(), 0, "none", up=up.put_nowait))
    url = f"{(await asyncio.wait_for(up.get(), 10)).state_url}/state"
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as response:
            assert "11号售后群" in (await response.json())["chats"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(url)
