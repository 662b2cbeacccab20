"""Who comes in over HTTP, what they may, and the single acts."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from agent_core.ports import MessageKey, Provenance, ReplyState
from bot.channels.mcp.http import MAX_BODY
from bot.channels.mcp.tools import HIGH_LEVEL, LOW_LEVEL
from scheduler.runs.lease import lease_of
from storage.api_keys import ApiKeys
from storage.hosts import Hosts
from storage.leases import Leases
from storage.ledger import StoredLedger
from storage.people import Audit
from storage.runs import Runs
from tests.bot.channels.mcp.conftest import ACCEPT, HELLO, LEGACY, MODERN, World, words
from tests.support.lab import do
from tests.support.phones import far_phone

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def post(world: World, *, key: str | None = None, body: str = "", **headers: str) -> httpx2.Response:
    sent = {**ACCEPT, "Content-Type": "application/json", **headers}
    if key is not None:
        sent["Authorization"] = f"Bearer {key}"
    async with httpx2.AsyncClient() as http:
        return await http.post(world.url, content=body or json.dumps(HELLO), headers=sent)


async def test_nobody_comes_in_without_a_key(world: World) -> None:
    for key in (None, "pdk_wrong", world.key[:-1], "x" * 5000):
        response = await post(world, key=key)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
    assert (await post(world, key=world.key)).status_code == 200
    refused = [row for row in await Audit(world.core.db).refused(200) if row.command == "mcp key"]
    assert 0 < len(refused) <= 5  # what strangers try does not fill the log


async def test_a_page_in_a_browser_is_not_let_in(world: World) -> None:
    assert (await post(world, key=world.key, Host="evil.example:80")).status_code == 421
    assert (await post(world, key=world.key, Origin="https://evil.example")).status_code == 403
    assert (await post(world, key=world.key, Origin="http://localhost:3000")).status_code == 200
    port = world.url.rsplit(":", 1)[1].partition("/")[0]
    assert (await post(world, key=world.key, Host=f"localhost:{port}")).status_code == 200
    assert (await post(world, key=world.key, body="x" * (MAX_BODY + 1))).status_code == 413


async def test_a_session_belongs_to_its_key_and_a_removed_one_is_out_at_once(world: World) -> None:
    key, _ = await world.another_key()
    opened = await post(world, key=key)
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert (await post(world, key=key, body=ping, **session)).status_code == 200
    assert (await post(world, key=world.key, body=ping, **session)).status_code == 404
    row = (await ApiKeys(world.core.db).all())[-1]
    await ApiKeys(world.core.db).remove(row.name)
    assert (await post(world, key=key, body=ping, **session)).status_code == 401


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_every_tool_is_listed_and_none_else_is_there(world: World, mode: str) -> None:
    async with world.client(mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [tool.name for tool in (*LOW_LEVEL, *HIGH_LEVEL)]
        assert [tool.name for tool in listed if tool.annotations and tool.annotations.read_only_hint] == [
            "get_device_list",
            "get_screenshot",
            "list_connected_devices",
        ]
        if mode == LEGACY:  # a client that names a version of the modern era does not ask
            assert "reply_from_client" in str(client.instructions)
        with pytest.raises(MCPError, match="There is no tool DROP"):
            await client.call_tool("DROP", {})


async def test_single_acts_on_the_phone(world: World) -> None:
    async def act(tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, words(result)
        return dict(result.structured_content)

    def acts() -> list[str]:
        return [str(act) for act in world.phone.report()["actions"]]

    async with world.client() as client:
        hosts = Hosts(world.core.db)
        await hosts.register("worker-2", "token")
        await hosts.beat("worker-2", "token")
        await hosts.sees("worker-2", "token", {"phone-b": "device"})
        phone, other = (await act("get_device_list"))["devices"]
        assert (other["device_id"], other["state"], other["host"]) == ("phone-b", "elsewhere", "worker-2")
        assert (await act("list_connected_devices"))["devices"] == [phone]
        await hosts.sees("worker-2", "token", {})
        await hosts.set_state("worker-2", "token", "ended")
        assert (phone["device_id"], phone["state"]) == (world.serial, "free")
        await act("AWAKE", value="com.tencent.mobileqq", device_id=phone["device_id"])
        assert world.phone.window().package == "com.tencent.mobileqq"
        assert (await act("AWAKE", value="QQ")) == {
            "device_id": world.serial,
            "action": "AWAKE",
            "value": "QQ",
            "done": True,
        }
        row = next(node for node in await world.phone.tree() if node.text == "11").box.center
        await act("CLICK", point=[round(row.x / 720 * 1000), round(row.y / 1600 * 1000)])
        field = next(node for node in await world.phone.tree() if "EditText" in node.class_name).box.center
        await act("TYPE", value="您好，在的", point=[round(field.x / 720 * 1000), round(field.y / 1600 * 1000)])
        assert list(world.phone.report()["drafts"].values()) == ["您好，在的"]
        await act("TYPE", value=" ")  # it takes the place of what was there
        others: list[tuple[str, dict[str, Any]]] = [
            ("DOUBLE_CLICK", {"point": [500, 400]}),
            ("LONG_PRESS", {"point": [500, 400], "duration": 0.1}),
            ("SLIDE", {"point1": [500, 600], "point2": [500, 500], "duration": 0.1}),
            ("SLIDE", {"point": [500, 500], "direction": "UP", "duration": 0.1}),
            ("WAIT", {"value": 0}),
            ("HOT_KEY", {"key": "BACK"}),
            ("HOT_KEY", {"key": "APP_SWITCH"}),
            ("HOT_KEY", {"key": "ENTER"}),
            ("HOT_KEY", {"key": "HOME"}),
        ]
        for tool, arguments in others:
            await act(tool, **arguments)
        shown = await client.call_tool("get_screenshot", {})
        assert [block.type for block in shown.content] == ["image", "text"]
        assert shown.structured_content == {"device_id": world.serial, "device_wm_size": [720, 1600]}
        by_name = await client.call_tool("get_screenshot", {"device_id": phone["name"].upper()})
        assert by_name.structured_content["device_id"] == world.serial != phone["name"]
        refusals: list[tuple[str, dict[str, Any], str]] = [
            ("AWAKE", {"value": "没有的应用"}, "The app '没有的应用' was not found"),
            ("CLICK", {"point": [1, 2], "device_id": "nowhere"}, "There is no phone nowhere."),
            ("CLICK", {"point": [1, 2000]}, "A point is two whole numbers"),
        ]
        for tool, arguments, said in refusals:
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error
            assert said in words(refused)
    assert await Leases(world.core.db).held() == []
    noted = await Audit(world.core.db).done_by("key:1", ["mcp TYPE", "mcp CLICK"])
    assert [row.command for row in noted][:2] == ["mcp CLICK", "mcp TYPE"]
    assert "您好" not in str([row.detail for row in noted])


async def test_rights_hold(world: World) -> None:
    viewer, who = await world.another_key(role="viewer")
    elsewhere, limited = await world.another_key(serials=["other-phone"])
    async with world.client(key=viewer) as client:
        assert len((await client.call_tool("get_device_list", {})).structured_content["devices"]) == 1
        assert not (await client.call_tool("get_screenshot", {})).is_error
        for tool, arguments in (("HOT_KEY", {"key": "HOME"}), ("ask_agent", {"task": "打开设置"})):
            assert "This is for the role operator; yours is viewer." in words(await client.call_tool(tool, arguments))
    async with world.client(key=elsewhere) as client:
        assert (await client.call_tool("get_device_list", {})).structured_content["devices"] == []
        for tool, arguments in (
            ("HOT_KEY", {"key": "HOME", "device_id": world.serial}),
            ("get_screenshot", {"device_id": world.serial}),
            ("execute_task", {"task": "打开设置", "device_id": world.serial}),
        ):
            assert "not yours to use" in words(await client.call_tool(tool, arguments))
    assert [await Runs(world.core.db).find(requested_by=one) for one in (who, limited)] == [[], []]
    assert len(await Audit(world.core.db).refused()) >= 5


async def test_a_key_gives_no_more_tasks_a_minute_than_a_person(world: World) -> None:
    async with AsyncExitStack() as stack:
        other = await world.restarted(stack, others={"telegram": {"per_minute": 1}})
        async with other.client() as client:
            world.says(do('finish(message="看完了")'))
            begun = [await client.call_tool("ask_agent", {"task": "看看设置"}) for _ in range(2)]
            assert [result.is_error for result in begun] == [False, True]
            assert "More than 1 commands within a minute." in words(begun[1])
            assert not (await client.call_tool("HOT_KEY", {"key": "HOME"})).is_error  # single acts are their own affair


async def test_no_single_act_sends_what_a_dead_run_has_typed(world: World) -> None:
    async def at(text: str = "", kind: str = "") -> list[int]:
        found = next(node for node in await world.phone.tree() if text in node.text and kind in node.class_name)
        return [round(found.box.center.x / 720 * 1000), round(found.box.center.y / 1600 * 1000)]

    async def send() -> Any:
        return await client.call_tool("CLICK", {"point": where})

    ledger, text = StoredLedger(world.core.db), "您好，下单后48小时内发货。"
    await world.open_chat()
    async with world.client() as client:
        typed = {"value": text, "point": await at(kind="EditText")}
        assert not (await client.call_tool("TYPE", typed)).is_error
        where = await at("发送")
        assert list(world.phone.report()["drafts"].values()) == [text]
        row = await ledger.open(MessageKey(world.serial, "qq", "11", "left"), run_id="dead", question="几天能发货")
        await ledger.plan(row.id, run_id="dead", text=text, provenance=Provenance.KNOWLEDGE)
        await ledger.advance(row.id, ReplyState.TYPING, expected=[ReplyState.PLANNED])
        assert not (await send()).is_error
        assert not any(world.phone.report()["drafts"].values())
        await ledger.advance(row.id, ReplyState.TYPING, expected=[ReplyState.PLANNED])  # it was settled
        await ledger.advance(row.id, ReplyState.SENDING, expected=[ReplyState.TYPING])
        refused = await send()
        assert refused.is_error
        assert "A reply to 11 that was never finished" in words(refused)
        assert not (await client.call_tool("HOT_KEY", {"key": "HOME"})).is_error
    await ledger.advance(row.id, ReplyState.FAILED, expected=[ReplyState.SENDING])
    assert world.phone.report()["sent"].get("11", []) == []


async def test_a_look_at_the_screen_takes_away_what_a_dead_run_has_typed_unless_somebody_has_the_phone(
    world: World,
) -> None:
    ledger, text = StoredLedger(world.core.db), "您好，下单后48小时内发货。"
    await world.open_chat()
    async with world.client() as client:
        field = next(node for node in await world.phone.tree() if "EditText" in node.class_name).box.center
        point = [round(field.x / 720 * 1000), round(field.y / 1600 * 1000)]
        assert not (await client.call_tool("TYPE", {"value": text, "point": point})).is_error
        row = await ledger.open(MessageKey(world.serial, "qq", "11", "left"), run_id="dead", question="几天能发货")
        await ledger.plan(row.id, run_id="dead", text=text, provenance=Provenance.KNOWLEDGE)
        await ledger.advance(row.id, ReplyState.TYPING, expected=[ReplyState.PLANNED])
        async with lease_of(world.core.db, far_phone(world.serial), owner="other", why="run"):
            assert not (await client.call_tool("get_screenshot", {})).is_error
            assert list(world.phone.report()["drafts"].values()) == [text]
        assert not (await client.call_tool("get_screenshot", {})).is_error
    assert not any(world.phone.report()["drafts"].values())
    assert await ledger.unfinished(world.serial) == []


async def test_every_single_act_puts_a_dead_runs_keyboard_back(world: World) -> None:
    method = ("secure", "default_input_method")
    owners = world.phone.settings[method]
    async with world.house.phone(world.serial) as device, world.client() as client:
        dead = device.keyboard()
        await dead.__aenter__()  # and never left
        assert world.phone.settings[method] != owners
        assert not (await client.call_tool("HOT_KEY", {"key": "HOME"})).is_error
        assert world.phone.settings[method] == owners
        await dead.__aexit__(None, None, None)


async def test_without_single_acts_a_client_sees_only_the_agent(world: World) -> None:
    async with AsyncExitStack() as stack:
        other = await world.restarted(stack, low_level=False)
        async with other.client() as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in HIGH_LEVEL]
            with pytest.raises(MCPError, match="There is no tool CLICK"):
                await client.call_tool("CLICK", {"point": [1, 2]})


async def test_what_cannot_begin_is_not_started(world: World) -> None:
    async with world.client() as client:
        for arguments, said in (
            ({"task": " "}, "The task is empty"),
            ({"task": "打开设置", "device_id": "nowhere"}, "There is no phone nowhere."),
            ({"session_id": "none", "reply_from_client": "x"}, "There is no session none."),
            ({"task": "x", "session_id": "y"}, "Give exactly one of task"),
        ):
            result = await client.call_tool("ask_agent", arguments)
            assert (result.structured_content["stop_reason"], result.is_error) == ("NOT_STARTED", True)
            assert said in words(result)
