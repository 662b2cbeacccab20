from __future__ import annotations

import io
import re

import pytest
from PIL import Image

from agent_core.geometry import Box
from agent_core.perception.observer import SeenPage
from agent_core.perception.page_report import ReadPage, report
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Doubt, DoubtKind, SendState, Side, Source
from agent_core.texts import Lang
from bot.channels.chat.cards import Card, screen_action
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.screen import Wish, page_lines, read_screen
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Incoming, Person
from bot.desk.actors import ChatRef, Role
from tests.support.stage import NOW, Stage

CHAT = ChatRef("telegram", "11")


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", ("", "")),
        ("S1", ("S1", "")),
        ("file", ("", "file")),
        ("S1 文件", ("S1", "file")),
        ("“S1” File", ("S1", "file")),
        ("file S1", ("file S1", "")),
        ("read", ("", "read")),
        ("S1 识别", ("S1", "read")),
    ],
)
def test_what_is_meant(rest: str, read: object) -> None:
    assert read_screen(rest) == read


@pytest.mark.parametrize("serial", ["", "S1", "127.0.0.1:5555", "x" * 70])
def test_buttons_are_short_enough_and_read_back(serial: str) -> None:
    wishes: tuple[Wish, ...] = ("", "file", "read")
    for wish in wishes:
        action = screen_action(serial, wish)
        assert len(action.encode()) <= 64
        assert read_screen(action.partition(":")[2]) == (serial if len(serial) < 50 else "", wish)


async def test_a_photo_and_the_file_of_it(stage: Stage) -> None:
    stage.image = Image.new("RGB", (1080, 2400), "green")
    conversation = await talk(stage)

    async def card_of(**incoming: str) -> Card:
        kind = "button" if "action" in incoming else "text"
        said = await conversation.handle(Incoming(kind, Person("11", "A"), CHAT, "k", **incoming))  # type: ignore[arg-type]  # one of its kinds, and texts
        return said.messages[0].card

    photo = await card_of(text="/screen S1")
    assert photo.document is None
    assert photo.picture is not None
    with Image.open(io.BytesIO(photo.picture)) as small:
        assert small.size == (540, 1200)  # made smaller for the chat
    labels = [button.label for row in photo.buttons for button in row]
    assert labels == ["看屏幕", "原图"]
    for asked in ({"action": "screen:S1 file"}, {"text": "/screen S1 file"}):
        file = await card_of(**asked)
        assert file.picture is None
        assert file.document is not None
        assert file.document.name == "screen-20261120-093000.jpg"
        with Image.open(io.BytesIO(file.document.data)) as full:
            assert full.size == stage.image.size
    assert (await card_of(action="screen")).picture == photo.picture


async def talk(stage: Stage) -> Conversation:
    await stage.join(11, "Operator A", Role.VIEWER)
    return Conversation(stage.desk, clock=lambda: NOW)


async def answered(conversation: Conversation, text: str) -> Card:
    said = await conversation.handle(Incoming("text", Person("11", "A"), CHAT, "k", text))
    return said.messages[0].card


async def test_what_is_read_is_summed_up_and_marked_on_the_picture(stage: Stage) -> None:
    conversation = await talk(stage)
    asked = Box(40, 200, 300, 260)
    chat = ChatScreen(
        title="11",
        bubbles=(
            Bubble(Side.ME, "在的", Box(200, 100, 320, 150)),
            Bubble(Side.THEM, "能带上高铁吗？", asked, sure=False),
            Bubble(Side.THEM, "", Box(40, 280, 200, 400), BubbleKind.VIDEO),
        ),
        draft="",
        source=Source.OCR,
        input_box=Box(20, 740, 260, 780),
        send_state=SendState.ABSENT,
    )
    stage.page = SeenPage(Image.new("RGB", (360, 800), "white"), ReadPage(chat), "QQ")
    card = await answered(conversation, "/screen S1 识别")
    told = [f"{line.label}: {line.text}" if line.label else line.text for line in card.lines]
    assert told == [
        "Pixel",
        "页面: QQ 聊天",
        "标题: 11",
        "1. 我方 · 文字：在的",
        "▶ 2. 对方 · 文字：能带上高铁吗？（不确定）",
        "▶ 3. 对方 · 图片",
        "待回复: 第 2、3 条",
        "输入框: 空",
        "发送: 没有按钮，输入文字后才出现",
    ]
    assert [button.action for row in card.buttons for button in row] == ["screen:S1 read", "screen:S1"]
    assert card.picture is not None
    with Image.open(io.BytesIO(card.picture)) as picture:
        edge = picture.convert("RGB").getpixel((asked.left - 4, asked.center.y))
        inside = picture.convert("RGB").getpixel((asked.center.x, asked.center.y))
    assert isinstance(edge, tuple)
    assert edge[0] > 200 > 120 > edge[1]  # the question's red
    assert inside == (255, 255, 255)


async def test_of_a_page_of_no_chat_app_the_picture_comes_as_it_is(stage: Stage) -> None:
    conversation = await talk(stage)
    card = await answered(conversation, "/screen read")
    assert [line.text for line in card.lines] == ["不是聊天，也不是消息列表"]
    assert card.picture is not None
    with Image.open(io.BytesIO(card.picture)) as picture:
        assert picture.convert("RGB").getcolors() == [(360 * 800, (255, 255, 255))]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_doubts_are_told_in_the_persons_language(lang: Lang) -> None:
    doubts = tuple(Doubt(kind, "title" if kind is DoubtKind.SAID_WRONG else "你; 好", "{b}") for kind in DoubtKind)
    chat = ChatScreen(title="11", bubbles=(), draft="", source=Source.OCR, sure=False, doubts=doubts, title_sure=False)
    lines = page_lines(report(ReadPage(chat), lang), "QQ", texts(lang))
    said = [line.text for line in lines if line.label == texts(lang).get("reading.doubt")]
    assert len(said) == len(DoubtKind), "one line each"
    without = "".join(said).replace("你; 好", "").replace("{b}", "")
    assert bool(re.search(r"[\u4e00-\u9fff]", without)) is (lang == "zh")
    assert ("标题可能是“你; 好”" in said) is (lang == "zh")


def test_a_title_that_is_not_sure_is_marked() -> None:
    chat = ChatScreen(title="11", bubbles=(), draft="", source=Source.OCR, sure=False, title_sure=False)
    lines = page_lines(report(ReadPage(chat), "zh"), "QQ", texts("zh"))
    assert "11（不确定）" in [line.text for line in lines]
