"""What the model may touch on pages as a phone shows them, read by the tree, by the picture, and by both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from PIL import Image

from agent_core.actions.types import Action, DoubleTap, LongPress, Swipe, Tap
from agent_core.apps.profile import AppProfile, profile
from agent_core.devices.base import Frame, Node, Window
from agent_core.geometry import Box, Point
from agent_core.perception import tree
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Reading, Source
from agent_core.policies import REPLY_POLICIES, PolicyName, Situation, policies_of, review
from agent_core.session import GateState
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import MessagePart, Scenario
from tests.agent_core.perception.support import NOON, look
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


@pytest.mark.rotating(parts=3)
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


# A risky button is all of its area ------------------------------------------------------------------------------------


def inside(box: Box, inset: int = 6) -> Iterable[Point]:
    """Points all over a box."""
    for x in (box.left + inset, (box.left + box.center.x) // 2, box.center.x, box.right - inset - 1):
        for y in (box.top + inset, box.center.y, box.bottom - inset - 1):
            yield Point(x, y)


async def button_of(phone: VirtualPhone, text: str) -> Box:
    return next(node.box for node in reversed(await phone.tree()) if text in (node.text, node.description))


@pytest.mark.rotating(parts=5)
@pytest.mark.parametrize(
    ("fault", "value", "agrees", "leaves"),
    [
        ("popup", "有新版本", "立即更新", "关闭"),
        ("update", "buttons", "立即升级", "稍后处理"),
        ("update", "picture", "马上升级", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_no_point_of_a_risky_button_is_tapped(
    reader: ScreenReader, app: AppProfile, fault: str, value: str, agrees: str, leaves: str
) -> None:
    phone = in_chat(app, {"text": "几天能发货？"})
    phone.set_fault(fault, value)
    where = await situation_of(phone, reader, app)
    button = await button_of(phone, agrees)
    for point in inside(button):
        assert not done(Tap(element=at(point, where)), where), point
        assert not done(Swipe(start=at(point, where), end=at(point, where), duration=0.1), where), point
    if leaves:
        words = min((one.box for one in where.readings if one.text == leaves), key=lambda box: box.width)
        for point in inside(words):
            assert done(Tap(element=at(point, where)), where), point


def reading(text: str, box: Box) -> Reading:
    return Reading(text, box, Source.OCR)


@pytest.mark.parametrize("policy", [PolicyName.REPLY, PolicyName.CAREFUL])
@pytest.mark.parametrize(
    ("x", "y", "blocked"),
    [
        (640, 1440, True),
        (560, 1500, True),
        (900, 1440, True),
        (330, 1440, False),
        (360, 1465, False),
        (540, 1250, False),
    ],
    ids=["beside", "below", "far", "on_the_other", "beside_the_other", "above"],
)
def test_without_a_shape_a_risky_button_is_what_stands_nearest_to_its_words(
    policy: PolicyName, x: int, y: int, blocked: bool
) -> None:
    app = profile("qq")
    words = (reading("取消", Box(290, 1420, 375, 1465)), reading("立即更新", Box(665, 1420, 835, 1465)))
    where = Situation(
        app if policy is PolicyName.REPLY else None, Window(app.packages[0], "x"), (1080, 2400), GateState(), words
    )
    verdicts = review(Tap(element=(round(x / 1.08), round(y / 2.4))), where, policies_of(policy)).verdicts
    assert bool(verdicts) is blocked


def test_a_button_of_the_tree_is_its_clickable_node_and_a_row_of_details_is_none() -> None:
    app = profile("wechat")
    row = Node(Box(0, 400, 1080, 560), clickable=True, package=app.packages[0])
    name, detail = reading("消息通知", Box(60, 420, 300, 470)), reading("允许", Box(60, 490, 150, 540))
    away = Tap(element=(850, 200))

    def where(*words: Reading) -> Situation:
        return Situation(app, Window(app.packages[0], "x"), (1080, 2400), GateState(), words, nodes=(row,))

    assert not done(away, where(detail))
    assert done(away, where(name, detail))


@needs_ocr
async def test_a_customer_who_writes_of_money_is_opened_all_the_same() -> None:
    app = profile("qq")
    phone = phone_of(app, {"text": "怎么付款"})
    await phone.launch(app.packages[0])
    for reader in (TREE, PICTURE):
        where = await situation_of(phone, reader, app)
        name = next(one.box for one in where.readings if one.text == "11")
        for point in (name.center, Point(100, name.center.y), Point(900, name.bottom + 12)):
            assert done(Tap(element=at(point, where)), where), point


# The app's own AI -----------------------------------------------------------------------------------------------------


def with_ai(app: AppProfile, name: str) -> VirtualPhone:
    def contact(called: str, **more: object) -> dict[str, object]:
        history = [{"side": "them", "text": "有问题尽管问我", "ago": 30, "unread": True}]
        return {"name": called, "app": app.key, "history": history, **more}

    contacts = [contact("11"), contact(name, kind="bait"), contact("12")]
    return VirtualPhone(Scenario.model_validate({"contacts": contacts}), clock=lambda: NOON)


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize(
    ("app", "name"), [(profile("qq"), "QQ智能客服"), (profile("wechat"), "腾讯元宝")], ids=["qq", "wechat"]
)
@pytest.mark.parametrize("reader", READERS)
async def test_the_whole_row_of_the_ai_is_its_entry(reader: ScreenReader, app: AppProfile, name: str) -> None:
    phone = with_ai(app, name)
    await phone.launch(app.packages[0])
    where = await situation_of(phone, reader, app)
    names = {one.text: one.box for one in where.readings if one.text in (name, "11", "12")}
    for called, box in names.items():
        middle = box.center.y + 32  # of the row: below the name stands the preview
        for x in (20, 100, 300, 600, 1000):
            for y in (middle - 75, middle, middle + 75):
                tap = Tap(element=at(Point(x, y), where))
                assert done(tap, where) is (called != name), (called, x, y)
    assert len(names) == 3


@pytest.mark.parametrize("reader", READERS)
async def test_what_offers_to_ask_the_ai_in_a_search_is_not_tapped(reader: ScreenReader) -> None:
    app = profile("qq")
    phone = with_ai(app, "智能助理")
    await phone.launch(app.packages[0])
    await phone.tap((await button_of(phone, "搜索")).center.x, (await button_of(phone, "搜索")).center.y)
    await phone.text("11")
    offer = next(node.box for node in await phone.tree() if node.text.startswith("问AI"))
    where = await situation_of(phone, reader, app)
    for point in inside(offer):
        assert not done(Tap(element=at(point, where)), where), point
    name = next(one.box for one in where.readings if one.text == "11" and one.box.top > 250)
    for x in (100, 300, 900):
        assert done(Tap(element=at(Point(x, name.center.y), where)), where)


@pytest.mark.parametrize(("text", "blocked"), [("问Al：11", True), ("AI 搜索 11", True), ("问11", False)])
def test_an_offer_is_known_by_how_it_begins(text: str, blocked: bool) -> None:
    app = profile("wechat")
    words = (reading(text, Box(100, 500, 400, 550)),)
    gate = GateState(enabled=True, contact="11")
    where = Situation(app, Window(app.packages[0], "x"), (1080, 2400), gate, words)
    assert done(Tap(element=(230, 218)), where) is not blocked


@pytest.mark.parametrize("point", [(90, 640), (500, 700), (1000, 620)], ids=["avatar", "preview", "time"])
def test_without_a_picture_a_row_of_the_ai_is_known_by_the_place_of_its_name(point: tuple[int, int]) -> None:
    app = profile("wechat")
    words = (reading("元宝", Box(196, 610, 290, 660)), reading("今天想聊点什么", Box(196, 680, 500, 720)))
    where = Situation(app, Window(app.packages[0], "x"), (1080, 2400), GateState(contact="11"), words)
    assert not done(Tap(element=at(Point(*point), where)), where)
    assert done(Tap(element=at(Point(point[0], 900), where)), where)


def test_a_row_that_the_tree_only_describes_is_the_ais_too() -> None:
    app = profile("qq")
    size = (1080, 2400)
    said = {400: "11, ,几天能发货,12:00", 590: "智能助理, ,有2条未读,你好,昨天"}
    nodes = [
        Node(Box(0, top, 1080, top + 190), description=text, clickable=True, package=app.packages[0])
        for top, text in said.items()
    ]
    frame = Frame(Image.new("RGB", size, "white"), "d", 0.0)
    words = tree.readings(nodes, size)
    window = Window(app.packages[0], "x")
    where = Situation(app, window, size, GateState(contact="11"), words, frame=frame, nodes=nodes)
    assert not done(Tap(element=(500, 285)), where)
    assert done(Tap(element=(500, 205)), where)


# Calls ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=5)
@pytest.mark.parametrize("kind", ["call", "tip"])
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_what_an_app_says_of_a_call_is_not_tapped(reader: ScreenReader, app: AppProfile, kind: str) -> None:
    calls: list[dict[str, object]] = [
        {"kind": kind, "text": "对方无应答", "ago": 9000},
        {"side": "me", "text": "在的", "ago": 8000},
        {"text": "几天能发货？", "ago": 900},
        {"kind": kind, "text": "未接来电", "ago": 60},
    ]
    phone = in_chat(app, *calls)
    where = await situation_of(phone, reader, app)
    for text in ("对方无应答", "未接来电"):
        words = await button_of(phone, text)
        for point in (*inside(words), Point(words.left - 25, words.center.y), Point(words.right + 25, words.center.y)):
            pair = at(point, where)
            assert not done(Tap(element=pair), where), (text, point)
            assert not done(Swipe(start=pair, end=pair, duration=0.1), where), (text, point)
            assert done(Swipe(start=pair, end=(pair[0], 300)), where)
            # Nor is it, if the line was read and no bubble was made of it.
            assert where.chat is not None
            lost = replace(where, chat=replace(where.chat, bubbles=()))
            assert not done(Tap(element=pair), lost), (text, point)
    assert done(Tap(element=at((await button_of(phone, "几天能发货？")).center, where)), where)
