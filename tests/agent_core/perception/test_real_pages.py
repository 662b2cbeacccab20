"""Chat pages as QQ and WeChat draw them, read from the picture alone: the parts of a page, told by their shapes."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.geometry import Box
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import BubbleKind, ChatScreen, DoubtKind, SendState, Side, Source
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import MessagePart, PhonePart
from simulator.phone.world import Kind, Sign
from tests.agent_core.perception.support import LONG, me, them
from tests.support.drawing import Drawn, draw
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr

LOOKED_AT = ["qq-plain", "qq-classic", "qq-dark", "wechat-light", "wechat-dark", "wechat-voice"]
BOTH = ["qq-plain", "wechat-light"]
READER = ScreenReader(ocr=OcrEngine(), model=None, sources=[Source.OCR])
TALK = (them("在吗？", 4000), me("在的，请讲", 3900), them("几天能发货？", 100), them("发顺丰还是中通", 90))


def kinds(chat: ChatScreen) -> set[DoubtKind]:
    return {doubt.kind for doubt in chat.doubts}


async def seen_in(image: Image.Image, look: str) -> ChatScreen:
    found = await READER.chat(Frame(image, str(id(image)), 0.0), None, profile(LOOKS[look].app))
    assert found is not None
    return found


async def read(drawn: Drawn, look: str, *, sure: bool = True) -> ChatScreen:
    found = await seen_in(drawn.image, look)
    assert found.sure is sure, found.doubts
    return found


def close(one: Box | None, other: Box | None) -> bool:
    """Whether two boxes are the same but for what a small copy of the picture leaves out."""
    if one is None or other is None:
        return one is other
    return all(abs(a - b) <= 12 for a, b in zip(one.as_tuple(), other.as_tuple(), strict=True))


def said(screen: ChatScreen) -> list[tuple[Side, BubbleKind, str]]:
    return [(bubble.side, bubble.kind, bubble.text) for bubble in screen.bubbles]


# The whole page -------------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("look", LOOKED_AT)
async def test_a_chat_is_read_whole(look: str) -> None:
    drawn = draw(look, "11", TALK)
    found = await read(drawn, look)
    assert found.title == "11"
    assert [(b.side, b.text) for b in found.bubbles] == [(b.side, b.text) for b in drawn.truth.bubbles]
    assert [b.text for b in found.question] == ["几天能发货？", "发顺丰还是中通"]
    assert all(close(bubble.box, real.box) for bubble, real in zip(found.bubbles, drawn.truth.bubbles, strict=True))
    assert not found.group
    assert found.draft == ""
    assert found.send_state is drawn.truth.send_state
    assert close(found.input_box, drawn.truth.input_box)
    assert close(found.send_box, drawn.truth.send_box)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("look", LOOKED_AT)
async def test_what_was_typed_and_the_button_that_sends_it(look: str) -> None:
    drawn = draw(look, "11", TALK, draft="好的，马上为您查询")
    found = await read(drawn, look)
    if drawn.truth.draft is None:
        assert found.keyboard_icon is not None
        return
    assert (found.draft, found.send_state) == ("好的，马上为您查询", SendState.ON)
    assert drawn.truth.send_box is not None
    assert found.send_point is not None
    assert drawn.truth.send_box.contains(found.send_point)


async def test_the_bar_to_hold_and_talk_has_no_input_but_an_icon_that_brings_it() -> None:
    drawn = draw("wechat-voice", "11", TALK)
    found = await read(drawn, "wechat-voice")
    assert (found.draft, found.input_box, found.send_point) == ("", None, None)
    assert found.keyboard_icon is not None
    assert drawn.truth.keyboard_icon is not None
    assert drawn.truth.keyboard_icon.contains(found.keyboard_icon)


async def test_a_dimmed_send_and_none_at_all_are_told_apart() -> None:
    classic, plain = [await read(draw(look, "11", TALK), look) for look in ("qq-classic", "qq-plain")]
    assert (classic.send_state, plain.send_state) == (SendState.DIMMED, SendState.ABSENT)
    assert plain.send_point is None


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize(("width", "scale"), [(720, 1.0), (1280, 0.85), (1440, 1.0), (1080, 1.3)])
@pytest.mark.parametrize("look", BOTH)
async def test_other_widths_and_sizes_of_letters(look: str, width: int, scale: float) -> None:
    found = await read(draw(look, "小王", TALK, width=width, font_scale=scale), look)
    assert found.title == "小王"
    assert [b.text for b in found.bubbles] == [part.text for part in TALK]


# The header -----------------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("unread", [0, 3, 12, 120])
@pytest.mark.parametrize("name", ["11", "1小王", "12", "111"])
@pytest.mark.parametrize("look", BOTH)
async def test_the_count_beside_the_arrow_is_no_part_of_the_name(look: str, name: str, unread: int) -> None:
    drawn = draw(look, name, TALK[:1], unread=unread)
    found = await read(drawn, look)
    assert found.title == name
    assert found.title_box is not None
    assert found.title_box.intersects(drawn.truth.title_box)
    assert found.title_box.left > drawn.truth.title_box.left - 0.02 * drawn.image.width  # without the pill


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("signs", [[sign] for sign in Sign] + [[Sign.ROBOT, Sign.EAR]], ids=str)
@pytest.mark.parametrize("look", BOTH)
async def test_signs_behind_the_name_are_no_part_of_it(look: str, signs: Sequence[Sign]) -> None:
    drawn = draw(look, "小王", TALK[:1], signs=signs)
    found = await seen_in(drawn.image, look)
    assert found.title == "小王"
    assert found.title_sure is (Sign.FIRE not in signs)  # what is coloured all over may be an emoji of the name


@pytest.mark.parametrize("status", ["在线", "在线 - 4G", "对方正在输入..."])
@pytest.mark.parametrize("look", ["qq-plain", "qq-dark"])
async def test_the_status_line_is_no_part_of_the_name(look: str, status: str) -> None:
    found = await read(draw(look, "11", TALK[:1], status=status, unread=12), look)
    assert found.title == "11"


@pytest.mark.parametrize("look", BOTH)
async def test_two_names_that_look_alike_have_prints_of_their_own(look: str) -> None:
    """A status line, signs or a pill change nothing of a title's print; another name does."""
    plain = await seen_in(draw(look, "11", TALK[:1]).image, look)
    signed = await seen_in(draw(look, "11", TALK[:1], signs=[Sign.EAR]).image, look)
    other = await seen_in(draw(look, "l1", TALK[:1]).image, look)
    assert plain.title_print
    assert plain.title_print != other.title_print
    assert (signed.title, signed.title_sure) == ("11", True)


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("members", [3, 496])
@pytest.mark.parametrize("look", LOOKED_AT)
async def test_a_count_of_members_makes_a_group(look: str, members: int) -> None:
    drawn = draw(look, "售后群", [them("公告看到了", 90, sender="老客户B"), me("很好", 70)], members=members)
    found = await read(drawn, look)
    assert found.group
    assert found.title == f"售后群({members})"
    assert [b.text for b in found.bubbles] == ["公告看到了", "很好"]


