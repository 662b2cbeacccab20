"""A virtual phone on a page, and what a reader is given of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Node
from agent_core.devices.pictures import digest
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import ChatScreen, Source
from simulator.phone.apps.looks import LOOKS
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from simulator.phone.world import ContactKind, Kind, MessageState, Side

QQ = profile("qq")
QQ_PACKAGE = QQ.packages[0]
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)

LONG = (
    "您好，我们的商品支持七天无理由退货，请保持商品完好、配件齐全，并在收到货后7天内提交申请。"
    "退货请寄：仓前街道文一西路969号3号楼，电话400-123-4567。"
    "Please keep the invoice ABC-2024 with the goods, 谢谢！"
)


@dataclass
class Look:
    """One moment of the phone."""

    frame: Frame
    nodes: Sequence[Node]


def them(text: str, ago: float = 60, **more: object) -> MessagePart:
    return MessagePart.model_validate({"side": Side.THEM, "text": text, "ago": ago, **more})


def me(text: str, ago: float = 60, state: MessageState = MessageState.OK) -> MessagePart:
    return MessagePart(side=Side.ME, text=text, ago=ago, state=state)


def image(kind: Kind, ago: float = 60, text: str = "") -> MessagePart:
    return MessagePart(side=Side.THEM, kind=kind, ago=ago, text=text)


def scenario(
    *messages: MessagePart, name: str = "11", size: tuple[int, int] = (1080, 2400), members: int = 0, draft: str = ""
) -> Scenario:
    """One contact with these messages (and one more, for lists)."""
    kind = ContactKind.GROUP if members else ContactKind.FRIEND
    contact = ContactPart(name=name, number="1001", kind=kind, members=members, draft=draft, history=list(messages))
    other = ContactPart(name="另一位", number="1002", history=[them("别的事情", 9000)])
    return Scenario(phone=PhonePart(size=size), contacts=[contact, other])


async def open_chat(world: Scenario, *, typing: bool = False) -> VirtualPhone:
    """The phone with the chat of the scenario's first contact in front; ``typing``: its input has the keyboard."""
    phone = VirtualPhone(world, clock=lambda: NOON)
    await phone.launch(QQ_PACKAGE)
    await look(phone)
    await phone.open_url("mqqwpa://im/chat?chat_type=wpa&uin=1001")
    if typing:
        field = next(node for node in await phone.tree() if node.class_name.endswith("EditText"))
        await phone.tap(field.box.center.x, field.box.center.y)
    return phone


async def look(phone: VirtualPhone) -> Look:
    picture = (await phone.picture()).copy()
    return Look(Frame(picture, digest(picture), 0.0), await phone.tree())


async def read_picture(image: Image.Image, look: str) -> ChatScreen:
    """What a reader makes of a chat page by its picture alone."""
    reader = ScreenReader(ocr=OcrEngine(), model=None, sources=[Source.OCR])
    found = await reader.chat(Frame(image, "", 0.0), None, profile(LOOKS[look].app))
    assert found is not None
    return found
