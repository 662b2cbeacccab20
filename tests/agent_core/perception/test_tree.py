from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.apps.profile import Parts, profile, resolve
from agent_core.devices.base import Node
from agent_core.geometry import Box, Point
from agent_core.perception import tree
from agent_core.perception.kinds import kind_of
from agent_core.perception.readings import BubbleKind, BubbleState, ChatScreen, SendState, Side, Source
from agent_core.perception.tree import TreeHealth

from . import dumps
from .support import QQ, look, open_chat, scenario, them

SIZE = (1080, 2400)


@pytest.mark.parametrize(
    ("mode", "health"),
    [("full", TreeHealth.FULL), ("no_texts", TreeHealth.NO_TEXTS), ("empty", TreeHealth.EMPTY)],
)
async def test_the_health_of_each_mode(mode: str, health: TreeHealth) -> None:
    phone = await open_chat(scenario(them("在吗？")))
    phone.set_tree(mode)
    seen = await look(phone)
    assert tree.health(seen.nodes, seen.frame.size) is health


def test_no_tree_at_all_is_an_empty_one() -> None:
    assert tree.health(None, SIZE) is TreeHealth.EMPTY
    assert tree.health([], SIZE) is TreeHealth.EMPTY


def test_readings_say_the_text_else_the_description_and_leave_out_what_is_off_the_screen() -> None:
    nodes = [
        Node(Box(0, 100, 500, 200), text="发送", class_name="android.widget.Button", clickable=True),
        Node(Box(0, 300, 500, 400), description="返回", class_name="android.widget.ImageView"),
        Node(Box(0, 2400, 500, 2500), text="下面"),
        Node(Box(0, 500, 0, 600), text="没有宽度"),
    ]
    found = tree.readings(nodes, SIZE)
    assert [(r.text, r.role, r.clickable, r.source) for r in found] == [
        ("发送", "button", True, Source.TREE),
        ("返回", "image", False, Source.TREE),
    ]


def page(*bubbles: Node, draft: str = "") -> list[Node]:
    ids = "com.tencent.mobileqq:id/"
    return [
        Node(Box(150, 120, 400, 195), text="11", resource_id=ids + "title"),
        *bubbles,
        Node(Box(28, 2170, 872, 2262), text=draft, resource_id=ids + "input", class_name="android.widget.EditText"),
        Node(Box(892, 2174, 1052, 2258), text="发送", resource_id=ids + "send_btn", class_name="android.widget.Button"),
    ]


def bubble(text: str, box: Box) -> Node:
    return Node(box, text=text, resource_id="another.package:id/chat_item_content_layout")


def test_sides_are_told_by_place_and_a_hint_is_no_draft() -> None:
    seen = tree.chat(
        page(bubble("问题", Box(146, 400, 846, 500)), bubble("回答", Box(234, 600, 934, 700)), draft="说点什么…"),
        QQ,
        SIZE,
    )
    assert seen is not None
    assert [(b.side, b.text) for b in seen.bubbles] == [(Side.THEM, "问题"), (Side.ME, "回答")]
    assert seen.draft == ""
    assert seen.send_point is not None


def test_the_words_may_stand_in_a_node_within_the_bubble() -> None:
    nodes = page(bubble("", Box(146, 400, 600, 500)), Node(Box(180, 410, 560, 490), text="里面的字"))
    seen = tree.chat(nodes, QQ, SIZE)
    assert seen is not None
    assert [b.text for b in seen.bubbles] == ["里面的字"]


def test_a_red_mark_beside_our_bubble_is_its_state() -> None:
    ids = "com.tencent.mobileqq:id/"
    nodes = page(
        bubble("一", Box(700, 400, 934, 500)),
        bubble("二", Box(700, 600, 934, 700)),
        Node(Box(626, 626, 674, 674), resource_id=ids + "chat_item_fail_icon"),
    )
    seen = tree.chat(nodes, QQ, SIZE)
    assert seen is not None
    assert [b.state for b in seen.bubbles] == [BubbleState.OK, BubbleState.FAILED]