# Whose a message is ---------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("look", ["qq-dark", "wechat-light"])
async def test_the_avatar_tells_whose_a_message_is_whatever_its_colour(look: str) -> None:
    """Long bubbles reach nearly as far to both sides."""
    drawn = draw(look, "11", [them(LONG, 90), me(LONG, 80), me("一", 70), them("一", 60)])
    found = await read(drawn, look)
    assert [b.side for b in found.bubbles] == [b.side for b in drawn.truth.bubbles]


@pytest.mark.parametrize("look", BOTH)
async def test_a_message_without_an_avatar_is_a_doubt(look: str) -> None:
    drawn = draw(look, "11", [me("好的", 90), them("几天能发货？", 60)])
    box = drawn.truth.bubbles[1].box
    assert box is not None
    image = drawn.image.copy()
    image.paste(LOOKS[look].colors.page, (0, box.top - 20, box.left - 16, box.bottom + 20))
    found = await seen_in(image, look)
    assert not found.sure
    assert DoubtKind.NO_AVATAR in kinds(found)
    assert not found.bubbles[-1].sure


async def test_a_bubble_of_a_colour_nobody_knows_is_read_as_any_other() -> None:
    drawn = draw("qq-plain", "11", [them("几天能发货？", 90), me("您好，48小时内", 60)])
    box = drawn.truth.bubbles[1].box
    assert box is not None
    image = drawn.image.copy()
    crop = image.crop(box.as_tuple())
    red, green, blue = crop.split()
    image.paste(Image.merge("RGB", (blue, red, green)), box.as_tuple()[:2])  # green
    found = await seen_in(image, "qq-plain")
    assert found.sure, found.doubts
    assert said(found)[-1] == (Side.ME, BubbleKind.TEXT, "您好，48小时内")


