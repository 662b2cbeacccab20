from __future__ import annotations

import pytest

from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.screen import tree
from agent_core.screen.readings import BubbleKind, BubbleState, Side, Source
from agent_core.screen.tree import TreeHealth

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
    ],
)
def test_kinds_of_messages(text: str, kind: BubbleKind) -> None:
    assert tree.kind_of(text) is kind
