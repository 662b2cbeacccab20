"""The chat pages and lists of the WeChat-like app, whose titles stand in the middle."""

from __future__ import annotations

import pytest

from agent_core.apps.profile import profile
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import BubbleKind, BubbleState, ChatScreen, Side, Source
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import MessagePart, PhonePart, Scenario
from simulator.phone.world import Kind, MessageState
from tests.support.ocr import needs_ocr

from .support import LONG, NOON, image, look, me, them

WECHAT = profile("wechat")
OCR = OcrEngine()
READERS = [
    pytest.param(ScreenReader(ocr=None, model=None), id="tree"),
    pytest.param(ScreenReader(ocr=OCR, model=None), id="both", marks=needs_ocr),
    pytest.param(ScreenReader(ocr=OCR, model=None, sources=[Source.OCR]), id="picture", marks=needs_ocr),
]
SEES = READERS[1:]


def scene(
    *messages: MessagePart,
    name: str = "11",
    size: tuple[int, int] = (1080, 2400),
    members: int = 0,
    draft: str = "",
    banner: bool = False,
) -> Scenario:
    contact = {"app": "wechat", "name": name, "history": list(messages), "members": members, "draft": draft}
    contact["kind"] = "group" if members else "friend"
    same = {"name": name, "history": [them("在QQ里写的", 30)]}
    other = {"app": "wechat", "name": "文件传输助手", "history": [me("排班表", 9000)]}
    return Scenario.model_validate(
        {"phone": PhonePart(size=size), "contacts": [contact, same, other], "faults": {"banner": banner}}
    )


async def open_chat(world: Scenario, *, typing: bool = False) -> VirtualPhone:
    phone = VirtualPhone(world, clock=lambda: NOON)
    phone.show_chat(world.contacts[0].key)
    if typing:
        field = next(node for node in await phone.tree() if node.class_name.endswith("EditText"))
        await phone.tap(field.box.center.x, field.box.center.y)
    return phone


async def sure_chat(reader: ScreenReader, phone: VirtualPhone) -> ChatScreen:
    moment = await look(phone)
    found = await reader.chat(moment.frame, moment.nodes, WECHAT)
    assert found is not None
    assert found.sure, found.doubts
    return found


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("size", [(1080, 2400), (720, 1600), (1080, 1920)], ids=str)
async def test_a_chat_is_read_whole(reader: ScreenReader, size: tuple[int, int]) -> None:
    talk = (them("在吗？", 4000), me("在的，请讲", 3900), them("几天能发货？", 100), them(LONG, 90))
    found = await sure_chat(reader, await open_chat(scene(*talk, size=size)))
    assert (found.title, found.draft) == ("11", "")
    assert [(b.side, b.text) for b in found.bubbles[:3]] == [
        (Side.THEM, "在吗？"),
        (Side.ME, "在的，请讲"),
        (Side.THEM, "几天能发货？"),
    ]
    assert len(found.question) == 2


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["11", "1", "老客户A", "王经理的小助手"])
async def test_titles_in_the_middle(reader: ScreenReader, name: str) -> None:
    found = await sure_chat(reader, await open_chat(scene(them("你好"), name=name)))
    assert found.title == name


@pytest.mark.parametrize("reader", READERS)
async def test_a_title_too_long_is_whole_in_the_tree_and_cut_off_in_the_picture(reader: ScreenReader) -> None:
    name = "上海虹桥机场店王经理的小助手"
    found = await sure_chat(reader, await open_chat(scene(them("你好"), name=name)))
    assert found.title == name or (found.title.endswith("…") and name.startswith(found.title[:-1]))


@pytest.mark.parametrize("reader", READERS)
async def test_a_group_is_named_with_its_members(reader: ScreenReader) -> None:
    found = await sure_chat(reader, await open_chat(scene(them("你好", sender="老客户B"), name="11", members=38)))
    assert found.title == "11(38)"
    assert [b.text for b in found.bubbles] == ["你好"]