# Quotations -----------------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("look", LOOKED_AT)
async def test_a_quotation_is_told_by_its_own_ground(look: str) -> None:
    """QQ has it inside the bubble, WeChat below it."""
    quotes = MessagePart(kind=Kind.QUOTE, text="那红色的呢？", quoted="蓝色有货", ago=60)
    found = await read(draw(look, "11", [me("蓝色有货", 90), quotes]), look)
    assert said(found)[-1] == (Side.THEM, BubbleKind.TEXT, "那红色的呢？")
    assert "蓝色有货" in found.bubbles[-1].quoted
    assert found.bubbles[0].quoted == ""


@pytest.mark.parametrize(
    "text",
    ["谢谢老板😊", "看 https://example.com/goods/1234 可以吗", "单号 202511220001\n麻烦查一下", "好的\n\n谢谢😂"],
)
@pytest.mark.parametrize("look", BOTH)
async def test_letters_of_another_colour_are_no_quotation(look: str, text: str) -> None:
    """Links and numbers are blue, emoji yellow: lines beside them are as dark as any."""
    drawn = draw(look, "11", [them("这是第一行，\n" + text, 60)])
    found = await seen_in(drawn.image, look)
    assert found.bubbles[-1].quoted == ""
    assert found.bubbles[-1].kind is BubbleKind.TEXT
    assert "这是第一行" in found.bubbles[-1].text


# Kinds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=6)
@pytest.mark.parametrize("side", ["them", "me"])
@pytest.mark.parametrize("look", LOOKED_AT)
async def test_what_is_no_text_is_never_taken_for_words(look: str, side: str) -> None:
    parts: list[dict[str, object]] = [
        {"kind": "voice", "text": "16"},
        {"kind": "file", "text": "说明书.pdf"},
        {"kind": "card", "text": "新品上架全场八折"},
        {"kind": "image"},
        {"kind": "call"},
    ]
    history = [MessagePart.model_validate({"side": side, "ago": 100.0 - at, **part}) for at, part in enumerate(parts)]
    found = await read(draw(look, "11", history), look)
    kinds = [BubbleKind.VOICE, BubbleKind.FILE, BubbleKind.CARD, BubbleKind.IMAGE, BubbleKind.CALL]
    if LOOKS[look].dark:  # the white sheet of a file's icon stands out so far that all of it is a picture
        kinds[1] = found.bubbles[1].kind
        assert kinds[1] in (BubbleKind.FILE, BubbleKind.IMAGE)
    assert [bubble.kind for bubble in found.bubbles] == kinds
    assert {bubble.side for bubble in found.bubbles} == {Side(side)}


@pytest.mark.parametrize("look", BOTH)
async def test_a_white_picture_is_no_text(look: str) -> None:
    """A screenshot of an order: white, with lines of small letters."""
    drawn = draw(look, "11", [them("我的订单", 90), MessagePart(kind=Kind.IMAGE, paper=True, ago=60)])
    found = await seen_in(drawn.image, look)
    assert (found.bubbles[0].kind, found.bubbles[0].text) == (BubbleKind.TEXT, "我的订单")
    assert found.bubbles[1].kind is BubbleKind.IMAGE or not found.sure


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("scale", [1.0, 1.3])
@pytest.mark.parametrize("text", ["好的", "在吗", "128元", "嗯", "1"])
@pytest.mark.parametrize("look", BOTH)
async def test_a_short_text_is_no_card(look: str, text: str, scale: float) -> None:
    found = await read(draw(look, "11", [them(text, 60)], font_scale=scale), look)
    assert said(found) == [(Side.THEM, BubbleKind.TEXT, text)]


async def test_what_the_app_wrote_down_of_a_voice_message_belongs_to_it() -> None:
    voice = MessagePart(kind=Kind.VOICE, text="16", transcript="什么时候能到", ago=60)
    found = await seen_in(draw("wechat-light", "11", [voice]).image, "wechat-light")
    assert [(b.kind, b.text) for b in found.bubbles] == [(BubbleKind.VOICE, "什么时候能到")]


