from __future__ import annotations

import pytest

from agent_core.devices.adb.capture import extract_xml, parse_tree
from agent_core.devices.base import Node
from agent_core.errors import TreeUnavailable
from agent_core.geometry import Box

HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
DUMP = (
    HEAD + '<hierarchy rotation="0">'
    '<node index="0" text="" resource-id="" class="android.widget.FrameLayout" package="com.tencent.mobileqq"'
    ' content-desc="" clickable="false" focused="false" bounds="[0,0][1080,2400]">'
    '<node index="0" text="发送 &amp; 好" resource-id="com.tencent.mobileqq:id/send_btn" class="android.widget.Button"'
    ' package="com.tencent.mobileqq" content-desc="发送" clickable="true" focused="true"'
    ' bounds="[870,2250][1200,2600]"/>'
    '<node text="below the edge" bounds="[0,2400][1080,2500]" />'
    '<node text="empty" bounds="[5,5][5,9]" />'
    '<node text="no box" />'
    "</node></hierarchy>"
)


def test_nodes_in_order_and_clipped() -> None:
    root, send = parse_tree(DUMP)
    assert root == Node(Box(0, 0, 1080, 2400), class_name="android.widget.FrameLayout", package="com.tencent.mobileqq")
    assert send == Node(
        Box(870, 2250, 1080, 2400),
        "发送 & 好",
        "发送",
        "com.tencent.mobileqq:id/send_btn",
        "android.widget.Button",
        "com.tencent.mobileqq",
        clickable=True,
        focused=True,
    )


def test_clipped_to_the_screen_that_is_given() -> None:
    assert [node.box for node in parse_tree(DUMP, (1000, 2000))] == [Box(0, 0, 1000, 2000)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("&#55357;&#56832;", "\U0001f600"),  # an emoji as two halves
        ("a&#0;b", "ab"),
        ("a\x0bb", "ab"),
        ("&#128512;", "\U0001f600"),
        ("&#55357;x", "x"),  # half an emoji
        ("a&#10;b", "a\nb"),
    ],
)
def test_characters_that_xml_does_not_allow(text: str, read: str) -> None:
    (node,) = parse_tree(f'<hierarchy><node text="{text}" bounds="[0,0][9,9]" /></hierarchy>')
    assert node.text == read


def test_the_document_between_what_else_is_printed() -> None:
    output = f"WARNING: linker\n{DUMP}UI hierchary dumped to: /dev/tty\n".encode()
    assert extract_xml(output) == DUMP


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"ERROR: could not get idle state.\n", "could not get idle state"),
        (b"ERROR: null root node returned by UiTestAutomationBridge.\n", "null root node"),
        (b"", "nothing was printed"),
        (DUMP[:-20].encode(), "could not be read"),
    ],
)
def test_no_document(output: bytes, words: str) -> None:
    with pytest.raises(TreeUnavailable, match=words):
        extract_xml(output)


@pytest.mark.parametrize(
    "xml",
    [
        "<hierarchy><node></hierarchy>",
        '<!DOCTYPE x [<!ENTITY a "b">]><hierarchy><node text="&a;" bounds="[0,0][9,9]" /></hierarchy>',
    ],
)
def test_what_is_no_plain_xml_is_refused(xml: str) -> None:
    with pytest.raises(TreeUnavailable):
        parse_tree(xml)