def test_without_ids_a_text_field_and_the_place_of_texts_are_enough() -> None:
    nodes = [
        Node(Box(150, 120, 400, 195), text="11"),
        Node(Box(500, 300, 580, 340), text="12:30"),
        Node(Box(146, 400, 600, 500), text="几天能发货？"),
        Node(Box(28, 2170, 872, 2262), text="草稿", class_name="android.widget.EditText"),
        Node(Box(892, 2174, 1052, 2258), text="发送"),
    ]
    seen = tree.chat(nodes, QQ, SIZE)
    assert seen is not None
    assert (seen.title, [b.text for b in seen.bubbles], seen.draft) == ("11", ["几天能发货？"], "草稿")


def test_a_page_without_an_input_or_without_a_title_is_no_chat() -> None:
    whole = page(bubble("问题", Box(146, 400, 846, 500)))
    assert tree.chat(whole[:-2], QQ, SIZE) is None
    assert tree.chat(whole[1:], QQ, SIZE) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("几天能发货？", BubbleKind.TEXT),
        ("语音7秒", BubbleKind.VOICE),
        ('7"', BubbleKind.VOICE),
        ("图片", BubbleKind.IMAGE),
        ("图片不清楚", BubbleKind.TEXT),
        ("[动画表情]", BubbleKind.STICKER),
        ("QQ红包", BubbleKind.RED_PACKET),
        ("红包怎么用", BubbleKind.TEXT),
        ("", BubbleKind.OTHER),
        ("[视频通话] 对方已取消", BubbleKind.CALL),
        ("未接听，点击回拨", BubbleKind.CALL),
        ("小李发起了语音通话", BubbleKind.CALL),
        ("Missed voice call", BubbleKind.CALL),
        ("订单已取消", BubbleKind.TEXT),
        ("电话没人接", BubbleKind.TEXT),
    ],
)
def test_kinds_of_messages(text: str, kind: BubbleKind) -> None:
    assert kind_of(text) is kind


# Pages as real apps print them


def read(xml: str, app: str = "qq", version: str | None = None) -> ChatScreen | None:
    size = dumps.QQ_SIZE if app == "qq" else dumps.WECHAT_SIZE
    return tree.chat(dumps.nodes(xml, size), resolve(app, version), size)


def seen(xml: str, app: str = "qq", version: str | None = None) -> ChatScreen:
    found = read(xml, app, version)
    assert found is not None
    return found


def told(page: ChatScreen) -> list[tuple[Side, BubbleKind, str]]:
    return [(bubble.side, bubble.kind, bubble.text) for bubble in page.bubbles]


def trusted(page: ChatScreen) -> bool:
    """Whether a reply would be sent without a person's look."""
    return page.sure and page.title_sure and all(bubble.sure for bubble in page.question)


PAGES = {
    name: (xml, "qq" if name.startswith("QQ") else "wechat")
    for name, xml in vars(dumps).items()
    if name.isupper() and isinstance(xml, str) and xml.startswith("<?xml") and name != "WECHAT_HIDDEN"
}
QUESTIONS: dict[str, tuple[str, tuple[BubbleKind, str]]] = {
    "QQ_TEXT": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "QQ_STATUS": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "QQ_PILL": ("12", (BubbleKind.TEXT, "几天能发货？")),
    "QQ_BUTTON": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "QQ_PICTURE": ("顾客甲", (BubbleKind.IMAGE, "")),
    "QQ_VOICE": ("顾客甲", (BubbleKind.VOICE, '7"')),
    "QQ_CALL": ("顾客甲", (BubbleKind.CALL, "未接听，点击回拨")),
    "QQ_GROUP": ("买家群", (BubbleKind.TEXT, "几天能发货？")),
    "QQ_OLD": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "WECHAT_TEXT": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "WECHAT_WIDE": ("顾客甲", (BubbleKind.TEXT, "几天能发货？我这边周末要用，来得及吗，麻烦看一下谢谢")),
    "WECHAT_TYPED": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "WECHAT_VOICE_BAR": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "WECHAT_TAG": ("顾客甲", (BubbleKind.TEXT, "几天能发货？")),
    "WECHAT_GROUP": ("买家群(5)", (BubbleKind.TEXT, "几天能发货？")),
    "WECHAT_QUOTE": ("顾客甲", (BubbleKind.TEXT, "这个呢")),
    "WECHAT_FILE": ("顾客甲", (BubbleKind.FILE, "尺码表.xlsx")),
    "WECHAT_PICTURE": ("顾客甲", (BubbleKind.IMAGE, "")),
    "WECHAT_STICKER": ("顾客甲", (BubbleKind.STICKER, "")),
}
VERSIONS = {"QQ_OLD": "8.9.3"}
OBFUSCATED = 3  # letters of an id that is another one in the next build


