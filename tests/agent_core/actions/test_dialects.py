"""JSON and GELab replies, and telling the dialects apart."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.actions import ActionParseError, parse_reply

TAP = {"kind": "tap", "element": (500, 300)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"_metadata":"do","action":"Tap","element":[500,300]}', TAP),
        ('{"action":"tap","coordinates":[500,300]}', TAP),
        ('{"type":"do","operation":"tap","coordinates":[500,300]}', TAP),
        ('{"action":"tap","x":500,"y":300}', TAP),
        ("{'action': 'tap', 'element': (500, 300),}", TAP),
        ("｛“action”：“Tap”，“element”：“500，300”｝", TAP),
        ('```json\n{"action": "Tap", "element": [500, 300]}\n```', TAP),
        ('{"current_app": "QQ"} then {"thought": "x", "action": "tap", "element": [500, 300]}', TAP),
        ('{"name": "Tap", "arguments": {"element": [500, 300]}}', TAP),
        ('{"action":"launch","package":"com.tencent.mobileqq"}', {"kind": "launch", "app": "com.tencent.mobileqq"}),
        ('{"action":"DoubleTap","element":[1,2]}', {"kind": "double_tap", "element": (1, 2)}),
        ('{"action":"LongPress","element":[1,2]}', {"kind": "long_press", "element": (1, 2), "duration": 1.0}),
        ('{"action":"Wait","seconds":3}', {"kind": "wait", "duration": 3.0}),
        ('{"type":"wait","duration":1000}', {"kind": "wait", "duration": 1.0}),
        ('{"type":"wait","duration":99}', {"kind": "wait", "duration": 30.0}),
        (
            '{"action":"Swipe","start":[1,2],"end":[3,4]}',
            {"kind": "swipe", "start": (1, 2), "end": (3, 4), "duration": 0.5},
        ),
        (
            '{"action":"Swipe","start":[1,2],"end":[3,4],"duration":300}',
            {"kind": "swipe", "start": (1, 2), "end": (3, 4), "duration": 0.3},
        ),
        ('{"action":"Type","text":"他说"好"\n行"}', {"kind": "type", "text": '他说"好"\n行'}),
        ('{"action":"Type","text":"a\\n\\"b\\" \\u4f60"}', {"kind": "type", "text": 'a\n"b" 你'}),
        ('{"_metadata":"finish","message":"完成"}', {"kind": "finish", "message": "完成", "success": True}),
        ('{"action":"finish","message":null}', {"kind": "finish", "message": "", "success": True}),
        ('{"action":"COMPLETE","status":"FAILURE","return":"x"}', {"kind": "finish", "message": "x", "success": False}),
    ],
)
def test_json(text: str, expected: dict[str, Any]) -> None:
    for dialect in ("json", "auto"):
        wrapped = f'<think>maybe {{"action":"Home"}}</think><answer>{text}</answer>'
        for form in (text, wrapped):
            action = parse_reply(form, dialect).action
            assert action.model_dump(exclude_none=True) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"_metadata":"say","action":"Tap","element":[1,2]}',
        '{"_metadata":"finish","action":"Tap","element":[1,2]}',
        '{"action":"Back","kind":"finish"}',
        '{"action":"finish","success":true}',
        '{"action":"Tap","element":[1,2],"element":[3,4]}',
        '{"action":"Type","text":"cut off',
        '{"action":"Type","text":"cut off"',
        '{"_metadata":"do"}',
        '{"a":' * 5000,
        'do(action="Back")',
    ],
)
def test_json_refused(text: str) -> None:
    with pytest.raises(ActionParseError):
        parse_reply(text, "json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("action:CLICK\tpoint:500,300\tsummary:x", TAP),
        ("action:click\tpoint:500 300\tsummary:x", TAP),
        ("action:CLICK\tpoint:(500，300)\tsummary:x", TAP),
        ("action: CLICK point: 500,300 summary: x", TAP),
        ("action:CLICK\npoint:500,300\nsummary:x", TAP),
        ("action:DOUBLE_CLICK\tpoint:1,2\tsummary:x", {"kind": "double_tap", "element": (1, 2)}),
        ("action:LONGPRESS\tpoint:1,2\tsummary:x", {"kind": "long_press", "element": (1, 2), "duration": 1.0}),
        ('action:TYPE\tvalue:他说"好"\n第二行\tsummary:x', {"kind": "type", "text": '他说"好"\n第二行'}),
        ("action:TYPE\tvalue:a\\nb\tpoint:1,2\tsummary:x", {"kind": "type", "text": "a\nb"}),
        (
            "action:SLIDE\tpoint1:1,2\tpoint2:3,4\tsummary:x",
            {"kind": "swipe", "start": (1, 2), "end": (3, 4), "duration": 0.5},
        ),
        (
            "action:SLIDE\tpoint:500,500\tdirection:UP\tsummary:x",
            {"kind": "swipe", "start": (500, 500), "end": (500, 100), "duration": 0.5},
        ),
        ("action:AWAKE\tvalue:QQ\tsummary:x", {"kind": "launch", "app": "QQ"}),
        ("action:WAIT\tvalue:5\tsummary:x", {"kind": "wait", "duration": 5.0}),
        ("action:INFO\tvalue:哪一个?\tsummary:x", {"kind": "interact", "question": "哪一个?", "choices": ()}),
        ("action:HOT_KEY\tvalue:BACK\tsummary:x", {"kind": "back"}),
        ("action:HOT_KEY\tkey:APP_SWITCH\tsummary:x", {"kind": "press_key", "key": "app_switch"}),
        ("action:COMPLETE\treturn:好了\tsummary:x", {"kind": "finish", "message": "好了", "success": True}),
        (
            "action:COMPLETE\tstatus:FAILURE\treturn:没有\tsummary:x",
            {"kind": "finish", "message": "没有", "success": False},
        ),
        ("action:ABORT\tvalue:没网\tsummary:x", {"kind": "finish", "message": "没网", "success": False}),
        ("action:ABORT\tabort_reason:没网\tsummary:x", {"kind": "finish", "message": "没网", "success": False}),
    ],
)
def test_gelab(text: str, expected: dict[str, Any]) -> None:
    explained = "explain:因为\t" if "\t" in text else "explain:因为\n" if "\n" in text else "explain:因为 "
    for dialect in ("gelab", "auto"):
        for form in (
            text,
            explained + text,
            f"<THINK>想 action:ABORT</THINK>\n{explained}{text}",
            f"<TINK>想</TINK>{text}\n",
        ):
            reply = parse_reply(form, dialect)
            assert reply.action.model_dump(exclude_none=True) == expected
            assert reply.summary == "x"


def test_gelab_keeps_the_explanation_and_the_unused_point() -> None:
    reply = parse_reply("<THINK>想</THINK>explain:点输入框\taction:TYPE\tvalue:a\tpoint:1,2\tsummary:输入", "gelab")
    assert reply.thinking == "想\n点输入框"
    assert reply.ignored == "point:1,2"


@pytest.mark.parametrize(
    "text",
    [
        "explain:x\taction:FLY\tsummary:x",
        "explain:x\taction:CLICK\tpoint:500\tsummary:x",
        "explain:x\taction:CLICK\tpoint:500,2000\tsummary:x",
        "explain:x\taction:COMPLETE\tstatus:MAYBE\tsummary:x",
        "explain:x\taction:TYPE\tvalue:你好，我们",
        "explain:x",
        "",
    ],
)
def test_gelab_refused(text: str) -> None:
    with pytest.raises(ActionParseError):
        parse_reply(text, "gelab")


def test_auto_reads_what_stands_first() -> None:
    assert parse_reply('do(action="Type", text="{\\"action\\":\\"Home\\"}")', "auto").action.kind == "type"
    assert parse_reply('{"action":"Type","text":"do(action=1)"}', "auto").action.kind == "type"
    assert parse_reply("explain:do(action=…)\taction:HOT_KEY\tvalue:HOME\tsummary:x", "auto").action.kind == "home"
    assert parse_reply('Action: do(action="Back")', "auto").action.kind == "back"
