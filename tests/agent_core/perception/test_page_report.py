"""A screen as plain data: the report, and the files that it is made of."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from agent_core.errors import InputRejected
from agent_core.extras import ExtraMissing
from agent_core.geometry import Box
from agent_core.perception.compare import without_count
from agent_core.perception.lists import ChatRow
from agent_core.perception.page_files import load_dump, load_picture
from agent_core.perception.page_report import (
    MessageKind,
    PageKind,
    ReadPage,
    mark_page,
    read_page,
    report,
    without_secrets,
)
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Doubt, DoubtKind, SendState, Side, Source
from bot.channels.chat.screen import page_lines
from bot.channels.chat.texts import texts
from tests.agent_core.perception.support import QQ, look, me, open_chat, scenario, them

FIELD, SEND = Box(20, 700, 240, 740), Box(260, 700, 320, 740)
CHAT = ChatScreen(
    title="11",
    bubbles=(
        Bubble(Side.THEM, "在吗", Box(40, 100, 160, 140)),
        Bubble(Side.ME, "在的", Box(200, 160, 320, 200)),
        Bubble(Side.THEM, "发到哪里了", Box(40, 220, 200, 260), sure=False),
        Bubble(Side.THEM, "", Box(40, 280, 200, 400), BubbleKind.IMAGE),
    ),
    draft="",
    source=Source.OCR,
    input_box=FIELD,
    send_box=SEND,
    title_box=Box(40, 30, 80, 60),
)


def chat(**more: object) -> ReadPage:
    return ReadPage(replace(CHAT, **more))  # type: ignore[arg-type]  # fields of a chat page


def test_a_chat_as_a_report() -> None:
    assert report(ReadPage(CHAT)).model_dump(mode="json") == {
        "page": "chat",
        "title": {"text": "11", "sure": True, "group": False},
        "messages": [
            {"side": "them", "kind": "text", "text": "在吗", "sure": True},
            {"side": "me", "kind": "text", "text": "在的", "sure": True},
            {"side": "them", "kind": "text", "text": "发到哪里了", "sure": False},
            {"side": "them", "kind": "image", "text": "", "sure": True},
        ],
        "question": [2, 3],
        "input": {"box": [20, 700, 240, 740], "text": "", "sure": True},
        "send": {"box": [260, 700, 320, 740], "state": "on"},
        "rows": [],
        "doubts": [],
    }


def test_after_our_own_message_nothing_is_asked() -> None:
    assert report(chat(bubbles=CHAT.bubbles[:2])).question == ()


def test_every_kind_of_message_has_one_in_the_report() -> None:
    kinds = {}
    for kind in BubbleKind:
        kinds[kind] = report(chat(bubbles=(Bubble(Side.THEM, "", kind=kind),))).messages[0].kind
    assert kinds.pop(BubbleKind.VIDEO) is MessageKind.IMAGE
    assert kinds.pop(BubbleKind.LOCATION) is MessageKind.CARD
    assert {kind.value for kind in kinds} == {kind.value for kind in kinds.values()} == set(MessageKind)


@pytest.mark.parametrize(
    ("title", "group", "text", "said"),
    [
        ("11", False, "11", False),
        ("售后群(23)", False, "售后群", True),  # the count is seen in the title itself
        ("售后群（23）", True, "售后群", True),
        ("售后群", True, "售后群", True),
        ("小王(老客户)", False, "小王(老客户)", False),
    ],
)
def test_a_group_is_named_without_its_count(title: str, group: bool, text: str, said: bool) -> None:
    told = report(chat(title=title, group=group)).title
    assert told is not None
    assert (told.text, told.group) == (text, said)


def test_a_name_that_is_nothing_but_a_count_stays() -> None:
    assert without_count("(3)") == "(3)"


def test_what_is_in_doubt_is_told() -> None:
    doubts = (Doubt(DoubtKind.TITLE, "11", confidence=0.61), Doubt(DoubtKind.INPUT, "x"))
    told = report(chat(title_sure=False, draft=None, doubts=doubts))
    assert told.title is not None
    assert not told.title.sure
    assert told.input is not None
    assert (told.input.text, told.input.sure) == ("", False)
    assert told.doubts == ("the title may be “11”", "the input may hold “x”")
    assert report(chat(draft="好的", draft_sure=False)).input == told.input.model_copy(update={"text": "好的"})


def test_send_and_input_that_are_not_seen() -> None:
    told = report(chat(input_box=None, send_box=None, send_state=SendState.ABSENT))
    assert told.input is None
    assert told.send is not None
    assert (told.send.box, told.send.state) == (None, SendState.ABSENT)


def test_a_list_and_any_other_page() -> None:
    rows = (
        ChatRow("11", Box(0, 0, 360, 80), 3, "在吗"),
        ChatRow("另一位", Box(0, 80, 360, 160)),
        ChatRow("群", Box(0, 160, 360, 240), dot=True),
    )
    told = report(ReadPage(rows=rows))
    assert [(row.name, row.preview, row.unread, row.dot) for row in told.rows] == [
        ("11", "在吗", 3, False),
        ("另一位", "", 0, False),
        ("群", "", 1, True),
    ]
    labels: list[str] = []
    mark_page(Image.new("RGB", (360, 800)), ReadPage(rows=rows), lambda key: labels.append(key) or key)  # type: ignore[func-returns-value]
    assert labels == ["unread", "dot"]
    lines = page_lines(told, "QQ", texts("zh"))
    assert [line.label for line in lines[1:]] == ["11（3 条未读）", "另一位", "群（红点）"]
    assert (told.page, told.title, told.send, told.input) == (PageKind.LIST, None, None, None)
    assert report(ReadPage()).page is PageKind.OTHER


def test_without_secrets_no_text_tells_what_the_picture_hides() -> None:
    said = Bubble(Side.THEM, "验证码 483920", Box(40, 420, 200, 460))
    page = chat(
        bubbles=(*CHAT.bubbles, said, Bubble(Side.ME, "483920 收到", Box(40, 480, 200, 500))),
        draft="483920",
        doubts=(Doubt(DoubtKind.MESSAGES_DIFFER, "验证码 483920", "验证码; 483928"),),
    )
    told = report(without_secrets(page, [Box(50, 425, 190, 455)]))
    assert "4839" not in told.model_dump_json()
    assert told.messages[2].text == "发到哪里了"
    rows = (ChatRow("11", Box(0, 0, 360, 80), 0, "验证码 1234"), ChatRow("12", Box(0, 80, 360, 160), 0, "在吗"))
    listed = report(without_secrets(ReadPage(rows=rows), [Box(100, 40, 200, 60)]))
    assert "1234" not in listed.model_dump_json()
    assert (listed.rows[1].name, listed.rows[1].preview) == ("12", "在吗")
    assert without_secrets(page, []) is page


def test_marks_stand_around_the_parts_and_the_question_is_red() -> None:
    image = Image.new("RGB", (360, 800), "white")
    marked = mark_page(image, ReadPage(CHAT), lambda key: key)
    assert image.getcolors() == [(360 * 800, (255, 255, 255))], "the screenshot itself is left as it is"

    def left_of(box: Box) -> object:
        return marked.getpixel((box.left - 1, box.center.y))

    asked = [bubble.box for bubble in CHAT.bubbles[2:] if bubble.box]
    assert {left_of(box) for box in asked} == {(255, 45, 85)}
    others = [CHAT.bubbles[0].box, CHAT.bubbles[1].box, CHAT.title_box, FIELD, SEND]
    colors = [left_of(box) for box in others if box]
    assert len(colors) == 5
    assert not {(255, 255, 255), (255, 45, 85)} & set(colors)
    assert len(set(colors[:3])) == 3, "theirs, ours and the title"


def test_marks_at_the_edges_of_the_screen_are_drawn_too() -> None:
    edge = Box(0, 0, 360, 800)
    row = ChatRow("11", edge, 2)
    for page in (
        ReadPage(rows=(row,)),
        chat(title_box=edge, bubbles=(Bubble(Side.THEM, "x", Box(350, 790, 360, 800)),)),
    ):
        assert mark_page(Image.new("RGB", (360, 800)), page, lambda key: key).getcolors() != [(360 * 800, (0, 0, 0))]


# -- reading


async def test_a_chat_and_the_list_are_told_apart() -> None:
    phone = await open_chat(scenario(them("在吗"), me("在的"), them("发到哪里了", 20)))
    reader = ScreenReader(ocr=None, model=None)
    seen = await look(phone)
    told = report(await read_page(reader, seen.frame, seen.nodes, QQ))
    assert (told.page, told.question) == (PageKind.CHAT, (2,))
    await phone.key("BACK")
    seen = await look(phone)
    told = report(await read_page(reader, seen.frame, seen.nodes, QQ))
    assert (told.page, [row.name for row in told.rows]) == (PageKind.LIST, ["11", "另一位"])
    await phone.key("HOME")
    seen = await look(phone)
    assert (await read_page(reader, seen.frame, seen.nodes, QQ)) == ReadPage()
    with pytest.raises(ExtraMissing, match=r"\[ocr\]"):
        await read_page(reader, seen.frame, None, QQ)


# -- files


def saved(path: Path, image: Image.Image, **more: object) -> Path:
    image.save(path, **more)  # type: ignore[arg-type]  # options of the format
    return path


def test_pictures_of_every_mode_are_read_as_they_look(tmp_path: Path) -> None:
    colors = Image.new("RGB", (300, 600), (200, 100, 50))
    for mode in ("RGB", "RGBA", "P"):
        frame = load_picture(saved(tmp_path / f"{mode}.png", colors.convert(mode)))
        assert frame.image.mode == "RGB"
        pixel = frame.image.getpixel((5, 5))
        assert isinstance(pixel, tuple)
        assert all(abs(a - b) <= 30 for a, b in zip(pixel, (200, 100, 50), strict=True)), mode  # a palette of the web
    assert load_picture(saved(tmp_path / "L.png", Image.new("L", (300, 600), 77))).image.getpixel((0, 0)) == (77,) * 3
    deep = Image.new("I;16", (300, 600), 77 * 256 + 12)
    assert load_picture(saved(tmp_path / "deep.png", deep)).image.getpixel((0, 0)) == (77,) * 3
    one = load_picture(saved(tmp_path / "1.png", Image.new("1", (300, 600), 1)))
    assert one.image.getpixel((0, 0)) == (255,) * 3


def test_how_a_picture_is_to_be_turned_is_not_asked(tmp_path: Path) -> None:
    image = Image.new("RGB", (300, 600), "red")
    turned = Image.Exif()
    turned[0x0112] = 6
    assert load_picture(saved(tmp_path / "a.jpg", image, exif=turned)).size == (300, 600)


def test_equal_pictures_have_equal_digests(tmp_path: Path) -> None:
    one, two = (saved(tmp_path / name, Image.new("RGB", (300, 600), "red")) for name in ("a.png", "b.png"))
    other = saved(tmp_path / "c.png", Image.new("RGB", (300, 600), "blue"))
    assert load_picture(one).digest == load_picture(two).digest != load_picture(other).digest


def png(size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise(size, 50).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"", "no_picture"),
        (b"GIF89a", "no_picture"),
        (b"no picture at all", "no_picture"),
        (png((300, 600))[:4000], "no_picture"),  # cut off in the middle
        (png((300, 600))[:20], "no_picture"),
        (png((100, 200)), "picture_size"),
        (png((240, 8100)), "picture_size"),
        (png((300, 1000)), "picture_size"),  # several screens in one
        (None, "file_unreadable"),
    ],
)
def test_what_is_no_screenshot_is_refused(content: bytes | None, key: str, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputRejected) as refused:
        load_picture(path)
    assert refused.value.key == key
    assert refused.value.advice


def test_a_picture_that_would_fill_the_memory_is_not_opened(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", Image.new("1", (14000, 14000)))
    with pytest.raises(InputRejected) as refused:
        load_picture(path)
    assert refused.value.key == "picture_size"


DUMP = (
    "<?xml version='1.0' encoding='UTF-8'?><hierarchy rotation='0'>"
    "<node text='你好' class='android.widget.TextView' package='com.tencent.mobileqq' bounds='[10,20][200,80]'/>"
    "</hierarchy>"
)


def test_a_dump_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    for printed in (DUMP, DUMP + "UI hierchary dumped to: /dev/tty\n", "\ufeff" + DUMP):
        path.write_text(printed, encoding="utf-8")
        assert [(node.text, node.box) for node in load_dump(path, (300, 600))] == [("你好", Box(10, 20, 200, 80))]


@pytest.mark.parametrize(
    ("content", "key"),
    [("", "no_dump"), (DUMP[:60], "no_dump"), (DUMP.replace("/>", ">"), "no_dump"), (None, "file_unreadable")],
)
def test_a_broken_dump_is_refused(content: str | None, key: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InputRejected) as refused:
        load_dump(path, (300, 600))
    assert refused.value.key == key
