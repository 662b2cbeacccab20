"""A house that plans: virtual phones, a scripted planner, a scripted phone model, and the product between them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession

from agent_core.devices.adb.server import open_adb
from bot.app.core import Core, open_core
from bot.app.plans.service import PlanService
from bot.app.settings.loading import load
from bot.app.worker import AttemptExecutor, listing
from bot.channels.web import layered_agent
from bot.channels.web.app import make_app, serving
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.host import Host
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker
from simulator.phone.assembly import CHECKED
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from storage.api_keys import ApiKeys
from tests.support.adb import adb_server
from tests.support.database import empty_sqlite
from tests.support.lab import on_a_small_phone
from tests.support.model_server import Chunks, Reply, Script, ScriptedModel
from tests.support.queue import LocalQueue

ZHANG = "张三"
MEETING = "明天下午两点开会"
PLAN = f"打开微信,找到{ZHANG},发送'{MEETING}'"


def with_zhang() -> Scenario:
    """The shipped world, with a friend in the WeChat-like app."""
    scenario = default_scenario()
    friend = ContactPart.model_validate({"name": ZHANG, "app": "wechat", "history": [{"text": "在吗"}]})
    return on_a_small_phone(scenario.model_copy(update={"contacts": [*scenario.contacts, friend]}))


def calls(*wanted: tuple[str, Mapping[str, str]], says: str = "") -> Chunks:
    """The planner calls tools, all in one turn."""
    deltas: list[str | float | dict[str, Any]] = [says] if says else []
    for number, (name, args) in enumerate(wanted):
        function = {"name": name, "arguments": json.dumps(dict(args), ensure_ascii=False)}
        call = {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    return Chunks(deltas, finish="tool_calls")


def asks(device: str, message: str) -> Chunks:
    return calls(("chat", {"device_id": device, "message": message}))


def seen_on(body: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The texts of the screen that a phone model was shown, with their places."""
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else next(part["text"] for part in content if part["type"] == "text")
    info = json.loads(text[text.index("\n\n{") :])
    return {element["text"]: (element["x"], element["y"]) for element in info.get("elements", [])}


def tap(*words: str) -> Script:
    """Tap the first of these texts that is on the screen."""

    def reply(body: dict[str, Any]) -> str:
        seen = seen_on(body)
        x, y = next(seen[word] for word in words if word in seen)
        return f'<think>点它</think><answer>do(action="Tap", element=[{x},{y}])</answer>'

    return reply


def act(call: str, thinking: str = "想一想") -> str:
    return f"<think>{thinking}</think><answer>{call}</answer>"


def finish(message: str) -> str:
    return act(f'finish(message="{message}")')


@dataclass
class PlanHouse:
    core: Core
    desk: Desk
    planning: PlanService
    planner: ScriptedModel
    model: ScriptedModel
    phones: list[VirtualPhone]
    serials: list[str]
    http: ClientSession
    keys: dict[str, str] = field(default_factory=dict)

    def auth(self, role: str = "operator") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[role]}"}

    def post(self, name: str, body: Any, *, role: str = "operator") -> Any:
        """To be used with ``async with``."""
        return self.http.post(f"/api/layered-agent/{name}", json=body, headers=self.auth(role))

    async def plan(self, message: str, **body: str) -> list[dict[str, Any]]:
        """The events of a plan."""
        async with self.post("chat", {"message": message, **body}) as response:
            assert response.status == 200, await response.text()
            return [event async for event in events_of(response)]


async def events_of(response: ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])
        else:
            assert line == b"\n" or line.startswith(b":"), line


@asynccontextmanager
async def plan_house(
    folder: Path,
    plans: Sequence[Script],
    thoughts: Sequence[Script],
    *,
    phones: int = 1,
    **settings: Any,
) -> AsyncIterator[PlanHouse]:
    async with AsyncExitStack() as stack:
        running = [await stack.enter_async_context(serve(with_zhang())) for _ in range(phones)]
        adb = await stack.enter_async_context(adb_server())
        server = await stack.enter_async_context(await open_adb(port=adb.port))
        for one in running:
            await server.connect(one.address)
        planner = await stack.enter_async_context(ScriptedModel(plans))
        model = await stack.enter_async_context(ScriptedModel(thoughts))
        serials = [one.address for one in running]
        made = load(
            data_dir=folder,
            database_url=await empty_sqlite(folder / "desk.db"),
            lang="zh",
            model={"base_url": model.url, "name": "scripted", "api_key": "k", "vision": False},
            planner={"base_url": planner.url, "name": "scripted", "api_key": "p", **settings.pop("planner", {})},
            knowledge={"provider": "embedded", "sample": True},
            observe={"ocr": "off", "model": False},
            device={"serial": serials[0], "adb_host": "127.0.0.1", "adb_port": adb.port, "connect": ()},
            run={"checked_versions": CHECKED, **settings.pop("run", {})},
            **settings,
        )
        core = await stack.enter_async_context(open_core(made))
        host = Host(core.db, "here", listing=lambda: listing(core))
        await host.look()
        attempts = AttemptExecutor(core, host)
        worker = Worker(core.db, attempts.work, owner="here", watch_seconds=0.05)
        runs = RunService(core.db, worker=worker)
        queue = LocalQueue()
        await queue.start(worker.run_attempt)
        stack.push_async_callback(queue.stop)
        stack.push_async_callback(worker.drain, 1.0)
        dispatcher = Dispatcher(core.db, queue.enqueue, worker=worker, every_seconds=0.2)
        await dispatcher.start()
        stack.push_async_callback(dispatcher.stop)
        planning = PlanService(core, worker, runs)
        stack.push_async_callback(planning.close)
        house = DeskContext(
            core.db, runs, core.attached.phones, core.attached.device, made.timezone,
            store=core.store, names=made.device.names,
            planning=planning, host="here",
        )  # fmt: skip
        desk = Desk(house)
        keys = {role: (await ApiKeys(core.db).add(role, role=role))[0] for role in ("owner", "operator", "viewer")}

        async def ready() -> dict[str, bool]:
            return {}

        app = make_app(ready)
        layered_agent.add_routes(app, desk, core.db, heartbeat=0.1)
        url = await stack.enter_async_context(serving(app, "127.0.0.1", 0))
        http = await stack.enter_async_context(ClientSession(url))
        yield PlanHouse(core, desk, planning, planner, model, [one.phone for one in running], serials, http, keys)
        assert planner.invalid == []
        assert model.invalid == []


def results(events: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [event["result"] for event in events if event["type"] == "tool_result"]


__all__ = [
    "MEETING", "PLAN", "ZHANG", "PlanHouse", "Reply", "act", "asks", "calls", "events_of", "finish", "plan_house",
    "results", "seen_on", "tap", "with_zhang",
]  # fmt: skip
