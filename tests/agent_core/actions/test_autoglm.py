"""What is read from AutoGLM replies, and what is refused."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from agent_core.actions import ActionParseError, parse_reply


def read(text: str) -> dict[str, Any]:
    return parse_reply(text).action.model_dump(exclude_none=True)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('do(action="Launch", app="QQ")', {"kind": "launch", "app": "QQ"}),
        ('do(action="Tap", element=[500,300])', {"kind": "tap", "element": (500, 300)}),
        (
            'do(action="Tap", element=[0,1000], message="付款")',
            {"kind": "tap", "element": (0, 1000), "message": "付款"},
        ),
        ('do(action="Type", text="你好")', {"kind": "type", "text": "你好"}),
        ('do(action="Type_Name", text="王")', {"kind": "type_name", "text": "王"}),
        (
            'do(action="Swipe", start=[500,800], end=[500,200])',
            {"kind": "swipe", "start": (500, 800), "end": (500, 200), "duration": 0.5},
        ),
        (
            'do(action="Swipe", start=[1,2], end=[3,4], duration=2)',
            {"kind": "swipe", "start": (1, 2), "end": (3, 4), "duration": 2.0},
        ),
        (
            'do(action="Long Press", element=[500,500], duration="2 seconds")',
            {"kind": "long_press", "element": (500, 500), "duration": 2.0},
        ),
        ('do(action="Double Tap", element=[1,2])', {"kind": "double_tap", "element": (1, 2)}),
        ('do(action="Back")', {"kind": "back"}),
        ('do(action="Home")', {"kind": "home"}),
        ('do(action="Wait", duration="3 seconds")', {"kind": "wait", "duration": 3.0}),
        ('do(action="Wait", duration=60)', {"kind": "wait", "duration": 30.0}),
        ('do(action="Wait", duration="1 minute")', {"kind": "wait", "duration": 30.0}),
        ('do(action="Wait", duration="500 ms")', {"kind": "wait", "duration": 0.5}),
        ('do(action="Take_over", message="请登录")', {"kind": "take_over", "message": "请登录"}),
        ('do(action="Interact")', {"kind": "interact", "question": "", "choices": ()}),
        (
            'do(action="Interact", question="哪个?", choices=["A", "B"])',
            {"kind": "interact", "question": "哪个?", "choices": ("A", "B")},
        ),
        ('do(action="Note", message="True")', {"kind": "note", "message": "True"}),
        ('do(action="Call_API", instruction="总结")', {"kind": "call_api", "instruction": "总结"}),
        (
            'do(action="GET_KNOWLEDGE_DATA", query="几天发货")',
            {"kind": "get_knowledge_data", "query": "几天发货"},
        ),
        ('do(action="GET_KNOWLEDGE_DATA")', {"kind": "get_knowledge_data", "query": ""}),
        ('finish(message="完成")', {"kind": "finish", "message": "完成", "success": True}),
        ('finish("完成")', {"kind": "finish", "message": "完成", "success": True}),
        ("finish()", {"kind": "finish", "message": "", "success": True}),
        ('do(action="Abort", message="没有网络")', {"kind": "finish", "message": "没有网络", "success": False}),
        ('do(action="Hot_Key", key="ENTER")', {"kind": "press_key", "key": "enter"}),
        ('do(action="CLICK", point=[5,6])', {"kind": "tap", "element": (5, 6)}),
    ],
)
def test_each_action(call: str, expected: dict[str, Any]) -> None:
    assert read(f"<think>想一想</think><answer>{call}</answer>") == expected
    assert read(call) == expected


@pytest.mark.parametrize(
    "call",
    [
        'DO(ACTION="tap", element=[500,300])'.replace("ACTION", "action"),
        'do(action="tap", element=(500, 300))',
        'do(action="Tap", element="[500, 300]")',
        'do(action="Tap", element="500,300")',
        'do(action="Tap", element="(500,300)")',
        'do(action="Tap", element=[500.0, 300.0])',
        'do(action="Tap", element=[499.6, 300.4])',
        "do(action='Tap', element=[500,300],)",
        "do（action＝“Tap”，element＝【500，300】）",
        "do(action=‘Tap’, element=（500，300）)",
        'do( action = "Tap" ,\n element = [ 500 , 300 ] )',
        '```python\ndo(action="Tap", element=[500,300])\n```',
        '<|begin_of_box|>do(action="Tap", element=[500,300])<|end_of_box|>',
        '- do(action="Tap", element=[500,300])',
        '1. `do(action="Tap", element=[500,300])`',
        '好的，下一步是 do(action="Tap", element=[500,300])，然后看结果。',
        'Action: do(action="Tap", element=[500,300])',
    ],
)
def test_the_wrapping_and_the_spelling_are_no_hindrance(call: str) -> None:
    for text in (call, f"<answer>{call}</answer>", f"<THINK>x</THINK>\n<Answer>\n{call}\n</ANSWER>"):
        assert read(text) == {"kind": "tap", "element": (500, 300)}


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ('do(action="Fly")', 'no action "Fly"'),
        ("do()", "needs the name of an action"),
        ('do(action="Tap")', "needs element=[x, y]"),
        ('do(action="Tap", element=[500])', "exactly two numbers"),
        ('do(action="Tap", element=[1,2,3])', "exactly two numbers"),
        ('do(action="Tap", element=[500,1001])', "outside the picture"),
        ('do(action="Tap", element=[-1,5])', "outside the picture"),
        ('do(action="Tap", element=[0.5,0.3])', "fractions"),
        ('do(action="Tap", element=[x,y])', "Only plain values"),
        ('do(action="Tap", element=[True,5])', "exactly two numbers"),
        ('do(action="Tap", element=[2*3,5])', "missing"),
        ('do(action="Tap", element=get())', "Only plain values"),
        ('do(action="Tap", element=[1,2], element=[3,4])', "stands twice"),
        ('do("Tap", [1,2])', "by name"),
        ('do(action="Type")', 'needs text="…"'),
        ('do(action="Type", text="a" + "b")', "not joined"),
        ('do(action="Type", text=open("x").read())', "Only plain values"),
        ('do(action="Back", _metadata="finish")', "no argument _metadata"),
        ('do(action="Back", kind="finish")', "no argument kind"),
        ('finish(message="x", success=True)', "no argument success"),
        ('finish("a", "b")', "one message"),
        ('do(action="Launch", app=" ")', 'needs app="…"'),
        ('do(action="Wait", duration="x seconds")', "duration="),
        ('do(action="Wait", duration=-1)', "too short"),
        ('do(action="Swipe", start=[1,2])', "needs end=[x, y]"),
        ('do(action="Back"', "cut off"),
        ('do(action="Type", text="你好，我们', "does not end"),
        ('do(action="Type", text="你好"', "does not end"),
        ('do(action="Type", text="print("hi")', "does not end"),
        ("", "empty"),
        ("我不知道该怎么做", "no call"),
    ],
)
def test_what_is_wrong_is_said(call: str, complaint: str) -> None:
    for text in (call, f"<think>x</think><answer>{call}"):
        with pytest.raises(ActionParseError) as caught:
            parse_reply(text)
        if call:
            assert complaint in caught.value.message


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"他说"好""', '他说"好"'),
        ('"他说"好"，走"', '他说"好"，走'),
        ('"他说“好”"', "他说“好”"),
        ("“他说“好”了”", "他说“好”了"),
        ("'it's fine'", "it's fine"),
        ('"it\'s"', "it's"),
        ('"第一行\n第二行"', "第一行\n第二行"),
        (r'"第一行\n第二行"', "第一行\n第二行"),
        (r'"say \"hi\" \\ \u4f60\ud83d\ude00"', 'say "hi" \\ 你😀'),
        (r'"C:\dir"', r"C:\dir"),
        ('"a, b) c=(d"', "a, b) c=(d"),
        ('"print("hi") ok"', 'print("hi") ok'),
        ('"do(action="Back")"', 'do(action="Back")'),
        ('"</answer><think>"', "</answer><think>"),
        ('""', ""),
        ("007", "007"),
        ('"""三个"""', "三个"),
    ],
)
def test_texts_survive(written: str, text: str) -> None:
    assert read(f'<answer>do(action="Type", text={written})</answer>') == {"kind": "type", "text": text}


def test_a_quote_without_its_twin_is_refused_rather_than_cut() -> None:
    with pytest.raises(ActionParseError, match="not escaped"):
        parse_reply('do(action="Type", text="27" 的屏幕")')


BACK = 'do(action="Back")'
MENTION = 'finish(message="x")'


@pytest.mark.parametrize(
    "text",
    [
        f"<think>could {MENTION}</think><answer>{BACK}</answer>",
        f"<think>could {MENTION}</think>{BACK}",
        f"could {MENTION}</think>{BACK}",
        f'maybe do(action="Home"), no</think>{BACK}',
        f"<think>could {MENTION} <answer>{BACK}</answer>",
        f"<think><think>{MENTION}</think><answer>{BACK}</answer>",
        f"<answer><think>{MENTION}</think>{BACK}</answer>",
        f"I could {MENTION}, but <answer>{BACK}</answer>",
        f"I could {MENTION}, but no:\n{BACK}",
        f"<think>I could {MENTION}, but no:\n{BACK}",
        f"<answer></answer><answer>{BACK}</answer>",
        f"<think>a</think><answer>{BACK}</answer><think>b</think><answer>{MENTION}</answer>",
        f"<think>a<answer>{BACK}</answer>\n<think>b</think><answer>{MENTION}</answer>",
        f"<answer>do(...) is the form. {BACK}</answer>",
        f"{BACK} {MENTION}",
        f"ok {BACK}\n{MENTION}",
    ],
)
def test_only_the_answer_is_read_and_the_first_call_wins(text: str) -> None:
    assert read(text) == {"kind": "back"}


def test_a_tag_inside_a_call_is_data() -> None:
    query = "<answer>finish(message=1)</answer>"
    for text in (f'do(action="Type", text="{query}")', f'<think>a</think>do(action="Type", text="{query}")'):
        assert read(text) == {"kind": "type", "text": query}
    with pytest.raises(ActionParseError):
        parse_reply(f'do(action="Type", text="cut {query}')


def test_a_broken_call_is_not_replaced_by_a_later_one() -> None:
    with pytest.raises(ActionParseError, match="exactly two"):
        parse_reply('<answer>do(action="Tap", element=[5])\nfinish(message="done")</answer>')


def test_an_answer_without_a_call_is_an_error_even_if_the_thinking_has_one() -> None:
    with pytest.raises(ActionParseError, match="no call"):
        parse_reply(f"<think>{MENTION}</think><answer>嗯</answer>")


def test_thinking_and_the_ignored_rest_are_kept() -> None:
    reply = parse_reply(f"<think> 先返回。 </think><answer>{BACK}\n{MENTION}</answer>")
    assert reply.thinking == "先返回。"
    assert reply.ignored == MENTION
    assert parse_reply(f"先返回\n{BACK}").thinking == "先返回"
    assert parse_reply(f"```\n{BACK}\n```").ignored == ""


def test_a_normal_reply_is_read_fast_and_garbage_in_linear_time() -> None:
    normal = "<think>" + "看看聊天窗口里最新的问题。" * 20 + "</think><answer>" + BACK + "</answer>"
    assert _fastest(normal, 20) < 0.002
    for piece in ("do(action=", '"', "<think>", "{", '{"a":', "explain: ", "[", "\\", "finish(...) ", '{"x":"y"} '):
        garbage = "do(" + piece * (100_000 // len(piece))
        assert _fastest(garbage, 1) < 1.0  # what is quadratic takes ten times that


def _fastest(text: str, times: int) -> float:
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        with contextlib.suppress(ActionParseError):
            parse_reply(text, "auto")
        best = min(best, time.perf_counter() - begin)
    return best