@pytest.mark.parametrize("known", [True, False], ids=["version", "no version"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_page_of_a_real_app(name: str, known: bool) -> None:
    xml, app = PAGES[name]
    version = VERSIONS.get(name, "9.3.50" if app == "qq" else "8.0.58") if known else None
    page = seen(xml, app, version)
    title, question = QUESTIONS[name]
    assert page.title == title
    assert [(b.kind, b.text) for b in page.question] == [question]
    assert trusted(page), page.doubts
    assert [b.side for b in page.bubbles] == [Side.THEM, Side.ME, Side.THEM]
    assert page.group is name.endswith("GROUP")
    assert page.title_box is not None


def test_every_page_has_its_question() -> None:
    assert set(QUESTIONS) | {"QQ_STICKER"} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_an_unknown_build_is_read_by_its_structure(name: str) -> None:
    xml, app = PAGES[name]
    page = seen(dumps.without_ids(xml), app)
    assert page.title == QUESTIONS.get(name, ("顾客甲",))[0]
    assert page.title_sure
    assert len(page.question) == 1
    if name == "QQ_CALL":
        assert page.question[0].kind is BubbleKind.CALL
    told = {BubbleKind.TEXT, BubbleKind.IMAGE, BubbleKind.VOICE, BubbleKind.CALL}
    if name in QUESTIONS and QUESTIONS[name][1][0] in told and name != "WECHAT_QUOTE":
        assert trusted(page), page.doubts
    else:
        assert not page.sure
        assert page.doubts
        assert not page.question[0].sure


def _never_wrong(name: str, xml: str) -> None:
    """A page that is trusted has the right name, and the words of a text, or none if the message is no text."""
    page = read(xml, PAGES[name][1])
    if page is None or not trusted(page):
        return
    title, (kind, text) = QUESTIONS.get(name, ("顾客甲", (BubbleKind.STICKER, "")))
    assert page.title == title
    assert [b.side for b in page.bubbles[-2:]] == [Side.ME, Side.THEM]
    asked = page.question[0]
    assert (asked.kind is BubbleKind.TEXT) is (kind is BubbleKind.TEXT)
    if kind is BubbleKind.TEXT:
        assert asked.text == text


@pytest.mark.parametrize("name", PAGES)
def test_an_id_less_makes_nothing_wrong_and_sure(name: str) -> None:
    xml = PAGES[name][0]
    for one in dumps.ids(xml):
        _never_wrong(name, dumps.without_id(xml, one))


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("name", PAGES)
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_ids_that_mean_other_things_in_another_build_make_nothing_wrong_and_sure(
    name: str, data: st.DataObject
) -> None:
    xml, app = PAGES[name]
    used = dumps.ids(xml)
    parts = Parts.model_fields
    known = sorted(
        {
            one
            for field in parts
            if field.endswith("_ids")
            for one in getattr(profile(app), field)
            if len(one) <= OBFUSCATED
        }
    )
    other = data.draw(st.permutations([*used, *known]))
    _never_wrong(name, dumps.with_ids(xml, dict(zip(used, other, strict=False))))


@pytest.mark.parametrize("name", PAGES)
def test_a_node_less_makes_no_other_words_sure(name: str) -> None:
    """A tree may leave out anything: then less is known, and nothing is made up."""
    xml, app = PAGES[name]
    whole = dumps.nodes(xml, dumps.QQ_SIZE if app == "qq" else dumps.WECHAT_SIZE)
    size = dumps.QQ_SIZE if app == "qq" else dumps.WECHAT_SIZE
    title, (kind, text) = QUESTIONS.get(name, ("顾客甲", (BubbleKind.STICKER, "")))
    for node in whole:
        page = tree.chat([other for other in whole if other is not node], profile(app), size)
        if page is None or not trusted(page) or node.text in (title, text) or node.description.endswith(("料卡", "像")):
            continue
        assert page.title == title, node
        assert [(b.kind, b.text) for b in page.question][-1:] == [(kind, text)], node


def test_a_row_that_is_not_understood_is_a_doubt_and_no_silence() -> None:
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.qq_row("them", 820)))
    assert [(b.kind, b.sure) for b in page.question] == [(BubbleKind.OTHER, False)]
    assert not page.sure
    assert page.doubts


