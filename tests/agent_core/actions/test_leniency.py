"""What is read although it is not quite right, and that nothing else is read in its place."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_core.actions import Action, ActionParseError, Dialect, parse_reply, to_autoglm
from agent_core.actions.dialects._build import TELLING
from agent_core.actions.write import to_json
from tests.acceptance.replies import BEGUN_IN_THE_PROMPT
from tests.acceptance.replies_written import DIALECTS, written
from tests.agent_core.actions.strategies import ACTIONS

TAP = {"kind": "tap", "element": (500, 300)}
URL = "https://kb.example.com/v1/datasets/7/retrieve"


def read(text: str, dialect: Dialect = "auto", *, ended: bool | None = None) -> dict[str, Any] | None:
    """The action as plain data; None if it was refused."""
    try:
        return parse_reply(text, dialect, ended=ended).action.model_dump(exclude_none=True)
    except ActionParseError:
        return None


# Forms of JSON -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["json", "auto"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tap":[500,300]}', TAP),
        ('{"thought":"点发送","CLICK":[500,300]}', TAP),
        ('{"tap":{"x":500,"y":300}}', TAP),
        ('{"Double Tap":[1,2]}', {"kind": "double_tap", "element": (1, 2)}),
        ('{"tap":{"element":[1,2],"message":"付款"}}', {"kind": "tap", "element": (1, 2), "message": "付款"}),
        (f'{{"action":"Call_API","url":"{URL}","data":{{"query":"几天发货"}}}}', "几天发货"),
        (f'{{"action":"Call_API","url":"{URL}","data":{{"question":"几天发货","top_k":3}}}}', "几天发货"),
        (f'{{"action":"Call_API","url":"{URL}","data":"{{\\"query\\": \\"几天发货\\"}}"}}', "几天发货"),
        (f'{{"name":"call_api","arguments":{{"url":"{URL}","data":"几天发货"}}}}', "几天发货"),
    ],
)
def test_relatives_of_a_call_are_read(dialect: Dialect, text: str, expected: Any) -> None:
    wanted = {"kind": "get_knowledge_data", "query": expected} if isinstance(expected, str) else expected
    assert read(text, dialect) == wanted


@pytest.mark.parametrize(
    "text",
    [
        '{"tap":[500,300],"text":"x"}',
        '{"tap":[500,300],"click":[1,2]}',
        '{"tap":[500]}',
        '{"tap":"发送"}',
        '{"tap":true}',
        '{"finish":"好了"}',
        '{"home":[1,2]}',
        '{"action":"Call_API","url":"https://api.example.com/transfer","data":{"query":"几天发货"}}',
        '{"action":"Call_API","data":{"query":"几天发货"}}',
        f'{{"action":"Call_API","url":"{URL}"}}',
        f'{{"action":"Call_API","url":"{URL}","data":{{"query":"一","question":"二"}}}}',
        f'{{"action":"Call_API","url":"{URL}","data":{{"query":" "}}}}',
        f'{{"action":"Call_API","url":"{URL}","data":{{"query":["一","二"]}}}}',
        f'{{"action":"Call_API","url":"{URL}","data":{{"query":"一"}},"instruction":"总结"}}',
    ],
)
def test_what_may_mean_something_else_is_refused(text: str) -> None:
    assert read(text, "json") is None


# Arguments too many --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [
        {"description": "右上角的发送"},
        {"confidence": 0.9},
        {"step": 3, "observation": "在聊天里"},
        {"Explanation": "因为"},
    ],
)
def test_what_only_describes_is_passed_over(extra: dict[str, Any]) -> None:
    pairs = ", ".join(f"{key}={value!r}" for key, value in extra.items())
    assert read(f'do(action="Tap", element=[500,300], {pairs})', "autoglm") == TAP
    as_json = ", ".join(f'"{key}": {value!r}'.replace("'", '"') for key, value in extra.items())
    assert read(f'{{"action": "Tap", "element": [500,300], {as_json}}}', "json") == TAP
    fields = "\t".join(f"{key}:{value}" for key, value in extra.items())
    if "Explanation" not in extra:  # names of fields are in small letters there
        assert read(f"action:CLICK\tpoint:500,300\t{fields}\tsummary:x", "gelab") == TAP


@pytest.mark.parametrize(
    "extra",
    [
        'reason="要付款"',  # a person may be meant to be asked
        "times=2",
        "index=5",
        'label="付款"',
        "confirm=True",
        'text="你好"',
        "duration=3",
        'direction="UP"',
        "success=False",
        "description=[1,2]",
        'description="1,2"',
        'comment={"element": [1,2]}',
        "observation=True",
    ],
)
def test_what_could_change_what_is_done_is_refused(extra: str) -> None:
    with pytest.raises(ActionParseError, match=f"no argument {extra.partition('=')[0]}"):
        parse_reply(f'do(action="Tap", element=[500,300], {extra})')


@given(ACTIONS, st.sampled_from(sorted(TELLING)), st.text(max_size=20) | st.integers(-5, 2000))
def test_a_description_never_changes_the_action(action: Action, name: str, said: str | int) -> None:
    value = said if isinstance(said, int) else f'"{said.replace(chr(92), "").replace(chr(34), "")}"'
    call = f"{to_autoglm(action)[:-1].removesuffix('(')}"
    with_more = f"{call}{'(' if call in ('do', 'finish') else ', '}{name}={value})"
    assert read(with_more, "autoglm") in (None, action.model_dump(exclude_none=True))


# The last bracket ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('do(action="Tap", element=[500,300]', "autoglm"),
        ('<think>想</think><answer>do(action="Tap", element=[500,300]</answer>', "autoglm"),
        ('<think>想</think>\n```\ndo(action="Tap", element=[500,300]\n```\n', "autoglm"),
        ('{"action": "Tap", "element": [500, 300]', "json"),
        ('<answer>{"action": "Tap", "arguments": {"element": [500, 300]}</answer>', "json"),
        ('{"tap": [500, 300]<|end_of_box|>', "json"),
    ],
)
def test_only_the_last_bracket_may_be_missing_and_only_if_the_model_ended_the_reply(
    text: str, dialect: Dialect
) -> None:
    for how in (dialect, "auto"):
        assert read(text, how, ended=True) == TAP
        assert read(text, how) is read(text, how, ended=False) is None


@pytest.mark.parametrize(
    "text",
    [
        'do(action="Tap", element=[500,300',
        'do(action="Tap", element=[500,300],',
        'do(action="Wait", duration=2',  # 20, perhaps
        'do(action="Type", text="你好',
        'do(action="Type", text="他说"好"',
        'do(action="Fly", app="QQ"',
        'do(action="Tap"',
        'do(action="Tap", element=[500,300] 然后看看',
        '{"action": "Tap", "arguments": {"element": [500, 300]',
        '{"action": "Tap", "element": [500, 300],',
        '{"action": "Type", "text":',
        '{"page": 1, "next": {"action": "Home"}',  # the bracket would end another object than the call
        "explain:x\taction:TYPE\tvalue:你好",
        '{"action": "COMPLETE"',  # a status might have followed
        "finish(",
        "",
        "</answer>",
    ],
)
@pytest.mark.parametrize("dialect", ["autoglm", "json", "gelab", "auto"])
def test_what_lacks_more_is_refused_even_so(text: str, dialect: Dialect) -> None:
    assert read(text, dialect, ended=True) is None


def _forms(action: Action) -> list[tuple[str, Dialect]]:
    return [
        (to_autoglm(action), "autoglm"),
        (f"<think>想</think><answer>{to_autoglm(action)}</answer>", "autoglm"),
        (to_json(action), "json"),
        (f"想想\n```json\n{to_json(action, thought='想')}\n```", "json"),
    ]


@given(ACTIONS, st.data())
def test_a_reply_that_was_cut_off_is_never_read_as_another_action(action: Action, data: st.DataObject) -> None:
    text, dialect = data.draw(st.sampled_from(_forms(action)))
    whole = read(text, dialect)
    cut = text[: data.draw(st.integers(0, len(text)))]
    assert read(cut, dialect) in (None, whole)
    assert read(cut, dialect, ended=False) in (None, whole)


@given(st.randoms(use_true_random=False), st.sampled_from(DIALECTS), st.booleans())
def test_neither_a_thought_nor_a_part_of_a_value_is_read_of_what_was_cut_off(
    chance: random.Random, dialect: Dialect, auto: bool
) -> None:
    reply = written(chance, dialect)
    assume(not BEGUN_IN_THE_PROMPT.match(reply.text))  # only its end would tell that it is a thought
    cut = reply.text[: chance.randint(0, len(reply.text))]
    try:
        action = parse_reply(cut, "auto" if auto else dialect, ended=False).action
    except ActionParseError as error:
        assert error.message  # noqa: PT017 - any of them
    else:
        assert action.model_dump() == dict(reply.action)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("<think>也许 finish(message='好了')，不过", "autoglm"),
        ("也许 do(action='Home')，不过", "autoglm"),
        ('<think>{"action": "Home"}', "json"),
        ("explain:点它\taction:CLICK\tpoint:216,10", "gelab"),
        ("explain:点它\taction:GET_KNOWLEDGE_DATA\tvalue:几天发", "gelab"),
    ],
)
def test_what_was_cut_off_is_told_as_that(text: str, dialect: Dialect) -> None:
    for how in (dialect, "auto"):
        with pytest.raises(ActionParseError, match="cut off"):
            parse_reply(text, how, ended=False)


@given(ACTIONS, st.data())
def test_a_reply_that_ended_early_is_read_as_what_stands_in_it(action: Action, data: st.DataObject) -> None:
    """The model has ended it: what is read is the same action with the same values; those that it left out are not
    made up."""
    text, dialect = data.draw(st.sampled_from(_forms(action)))
    whole = read(text, dialect)
    assert whole is not None
    found = read(text[: data.draw(st.integers(0, len(text)))], dialect, ended=True)
    if found is not None:
        assert found["kind"] == whole["kind"]
        empty = parse_reply(f'do(action="{text_name(action)}"{_needed(whole)})').action.model_dump(exclude_none=True)
        for name, value in found.items():
            assert value in (whole.get(name), empty.get(name))
        assert found["kind"] != "finish" or found["message"] == whole["message"]


@given(ACTIONS)
def test_a_call_without_its_last_bracket_is_the_whole_call(action: Action) -> None:
    for text, dialect in _forms(action)[::2]:
        whole = read(text, dialect)
        said = whole is not None and (whole["kind"] != "finish" or whole["message"].strip())
        assert read(text[:-1], dialect, ended=True) == (whole if said else None)


def text_name(action: Action) -> str:
    """The action's name as the AutoGLM form has it."""
    return to_autoglm(action).partition('action="')[2].partition('"')[0] or "finish"


def _needed(values: dict[str, Any]) -> str:
    """The arguments without which there is no such action, as they are."""
    told = ""
    for name, value in values.items():
        if name in ("element", "start", "end"):
            told += f", {name}={list(value)}"
        elif name in ("app", "key"):
            told += f', {name}="x"' if name == "app" else f', key="{value}"'
        elif name == "text":
            told += ', text=""'
    return told
