"""A desk over a real database, and the people at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_core.devices.base import Device, DeviceEntry
from agent_core.errors import DeviceOffline
from agent_core.session import Choice, Question, QuestionKind
from bot.desk.actors import Actor, ChatRef, Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.people import new_code
from scheduler.runs.service import RunService
from storage.chats import TopicTable
from storage.engine import Database
from storage.hosts import Phones
from tests.support.clock import Clock

CHAT = ChatRef("telegram", "77", "5", "group")
PHONE = "127.0.0.1:16001"
SEEN = ("S1", "S2", "127.0.0.1:16002")  # phones that were here once
USED = ("1", "77", "-5")  # chats in which something was said
QUESTION = Question(
    id="q1",
    kind=QuestionKind.NO_SURE_ANSWER,
    text="能定制刻字吗",
    choices=[Choice(value="record:0", label="刻字"), Choice(value="skip", label="跳过")],
    free_text=True,
)


@dataclass
class Shop:
    """A desk over a real database, and the people at it."""

    db: Database
    clock: Clock
    desk: Desk
    service: RunService
    attached: list[DeviceEntry] = field(default_factory=list)
    devices: dict[str, Device] = field(default_factory=dict)
    _next_user: int = 100

    async def person(self, role: Role, name: str = "") -> Actor:
        self._next_user += 1
        code = await new_code(self.db, role, created_by="test")
        return await self.desk.people.pair("telegram", str(self._next_user), name or role.value, "en", code)


async def known(db: Database) -> None:
    """Have the phones and chats be known that the tests name."""
    await Phones(db).saw(dict.fromkeys(SEEN, ""))
    for chat_id in USED:
        await TopicTable(db).put(chat_id, "S1", thread_id="9", name="S1")


def make_shop(url: str, clock: Clock) -> Shop:
    """Return a desk over a database of this release, in which phones and chats are known (``known``)."""
    db = Database(url, clock=clock)
    attached = [DeviceEntry(PHONE, "device", "Pixel_8")]
    devices: dict[str, Device] = {}

    async def entries() -> list[DeviceEntry]:
        return attached

    async def device(serial: str) -> Device:
        if serial not in devices:
            raise DeviceOffline(f"There is no phone {serial}.")
        return devices[serial]

    service = RunService(db)
    desk = Desk(DeskContext(db, service, entries, device, "Asia/Shanghai"))
    return Shop(db, clock, desk, service, attached, devices)