def test_a_doubt_above_our_last_message_is_none() -> None:
    mine = dumps.qq_row("me", 1020, dumps.qq_text("me", 1020, "看到了"))
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.qq_row("them", 820), mine))
    assert page.question == ()
    assert page.sure


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (dumps.Tag((161, 820, 561, 1220), "mjw", desc="图片", kind="ImageView"), "一件"),
        (dumps.Tag((161, 820, 561, 1220), kind="ImageView"), "一件"),
    ],
    ids=["id", "no id"],
)
def test_words_with_a_picture_are_not_words_alone(part: dumps.Tag, words: str) -> None:
    text = dumps.Tag((161, 1230, 461, 1300), "mjn", words)
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.qq_row("them", 820, part, text, height=520)))
    assert [(b.kind, b.text, b.sure) for b in page.question] == [(BubbleKind.OTHER, words, False)]


def test_nobody_is_quoted_surely_by_a_text_that_is_not_known() -> None:
    more = dumps.Tag((161, 940, 461, 990), text="有的，今天就能发")
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.qq_row("them", 820, dumps.qq_text("them", 820, "这个呢"), more)))
    assert [(b.text, b.sure) for b in page.question] == [("这个呢", False)]


def test_a_wechat_quotation_stands_below_its_bubble() -> None:
    page = seen(dumps.WECHAT_QUOTE, "wechat")
    assert [(b.text, b.quoted) for b in page.question] == [("这个呢", "有的，今天就能发")]


def test_a_notice_in_the_middle_is_no_message() -> None:
    notice = dumps.Tag((330, 1010, 750, 1060), text="对方撤回了一条消息")
    for row in (
        dumps.Tag((0, 990, 1080, 1080), "root", inner=(notice,)),
        dumps.Tag((0, 990, 1080, 1080), inner=(notice,)),
    ):
        page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS, row))
        assert [b.text for b in page.question] == ["几天能发货？"]
        assert page.sure, page.doubts


def test_a_message_whose_avatar_is_above_the_edge_is_read_by_its_place() -> None:
    cut = dumps.Tag((161, 261, 901, 330), "mjn", "麻烦您" * 20)
    row = dumps.Tag((0, 261, 1080, 340), "root", inner=(cut,))
    page = seen(dumps.qq(row, dumps.qq_row("them", 400, dumps.qq_text("them", 400, "几天能发货？"))))
    assert [(b.side, b.sure) for b in page.bubbles] == [(Side.THEM, True)] * 2
    page = seen(dumps.qq(row, *dumps.ANSWERED))
    assert page.sure


def test_a_wide_message_without_its_avatar_is_not_sure() -> None:
    cut = dumps.Tag((228, 280, 1212, 400), text="麻烦您" * 20)
    row = dumps.Tag((0, 280, 1440, 420), inner=(cut,))
    page = seen(
        dumps.wechat(row, dumps.wechat_row("them", 460, dumps.wechat_text("them", 460, "几天能发货？"))), "wechat"
    )
    assert len(page.question) == 2
    assert not page.question[0].sure
    assert not page.sure


