"""The looks of QQ and WeChat: picture, tree and taps agree, and are as in the real apps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PIL import Image, ImageColor

from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.perception.readings import BubbleKind, SendState
from agent_core.perception.readings import Side as ReadSide
from simulator.phone import ime
from simulator.phone.apps.looks import LOOKS, Bar
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from simulator.phone.world import Kind, MessageState, Side, Sign
from tests.support.drawing import NOW, PACKAGES, Drawn, draw, draw_list

NEW = list(LOOKS)
QQ = [key for key in NEW if LOOKS[key].app == "qq"]
WECHAT = [key for key in NEW if LOOKS[key].app == "wechat"]
ASKED = MessagePart(text="几天能发货？", ago=60)
ANSWERED = MessagePart(side=Side.ME, text="您好", ago=90)
EVERY_KIND = [
    MessagePart(kind=kind, text="15" if kind is Kind.VOICE else "一二三", side=side, ago=100.0 - index)
    for index, (kind, side) in enumerate((kind, side) for kind in Kind for side in Side)
    if kind not in (Kind.TIP, Kind.RECALLED)
]


def named(drawn: Drawn, id_: str) -> list[Node]:
    return [node for node in drawn.nodes if node.resource_id.rpartition("/")[2] == id_]


def colors(image: Image.Image, box: Box) -> set[tuple[int, int, int]]:
    cut = image.crop((box.left, box.top, box.right, box.bottom))
    return {color for _, color in cut.getcolors(cut.width * cut.height) or []}  # type: ignore[misc]


def rgb(color: str) -> tuple[int, ...]:
    return ImageColor.getrgb(color)


def parts(messages: list[MessagePart], size: int) -> Iterator[list[MessagePart]]:
    for start in range(0, len(messages), size):
        yield messages[start : start + size]


async def tap(phone: VirtualPhone, box: Box | None) -> None:
    assert box is not None
    await phone.tap(box.center.x, box.center.y)


@pytest.mark.parametrize("key", NEW)
def test_every_kind_of_message_is_seen_on_its_side(key: str) -> None:
    for messages in parts(EVERY_KIND, 3):
        drawn = draw(key, "11", messages)
        assert not drawn.truth.cut
        assert [bubble.side.value for bubble in drawn.truth.bubbles] == [part.side.value for part in messages]
        kinds = ["text" if part.kind is Kind.QUOTE else part.kind.value for part in messages]
        assert [bubble.kind.value for bubble in drawn.truth.bubbles] == kinds
        for bubble in drawn.truth.bubbles:
            assert bubble.box is not None
            assert len(colors(drawn.image, bubble.box)) > 1
            edge = LOOKS[key].geometry.edge
            near = bubble.box.left if bubble.side is ReadSide.THEM else 1080 - bubble.box.right
            assert near == edge


@pytest.mark.parametrize("key", NEW)
def test_text_bubbles_have_the_look_s_colours_in_picture_and_tree(key: str) -> None:
    drawn = draw(key, "11", [ANSWERED, ASKED])
    look = LOOKS[key]
    mine, theirs = drawn.truth.bubbles
    assert mine.box is not None
    assert theirs.box is not None
    assert drawn.image.getpixel((theirs.box.left + 30, theirs.box.top + 8)) == rgb(look.colors.theirs)
    if not look.skin:
        assert drawn.image.getpixel((mine.box.left + 30, mine.box.top + 8)) == rgb(look.colors.mine)
    assert [(node.text, node.box) for node in named(drawn, look.ids.text)] == [
        ("您好", mine.box),
        ("几天能发货？", theirs.box),
    ]


@pytest.mark.parametrize("key", NEW)
def test_whose_message_it_is_says_the_avatar(key: str) -> None:
    drawn = draw(key, "11", [ANSWERED, ASKED])
    told = [node.description for node in named(drawn, LOOKS[key].ids.avatar)]
    assert told == (["我的资料卡", "11的资料卡"] if key in QQ else ["本店客服头像", "11头像"])


@pytest.mark.parametrize("key", NEW)
async def test_send_appears_as_in_the_real_bar_and_sends(key: str) -> None:
    look = LOOKS[key]
    empty = draw(key, "11", [ASKED])
    if look.bar is Bar.CLASSIC:
        assert empty.truth.send_state is SendState.DIMMED
        assert empty.truth.send_box is not None
        assert rgb("#80c8fb") in colors(empty.image, empty.truth.send_box)
    else:
        assert empty.truth.send_state is SendState.ABSENT
        assert not named(empty, look.ids.send)
    typed = draw(key, "11", [ASKED], draft="您好")
    if look.voice_first:
        await tap(typed.phone, typed.truth.keyboard_icon)
        send = next(element for element in typed.phone.scene().page if element.id == look.ids.send)
        await typed.phone.tap((send.box[0] + send.box[2]) / 2, (send.box[1] + send.box[3]) / 2)
    elif look.enter_sends:
        assert typed.truth.send_state is SendState.ABSENT
        await tap(typed.phone, typed.truth.input_box)
        await typed.phone.key("ENTER")
    else:
        assert typed.truth.send_state is SendState.ON
        assert typed.truth.send_box is not None
        assert rgb(look.colors.send) in colors(typed.image, typed.truth.send_box)
        await tap(typed.phone, typed.truth.send_box)
    assert list(typed.phone.report()["sent"].values()) == [["您好"]]


async def test_with_enter_the_keyboard_has_a_key_that_sends() -> None:
    drawn = draw("wechat-enter", "11", [ASKED], draft="您好", keyboard=True)
    assert drawn.truth.send_state is SendState.KEYBOARD
    keys = [element for element in drawn.phone.scene().system if element.text == "发送"]
    await drawn.phone.tap((keys[0].box[0] + keys[0].box[2]) / 2, (keys[0].box[1] + keys[0].box[3]) / 2)
    assert drawn.phone.report()["sent"] == {"wechat:11": ["您好"]}
    assert draw("wechat-light", "11", [ASKED], keyboard=True).truth.send_state is SendState.ABSENT


async def test_the_bar_to_hold_and_talk_is_kept_for_each_chat() -> None:
    drawn = draw("wechat-voice", "11", [ASKED])
    phone = drawn.phone
    assert drawn.truth.draft is None
    assert [node.text for node in drawn.nodes if node.description == "按住说话"] == ["按住 说话"]
    await tap(phone, drawn.truth.keyboard_icon)
    assert phone.keyboard_shown()
    assert any(node.resource_id.endswith("/o4q") for node in await phone.tree())
    await phone.key("BACK")
    await phone.key("BACK")
    phone.show_chat("wechat:11")
    assert any(node.resource_id.endswith("/o4q") for node in await phone.tree())


@pytest.mark.parametrize(
    ("unread", "left"), [(0, range(104, 105)), (3, range(172, 181)), (86, range(175, 215)), (250, range(215, 245))]
)
def test_the_name_begins_behind_the_arrow_or_the_pill(unread: int, left: range) -> None:
    drawn = draw("qq-plain", "11", [ASKED], unread=unread)
    assert drawn.truth.title_box.left in left
    assert named(drawn, "ivTitleBtnLeft")[0].description == (f"返回消息未读{unread}" if unread else "返回")
    arrow = drawn.image.crop((0, 150, 104, 234)).convert("L").point(lambda value: 255 * (value < 128))
    box = arrow.getbbox()
    assert box is not None
    assert box[0] >= 40
    if not unread:
        assert box[2] <= 72


def test_a_group_s_count_stands_beside_the_name_in_qq_and_in_the_title_in_wechat() -> None:
    qq = draw("qq-plain", "售后群", [ASKED], members=38)
    assert [(node.text, node.description) for node in named(qq, "372")] == [("(38)", "38")]
    assert named(qq, "371")[0].text == "售后群"
    wechat = draw("wechat-light", "售后群", [ASKED], members=38)
    assert named(wechat, "obn")[0].text == "售后群(38)"
    assert abs(wechat.truth.title_box.center.x - 540) <= 1


@pytest.mark.parametrize("sign", list(Sign))
def test_signs_stand_behind_the_name_and_are_no_nodes(sign: Sign) -> None:
    for key in ("qq-plain", "wechat-light"):
        plain, signed = draw(key, "小王", [ASKED]), draw(key, "小王", [ASKED], signs=[sign])
        box = signed.truth.title_box
        behind = (box.right + 10, box.top, box.right + 80, box.bottom)
        assert plain.truth.title_box == box
        assert plain.image.crop(behind).tobytes() != signed.image.crop(behind).tobytes()
        assert len(plain.nodes) == len(signed.nodes)


async def test_the_status_line_comes_and_goes() -> None:
    events = [
        {"at": at, "do": "status", "contact": "11", "text": text} for at, text in ((5, "对方正在输入..."), (9, ""))
    ]
    world = {"look": "qq-plain", "contacts": [{"name": "11", "status": "在线 - 4G"}], "events": events}
    now = [NOW]
    phone = VirtualPhone(Scenario.model_validate(world), clock=lambda: now[0])
    phone.show_chat("11")
    seen = []
    for _ in range(3):
        seen.append([node.text for node in await phone.tree() if node.resource_id.endswith("/38j")])
        now[0] = now[0].replace(second=now[0].second + 5)
    assert seen == [["在线 - 4G"], ["对方正在输入..."], []]


async def test_a_pinned_notice_is_taken_away_by_its_button() -> None:
    words = "小张-请先看群公告：发货时间"
    drawn = draw("wechat-light", "售后群", [ASKED], members=3, strip=words)
    assert [node.text for node in named(drawn, "pinned")] == [words]
    await tap(drawn.phone, named(drawn, "pinned_remove")[0].box)
    assert not [node for node in await drawn.phone.tree() if node.text == words]


def test_a_quotation_is_inside_the_bubble_in_qq_and_below_it_in_wechat() -> None:
    quote = MessagePart(kind=Kind.QUOTE, text="那今天呢？", quoted="48小时内发货", ago=60)
    for key, inside in (("qq-plain", True), ("wechat-light", False)):
        drawn = draw(key, "11", [quote])
        bubble, quoted = drawn.truth.bubbles[0], named(drawn, LOOKS[key].ids.quote)[0]
        assert bubble.box is not None
        assert (bubble.text, bubble.quoted) == ("那今天呢？", "48小时内发货")
        assert (quoted.box.bottom < bubble.box.bottom) is inside
        assert (quoted.box.top > bubble.box.bottom) is not inside
        assert rgb(LOOKS[key].colors.theirs_quote) in colors(drawn.image, quoted.box)
        assert quoted.text.startswith("我 20:14\n" if inside else "我：")


def test_a_transcription_is_a_second_bubble_without_an_avatar() -> None:
    voice = MessagePart(kind=Kind.VOICE, text="16", transcript="什么时候能到", ago=60)
    drawn = draw("wechat-light", "11", [voice])
    assert len(named(drawn, "bk1")) == 1
    assert [(bubble.kind, bubble.text) for bubble in drawn.truth.bubbles] == [(BubbleKind.VOICE, "什么时候能到")]
    assert [node.text for node in named(drawn, "bkl")] == ["什么时候能到"]


def test_links_numbers_and_emoji_have_colours_of_their_own() -> None:
    for key in ("qq-plain", "wechat-light"):
        link = rgb(LOOKS[key].colors.theirs_link)
        for text, blue in (("看 https://a.cn/b", True), ("单号 202511220001", True), ("一共 128 元", False)):
            box = draw(key, "11", [MessagePart(text=text)]).truth.bubbles[0].box
            assert box is not None
            assert (link in colors(draw(key, "11", [MessagePart(text=text)]).image, box)) is blue
        drawn = draw(key, "11", [MessagePart(text="好的😄")])
        box = drawn.truth.bubbles[0].box
        assert box is not None
        assert rgb("#ffcd3c") in colors(drawn.image, box)


def test_a_white_picture_is_nearly_white() -> None:
    drawn = draw("qq-plain", "11", [MessagePart(kind=Kind.IMAGE, paper=True)])
    box = drawn.truth.bubbles[0].box
    assert box is not None
    grey = drawn.image.crop((box.left, box.top, box.right, box.bottom)).convert("L")
    assert sum(grey.histogram()[250:]) > 0.8 * box.width * box.height


@pytest.mark.parametrize("state", [MessageState.SENDING, MessageState.FAILED])
@pytest.mark.parametrize("key", ["qq-plain", "wechat-dark"])
def test_what_has_not_arrived_has_a_mark(key: str, state: MessageState) -> None:
    drawn = draw(key, "11", [MessagePart(side=Side.ME, text="您好", state=state)])
    ids = LOOKS[key].ids
    assert len(named(drawn, ids.failed if state is MessageState.FAILED else ids.sending)) == 1


def contact(name: str, key: str, **more: object) -> ContactPart:
    data = {"name": name, "app": LOOKS[key].app, "history": [{"text": "在吗", "ago": 60, "unread": True}]} | more
    return ContactPart.model_validate(data)


@pytest.mark.parametrize("key", NEW)
async def test_the_mark_of_unread_messages_is_at_the_avatar_s_corner(key: str) -> None:
    drawn = draw_list(key, [contact("11", key, unread=2), contact("22", key, muted=True, unread=9)])
    red = rgb(LOOKS[key].colors.badge)
    for row, text in zip(drawn.rows, ("2", None), strict=True):
        corner = Box(130, row.box.top, 200, row.box.top + 70)
        assert red in colors(drawn.image, corner)
        assert red not in colors(drawn.image, Box(200, row.box.top, 1080, row.box.bottom))
        inside = [node for node in drawn.nodes if row.box.top <= node.box.top and node.box.bottom <= row.box.bottom]
        ids = {node.resource_id.rpartition("/")[2]: node for node in inside}
        mark = LOOKS[key].ids.row_count if text else LOOKS[key].ids.row_dot
        assert ids[mark].text == (text or "")
        name = ids[LOOKS[key].ids.row_name]
        assert name.text == row.name
        assert name.class_name == ("android.view.View" if key in WECHAT else "android.widget.TextView")
    await tap(drawn.phone, drawn.rows[1].box)
    assert drawn.phone.report()["chats_opened"] == ["22" if key in QQ else "wechat:22"]


def test_a_row_of_qq_tells_all_in_its_description() -> None:
    drawn = draw_list("qq-plain", [contact("11", "qq-plain", unread=2)])
    (row,) = [node for node in drawn.nodes if node.resource_id.endswith("/o8c")]
    assert row.description == "11, ,有2条未读,在吗,20:14"
    assert row.clickable
    assert [node.text for node in drawn.nodes if node.resource_id.endswith("/kbi")] == [
        "消息",
        "频道",
        "联系人",
        "动态",
    ]


async def test_rows_that_are_no_chats_open_none() -> None:
    drawn = draw_list("wechat-light", [contact("11", "wechat-light")], notices=["Windows 微信已登录", "折叠置顶聊天"])
    rows = [node for node in drawn.nodes if node.resource_id.endswith("/notice_row")]
    assert len(rows) == 2
    for row in rows:
        await tap(drawn.phone, row.box)
    assert drawn.phone.report()["chats_opened"] == []


def noticed(look: str, *texts: str, **more: object) -> list[tuple[str, str]]:
    person = ContactPart.model_validate({"name": "小王", "app": LOOKS[look].app} | more)
    hidden = {"hidden_previews": True} if not texts[0] else {}
    phone = VirtualPhone(
        Scenario.model_validate({"look": look, "contacts": [person], "faults": hidden}), clock=lambda: NOW
    )
    for text in texts:
        phone.receive(person.key, text or "在吗")
    return [(note.title, note.text) for note in phone.notifications()]


def test_notifications_say_what_the_real_ones_say() -> None:
    assert noticed("qq-plain", "在吗") == [("小王", "在吗")]
    assert noticed("qq-plain", "在吗", "几天发货") == [("小王(2条新消息)", "几天发货")]
    assert noticed("qq-plain", "在吗", "您好", special=True) == [("[特别关心]小王(2条新消息)", "您好")]
    assert noticed("qq-plain", "", "") == [("QQ", "你收到了2条新消息")]
    assert noticed("qq-plain", "在吗", muted=True) == []
    assert noticed("wechat-light", "Hello") == [("小王", "Hello")]
    assert noticed("wechat-light", "Hello", "在吗") == [("小王", "[2条]小王: 在吗")]


async def test_an_app_notifies_of_other_things_too() -> None:
    event = {"at": 0, "do": "notification", "title": "QQ空间动态(共1条未读)", "text": "小王发表了说说"}
    phone = VirtualPhone(Scenario.model_validate({"look": "qq-plain", "events": [event]}), clock=lambda: NOW)
    assert [(note.title, note.text) for note in phone.notifications()] == [(event["title"], event["text"])]


async def test_a_notification_of_several_messages_opens_its_chat() -> None:
    phone = VirtualPhone(Scenario(look="qq-plain", contacts=[ContactPart(name="小王")]), clock=lambda: NOW)
    phone.receive("小王", "在吗")
    phone.receive("小王", "您好")
    await phone.open_shade(True)
    (note,) = [node for node in await phone.tree() if node.text == "小王(2条新消息)"]
    await tap(phone, note.box)
    assert phone.report()["chats_opened"] == ["小王"]
    assert phone.notifications() == []


@pytest.mark.parametrize(("form", "closes"), [("buttons", "稍后处理"), ("picture", "关闭")])
@pytest.mark.parametrize("key", ["qq-plain", "wechat-light"])
async def test_an_update_dialog_lies_over_the_app(key: str, form: str, closes: str) -> None:
    phone = draw(key, "11", [ASKED]).phone
    phone.set_fault("update", form)
    assert phone.window().activity == LOOKS[key].activities.update
    nodes = await phone.tree()
    words = {node.text or node.description for node in nodes}
    assert {"立即升级", "稍后处理"} <= words if form == "buttons" else {"马上升级", "关闭"} <= words
    (way,) = [node for node in nodes if closes in (node.text, node.description)]
    (title,) = [node for node in nodes if node.text == "发现新版本"]
    assert (way.box.bottom < title.box.top) is (form == "picture")
    await tap(phone, way.box)
    assert phone.window().activity == LOOKS[key].activities.chat
    assert "dialog_accepted" not in [action["what"] for action in phone.report()["actions"]]


async def test_a_hidden_tree_is_one_node_without_a_place_until_a_screen_reader_is_on() -> None:
    phone = draw("wechat-enter", "11", [ASKED]).phone
    assert [(node.box, node.text) for node in await phone.tree()] == [(Box(0, 0, 0, 0), "")]
    phone.set_setting("secure", "enabled_accessibility_services", "com.google.android.marvin.talkback/.TalkBackService")
    assert "几天能发货？" in [node.text for node in await phone.tree()]


@pytest.mark.parametrize("key", NEW)
async def test_activities_are_those_of_the_real_app(key: str) -> None:
    phone = draw(key, "11", [ASKED]).phone
    activities = LOOKS[key].activities
    assert phone.window().activity == activities.chat
    await phone.key("BACK")
    assert phone.window().activity == activities.list
    assert phone.apps[PACKAGES[LOOKS[key].app]].version == LOOKS[key].version


@pytest.mark.parametrize("key", ["qq-classic", "wechat-light"])
@pytest.mark.parametrize("scale", [0.85, 1.0, 1.3])
@pytest.mark.parametrize("width", [720, 1080, 1280, 1440])
def test_font_scale_and_width_go_together_with_any_look(key: str, scale: float, width: int) -> None:
    drawn = draw(key, "11", [ASKED], font_scale=scale, width=width)
    box = drawn.truth.bubbles[0].box
    assert drawn.image.width == width
    assert box is not None
    geometry = LOOKS[key].geometry
    assert box.height == pytest.approx((geometry.line * scale + 2 * geometry.pad_y) * width / 1080, abs=2)
    assert rgb(LOOKS[key].colors.theirs) in colors(drawn.image, box)


def test_a_hand_written_font_changes_every_letter_and_no_meaning() -> None:
    plain = draw("qq-plain", "小王", [ASKED])
    hand = draw("qq-plain", "小王", [ASKED], phone=PhonePart(handwriting=True))
    box = plain.truth.title_box
    area = (box.left, box.top, box.right, box.bottom)
    assert plain.image.crop(area).tobytes() != hand.image.crop(area).tobytes()
    assert [bubble.text for bubble in hand.truth.bubbles] == [bubble.text for bubble in plain.truth.bubbles]
    rare = draw("qq-plain", "小王", [MessagePart(text="饕餮")], phone=PhonePart(handwriting=True))
    assert rare.truth.bubbles[0].box == draw("qq-plain", "小王", [MessagePart(text="饕餮")]).truth.bubbles[0].box


async def test_a_floating_window_takes_the_taps_of_what_it_covers() -> None:
    phone = draw("qq-plain", "11", [ASKED], phone=PhonePart(floating=True)).phone
    await phone.tap(950, 2400 * 62 // 100 + 100)
    assert [action["what"] for action in phone.report()["actions"]][-1] == "floating_window"


async def test_the_three_buttons_work() -> None:
    phone = draw("qq-plain", "11", [ASKED], phone=PhonePart(navigation="buttons")).phone
    await phone.tap(762, 2400 - 60)
    assert not [node for node in await phone.tree() if node.resource_id.endswith("/mjn")]
    await phone.tap(540, 2400 - 60)
    assert phone.window().package == "com.android.launcher3"


@pytest.mark.parametrize("key", ["qq-plain", "wechat-light"])
def test_a_wallpaper_lies_behind_any_look(key: str) -> None:
    plain = draw(key, "11", [ASKED])
    papered = draw(key, "11", [ASKED], phone=PhonePart(wallpaper=True))
    assert plain.image.getpixel((540, 1700)) == rgb(LOOKS[key].colors.page)
    assert papered.image.getpixel((540, 1700)) != plain.image.getpixel((540, 1700))
    assert papered.truth.bubbles == plain.truth.bubbles


@pytest.mark.parametrize("key", NEW)
async def test_a_text_is_typed_and_sent_with_the_adb_keyboard(key: str) -> None:
    drawn = draw(key, "11", [ASKED])
    phone = drawn.phone
    if drawn.truth.keyboard_icon is not None:
        await tap(phone, drawn.truth.keyboard_icon)
    field = next(element for element in phone.scene().page if element.id == LOOKS[key].ids.input)
    await phone.tap((field.box[0] + field.box[2]) / 2, (field.box[1] + field.box[3]) / 2)
    phone.choose_input_method(ime.ADB)
    await phone.broadcast("ADB_INPUT_TEXT", {"msg": "您好"}, ime.ADB_PACKAGE)
    assert [text["text"] for text in phone.report()["typed"]] == ["您好"]
    assert next(element for element in phone.scene().page if element.id == LOOKS[key].ids.input).text == "您好"
