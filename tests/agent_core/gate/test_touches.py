"""What the model may touch on pages as a phone shows them, read by the tree, by the picture, and by both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent_core.actions.types import Action, DoubleTap, LongPress, Swipe, Tap
from agent_core.apps.profile import AppProfile, profile
from agent_core.devices.base import Window
from agent_core.devices.virtual.phone import VirtualPhone
from agent_core.devices.virtual.scenario import MessagePart, Scenario
from agent_core.gate import REPLY_POLICIES, Situation, review
from agent_core.geometry import Box, Point
from agent_core.screen.ocr import OcrEngine
from agent_core.screen.reader import ScreenReader
from agent_core.session import GateState
from tests.agent_core.screen.support import NOON, look
from tests.support.ocr import needs_ocr

OCR = OcrEngine()
TREE = ScreenReader(ocr=None, model=None)
PICTURE = ScreenReader(ocr=OCR, model=None)
READERS = [pytest.param(TREE, id="tree"), pytest.param(PICTURE, id="picture", marks=needs_ocr)]
APPS = [pytest.param(profile("qq"), id="qq"), pytest.param(profile("wechat"), id="wechat")]


async def situation_of(phone: VirtualPhone, reader: ScreenReader, app: AppProfile) -> Situation:
    """What the gate knows of the page in front; a reader with OCR is given no tree."""
    moment = await look(phone)
    nodes = None if reader is PICTURE else moment.nodes
    readings = await reader.readings(moment.frame, nodes)
    chat = await reader.chat(moment.frame, nodes, app)
    unread = None
    if chat is None:
        unread = await reader.unread_below(moment.frame, nodes, app, readings)
    return Situation(
        app,
        Window(app.packages[0], "x"),
        moment.frame.size,
        GateState(enabled=True, contact="11"),
        readings,
        chat,
        frame=moment.frame,
        nodes=nodes,
        unread_below=unread,
    )


def phone_of(app: AppProfile, *messages: dict[str, object]) -> VirtualPhone:
    history = [MessagePart.model_validate({"ago": 60, **message}) for message in messages]
    contact = {"name": "11", "app": app.key, "history": history}
    return VirtualPhone(Scenario.model_validate({"contacts": [contact]}), clock=lambda: NOON)


def in_chat(app: AppProfile, *messages: dict[str, object]) -> VirtualPhone:
    phone = phone_of(app, *messages)
    phone.show_chat("11" if app.key == "qq" else f"{app.key}:11")
    return phone


def done(action: Action, where: Situation) -> bool:
    return review(action, where, REPLY_POLICIES).action is not None


def at(point: Point, where: Situation) -> tuple[int, int]:
    return point.to_relative(where.size)


def around(box: Box, reach: int) -> Iterable[Point]:
    """The middle of a box, and points ``reach`` pixels outside of its sides."""
    middle = box.center
    yield middle
    yield Point(box.left - reach, middle.y)
    yield Point(box.right + reach - 1, middle.y)
    yield Point(middle.x, box.top - reach)
    yield Point(middle.x, box.bottom + reach - 1)


def touches(pair: tuple[int, int]) -> Iterable[Action]:
    """Every way in which a finger may come down at a point."""
    yield Tap(element=pair)
    yield LongPress(element=pair)
    yield DoubleTap(element=pair)
    yield Swipe(start=pair, end=pair, duration=0.1)
    yield Swipe(start=pair, end=(pair[0], max(0, pair[1] - 200)))
    yield Swipe(start=pair, end=(min(1000, pair[0] + 200), pair[1]))


# The red mark of a message that failed --------------------------------------------------------------------------------

OLD_FAILED: tuple[dict[str, object], ...] = (
    {"text": "几天能发货？", "ago": 9000},
    {"side": "me", "text": "付款后48小时内发出", "ago": 8000, "state": "failed"},
    {"text": "在吗", "ago": 5000},
    {"side": "me", "text": "在的", "ago": 4000},
    {"text": "能开发票吗？", "ago": 60},
)


async def mark_of(phone: VirtualPhone) -> Box:
    return next(node.box for node in await phone.tree() if node.description == "重新发送")


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_a_red_mark_is_not_touched_however_old_it_is(reader: ScreenReader, app: AppProfile) -> None:
    phone = in_chat(app, *OLD_FAILED)
    where = await situation_of(phone, reader, app)
    assert where.chat is not None
    mark = await mark_of(phone)
    for point in around(mark, 25):
        for action in touches(at(point, where)):
            assert not done(action, where), (point, action)
    scroll = Swipe(start=(500, 600), end=(500, 300))
    assert done(scroll, where)


@pytest.mark.parametrize("told_by", ["tree", "picture"])
async def test_a_red_mark_is_known_though_no_bubble_was_read_with_it(told_by: str) -> None:
    app = profile("wechat")
    phone = in_chat(app, *OLD_FAILED)
    where = await situation_of(phone, TREE, app)
    assert where.chat is not None
    where = replace(where, chat=replace(where.chat, bubbles=()), readings=())
    where = replace(where, nodes=None) if told_by == "picture" else replace(where, frame=None)
    mark = await mark_of(phone)
    for point in around(mark, 25):
        assert not done(Tap(element=at(point, where)), where), point
        assert not done(Swipe(start=at(point, where), end=(500, 900)), where), point
    assert done(Tap(element=(250, 600)), where)