def test_a_pinned_strip_is_no_message() -> None:
    strip = dumps.Tag((20, 290, 1060, 370), inner=(dumps.Tag((40, 300, 700, 360), text="群主-请先看群公告"),))
    page = seen(dumps.qq(strip, *dumps.ANSWERED, dumps.ASKS))
    assert [b.text for b in page.bubbles] == ["有货吗", "有的，今天就能发", "几天能发货？"]
    assert page.sure, page.doubts


def test_a_person_may_write_what_a_nickname_is() -> None:
    page = seen(
        dumps.without_ids(dumps.qq(*dumps.ANSWERED, dumps.qq_row("them", 820, dumps.qq_text("them", 820, "顾客甲"))))
    )
    assert [b.text for b in page.question] == ["顾客甲"]


def test_two_people_make_a_group_without_a_count() -> None:
    rows = [
        dumps.qq_row("them", 400, dumps.qq_text("them", 450, "一"), name="顾客甲", card="顾客甲"),
        dumps.qq_row("them", 650, dumps.qq_text("them", 700, "二"), name="顾客乙", card="顾客乙"),
    ]
    assert seen(dumps.qq(*rows)).group
    assert not seen(dumps.qq(*rows[:1])).group


def test_the_count_beside_a_name_makes_a_group_of_which_one_person_is_in_sight() -> None:
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS, header=dumps.qq_header("买家群", count="3")))
    assert (page.title, page.title_sure, page.group) == ("买家群", True, True)


@pytest.mark.parametrize(("version", "group"), [("9.3.50", False), ("8.8.0", True), (None, True)])
def test_brackets_in_a_name_count_members_only_if_the_version_writes_them_there(
    version: str | None, group: bool
) -> None:
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS, header=dumps.qq_header("小店(2)")), version=version)
    assert (page.title, page.group) == ("小店(2)", group)


# The header


def test_a_name_of_digits_beside_a_count_of_unread_is_not_sure_unless_the_arrow_tells_the_count() -> None:
    assert seen(dumps.QQ_PILL).title_sure
    page = seen(dumps.QQ_PILL.replace("返回消息未读86", "返回消息"))
    assert not page.title_sure
    assert not page.sure


def test_a_tag_as_large_as_the_name_is_a_doubt() -> None:
    tag = dumps.Tag((260, 170, 330, 224), text="AI")
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS, header=(*dumps.qq_header("86"), tag)))
    assert not page.title_sure


def test_a_status_is_no_name() -> None:
    for said in ("手机在线 - 4G", "今天心情不错"):
        header = [tag for tag in dumps.qq_header(status=said) if tag.text != "顾客甲"]
        page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS, header=header))
        assert not page.title_sure, page.title
    typing = seen(dumps.wechat(*dumps.WECHAT_ANSWERED, header=dumps.wechat_header("对方正在输入...")), "wechat")
    assert not typing.title_sure


def test_the_id_of_a_name_in_a_list_is_no_title_of_a_chat() -> None:
    assert "title" not in profile("qq").title_ids
    header = dumps.qq_header(status="在线")
    header = tuple(replace(tag, id="title") if tag.text == "在线" else tag for tag in header)
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS, header=header))
    assert (page.title, page.title_sure) == ("顾客甲", True)


# Input and Send


def test_send_before_and_after_typing() -> None:
    plain = seen(dumps.QQ_TEXT)
    assert (plain.send_state, plain.send_point, plain.send_box) == (SendState.ABSENT, None, None)
    typed = seen(dumps.qq(dumps.ASKS, bar=dumps.qq_bar("好的")))
    assert (typed.send_state, typed.draft) == (SendState.ON, "好的")
    assert typed.send_box == Box(920, 2120, 1060, 2205)
    classic = seen(dumps.qq(dumps.ASKS, bar=dumps.qq_bar(classic=True)))
    assert (classic.send_state, classic.draft) == (SendState.DIMMED, "")
    assert seen(dumps.qq(dumps.ASKS, bar=dumps.qq_bar("好的", classic=True))).send_state is SendState.ON
    assert seen(dumps.WECHAT_TEXT, "wechat").send_state is SendState.ABSENT
    assert seen(dumps.WECHAT_TYPED, "wechat").send_state is SendState.ON


