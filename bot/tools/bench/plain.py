"""A plain client of a phone and a model, for comparison: a process of adb for each call, a pause after each act.

It does what a small agent written in an afternoon does: it takes the picture and asks for the app in front, sends both,
carries the reply out and waits a second. It reads nothing back and guards nothing.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import httpx2

from agent_core.actions.parse import parse_reply
from agent_core.actions.types import Action, Back, Finish, Launch, Tap, Type
from agent_core.devices.adb.keyboard import METHOD
from agent_core.devices.adb.program import find_adb
from agent_core.devices.adb.server import AdbServer
from simulator.model.server import MODEL_NAME

PAUSE_SECONDS = 1.0
MOST_STEPS = 20


class PlainClient:
    """Does a task with a phone and a model.

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
            for _ in range(MOST_STEPS):
                picture = await self._adb("exec-out", "screencap", "-p")
                front = await self._adb("shell", "dumpsys window | grep mCurrentFocus")
                answer = await client.post(self._url, json=self._request(task, picture, front.decode()))
                reply = parse_reply(answer.json()["choices"][0]["message"]["content"])
                if isinstance(reply.action, Finish):
                    return
                await self._act(reply.action)
                await asyncio.sleep(PAUSE_SECONDS)

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
        await asyncio.sleep(PAUSE_SECONDS)
        message = base64.b64encode(text.encode()).decode()
        await self._adb("shell", "am", "broadcast", "-a", "ADB_INPUT_B64", "--es", "msg", message)
        await asyncio.sleep(PAUSE_SECONDS)
        await self._adb("shell", "ime", "set", before)

    async def _adb(self, *args: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command, *args, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        return (await process.communicate())[0]
