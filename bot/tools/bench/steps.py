"""A scripted task of six replies at a model that answers at once: the time and the calls that a client adds to a step.

Six replies are carried out on a virtual phone: Launch, Tap, Tap, Type, Back and finish. The model keeps the time:
between a reply and the next request the client acts, observes and asks. The plain client does what a small agent
written in an afternoon does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
from aiohttp import web

from agent_core.actions.parse import parse_reply
from agent_core.actions.types import Action, Back, Finish, Launch, Tap, Type
from agent_core.devices.adb.keyboard import METHOD
from agent_core.devices.adb.program import find_adb
from agent_core.devices.adb.server import AdbServer
from agent_core.devices.base import Key
from agent_core.perception.ocr import OcrEngine
from bot.tools.bench.scale import BenchFailed, Measured
from bot.tools.bench.served import BenchRun
from bot.tools.bench.usage import Say
from simulator.model.reading import ChatRequest, View
from simulator.model.server import MODEL_NAME, DemoModel
from simulator.phone.adbd import ServiceCall

PLAIN_PAUSE_SECONDS = 1.0
PLAIN_MOST_STEPS = 20


class PlainClient:
    """A client that takes the picture, asks for the app in front, sends both, carries the reply out and waits a second.

    It starts a process of adb for each call, reads nothing back and guards nothing.

    model: the base URL of an OpenAI-compatible endpoint.
    apps: packages by name.
    size: the screen's, in pixels.
    """

    def __init__(
        self, adb: AdbServer, serial: str, model: str, *, apps: Mapping[str, str], size: tuple[int, int]
    ) -> None:
        self._command = (find_adb(), "-H", adb.host, "-P", str(adb.port), "-s", serial)
        self._url = f"{model}/chat/completions"
        self._apps = apps
        self._size = size

    async def run(self, task: str) -> None:
        """Carry out the model's replies until it says that the task is done."""
        async with httpx2.AsyncClient(trust_env=False, timeout=60.0) as client:
            for _ in range(PLAIN_MOST_STEPS):
                picture = await self._adb("exec-out", "screencap", "-p")
                front = await self._adb("shell", "dumpsys window | grep mCurrentFocus")
                answer = await client.post(self._url, json=self._request(task, picture, front.decode()))
                reply = parse_reply(answer.json()["choices"][0]["message"]["content"])
                if isinstance(reply.action, Finish):
                    return
                await self._act(reply.action)
                await asyncio.sleep(PLAIN_PAUSE_SECONDS)

    def _request(self, task: str, picture: bytes, front: str) -> dict[str, Any]:
        url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        content = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": f"{task}\n\n{json.dumps({'current_app': front.strip()}, ensure_ascii=False)}"},
        ]
        return {"model": MODEL_NAME, "messages": [{"role": "user", "content": content}]}

    async def _act(self, action: Action) -> None:
        match action:
            case Launch(app=app):
                await self._adb("shell", "monkey", "-p", self._apps[app], "-c", "android.intent.category.LAUNCHER", "1")
            case Tap(element=point):
                x, y = (round(value * length / 1000) for value, length in zip(point, self._size, strict=True))
                await self._adb("shell", "input", "tap", str(x), str(y))
            case Type(text=text):
                await self._type(text)
            case Back():
                await self._adb("shell", "input", "keyevent", "4")

    async def _type(self, text: str) -> None:
        before = (await self._adb("shell", "settings", "get", "secure", "default_input_method")).decode().strip()
        await self._adb("shell", "ime", "set", METHOD)
        await asyncio.sleep(PLAIN_PAUSE_SECONDS)
        message = base64.b64encode(text.encode()).decode()
        await self._adb("shell", "am", "broadcast", "-a", "ADB_INPUT_B64", "--es", "msg", message)
        await asyncio.sleep(PLAIN_PAUSE_SECONDS)
        await self._adb("shell", "ime", "set", before)

    async def _adb(self, *args: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command, *args, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        return (await process.communicate())[0]


QQ = "com.tencent.mobileqq"
TASK = "在QQ里搜索 客户000"
REPLIES = {
    "Launch": 'do(action="Launch", app="QQ")',
    "Tap": 'do(action="Tap", element=[500, 110])',
    "Tap in vain": 'do(action="Tap", element=[400, 60])',  # the field that has the focus already
    "Type": 'do(action="Type", text="客户000")',
    "Back": 'do(action="Back")',
    "finish": 'finish(message="搜索过了")',
}
_PICTURE = re.compile(r'"data:image/[a-z]+;base64,([A-Za-z0-9+/=]*)"')


class TimedModel(DemoModel):
    """The demo's model, with a record of its requests.

    asked, said: when each request came, and when its reply had been sent.
    pictures: characters of base64 in each request.
    """

    def __init__(self) -> None:
        super().__init__(OcrEngine() if OcrEngine.available() else None)
        self.asked: list[float] = []
        self.said: list[float] = []
        self.pictures: list[int] = []

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(time.monotonic())
        response = await super().complete(request)
        self.said.append(time.monotonic())
        self.pictures.append(sum(map(len, _PICTURE.findall(await request.text()))))
        return response


class StepsModel(TimedModel):
    """Answers with ``REPLIES`` in turn."""

    def taken(self, client: str, calls: Sequence[ServiceCall]) -> Steps:
        """Return what the client did since the last call of this. ``calls``: those to the phone, also older ones."""
        asked, said, pictures = self.asked[:], self.said[:], self.pictures[:]
        for held in (self.asked, self.said, self.pictures):
            held.clear()
        if len(asked) != len(REPLIES):
            raise BenchFailed(f"{client} asked {len(asked)} times.", key="bench_steps", client=client, count=len(asked))
        steps = zip(REPLIES, asked, asked[1:], strict=False)
        made = {name: sum(begun <= call.at < ended for call in calls) for name, begun, ended in steps}
        return Steps(said[-1] - asked[0], max(pictures), made)

    async def reply(self, request: web.Request, asked: ChatRequest, view: View) -> str:
        return list(REPLIES.values())[(len(self.asked) - 1) % len(REPLIES)]


@dataclass(frozen=True, slots=True)
class Steps:
    """What one client did in one run.

    overhead: seconds from the first request to the last reply.
    picture: characters of base64 in the largest request.
    calls: calls to the phone from each request to the next one, by the reply that was carried out meanwhile.
    """

    overhead: float
    picture: int
    calls: dict[str, int]


async def steps(
    made: Measured,
    model: StepsModel,
    times: int,
    *,
    say: Say,
    before: Callable[[], object] = lambda: None,
) -> list[Steps]:
    """Do the six steps ``times`` times on the first phone of a server that ``model`` answers.

    One more run before gets to know the phone and installs what typing needs. ``before`` is called before each run.
    """
    phone, found = made.phones[0], []
    for number in range(times + 1):
        say("stepping", run=number, runs=times)
        before()
        await from_the_start(made.adb, phone.address)
        seen = await made.order(BenchRun(tasks=[(phone.address, TASK)], patience=120))
        if seen.runs[0].status != "succeeded":
            raise BenchFailed(f"{TASK}: {seen.runs[0].message}", key="bench_run", why=seen.runs[0].message)
        found.append(model.taken("phonedesk", phone.calls))
    return found[1:]


async def plain_steps(made: Measured, model: StepsModel, *, say: Say) -> Steps:
    """Do the six steps once with the plain client."""
    say("stepping_plain")
    phone = made.phones[0]
    await from_the_start(made.adb, phone.address)
    await PlainClient(made.adb, phone.address, made.model, apps={"QQ": QQ}, size=phone.phone.size).run(TASK)
    return model.taken("plain", phone.calls)


async def from_the_start(adb: AdbServer, serial: str) -> None:
    """Show the home screen, with QQ as at its first start, so that every run sees the same screens."""
    device = adb.device(serial)
    device.start_apps_afresh()
    await device.launch(QQ)
    await device.key(Key.HOME)
    await device.close()