@pytest.mark.parametrize("reader", READERS)
async def test_states_kinds_and_notices(reader: ScreenReader) -> None:
    world = scene(
        me("第一条", 3000, MessageState.FAILED),
        me("第二条", 2000, MessageState.SENDING),
        image(Kind.STICKER, 80),
        image(Kind.VOICE, 70, "7"),
        image(Kind.RED_PACKET, 60),
        image(Kind.RECALLED, 10),
    )
    found = await sure_chat(reader, await open_chat(world))
    assert [(b.kind, b.state) for b in found.bubbles] == [
        (BubbleKind.TEXT, BubbleState.FAILED),
        (BubbleKind.TEXT, BubbleState.SENDING),
        (BubbleKind.STICKER, BubbleState.OK),
        (BubbleKind.VOICE, BubbleState.OK),
        (BubbleKind.RED_PACKET, BubbleState.OK),
    ]


@pytest.mark.parametrize("reader", READERS)
async def test_what_stands_in_the_input_and_where_it_is_sent(reader: ScreenReader) -> None:
    phone = await open_chat(scene(them("你好"), draft="好的，马上发"), typing=True)
    found = await sure_chat(reader, phone)
    assert found.draft == "好的，马上发"
    assert found.send_point is not None
    await phone.tap(found.send_point.x, found.send_point.y)
    assert phone.report()["sent"] == {"wechat:11": ["好的，马上发"]}
    assert (await sure_chat(reader, phone)).bubbles[-1].text == "好的，马上发"


@pytest.mark.parametrize("reader", READERS)
async def test_the_strip_of_no_network_is_no_message(reader: ScreenReader) -> None:
    worlds = (
        (scene(them("几天发货"), banner=True), True),
        (scene(me("好的", 500), *(them(f"第{number}条", 100 - number) for number in range(20)), banner=True), False),
    )
    for world, whole in worlds:
        moment = await look(await open_chat(world))
        found = await reader.chat(moment.frame, moment.nodes, WECHAT)
        assert found is not None
        assert found.bubbles[-1].text in ("几天发货", "第19条")
        assert all("网络" not in bubble.text for bubble in found.bubbles)
        assert found.sure or (not whole and found.partial)


@pytest.mark.parametrize("reader", SEES[1:])
async def test_a_message_that_the_strip_cuts_is_a_doubt(reader: ScreenReader) -> None:
    many = [them(f"第{number}条", 100 - number) for number in range(10)]
    moment = await look(await open_chat(scene(them(LONG, 200), *many, banner=True)))
    found = await reader.chat(moment.frame, None, WECHAT)
    assert found is not None
    assert not found.sure
    assert [b.text for b in found.bubbles[-10:]] == [f"第{number}条" for number in range(10)]
    assert all(bubble.box is not None and bubble.box.top > 310 for bubble in found.bubbles)


@pytest.mark.parametrize("reader", SEES)
async def test_the_list(reader: ScreenReader) -> None:
    phone = VirtualPhone(scene(them("几天发货", unread=True), banner=True), clock=lambda: NOON)
    await phone.launch(WECHAT.packages[0])
    moment = await look(phone)
    rows = await reader.rows(moment.frame, moment.nodes)
    assert [(row.name, row.unread) for row in rows] == [("11", 1), ("文件传输助手", 0)]
    await phone.tap(rows[0].box.center.x, rows[0].box.center.y)
    assert phone.report()["chats_opened"] == ["wechat:11"]


@pytest.mark.parametrize("reader", SEES)
async def test_a_name_that_looks_like_another_is_never_surely_that_one(reader: ScreenReader) -> None:
    moment = await look(await open_chat(scene(them("你好"), name="l1")))
    found = await reader.chat(moment.frame, moment.nodes, WECHAT)
    assert found is not None
    assert not (found.sure and found.title == "11")
