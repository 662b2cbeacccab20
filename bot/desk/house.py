"""What every part of the desk works with, and the rights that hold in every channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import DeviceEntry
from bot.desk.port import AccessDenied, Actor, ChatRef, Role
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs import RunService
from storage.engine import Database
from storage.people import Audit, People
from storage.questions import Questions
from storage.runs import RunRow

RANK = {Role.VIEWER: 0, Role.OPERATOR: 1, Role.OWNER: 2}


@dataclass(frozen=True)
class House:
    """``entries`` lists the phones that adb knows, ``device`` gives one of them by its serial ("" for the only one)."""

    db: Database
    runs: RunService
    entries: Callable[[], Awaitable[Sequence[DeviceEntry]]]
    device: Callable[[str], Awaitable[AdbDevice]]
    timezone: str
    serial: str = ""  # the phone that is meant where none is named
    store: EmbeddedKnowledge | None = None  # the shop's own entries; None where a command has no use for them
    provider: str = "embedded"  # what answers customers, as the settings write it


class DeskPart:
    """A part of the desk: one subject."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._db = house.db
        self._audit = Audit(house.db)

    async def _allow(self, actor: Actor, least: Role, command: str, **detail: Any) -> None:
        """Write the audit log; AccessDenied where the actor's role is under ``least``."""
        allowed = RANK[actor.role] >= RANK[least]
        await self._audit.write(actor.id, actor.channel, command, detail, allowed=allowed)
        if not allowed:
            raise AccessDenied(f"A {actor.role} may not do this.", advice=f"Ask an owner for the role {least}.")

    async def chat_of(self, run: RunRow) -> ChatRef | None:
        """Where a run is shown: where it was asked for, or the owner's chat once it has asked something itself."""
        if run.chat:
            return chat_ref(run.chat)
        asked = await Questions(self._db).find(run_id=run.id, limit=1)
        return chat_ref(await self._owners_chat()) if asked else None

    async def _owners_chat(self) -> dict[str, str] | None:
        """Where is shown what was asked for outside any chat, or None with nobody paired: the first owner's own."""
        owners = [person for person in await People(self._db).all() if person.role == Role.OWNER.value]
        return chat_data(ChatRef("telegram", str(owners[0].telegram_id))) if owners else None


def chat_data(chat: ChatRef) -> dict[str, str]:
    return {"channel": chat.channel, "chat_id": chat.chat_id, "thread_id": chat.thread_id, "kind": chat.kind}


def chat_ref(data: Mapping[str, Any] | None) -> ChatRef | None:
    """The chat as it was stored; None where there was none."""
    if not data:
        return None
    return ChatRef(
        str(data["channel"]),
        str(data["chat_id"]),
        str(data.get("thread_id") or ""),
        "group" if data.get("kind") == "group" else "private",
    )
