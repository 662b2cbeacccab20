"""Messages that are no plain text: told apart with the tree and in the picture alone, never taken for words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent_core.apps.profile import AppProfile, profile
from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.perception import tree
from agent_core.perception.kinds import named_kind
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Bubble, BubbleKind, BubbleState, ChatScreen, Side, Source
from agent_core.reply.asked import asked_in
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import MessagePart, Scenario
from simulator.phone.world import Kind
from tests.agent_core.perception.support import NOON, look
from tests.support.ocr import needs_ocr

OCR = OcrEngine()
READERS = [
    pytest.param(ScreenReader(ocr=None, model=None), id="tree"),
    pytest.param(ScreenReader(ocr=OCR, model=None), id="both", marks=needs_ocr),
    pytest.param(ScreenReader(ocr=OCR, model=None, sources=[Source.OCR]), id="picture", marks=needs_ocr),
]
APPS = [pytest.param(profile("qq"), id="qq"), pytest.param(profile("wechat"), id="wechat")]
FILE_NAME = "产品说明书2026版第三次修订稿.pdf"


async def chat(
    reader: ScreenReader, app: AppProfile, *messages: Mapping[str, object], size: tuple[int, int] = (1080, 2400)
) -> ChatScreen:
    history = [MessagePart.model_validate({"ago": 60, **message}) for message in messages]
    contact = {"name": "11", "app": app.key, "history": history}
    phone = VirtualPhone(Scenario.model_validate({"phone": {"size": size}, "contacts": [contact]}), clock=lambda: NOON)
    phone.show_chat("11" if app.key == "qq" else f"{app.key}:11")
    moment = await look(phone)
    found = await reader.chat(moment.frame, moment.nodes, app)
    assert found is not None
    return found


def said(bubble: Bubble) -> str:
    return bubble.text.replace(" ", "")


def is_told(bubble: Bubble, *kinds: BubbleKind) -> bool:
    """Whether a message is of one of these kinds, or is said to be of a kind that nobody knows."""
    return bubble.kind in kinds or (bubble.kind is BubbleKind.OTHER and not bubble.sure)


@pytest.mark.rotating(parts=5)
@pytest.mark.parametrize("size", [(1080, 2400), (720, 1600), (1440, 3200)], ids=str)
@pytest.mark.parametrize("side", ["them", "me"])
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_each_kind(reader: ScreenReader, app: AppProfile, side: str, size: tuple[int, int]) -> None:
    found = await chat(
        reader,
        app,
        {"side": side, "kind": "image"},
        {"side": side, "kind": "video"},
        {"side": side, "kind": "card", "text": "新品上架全场八折"},
        {"side": side, "kind": "call"},
        {"side": side, "kind": "file", "text": FILE_NAME},
        size=size,
    )
    image, video, card, call, file = found.bubbles[-5:]
    assert {bubble.side.value for bubble in found.bubbles} == {side}
    assert is_told(image, BubbleKind.IMAGE)
    assert is_told(video, BubbleKind.VIDEO)
    assert (image.text, video.text) == ("", "")
    assert is_told(card, BubbleKind.CARD)
    assert said(card).startswith("新品上架全场八折")
    assert call.kind is BubbleKind.CALL
    assert "通话时长01:20" in said(call)
    assert is_told(file, BubbleKind.FILE)
    assert said(file).startswith(FILE_NAME[:8])


CALLS = [
    "未接来电", "已取消", "已拒绝", "对方无应答", "对方已取消", "未接听，点击回拨", "忙线未接听", "通话时长 01:20",
    "聊天时长 1:02:03", "通话中断",
]  # fmt: skip


@pytest.mark.rotating(parts=5)
@pytest.mark.parametrize("side", ["them", "me"])
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_what_an_app_says_of_a_call_is_a_call(reader: ScreenReader, app: AppProfile, side: str) -> None:
    for some in (CALLS[:5], CALLS[5:]):
        found = await chat(reader, app, *({"side": side, "kind": "call", "text": text} for text in some))
        assert [(b.kind, said(b), b.side.value) for b in found.bubbles] == [
            (BubbleKind.CALL, text.replace(" ", ""), side) for text in some
        ]


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_a_call_in_the_middle_of_the_page_is_the_customers(reader: ScreenReader, app: AppProfile) -> None:
    found = await chat(
        reader,
        app,
        {"text": "在吗", "ago": 900},
        {"side": "me", "text": "在的", "ago": 800},
        {"kind": "tip", "text": "你们已是好友，可以开始聊天了", "ago": 300},
        {"text": "几天能发货？", "ago": 200},
        {"kind": "tip", "text": "未接来电", "ago": 100},
    )
    assert found.sure, found.doubts
    assert [(b.kind, b.text) for b in found.question] == [
        (BubbleKind.TEXT, "几天能发货？"),
        (BubbleKind.CALL, "未接来电"),
    ]
    told = asked_in(found, "zh")
    assert [(one.words, one.readable, one.whole) for one in told] == [("几天能发货？\n[通话 未接来电]", True, False)]


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_words_about_a_call_or_an_order_are_words(reader: ScreenReader, app: AppProfile) -> None:
    texts = ["订单已取消了吗", "为什么已拒绝退款", "通话时长怎么算", "我打电话没人接听", "未接来电太多了"]
    found = await chat(reader, app, *({"text": text} for text in texts))
    assert [(bubble.kind, bubble.text) for bubble in found.bubbles] == [(BubbleKind.TEXT, text) for text in texts]


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_a_place_and_what_did_not_leave(reader: ScreenReader, app: AppProfile) -> None:
    found = await chat(
        reader,
        app,
        {"kind": "location", "text": "文一西路"},
        {"side": "me", "kind": "location", "text": "仓库", "state": "failed"},
        {"side": "me", "kind": "file", "text": "价目表.xlsx", "state": "failed"},
        {"side": "me", "kind": "file", "text": "价目表.xlsx"},
    )
    assert [bubble.side.value for bubble in found.bubbles] == ["them", "me", "me", "me"]
    assert [bubble.state for bubble in found.bubbles] == [
        BubbleState.OK,
        BubbleState.FAILED,
        BubbleState.FAILED,
        BubbleState.OK,
    ]
    places, files = found.bubbles[:2], found.bubbles[2:]
    assert all(is_told(bubble, BubbleKind.LOCATION, BubbleKind.IMAGE) for bubble in places)
    assert all(is_told(bubble, BubbleKind.FILE) for bubble in files)
    assert all("价目表.xlsx" in said(bubble) for bubble in files)


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("reader", READERS)
async def test_a_quotation_is_kept_apart(reader: ScreenReader, app: AppProfile) -> None:
    """The picture shows it by its ground; QQ's tree may have nothing that names it."""
    found = await chat(
        reader,
        app,
        {"kind": "quote", "text": "这个怎么退？", "quoted": "支持七天无理由"},
        {"side": "me", "text": "退货请寄回仓库"},
        {"kind": "quote", "text": "好的", "quoted": "退货请寄回仓库"},
    )
    assert found.sure, found.doubts
    assert [(b.kind, b.text) for b in found.bubbles] == [
        (BubbleKind.TEXT, "这个怎么退？"),
        (BubbleKind.TEXT, "退货请寄回仓库"),
        (BubbleKind.TEXT, "好的"),
    ]
    quoted = [bubble.quoted for bubble in found.bubbles]
    if found.source is Source.OCR or app.key == "wechat":
        assert "支持七天无理由" in quoted[0]
        assert "退货请寄回仓库" in quoted[2]
    assert quoted[1] == ""