@pytest.mark.parametrize(("enabled", "click"), [(False, True), (True, False)])
def test_a_button_that_cannot_be_tapped_is_dimmed(enabled: bool, click: bool) -> None:
    bar = [
        replace(tag, enabled=enabled, click=click) if tag.text == "发送" else tag
        for tag in dumps.qq_bar("好的", classic=True)
    ]
    assert seen(dumps.qq(dumps.ASKS, bar=bar)).send_state is SendState.DIMMED


def test_the_plus_is_no_send_even_in_a_tree_without_texts() -> None:
    plus = Node(Box(990, 2130, 1060, 2200), resource_id="com.tencent.mobileqq:id/fun_btn", clickable=True)
    field = Node(Box(157, 2115, 819, 2215), class_name="android.widget.EditText")
    assert tree.send_node([field, plus], resolve("qq"), field, SIZE) is None
    assert tree.send_node([field, plus], resolve("qq", "9.3.50"), field, SIZE) is None
    assert tree.send_node([field, plus], resolve("qq", "8.8.0"), field, SIZE) is plus


def test_a_message_that_says_send_is_no_button() -> None:
    row = dumps.qq_row("me", 1940, dumps.qq_text("me", 1940, "发送"), height=130)
    assert seen(dumps.qq(row)).send_state is SendState.ABSENT


def test_a_bar_to_talk_has_no_input_and_an_icon_that_brings_it_back() -> None:
    page = seen(dumps.WECHAT_VOICE_BAR, "wechat")
    assert (page.input_box, page.draft, page.draft_sure) == (None, None, False)
    assert page.send_state is SendState.ABSENT
    assert page.keyboard_icon == Point(90, 3000)
    unnamed = seen(dumps.WECHAT_VOICE_BAR.replace("切换到键盘", ""), "wechat")
    assert unnamed.keyboard_icon == Point(90, 3000)
    assert seen(dumps.WECHAT_TEXT, "wechat").keyboard_icon is None


def test_words_in_an_input_without_a_send_may_be_the_apps_own() -> None:
    page = seen(
        dumps.QQ_TEXT.replace(
            'text="" resource-id="com.tencent.mobileqq:id/input"',
            'text="和我聊聊" resource-id="com.tencent.mobileqq:id/input"',
        )
    )
    assert page.draft == "和我聊聊"
    assert not page.draft_sure


def test_a_hidden_tree_is_an_empty_one() -> None:
    nodes = dumps.nodes(dumps.WECHAT_HIDDEN, dumps.WECHAT_SIZE)
    assert tree.health(nodes, dumps.WECHAT_SIZE) is TreeHealth.EMPTY
    assert tree.chat(nodes, profile("wechat"), dumps.WECHAT_SIZE) is None


def test_rows_of_which_nothing_is_told_are_left_to_the_picture() -> None:
    rows = [dumps.qq_row("them", 400), dumps.qq_row("me", 600), dumps.qq_row("them", 820)]
    assert read(dumps.qq(*rows)) is None


def test_a_mark_beside_our_message_is_its_state_whatever_its_id() -> None:
    failed = dumps.Tag((400, 630, 450, 680), desc="发送失败", kind="ImageView", click=True)
    row = dumps.qq_row("me", 600, dumps.qq_text("me", 600, "有的，今天就能发"), failed)
    page = seen(dumps.without_ids(dumps.qq(row)))
    assert [(b.state, b.sure) for b in page.bubbles] == [(BubbleState.FAILED, True)]


def test_whose_a_message_is_must_not_be_told_in_two_ways() -> None:
    """A customer may call themselves 我."""
    page = seen(dumps.qq(*dumps.ANSWERED, dumps.ASKS).replace("顾客甲的资料卡", "我的资料卡"))
    assert [b.side for b in page.question] == [Side.THEM]
    assert not page.sure
