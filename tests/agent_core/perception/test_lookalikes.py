"""Messages that a recogniser takes for others: pictures with words, emoji and signs alone, words that name a kind."""

from __future__ import annotations

import pytest

from agent_core.perception.readings import Bubble, BubbleKind
from simulator.phone.scenario import MessagePart
from simulator.phone.world import Kind
from tests.agent_core.perception.support import me, read_picture, them
from tests.support.drawing import draw
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr

BOTH = ["qq-plain", "wechat-light"]


async def answers(look: str, *messages: MessagePart, scale: float = 1.0) -> list[Bubble]:
    """What stands below a message of ours."""
    drawn = draw(look, "小王", [me("请发一下订单号", 90), *messages], font_scale=scale)
    found = await read_picture(drawn.image, look)
    assert len(found.question) == len(messages)
    return list(found.question)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("订单号 202511220001", (460, 110)),
        ("订单号 20251122\n实付款 128.00 元", (420, 130)),
        ("运单号 SF123", (500, 90)),
    ],
)
@pytest.mark.parametrize("look", BOTH)
async def test_a_white_picture_with_a_line_of_small_letters_is_no_text(
    look: str, text: str, size: tuple[int, int]
) -> None:
    scrap = MessagePart(kind=Kind.IMAGE, paper=True, text=text, size=size, ago=60)
    (found,) = await answers(look, scrap)
    assert found.kind is BubbleKind.IMAGE or not found.sure


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("scale", [0.85, 1.0, 1.3])
@pytest.mark.parametrize("look", BOTH)
async def test_short_and_long_texts_with_emoji_and_digits_are_sure(look: str, scale: float) -> None:
    texts = [
        "在吗",
        "128元",
        "嗯",
        "上一个",
        "好的😊",
        "SF123",
        "1.5米的和15米的有什么不一样？",
        "看 https://example.com/goods",
        "第一行\n第二行👍",
    ]
    found = await answers(look, *(them(text, 60 - at) for at, text in enumerate(texts)), scale=scale)
    assert [bubble.text for bubble in found if not bubble.sure] == []
    assert {bubble.kind for bubble in found} == {BubbleKind.TEXT}


@pytest.mark.parametrize("look", [*BOTH, "qq-dark"])
async def test_emoji_alone_are_no_words(look: str) -> None:
    emoji = ["😊", "😂", "👍👍", "❤", "🎁", "🌹", "🔥", "🙏🙏🙏"]
    found = await answers(look, *(them(text, 60 - at) for at, text in enumerate(emoji)))
    assert [bubble.text for bubble in found if bubble.kind is not BubbleKind.STICKER and bubble.sure] == []


@pytest.mark.parametrize("look", BOTH)
async def test_a_sign_alone_is_no_digit(look: str) -> None:
    found = await answers(look, *(them(text, 60 - at) for at, text in enumerate(["。", "/", ".", "l", "√"])))
    assert [bubble.text for bubble in found if bubble.sure and bubble.text.isalnum()] == []
    (stroke,) = await answers(look, them("-", 60))
    assert not stroke.sure
    digits = await answers(look, *(them(text, 60 - at) for at, text in enumerate(["1", "0", "7"])))
    assert [(bubble.text, bubble.sure) for bubble in digits] == [("1", True), ("0", True), ("7", True)]


@pytest.mark.parametrize("look", BOTH)
async def test_words_that_name_a_kind_are_words_in_a_picture(look: str) -> None:
    said = ["照片", "视频", "语音", "红包", "表情包", "贴纸", "已取消", '24"']
    found = await answers(look, *(them(text, 60 - at) for at, text in enumerate(said)))
    assert [(bubble.kind, bubble.text) for bubble in found] == [(BubbleKind.TEXT, text) for text in said]


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("size", [(280, 250), (200, 300), (150, 150)])
@pytest.mark.parametrize("look", [*BOTH, "wechat-dark"])
async def test_a_small_photo_is_no_sticker(look: str, size: tuple[int, int]) -> None:
    photo, sticker = await answers(
        look, MessagePart(kind=Kind.IMAGE, size=size, ago=60), MessagePart(kind=Kind.STICKER, ago=50)
    )
    assert photo.kind is BubbleKind.IMAGE
    assert sticker.kind in (BubbleKind.STICKER, BubbleKind.IMAGE)


async def test_a_small_photo_below_a_nickname_is_no_sticker() -> None:
    photo = MessagePart(kind=Kind.IMAGE, size=(290, 150), sender="小张", ago=60)
    found = await read_picture(draw("qq-dark", "售后群", [photo], members=3, font_scale=1.3).image, "qq-dark")
    assert [bubble.kind for bubble in found.bubbles] == [BubbleKind.IMAGE]


async def test_a_text_on_a_ground_of_its_own_may_be_a_picture() -> None:
    """At small letters a screenshot has letters as large."""
    scrap = MessagePart(kind=Kind.IMAGE, paper=True, text="运单号 SF1234567890", size=(500, 105), ago=50)
    *texts, picture = await answers("qq-dark", them("能开发票吗", 70), them("在吗", 60), scrap, scale=0.85)
    assert [text.sure for text in texts] == [True, True]
    assert picture.kind is BubbleKind.IMAGE or not picture.sure


@pytest.mark.parametrize("look", BOTH)
async def test_lines_far_apart_are_those_of_a_picture(look: str) -> None:
    scrap = MessagePart(
        kind=Kind.IMAGE, paper=True, text="实付款 128.00 元\n运单号 SF1234567890", size=(460, 140), ago=50
    )
    text, picture = await answers(look, them("第一行字\n\n第三行字", 60), scrap, scale=0.7)
    assert text.sure
    assert picture.kind is BubbleKind.IMAGE or not picture.sure


@pytest.mark.parametrize(("text", "size"), [("实付款 128.00 元\n已签收", (508, 174)), ("已签收", (470, 105))])
async def test_beside_the_lines_of_a_text_is_no_room(text: str, size: tuple[int, int]) -> None:
    """The only text of the page: nothing tells how large letters are here."""
    scrap = MessagePart(kind=Kind.IMAGE, paper=True, text=text, size=size, ago=60)
    (picture,) = await answers("qq-classic", scrap)
    assert picture.kind is BubbleKind.IMAGE or not picture.sure
    texts = await answers(
        "qq-classic", them("在吗👍👍👍", 80), them("长一点的一行\n短", 70), them("Hello, is it here?👍", 60)
    )
    assert [text.sure for text in texts] == [True] * 3


@pytest.mark.parametrize("look", BOTH)
async def test_a_card_with_a_title_of_two_lines_is_no_text(look: str) -> None:
    card = MessagePart(kind=Kind.CARD, text="新品上架全场八折，点击查看详情", ago=60)
    drawn = draw(look, "小王", [me("请发一下", 90), card], width=1440)
    (found,) = (await read_picture(drawn.image, look)).question
    assert found.kind is BubbleKind.CARD or not found.sure