@pytest.mark.parametrize("reader", READERS)
async def test_a_recalled_message_is_no_bubble(reader: ScreenReader) -> None:
    found = await chat(reader, profile("qq"), {"text": "在吗"}, {"kind": Kind.RECALLED, "text": "几天发货"})
    assert [bubble.text for bubble in found.bubbles] == ["在吗"]


@pytest.mark.parametrize("reader", READERS)
async def test_words_that_name_a_kind_are_words(reader: ScreenReader) -> None:
    said = ["文件", "位置", "小程序怎么打开", "视频通话可以吗", "链接发我一下"]
    found = await chat(reader, profile("qq"), *({"text": text} for text in said))
    assert [(bubble.kind, bubble.text) for bubble in found.bubbles] == [(BubbleKind.TEXT, text) for text in said]


@pytest.mark.parametrize("reader", READERS)
async def test_texts_with_emoji_and_long_ones_are_no_cards(reader: ScreenReader) -> None:
    said = ["😊😊😊😊", "黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑黑", "■■■一共三件"]
    found = await chat(reader, profile("wechat"), *({"text": text} for text in said))
    assert [bubble.kind for bubble in found.bubbles[1:]] == [BubbleKind.TEXT] * 2
    assert found.bubbles[0].kind in (BubbleKind.TEXT, BubbleKind.STICKER)


SIZE = (1080, 2400)


def node(box: tuple[int, int, int, int], text: str = "", name: str = "", description: str = "") -> Node:
    resource = f"com.tencent.mobileqq:id/{name}" if name else ""
    return Node(Box(*box), text, description, resource, "android.widget.TextView", "com.tencent.mobileqq")


def page(*nodes: Node) -> list[Node]:
    entry = Node(
        Box(28, 2100, 870, 2200),
        resource_id="com.tencent.mobileqq:id/input",
        class_name="android.widget.EditText",
        package="com.tencent.mobileqq",
    )
    return [node((150, 122, 300, 194), "11", "title"), *nodes, entry]


def test_several_texts_that_nobody_names_are_no_words_of_a_person() -> None:
    nodes = page(
        node((146, 400, 786, 600), name="chat_item_content_layout"),
        node((170, 420, 700, 460), "优惠券已到账"),
        node((170, 500, 700, 540), "点击领取"),
    )
    found = tree.chat(nodes, profile("qq"), SIZE)
    assert found is not None
    assert [(b.kind, b.text) for b in found.bubbles] == [(BubbleKind.OTHER, "优惠券已到账\n点击领取")]


def test_a_text_below_its_layout_is_a_text() -> None:
    nodes = page(
        node((146, 400, 786, 600), name="chat_item_content_layout"),
        node((170, 500, 700, 540), "几天发货"),
        node((170, 420, 700, 460), "好的", "chat_item_quote"),
    )
    found = tree.chat(nodes, profile("qq"), SIZE)
    assert found is not None
    assert [(b.kind, b.text, b.quoted, b.side) for b in found.bubbles] == [
        (BubbleKind.TEXT, "几天发货", "好的", Side.THEM)
    ]


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("文件", BubbleKind.FILE),
        ("文件，说明书", BubbleKind.FILE),
        ("文件夹", BubbleKind.OTHER),
        ("位置", BubbleKind.LOCATION),
        ("微信小程序", BubbleKind.CARD),
        ("语音通话", BubbleKind.CALL),
        ("视频", BubbleKind.VIDEO),
        ("语音7秒", BubbleKind.VOICE),
        ("", BubbleKind.OTHER),
    ],
)
def test_what_an_app_calls_a_message(description: str, kind: BubbleKind) -> None:
    assert named_kind(description) is kind
