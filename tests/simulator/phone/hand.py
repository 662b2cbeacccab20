"""A hand on a virtual phone: finds things by what the tree says, taps them, and holds the time."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta, timezone

from agent_core.devices.base import Node
from simulator.phone import ime
from simulator.phone.apps.looks import LOOKS
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario_file import parse_scenario

QQ = "com.tencent.mobileqq"
WECHAT = "com.tencent.mm"
START = datetime(2026, 11, 20, 10, 30, tzinfo=timezone(timedelta(hours=8)))


class Hand:
    def __init__(self, scenario: str = "") -> None:
        """``scenario`` is TOML; the shipped one where it is empty."""
        self.now = START
        self.slept: list[float] = []
        self.phone = VirtualPhone(
            parse_scenario(scenario) if scenario else None, clock=lambda: self.now, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    async def nodes(self, name: str) -> list[Node]:
        """Return the nodes with this id, text or description, in document order.

        name: for ids of the chat app in front, what ``Ids`` calls them.
        """
        app = {QQ: "qq", WECHAT: "wechat"}.get(self.phone.window().package or "")
        if app is not None:
            name = getattr(LOOKS[self.phone.scenario.looks[app]].ids, name, name)
        return [
            node
            for node in await self.phone.tree()
            if name in (node.text, node.description, node.resource_id.rpartition("/")[2])
        ]

    async def node(self, name: str) -> Node:
        found = await self.nodes(name)
        assert found, f"{name!r} is not on the screen"
        return found[0]

    async def texts(self, name: str) -> list[str]:
        return [node.text for node in await self.nodes(name)]

    async def tap(self, name: str) -> None:
        """Tap what can be tapped under this name, or else what lies below the name."""
        found = await self.nodes(name)
        assert found, f"{name!r} is not on the screen"
        point = next((node for node in found if node.clickable), found[0]).box.center
        await self.phone.tap(point.x, point.y)

    async def open_chat(self, name: str = "11") -> None:
        await self.phone.launch(QQ)
        await self.tap(name)

    async def type(self, text: str) -> None:
        """With ADB Keyboard, into the focused field."""
        self.phone.choose_input_method(ime.ADB)
        message = base64.b64encode(text.encode()).decode()
        await self.phone.broadcast("ADB_INPUT_B64", {"msg": message}, ime.ADB_PACKAGE)

    async def say(self, text: str) -> None:
        """Type into the open chat and send."""
        await self.tap("input")
        await self.type(text)
        await self.tap("send")

    async def pixels(self) -> bytes:
        return (await self.phone.picture()).tobytes()


def chat(*lines: str, extra: str = "") -> str:
    """A scenario with contact 11, whose history is these messages of theirs."""
    history = ", ".join(f'{{ side = "them", text = "{line}", ago = 60 }}' for line in lines)
    return f'{extra}\n[[contacts]]\nname = "11"\nhistory = [{history}]\n'
