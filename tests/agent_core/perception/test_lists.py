"""Lists of chats as real apps show them: marks at the avatars' corners, light and dark, by picture and by tree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PIL import ImageDraw

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.perception.kinds import is_time
from agent_core.perception.lists import ChatRow, chat_rows, described_name, is_list_page, with_preview
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Reading, Source
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import ContactPart, MessagePart
from tests.agent_core.perception.drawn_lists import SIZE, THEMES, Drawn, Line, Pen, draw, draw_mark
from tests.support.drawing import draw_list
from tests.support.lab import OCR

QQ, WECHAT = profile("qq"), profile("wechat")
PICTURES = ScreenReader(ocr=OCR, model=None)
SCREENS = [((720, 1600), 0.85), ((1080, 2400), 1.0), ((1080, 2340), 1.3), ((1440, 3120), 1.15)]
RED = "#fa5151"

LINES = [
    Line("小王", "你好，请问几天能发货？", "14:05", "1", pinned=True),
    Line("老客户A", "好的，谢谢", "昨天", ".", avatar="#e03020"),
    Line("上海张三", "好的", "星期三", "12", avatar=f"{RED} figure"),
    Line("红头像", "谢谢", "09-12", avatar="#fe3b30"),
    Line("红心", "[图片]", "13:00", avatar="#ffffff heart"),
    Line("Windows 微信已登录", strip=True),
    Line("客户五", "[草稿]您好，已发", "12:59", avatar="#f3f3f3 figure"),
    Line("售后群", "[有人@我] 小李: 大家好", "12:58", "99+", avatar="#3aa6c9"),
    Line("小赵", "几天到", "12:57", "3", edge=True),
]


async def rows_of(drawn: Drawn) -> list[ChatRow]:
    return await PICTURES.rows(drawn.frame, None)


def told(rows: Sequence[ChatRow]) -> dict[str, tuple[int, bool]]:
    return {row.name: (row.unread, row.dot) for row in rows}


@pytest.mark.rotating(parts=6)
@pytest.mark.parametrize("app", THEMES)
@pytest.mark.parametrize(("size", "scale"), SCREENS[::3])
async def test_rows_and_marks_are_read_in_every_theme(app: str, size: tuple[int, int], scale: float) -> None:
    lines = [line for line in LINES if line.mark != "99+" or scale < 1.2]
    rows = await rows_of(draw(lines, app, size, scale))
    wanted = {
        "小王": (1, False),
        "老客户A": (0, True),
        "上海张三": (12, False),
        "红头像": (0, False),  # an avatar that is red itself
        "红心": (0, False),
        "客户五": (0, False),
        "售后群": (99, False),
        "小赵": (3, False),
    }
    assert told(rows) == {name: wanted[name] for name in wanted if any(line.name == name for line in lines)}
    by_name = {row.name: row for row in rows}
    assert (by_name["小王"].preview, by_name["小王"].time) == ("你好，请问几天能发货？", "14:05")
    assert (by_name["客户五"].preview, by_name["客户五"].draft) == ("您好，已发", True)
    if scale < 1.2:
        assert (by_name["售后群"].preview[:2], by_name["售后群"].called) == ("小李", True)


NUMBERS = [*map(str, (*range(1, 21), 34, 58, 67, 88, 99)), "99+"]


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("marks", [NUMBERS[:9], NUMBERS[9:18], NUMBERS[18:]], ids=" ".join)
async def test_each_number_in_a_mark(marks: list[str]) -> None:
    lines = [Line(f"老客户{'ABCDEFGHI'[place]}", "在吗", "14:05", mark) for place, mark in enumerate(marks)]
    rows = await rows_of(draw(lines, "qq dark", (720, 1600)))
    assert [row.unread for row in rows] == [int(mark.rstrip("+")) for mark in marks]


@pytest.mark.rotating(parts=6)
@pytest.mark.parametrize("app", ["qq", "wechat dark"])
@pytest.mark.parametrize(("mark", "wanted"), [("", (0, False)), (".", (0, True)), ("5", (5, False))])
async def test_a_red_avatar_is_no_mark_and_hides_none(app: str, mark: str, wanted: tuple[int, bool]) -> None:
    red = (RED, "#fe4833", "#ff0000 figure", "#ffffff heart", "#e8684a")
    reds = [Line(f"老客户{name}", "在吗", "14:05", mark, avatar=it) for name, it in zip("ABCDE", red, strict=True)]
    others = [Line(name, "好", "14:06") for name in ("小李", "小王", "小赵", "小孙")]
    lines = [others[0], reds[0], others[1], reds[1], others[2], reds[2], others[3], *reds[3:]]
    found = told(await rows_of(draw(lines, app)))
    assert found == {line.name: wanted if line.avatar else (0, False) for line in lines}


async def test_a_square_red_avatar_among_round_ones_is_no_mark() -> None:
    drawn = draw([Line("小李", "好", "14:06"), Line("老客户A", "在吗", "14:05"), Line("小王", "好", "14:04")])
    (row,) = [row for row in await rows_of(drawn) if row.name == "老客户A"]
    assert row.avatar is not None
    drawn.image.paste(RED, row.avatar.as_tuple())
    assert told(await rows_of(drawn))["老客户A"] == (0, False)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("app", ["qq", "wechat dark"])
async def test_a_row_whose_avatar_is_as_pale_as_the_row_is_one(app: str) -> None:
    pale = THEMES[app].ground
    lines = [Line("小李", "好", "14:06"), Line("老客户A", "在吗", "14:05", avatar=pale), Line("小王", "好", "14:04")]
    assert [row.name for row in await rows_of(draw(lines, app))] == ["小李", "老客户A", "小王"]


async def test_a_name_that_the_tabs_cut_is_no_row() -> None:
    drawn = draw([Line(f"客户{n:02d}", "在吗", "14:05") for n in range(9)], "qq", (1080, 2400))
    left, top, right, _ = drawn.boxes["客户05"]
    whole = [row.name for row in await rows_of(drawn)]
    drawn.image.paste("#f7f7f7", (left, top + 75, right, 2400))  # through the letters
    assert [row.name for row in await rows_of(drawn)] == whole[:5]
    drawn = draw([Line(f"客户{n:02d}", "在吗", "14:05") for n in range(9)], "qq", (1080, 2400))
    drawn.image.paste("#f7f7f7", (left, 0, right, top + 75))
    assert [row.name for row in await rows_of(drawn)] == whole[6:]


async def test_a_name_under_a_wide_mark_keeps_its_first_letter() -> None:
    for name in ("一家人", "111", "国家队"):
        (row,) = await rows_of(draw([Line(name, "在吗", "14:05", "99+")], "wechat dark"))
        assert (row.name, row.unread) == (name, 99)


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("look", ["wechat-light", "wechat-dark", "qq-plain"])
async def test_no_row_is_lost_where_marks_reach_the_names(look: str) -> None:
    counts = {"小王的店": 1, "李先生": 88, "老同学": 12, "北京客户": 120}
    contacts = [
        ContactPart(name=name, app=LOOKS[look].app, unread=count, history=[MessagePart(text="在不在", ago=600)])
        for name, count in counts.items()
    ]
    frame = Frame(draw_list(look, contacts).image, look, 0.0)
    rows = await PICTURES.rows(frame, None)
    assert {row.name: row.unread for row in rows} == {name: min(count, 99) for name, count in counts.items()}
    assert all(row.confidence > 0.9 for row in rows)


async def test_a_name_that_a_mark_covers_is_unsure_and_its_row_stays() -> None:
    drawn = draw([Line("小李", "好", "14:06"), Line("老客户A", "在吗", "14:05", "7"), Line("小王", "好", "14:04")])
    rows = await rows_of(drawn)
    (row,) = [row for row in rows if row.name == "老客户A"]
    assert row.avatar is not None
    over = Box(row.avatar.right - 30, row.avatar.top - 12, row.avatar.right + 80, row.avatar.top + 38)
    ImageDraw.Draw(drawn.image).rounded_rectangle(over.as_tuple(), 25, fill=THEMES["qq"].mark)
    covered = await rows_of(drawn)
    assert len(covered) == len(rows)
    assert [one.confidence for one in covered if one.box.top <= row.box.center.y < one.box.bottom] == [0.0]


# The list page


async def is_list(drawn: Drawn, app: str) -> bool:
    readings = await PICTURES.readings(drawn.frame, None)
    return is_list_page(await rows_of(drawn), readings, profile(app.split(maxsplit=1)[0]), drawn.image.size)


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("app", THEMES)
async def test_the_list_page_is_told_by_its_tabs_and_times(app: str) -> None:
    assert await is_list(draw(LINES, app, (720, 1280)), app)
    contacts = [Line(name) for name in ("小王", "小李", "老客户A")]
    assert not await is_list(draw(contacts, app), app)
    folder = draw(LINES, app)  # chats, as in "服务号", and no tabs
    width, height = SIZE
    folder.image.paste(THEMES[app].ground, (0, height - 190, width, height))
    assert not await is_list(folder, app)


@pytest.mark.parametrize(
    ("mark", "wanted"), [("", (0, False)), (".", (0, True)), ("7", (7, False)), ("25", (25, False))]
)
async def test_what_a_tab_counts(mark: str, wanted: tuple[int, bool]) -> None:
    drawn = draw(LINES, "qq dark", (720, 1600))
    if mark:
        pen = Pen(drawn.image.size, "#1e1e1e")
        draw_mark(pen, 118, 1500, mark, THEMES["qq dark"].mark, 720)
        drawn.image.paste(pen.done().crop((100, 1482, 140, 1518)), (100, 1482))
    assert await PICTURES.counted(drawn.frame, Box(20, 1470, 170, 1590)) == wanted


def settings_page() -> Drawn:
    pen = Pen(SIZE, "#ffffff")
    for number, text in enumerate(("消息", "联系人", "动态", "通用", "关于")):
        y = 400 + 160 * number
        pen.rect((50, y - 35, 120, y + 35), "#5b8ff9", 16)
        pen.text(180, y, text, 46, "#1a1a1a")
        pen.text(1030, y, "已开启", 34, "#b2b2b2", "rm")
    return Drawn(pen.done())


def chat_page() -> Drawn:
    pen = Pen(SIZE, "#f0f0f2")
    pen.text(104, 175, "老客户A", 50, "#1a1a1a")
    pen.text(540, 330, "14:05", 30, "#b2b2b2", "mm")
    for number, text in enumerate(("你好", "几天能发货？", "消息 联系人 动态")):
        y = 460 + 200 * number
        pen.disc(87, y, 54, "#f6903d")
        pen.rect((161, y - 54, 560, y + 54), "#ffffff", 24)
        pen.text(200, y, text, 46, "#1a1a1a")
    pen.rect((0, 2200, 1080, 2400), "#f7f7f7")
    pen.rect((157, 2225, 819, 2325), "#ffffff", 50)
    return Drawn(pen.done())


def launcher() -> Drawn:
    pen = Pen(SIZE, "#35506e")
    for number, text in enumerate(("微信", "QQ", "联系人", "消息", "设置", "相机")):
        x, y = 150 + 260 * (number % 4), 1900 + 260 * (number // 4)
        pen.rect((x - 70, y - 70, x + 70, y + 70), "#e8684a", 34)
        pen.text(x, y + 110, text, 34, "#ffffff", "mm")
    pen.text(540, 500, "14:05", 160, "#ffffff", "mm")
    return Drawn(pen.done())


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("page", [settings_page(), chat_page(), launcher()], ids=["settings", "chat", "launcher"])
async def test_other_pages_are_no_list(page: Drawn) -> None:
    assert not await is_list(page, "qq")
    assert not await is_list(page, "wechat")


# By the tree


def node(box: tuple[int, int, int, int], text: str = "", description: str = "", id_: str = "", kind: str = "") -> Node:
    return Node(
        Box(*box), text, description, f"com.tencent.mobileqq:id/{id_}" if id_ else "", kind or "android.view.View"
    )


def qq_row(top: int, name: str, preview: str, when: str, count: int = 0, *, ids: bool = True) -> list[Node]:
    """As QQ 9.3.60 tells a row; without ``ids`` only what any version has."""
    said = f"有{count}条未读," if count else ""
    row, inner = ("o8n", "o8c") if ids else ("", "")
    found = [
        node((0, top, 1080, top + 196), id_=row, kind="android.widget.FrameLayout"),
        node((0, top, 1080, top + 194), "", f"{name}, ,{said}{preview},{when}", inner, "android.widget.RelativeLayout"),
        node((44, top + 32, 174, top + 162), id_="avatar" if ids else "", kind="android.widget.ImageView"),
        node((209, top + 35, 500, top + 95), name, id_="title" if ids else "", kind="android.widget.TextView"),
        node((960, top + 44, 1044, top + 84), when, kind="android.widget.TextView"),
        node((209, top + 100, 800, top + 150), preview, kind="android.widget.TextView"),
    ]
    if count:
        found.append(node((140, top + 24, 190, top + 72), str(count), id_="khc" if ids else ""))
    return found


def qq_tabs() -> list[Node]:
    texts = ("消息", "频道", "联系人", "动态")
    return [node((270 * n, 2300, 270 * n + 270, 2380), text, id_="kbi") for n, text in enumerate(texts)]


@pytest.mark.parametrize("ids", [True, False])
async def test_rows_of_a_tree_as_qq_has_it(ids: bool) -> None:
    nodes = [
        node((0, 0, 1080, 2400), kind="android.widget.FrameLayout"),
        *qq_row(260, "小王", "有5条未读,你看到了吗,在吗", "14:05", 2, ids=ids),
        *qq_row(456, "11", "好的", "昨天", ids=ids),
        *qq_row(652, "老客户,A", "[有人@我] 小李: 大家好", "星期三", 12, ids=ids),
        *qq_tabs(),
    ]
    drawn = draw([], "qq")
    reader = ScreenReader(ocr=None, model=None)
    rows = await reader.rows(drawn.frame, nodes)
    assert told(rows) == {"小王": (2, False), "11": (0, False), "老客户,A": (12, False)}
    assert [row.time for row in rows] == ["14:05", "昨天", "星期三"]
    assert [row.preview for row in rows] == ["有5条未读,你看到了吗,在吗", "好的", "小李: 大家好"]
    assert rows[2].called
    readings = await reader.readings(drawn.frame, nodes)
    assert is_list_page(rows, readings, QQ, SIZE)
    assert not is_list_page(rows, readings, WECHAT, SIZE)


async def test_a_row_of_which_only_the_description_is_told() -> None:
    described = [one for one in qq_row(260, "小王", "在吗", "14:05", 3) if one.description]
    silent = [one for one in qq_row(456, "小李", "好", "昨天") if one.description]
    nodes = [*described, *silent, *qq_tabs()]
    rows = await ScreenReader(ocr=None, model=None).rows(draw([], "qq").frame, nodes)
    assert [(row.name, row.unread, row.preview, row.time) for row in rows] == [
        ("小王", 3, "在吗", "14:05"),
        ("小李", 0, "好", "昨天"),
    ]


def wechat_row(top: int, name: str, preview: str, when: str, count: str = "", *, dot: bool = False) -> list[Node]:
    """As WeChat 8.0.78 tells a row: names are plain views."""
    found = [
        node((0, top, 1080, top + 205), id_="cj1", kind="android.widget.LinearLayout"),
        node((209, top, 1080, top + 205), id_="cj0", kind="android.widget.LinearLayout"),
        node((44, top + 37, 174, top + 167), id_="a_i", kind="android.widget.ImageView"),
        node((209, top + 40, 720, top + 100), name, id_="kbq"),
        node((950, top + 48, 1044, top + 90), when, id_="otg"),
        node((209, top + 108, 900, top + 158), preview, id_="ht5"),
    ]
    if count:
        found.append(node((150, top + 13, 199, top + 61), count, id_="o_u", kind="android.widget.TextView"))
    if dot:
        found.append(node((162, top + 25, 186, top + 49), id_="a_h", kind="android.widget.ImageView"))
    return found


async def test_rows_of_a_tree_as_wechat_has_it() -> None:
    """The dot says nothing in the tree; the picture shows it."""
    lines = [
        Line("小王", "在吗", "14:05", "2"),
        Line("小李", "[3条]小李: 好", "昨天", "."),
        Line("Windows 微信已登录", strip=True),
        Line("老王", "好", "9月12日"),
    ]
    drawn = draw(lines, "wechat")
    tops = {name: box[1] for name, box in drawn.boxes.items()}
    strip = tops["Windows 微信已登录"]
    nodes = [
        *wechat_row(tops["小王"], "小王", "在吗", "14:05", "2"),
        *wechat_row(tops["小李"], "小李", "[3条]小李: 好", "昨天", dot=True),
        node((0, strip, 1080, strip + 118), id_="strip", kind="android.widget.LinearLayout"),
        node((209, strip + 30, 700, strip + 90), "Windows 微信已登录", kind="android.widget.TextView"),
        *wechat_row(tops["老王"], "老王", "好", "9月12日"),
        *(node((270 * n, 2320, 270 * n + 270, 2370), tab) for n, tab in enumerate(("微信", "通讯录", "发现", "我"))),
    ]
    rows = await ScreenReader(ocr=None, model=None).rows(drawn.frame, nodes)
    assert told(rows) == {"小王": (2, False), "小李": (3, True), "老王": (0, False)}
    assert rows[1].preview == "小李: 好"


# Words


@pytest.mark.parametrize(
    ("text", "preview", "unread", "draft", "called"),
    [
        ("[2条]小王: 在吗", "小王: 在吗", 2, False, False),
        ("[草稿]您好", "您好", 0, True, False),
        ("[12条][有人@我] 小李: 好", "小李: 好", 12, False, True),
        ("[特别关心]在吗", "在吗", 0, False, False),
        ("[图片]", "[图片]", 0, False, False),
        ("[红包]恭喜发财", "[红包]恭喜发财", 0, False, False),
        ("我要[2条]裤子", "我要[2条]裤子", 0, False, False),
        ("【草稿】您好", "您好", 0, True, False),
    ],
)
def test_what_an_app_puts_before_the_words(text: str, preview: str, unread: int, draft: bool, called: bool) -> None:
    row = with_preview(ChatRow("小王", Box(0, 0, 1080, 190)), text)
    assert (row.preview, row.unread, row.draft, row.called) == (preview, unread, draft, called)


@pytest.mark.parametrize(
    "text",
    ["14:05", "昨天", "昨天 14:05", "星期三", "周三 09:00", "下午2:05", "09-12", "2025/9/12", "9月12日", "5分钟前"],
)
def test_a_time_in_a_row(text: str) -> None:
    assert is_time(text)
    assert not is_time(f"{text}到")


def test_the_name_in_a_description() -> None:
    assert described_name("小王, ,有2条未读,在吗,14:05") == "小王"
    assert described_name("a,b, ,在吗,14:05") == "a,b"
    assert described_name("小王的资料卡") == ""


def test_lines_without_an_avatar_are_no_rows() -> None:
    """Keys of a keyboard, a page of text."""
    drawn = draw([], "qq")
    readings = [Reading(f"第{n}行", Box(210, 400 + 120 * n, 400, 450 + 120 * n), Source.OCR) for n in range(6)]
    assert chat_rows(readings, drawn.frame) == []
