"""Pages on which something lies over the messages, or stands where no message is: nothing is lost without a doubt."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from agent_core.geometry import Box
from agent_core.perception import layout
from agent_core.perception.pixels import Grid
from agent_core.perception.readings import BubbleKind, ChatScreen, DoubtKind
from agent_core.texts.layout import font
from simulator.phone.scenario import MessagePart, PhonePart
from simulator.phone.world import Kind
from tests.agent_core.perception.support import me, read_picture, them
from tests.support.drawing import Drawn, draw
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr

BOTH = ["qq-plain", "wechat-light"]
ASKED = ["这个充电宝能带上飞机吗", "不要发货了"]
UNKNOWN = DoubtKind.UNKNOWN_PART


def kinds(found: ChatScreen) -> set[DoubtKind]:
    return {doubt.kind for doubt in found.doubts}


def boxes(drawn: Drawn) -> list[Box]:
    return [bubble.box for bubble in drawn.truth.bubbles if bubble.box is not None]


def covered(drawn: Drawn, box: tuple[int, int, int, int]) -> Image.Image:
    image = drawn.image.copy()
    ImageDraw.Draw(image).rounded_rectangle(box, (box[3] - box[1]) // 2, fill="#ffffff")
    return image


# Over the messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "right"), [(800, 1080), (930, 1040), (1000, 1050)], ids=["chip", "ball", "bar"])
@pytest.mark.parametrize("look", BOTH)
async def test_what_bridges_two_messages_hides_neither(look: str, left: int, right: int) -> None:
    drawn = draw(look, "小王", [me("好的", 90), *(them(text, 60 - at) for at, text in enumerate(ASKED))])
    first, second = boxes(drawn)[1:]
    found = await read_picture(covered(drawn, (left, first.bottom - 20, right, second.top + 50)), look)
    assert [bubble.text for bubble in found.question] == ASKED
    assert UNKNOWN in kinds(found) or right - left <= 50


@pytest.mark.parametrize("look", BOTH)
async def test_what_lies_over_a_message_is_a_doubt(look: str) -> None:
    drawn = draw(look, "小王", [me("好的", 90), them(ASKED[0], 60)])
    box = boxes(drawn)[1]
    found = await read_picture(covered(drawn, (box.right - 60, box.bottom - 50, 1060, box.bottom + 30)), look)
    assert UNKNOWN in kinds(found)


@pytest.mark.parametrize("look", BOTH)
async def test_a_ball_where_our_avatar_would_be_does_not_cut_a_message_in_two(look: str) -> None:
    """It bridges the gap between two messages of the customer's, beside the end of a long one."""
    asked = [ASKED[0] * 5, ASKED[1]]
    drawn = draw(look, "小王", [me("好的", 90), *(them(text, 60 - at) for at, text in enumerate(asked))])
    first, second = boxes(drawn)[1:]
    found = await read_picture(covered(drawn, (938, first.bottom - 62, 1048, second.top + 4)), look)
    assert UNKNOWN in kinds(found)
    assert found.bubbles[-1].text == ASKED[1]


@pytest.mark.parametrize("look", BOTH)
async def test_what_lies_over_a_message_that_was_answered_is_no_doubt(look: str) -> None:
    drawn = draw(look, "小王", [them(ASKED[0], 90), me("可以的", 60), them(ASKED[1], 30)])
    box = boxes(drawn)[0]
    found = await read_picture(covered(drawn, (box.right - 60, box.bottom - 40, 1060, box.bottom + 30)), look)
    assert found.sure, found.doubts
    assert [bubble.text for bubble in found.question] == ASKED[1:]


@pytest.mark.parametrize("chip", ["↑ 12条新消息", "↓ 3条新消息"])
@pytest.mark.parametrize("look", BOTH)
async def test_a_chip_that_leads_to_other_messages_is_a_doubt(look: str, chip: str) -> None:
    history = [them(ASKED[0], 90), them(ASKED[1], 60)]
    assert (await read_picture(draw(look, "小王", history).image, look)).sure
    assert not (await read_picture(draw(look, "小王", history, chip=chip).image, look)).sure


# Close below a message ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", BOTH)
async def test_a_second_bubble_without_an_avatar_is_a_doubt_but_below_a_voice_message(look: str) -> None:
    drawn = draw(look, "小王", [me("好的", 90), them(ASKED[0], 60)])
    box, image = boxes(drawn)[1], drawn.image.copy()
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((box.left, box.bottom + 14, box.left + 420, box.bottom + 122), 12, fill="#ffffff")
    pen.text((box.left + 33, box.bottom + 68), ASKED[1], font=font(45), fill="#1a1a1a", anchor="lm")
    found = await read_picture(image, look)
    assert not found.sure
    assert DoubtKind.NO_AVATAR in kinds(found)


async def test_a_quotation_is_found_in_the_longest_message() -> None:
    text = "这一款充电宝能带上飞机吗我下周要出差想问一下容量是不是在允许的范围里面" * 8
    part = MessagePart(kind=Kind.QUOTE, text=text, quoted="好的", ago=60)
    found = await read_picture(draw("qq-plain", "小王", [me("好的", 90), part], height=2772).image, "qq-plain")
    assert found.sure, found.doubts
    newest = found.bubbles[-1]
    assert (newest.kind, len(newest.text)) == (BubbleKind.TEXT, len(text))
    assert "好的" in newest.quoted


# The status bar -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["中国移动", "中国移动 4G", "CMCC"])
@pytest.mark.parametrize("look", [*BOTH, "wechat-dark"])
async def test_an_operator_in_the_status_bar_is_no_header(look: str, operator: str) -> None:
    drawn = draw(look, "小王", [them("在吗", 60)], phone=PhonePart(operator=operator))
    found = await read_picture(drawn.image, look)
    assert (found.title, found.title_sure) == ("小王", True)


@pytest.mark.parametrize("text", ["4:05", "中国移动", "C", "<小王"])
def test_letters_are_no_arrow_that_leads_back(text: str) -> None:
    image = Image.new("RGB", (1080, 2400), "#f5f6fa")
    ImageDraw.Draw(image).text((32, 190), text, font=font(60), fill="#1a1a1a", anchor="lm")
    assert layout.header(Grid.of(image)) is None