async def test_a_pinned_notice_is_no_message() -> None:
    drawn = draw("wechat-light", "售后群", [them("几天发货", 60, sender="小张")], members=3, strip="小张-请先看群公告")
    found = await seen_in(drawn.image, "wechat-light")
    assert [b.text for b in found.bubbles] == ["几天发货"]


# The keyboard ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", ["qq-plain", "qq-dark", "qq-classic", "wechat-light", "wechat-dark"])
async def test_the_keyboard_is_no_part_of_the_page(look: str) -> None:
    drawn = draw(look, "11", TALK, keyboard=True)
    found = await read(drawn, look)
    assert found.question
    assert [b.text for b in found.question] == ["几天能发货？", "发顺丰还是中通"]
    assert found.draft == ""
    assert close(found.input_box, drawn.truth.input_box)
    assert found.send_state is drawn.truth.send_state


async def test_the_key_of_a_keyboard_that_says_send_is_no_send_button() -> None:
    drawn = draw("wechat-enter", "11", TALK, draft="好的，马上发", keyboard=True)
    found = await read(drawn, "wechat-enter")
    assert drawn.truth.send_state is SendState.KEYBOARD
    assert found.send_state is SendState.KEYBOARD
    assert found.draft == "好的，马上发"
    assert drawn.truth.input_box is not None
    assert found.send_box is not None
    assert found.send_box.top > drawn.truth.input_box.bottom


# Doubts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("look", [*BOTH, "qq-dark"])
async def test_a_picture_behind_the_page_is_a_doubt(look: str) -> None:
    found = await read(draw(look, "11", TALK, phone=PhonePart(wallpaper=True)), look, sure=False)
    assert found.title == "11"


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("look", BOTH)
async def test_a_newest_message_that_goes_on_below_is_a_doubt(look: str) -> None:
    """The page is scrolled up a little, so that the input bar cuts the newest message."""
    drawn = draw(look, "11", [*(them(f"第{number}个问题", 900 - number) for number in range(12)), them(LONG, 60)])
    newest = drawn.truth.bubbles[-1].box
    assert newest is not None
    cut = draw(
        look,
        "11",
        [*(them(f"第{number}个问题", 900 - number) for number in range(12)), them(LONG, 60)],
        scroll=newest.height // 2,
    )
    assert len(cut.truth.bubbles) - 1 in cut.truth.cut
    found = await read(cut, look, sure=False)
    assert DoubtKind.BELOW in kinds(found)
    assert not found.partial


@pytest.mark.parametrize("look", BOTH)
async def test_what_is_asked_and_begins_above_the_page_is_a_doubt_of_its_own(look: str) -> None:
    drawn = draw(look, "11", [them(LONG, 900 - number) for number in range(8)])
    found = await read(drawn, look, sure=False)
    assert DoubtKind.ABOVE in kinds(found)


UNREADABLE = "〄〠ↂ"  # signs that no recogniser is sure of


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("look", BOTH)
async def test_a_message_that_cannot_be_read_is_a_doubt_anywhere_in_what_is_asked(look: str, which: int) -> None:
    asked = ["几天能发货？", "发顺丰还是中通", "有红色的吗"]
    asked[which] = UNREADABLE
    drawn = draw(look, "11", [me("您好", 90), *(them(text, 60 - at) for at, text in enumerate(asked))])
    found = await read(drawn, look, sure=False)
    assert [bubble.sure for bubble in found.question] == [at != which for at in range(3)]
    assert kinds(found) & {DoubtKind.MESSAGE, DoubtKind.UNREADABLE}


@pytest.mark.parametrize("look", BOTH)
async def test_what_cannot_be_read_above_our_own_answer_is_no_doubt(look: str) -> None:
    drawn = draw(look, "11", [them(UNREADABLE, 90), me("48小时内", 80), them("发顺丰还是中通", 60)])
    found = await read(drawn, look)
    assert not found.bubbles[0].sure
    assert [b.text for b in found.question] == ["发顺丰还是中通"]


@pytest.mark.parametrize("look", BOTH)
async def test_a_compressed_picture_is_read_as_well(look: str) -> None:
    pressed = io.BytesIO()
    draw(look, "小王", TALK, unread=12).image.save(pressed, "JPEG", quality=80)
    found = await seen_in(Image.open(pressed).convert("RGB"), look)
    assert found.sure, found.doubts
    assert (found.title, [b.text for b in found.bubbles]) == ("小王", [part.text for part in TALK])
