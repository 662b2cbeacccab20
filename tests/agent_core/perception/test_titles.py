"""Names in a chat's header: what stands beside them is a part of the app, or makes the name unsure."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from agent_core.perception import layout
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.pixels import Grid
from agent_core.perception.title import Title, read_title
from agent_core.texts.layout import font
from tests.agent_core.perception.support import them
from tests.support.drawing import draw
from tests.support.ocr import needs_ocr

pytestmark = needs_ocr

BOTH = ["qq-plain", "wechat-light"]
OCR = OcrEngine()


async def title_of(image: Image.Image) -> Title:
    header = layout.header(Grid.of(image))
    assert header is not None
    return await read_title(OCR, image, header.line)


async def drawn_title(look: str, name: str) -> Title:
    return await title_of(draw(look, name, [them("在吗", 60)]).image)


def written(look: str, text: str, *, left: int | None = None, size: int = 48, beside: str = "") -> Image.Image:
    """A header with ``text`` in the place of the name, in the middle if no left edge is given; ``beside`` the arrow."""
    drawn = draw(look, "一", [them("在吗", 60)])
    image, box = drawn.image.copy(), drawn.truth.title_box
    pen = ImageDraw.Draw(image)
    middle = (box.top + box.bottom) // 2
    pen.rectangle((box.left - 10, box.top, box.right + 10, box.bottom), fill=image.getpixel((540, box.top - 4)))
    place = (left, "lm") if left is not None else (540, "mm")
    pen.text((place[0], middle), text, font=font(size), fill="#1a1a1a", anchor=place[1])
    if beside:
        pen.text((104, middle), beside, font=font(40), fill="#1a1a1a", anchor="lm")
    return image


@pytest.mark.parametrize("name", ["王　芳", "王　晓芳", "客服　采购部小李", "12　北京店"])
@pytest.mark.parametrize("look", BOTH)
async def test_what_stands_apart_from_a_name_is_not_left_out(look: str, name: str) -> None:
    found = await drawn_title(look, name)
    whole = found.text.replace(" ", "") == name.replace("　", "")
    assert not found.sure or (whole and " " in found.text)


@pytest.mark.parametrize(("beside", "sure"), [("12", True), ("王", False), ("l", False)])
async def test_only_a_number_stands_beside_the_arrow(beside: str, sure: bool) -> None:
    found = await title_of(written("wechat-light", "小王", beside=beside))
    assert (found.text, found.sure) == ("小王", sure)


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("sign", ["💎", "🔹", "❄", "🤍", "💧", "🌹", "😊"])
@pytest.mark.parametrize("gap", ["", " ", "   "])
@pytest.mark.parametrize("look", [*BOTH, "wechat-dark"])
async def test_an_emoji_behind_a_name_makes_it_unsure(look: str, gap: str, sign: str) -> None:
    for name in ("小王", "上海店王经理"):
        assert not (await drawn_title(look, name + gap + sign)).sure


@pytest.mark.parametrize("text", ["上海虹桥店采购部王经理小助手(496)", "上海虹桥机场店王经理的小助手采购"])
async def test_a_name_that_reaches_the_icons_loses_no_letter(text: str) -> None:
    found = await title_of(written("wechat-light", text))
    assert found.text == text
    cut = await title_of(written("wechat-light", text + "客服", left=156))
    assert cut.text == text + "客服" or not cut.sure


@pytest.mark.parametrize(
    ("name", "sure"),
    [("王晓芳", True), ("王　晓芳", False), ("小 王", False), ("大客户-北京", True), ("A店主11", True)],
)
async def test_a_wide_blank_is_missed_beside_signs_too(name: str, sure: bool) -> None:
    for size in (48, 62):
        found = await title_of(written("wechat-light", f"{name}(38)", size=size))
        assert found.sure is sure or (not sure and " " in found.text)
