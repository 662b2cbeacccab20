"""JSON and GELab replies, and telling the dialects apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_core.actions import ActionParseError, Dialect, parse_reply

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
        (
            "action:INFO\tvalue:哪一个?\tchoices:红|蓝、绿\tsummary:x",
            {"kind": "interact", "question": "哪一个?", "choices": ("红", "蓝、绿")},
        ),
        (
            'action:INFO\tvalue:哪一个?\tchoices:["红", "蓝"]\tsummary:x',
            {"kind": "interact", "question": "哪一个?", "choices": ("红", "蓝")},
        ),
        (
            "action:SLIDE\tpoint1:1,2\tpoint2:3,4\tduration:500\tsummary:x",
            {"kind": "swipe", "start": (1, 2), "end": (3, 4), "duration": 0.5},
        ),
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
        "explain:x\taction:TYPE\tvalue:你好，我们\tsumm",
        "explain:x\taction:TYPE\tvalue:你好\tsummar\tsummary:x",
        "explain:x\taction:TYPE\tvalue:你好\tvalue:再见\tsummary:x",
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


SPOKEN: dict[str, tuple[dict[str, Any], list[tuple[str, dict[str, str]]]]] = {
    "launch": ({"app": "QQ"}, [("Launch", {"app": "QQ"}), ("AWAKE", {"value": "QQ"}), ("launch", {"package": "QQ"})]),
    "tap": (
        {"element": (5, 6)},
        [("Tap", {"element": "5,6"}), ("CLICK", {"point": "5,6"}), ("tap", {"coordinates": "5,6"})],
    ),
    "double_tap": (
        {"element": (5, 6)},
        [("Double Tap", {"element": "5,6"}), ("DOUBLE_CLICK", {"point": "5,6"}), ("DoubleTap", {"element": "5,6"})],
    ),
    "long_press": (
        {"element": (5, 6), "duration": 2.0},
        [
            (name, {"point": "5,6", "duration": "2 seconds"})
            for name in ("Long Press", "LONG_PRESS", "LONGPRESS", "LongPress")
        ],
    ),
    "swipe": (
        {"start": (1, 2), "end": (3, 4), "duration": 0.5},
        [
            ("Swipe", {"start": "1,2", "end": "3,4"}),
            ("SLIDE", {"point1": "1,2", "point2": "3,4", "duration": "500 ms"}),
        ],
    ),
    "type": ({"text": "好"}, [("Type", {"text": "好"}), ("TYPE", {"value": "好"})]),
    "type_name": ({"text": "好"}, [("Type_Name", {"text": "好"}), ("TYPE_NAME", {"value": "好"})]),
    "back": ({}, [("Back", {}), ("HOT_KEY", {"key": "BACK"}), ("HOT_KEY", {"value": "back"})]),
    "home": ({}, [("Home", {}), ("HOT_KEY", {"key": "HOME"})]),
    "press_key": (
        {"key": "app_switch"},
        [("HOT_KEY", {"key": "APP_SWITCH"}), ("HOT_KEY", {"value": "App switch"}), ("APP_SWITCH", {})],
    ),
    "wait": (
        {"duration": 3.0},
        [("Wait", {"seconds": "3"}), ("WAIT", {"value": "3"}), ("wait", {"duration": "3 seconds"})],
    ),
    "take_over": ({"message": "好"}, [("Take_over", {"message": "好"}), ("TAKE_OVER", {"value": "好"})]),
    "interact": ({"question": "好", "choices": ()}, [("Interact", {"question": "好"}), ("INFO", {"value": "好"})]),
    "note": ({"message": "好"}, [("Note", {"message": "好"}), ("NOTE", {"value": "好"})]),
    "call_api": ({"instruction": "好"}, [("Call_API", {"instruction": "好"}), ("CALL_API", {"value": "好"})]),
    "get_knowledge_data": (
        {"query": "好"},
        [("GET_KNOWLEDGE_DATA", {"query": "好"}), ("Get_Knowledge_Data", {"value": "好"})],
    ),
    "finish": (
        {"message": "好", "success": True},
        [
            ("finish", {"message": "好"}),
            ("COMPLETE", {"return": "好"}),
            ("COMPLETE", {"status": "SUCCESS", "return": "好"}),
        ],
    ),
    "abort": (
        {"message": "好", "success": False},
        [
            ("ABORT", {"abort_reason": "好"}),
            ("ABORT", {"value": "好"}),
            ("COMPLETE", {"status": "FAILURE", "return": "好"}),
        ],
    ),
}


@pytest.mark.parametrize("kind", SPOKEN)
def test_one_set_of_actions_in_every_dialect(kind: str) -> None:
    expected, spoken = SPOKEN[kind]
    for name, arguments in spoken:
        given = "".join(f", {key}={json.dumps(value)}" for key, value in arguments.items())
        forms: dict[Dialect, list[str]] = {
            "autoglm": [f'do(action="{name}"{given})'],
            "json": [
                json.dumps({"action": name, **arguments}),
                json.dumps({"type": "do", "operation": name, **arguments}),
                json.dumps({"_metadata": "finish" if name == "finish" else "do", "action": name, **arguments}),
            ],
            "gelab": ["\t".join((f"action:{name}", *(f"{k}:{v}" for k, v in arguments.items()), "summary:x"))],
        }
        for dialect, texts in forms.items():
            for text in texts:
                for how in (dialect, "auto"):
                    read = parse_reply(text, how).action.model_dump(exclude_none=True)
                    assert read == {"kind": "finish" if kind == "abort" else kind, **expected}, text


LISTED = ", ".join(f'{{"text": "第{n}行", "x": {n}}}' for n in range(25))
MENTIONED = "，".join(f'或者 do(action="Tap", element=[{n},{n}])' for n in range(15))


@pytest.mark.parametrize("dialect", ["json", "auto"])
def test_a_reply_that_lists_what_it_sees_ends_with_its_action(dialect: Dialect) -> None:
    call = '{"action": "Tap", "arguments": {"element": [500, 300]}}'
    for text in (f"I see [{LISTED}].\n{call}", f"Elements: [{LISTED}]\n```json\n{call}\n```"):
        assert parse_reply(text, dialect=dialect).action.model_dump(include={"kind", "element"}) == TAP


def test_of_very_many_mentioned_calls_only_the_one_that_ends_the_reply_counts() -> None:
    assert parse_reply(f'{MENTIONED}\n最后：\ndo(action="Home")').action.kind == "home"
    for text in (MENTIONED, f"{MENTIONED}\n好。", f'{MENTIONED}\ndo(action="Home")，或者别的'):
        with pytest.raises(ActionParseError, match="mentions many calls"):
            parse_reply(text)
