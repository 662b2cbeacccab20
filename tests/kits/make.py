"""Write the kits of this folder anew from the virtual phone's looks: python -m tests.kits.make [NAME …].

Each page is drawn, what is read of it is held against what was drawn, and the kit is written with replaced words.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.kits.export import export_kit
from agent_core.kits.kit import differences, kit_text, load_kit, read_kit
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.page_report import (
    InputReport,
    MessageKind,
    MessageReport,
    PageKind,
    PageReport,
    RowReport,
    SendReport,
    TitleReport,
    read_page,
    report,
)
from agent_core.perception.reader import ScreenReader
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import ContactPart, MessagePart
from simulator.phone.world import Kind, Side, Sign
from tests.support.drawing import Drawn, DrawnList, draw, draw_list

FOLDER = Path(__file__).parent
_LOOKS = list(LOOKS)


def kits() -> list[Path]:
    return sorted(FOLDER.glob("*.kit.json"))


def them(text: str, ago: int, kind: Kind = Kind.TEXT) -> MessagePart:
    return MessagePart(side=Side.THEM, text=text, ago=ago, kind=kind)


def me(text: str, ago: int) -> MessagePart:
    return MessagePart(side=Side.ME, text=text, ago=ago)


_CHAT = [
    them("在吗", 900),
    me("在的，有什么可以帮您？", 800),
    them("12寸的这款拉杆箱能带上飞机吗，我后天要出门，比较着急，谢谢您", 300),
    them("多少钱", 200),
]


def chat(look: str) -> Drawn:
    return draw(look, "小王的店", _CHAT)


def typed(look: str) -> Drawn:
    return draw(look, "小王的店", _CHAT, draft="可以的", keyboard=True)


def pictures(look: str) -> Drawn:
    return draw(look, "11", [me("您好", 900), them("", 500, Kind.IMAGE), them("这个还有吗", 300)], unread=86)


def group(look: str) -> Drawn:
    return draw(look, "老客户群", [them("今天有货吗", 600), me("有的", 300)], members=12, signs=[Sign.EAR])


def rows(look: str) -> DrawnList:
    app = LOOKS[look].app
    names = ("小王的店", "李先生", "老同学", "北京客户")
    contacts = [
        ContactPart(name=name, app=app, unread=count, history=[them(f"{name}你好，在不在", 600 + 60 * index)])
        for index, (name, count) in enumerate(zip(names, (2, 0, 12, 0), strict=True))
    ]
    return draw_list(look, contacts)


def _pages() -> dict[str, tuple[str, Callable[[str], Drawn | DrawnList]]]:
    """By the kit's name: its look, and how its page is drawn."""
    pages: dict[str, tuple[str, Callable[[str], Drawn | DrawnList]]] = {f"{look}-chat": (look, chat) for look in _LOOKS}
    for look in ("qq-plain", "wechat-light"):
        pages |= {f"{look}-typed": (look, typed), f"{look}-pictures": (look, pictures), f"{look}-group": (look, group)}
    pages |= {f"{look}-list": (look, rows) for look in ("qq-plain", "wechat-light", "wechat-dark")}
    return pages


def _truth(drawn: Drawn | DrawnList) -> PageReport:
    """What was drawn, as a reader should say it."""
    if isinstance(drawn, DrawnList):
        told = tuple(RowReport(name=row.name, preview=row.preview, unread=row.unread) for row in drawn.rows)
        return PageReport(page=PageKind.LIST, rows=told)
    truth = drawn.truth
    return PageReport(
        page=PageKind.CHAT,
        title=TitleReport(text=truth.title, sure=True, group=truth.group),
        messages=tuple(
            MessageReport(side=bubble.side, kind=MessageKind(bubble.kind.value), text=bubble.text, sure=True)
            for bubble in truth.bubbles
        ),
        question=truth.question,
        input=InputReport(box=truth.input_box.as_tuple(), text=truth.draft or "", sure=True)
        if truth.input_box
        else None,
        send=SendReport(box=None, state=truth.send_state),
    )


async def _make(name: str, look: str, drawn: Drawn | DrawnList) -> list[str]:
    app = profile(LOOKS[look].app)
    frame = Frame(drawn.image, blake2b(drawn.image.tobytes(), digest_size=16).hexdigest(), 0.0)
    page = await read_page(ScreenReader(ocr=OcrEngine(), model=None), frame, None, app)
    misread = differences(_truth(drawn), report(page))
    if misread and not report(page).doubts:  # a page in doubt is kept as it is read
        return misread
    kit = await export_kit(frame, drawn.nodes, app, version=LOOKS[look].version, seed=name)
    (FOLDER / f"{name}.kit.json").write_text(kit_text(kit), encoding="utf-8")
    return differences(kit.page, await read_kit(load_kit(FOLDER / f"{name}.kit.json")))


async def main(wanted: list[str]) -> None:
    for name, (look, page) in _pages().items():
        if not wanted or name in wanted:
            found = await _make(name, look, page(look))
            sys.stdout.write(f"{name}: {'; '.join(found) or 'as it should be'}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
