"""Each constraint of the tools: what is wrong is refused, with words that say how it is right."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.actions import types
from agent_core.errors import InputRejected
from bot.channels.mcp.arguments import Act, AskAgent, ContinueTask, StartTask, TaskCall, ToolArguments, task_call
from bot.channels.mcp.tools import HIGH_LEVEL, LOW_LEVEL, tools

TOOLS = tools(low_level=True)
POINT = "A point is two whole numbers from 0 to 1000, counted from the top left, such as [500, 300]."
EITHER = "SLIDE takes either point1 and point2, or point and direction."
ONE_OF = "Give exactly one of task (to begin) and session_id (to go on)."
NEEDS_LOGS = "enable_intermediate_screenshots and enable_intermediate_image_caption need enable_intermediate_logs."

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("CLICK", {}, "point is missing: [x, y]: two whole numbers from 0 to 1000"),
    *(
        (tool, {"point": point}, POINT)
        for tool in ("CLICK", "DOUBLE_CLICK", "LONG_PRESS")
        for point in ([500], [1, 2, 3], [500, 1001], [-1, 0], [0.5, 0.5], ["500", "300"], "500,300", [True, 1], None)
    ),
    ("CLICK", {"point": [1, 2], "times": 2}, "There is no argument times; this tool takes device_id, point."),
    ("LONG_PRESS", {"point": [1, 2], "duration": 0}, "duration is not valid: Seconds, more than 0 and at most 30."),
    ("LONG_PRESS", {"point": [1, 2], "duration": 31}, "duration is not valid: Seconds, more than 0 and at most 30."),
    ("TYPE", {}, "value is missing: The text, 1 to 4000 characters."),
    ("TYPE", {"value": ""}, "value is not valid: The text, 1 to 4000 characters."),
    ("TYPE", {"value": "x" * 4001}, "value is not valid: The text, 1 to 4000 characters."),
    ("TYPE", {"value": "x", "point": [1]}, POINT),
    ("SLIDE", {}, EITHER),
    ("SLIDE", {"point1": [1, 2]}, EITHER),
    ("SLIDE", {"point": [1, 2]}, EITHER),
    ("SLIDE", {"direction": "UP"}, EITHER),
    ("SLIDE", {"point1": [1, 2], "point2": [3, 4], "direction": "UP"}, EITHER),
    ("SLIDE", {"point1": [1, 2], "point2": [3, 4000]}, POINT),
    ("SLIDE", {"point": [1, 2], "direction": "north"}, "direction is not valid: Where the finger goes from point: UP,"),
    ("HOT_KEY", {}, "key is missing: One of ENTER, BACK, HOME, APP_SWITCH."),
    ("HOT_KEY", {"key": "POWER"}, "key is not valid: One of ENTER, BACK, HOME, APP_SWITCH."),
    ("AWAKE", {}, "value is missing: An installed app"),
    ("AWAKE", {"value": ""}, "value is not valid: An installed app"),
    ("WAIT", {}, "value is missing: Seconds, 0 to 30."),
    ("WAIT", {"value": 31}, "value is not valid: Seconds, 0 to 30."),
    ("WAIT", {"value": "soon"}, "value is not valid: Seconds, 0 to 30."),
    ("get_device_list", {"device_id": "x"}, "There is no argument device_id; this tool takes none."),
    *(
        (tool, arguments, said)
        for tool in ("ask_agent", "execute_task")
        for arguments, said in (
            ({}, ONE_OF),
            ({"task": "x", "session_id": "y", "reply_from_client": "z"}, ONE_OF),
            ({"session_id": "y"}, "session_id needs reply_from_client: what answers the session's question."),
            ({"task": "x", "reply_from_client": "z"}, "reply_from_client goes with session_id"),
            ({"task": "x", "max_steps": 0}, "max_steps is not valid: A whole number from 1"),
            ({"task": "x", "max_steps": 2.5}, "max_steps is not valid: A whole number from 1"),
        )
    ),
    ("ask_agent", {"task": "x", "reply_mode": "no_reply"}, "There is no argument reply_mode"),
    ("ask_agent_start_new_task", {}, "task is missing: What is to be done"),
    ("ask_agent_continue", {"session_id": "x"}, "reply_from_client is missing: What answers the session's question"),
    ("ask_agent_continue", {"reply_from_client": "x"}, "session_id is missing: The session_id of a result"),
    ("execute_task", {"task": "x", "reply_mode": "loud"}, "reply_mode is not valid: Who answers what the agent asks"),
    ("execute_task", {"task": "x", "enable_intermediate_screenshots": True}, NEEDS_LOGS),
    ("execute_task", {"task": "x", "enable_intermediate_image_caption": True}, NEEDS_LOGS),
    ("execute_task", {"task": "x", "extra_info": "x"}, "extra_info is not valid: Your own notes"),
]  # fmt: skip


def read(tool: str, arguments: dict[str, Any]) -> ToolArguments:
    """As a call is read: the short forms become the full one."""
    call = TOOLS[tool].arguments.read(arguments)
    return task_call(call) if isinstance(call, AskAgent | StartTask | ContinueTask) else call


@pytest.mark.parametrize(("tool", "arguments", "said"), REFUSED)
def test_refused_with_its_message(tool: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputRejected) as caught:
        read(tool, arguments)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("tool", "arguments", "action"),
    [
        ("CLICK", {"point": [0, 1000]}, types.Tap(element=(0, 1000))),
        ("DOUBLE_CLICK", {"point": [1, 2]}, types.DoubleTap(element=(1, 2))),
        ("LONG_PRESS", {"point": [1, 2], "duration": 2}, types.LongPress(element=(1, 2), duration=2)),
        ("TYPE", {"value": "你好\n", "point": [1, 2]}, types.Type(text="你好\n")),
        ("SLIDE", {"point1": [1, 2], "point2": [3, 4]}, types.Swipe(start=(1, 2), end=(3, 4))),
        ("SLIDE", {"point": [500, 300], "direction": "UP"}, types.Swipe(start=(500, 300), end=(500, 0))),
        ("SLIDE", {"point": [500, 300], "direction": "DOWN"}, types.Swipe(start=(500, 300), end=(500, 700))),
        ("SLIDE", {"point": [500, 300], "direction": "LEFT"}, types.Swipe(start=(500, 300), end=(100, 300))),
        ("SLIDE", {"point": [500, 300], "direction": "RIGHT"}, types.Swipe(start=(500, 300), end=(900, 300))),
        ("HOT_KEY", {"key": "ENTER"}, types.PressKey(key="enter")),
        ("HOT_KEY", {"key": "APP_SWITCH"}, types.PressKey(key="app_switch")),
        ("HOT_KEY", {"key": "BACK"}, types.Back()),
        ("HOT_KEY", {"key": "HOME"}, types.Home()),
        ("AWAKE", {"value": "QQ"}, types.Launch(app="QQ")),
        ("WAIT", {"value": 0.5}, types.Wait(duration=0.5)),
    ],
)
def test_an_act_is_an_action_of_the_agent(tool: str, arguments: dict[str, Any], action: types.Action) -> None:
    call = TOOLS[tool].arguments.read(arguments)
    assert isinstance(call, Act)
    assert call.action() == action


def test_the_short_forms_have_all_flags_off_and_pass_to_the_client() -> None:
    for name, given in (
        ("ask_agent", {"task": "x"}),
        ("ask_agent_start_new_task", {"task": "x"}),
        ("ask_agent_continue", {"session_id": "s", "reply_from_client": "r"}),
    ):
        call = read(name, given)
        assert isinstance(call, TaskCall)
        assert call == TaskCall.read(given)
        assert (call.max_steps, call.reset_environment, call.reply_mode) == (20, True, "pass_to_client")
        assert not any(value for flag, value in call.model_dump().items() if flag.startswith("enable_"))


def test_schemas_tell_clients_the_constraints() -> None:
    schema = TOOLS["CLICK"].listed().input_schema
    point = schema["properties"]["point"]
    assert (point["minItems"], point["maxItems"]) == (2, 2)
    assert (point["items"]["minimum"], point["items"]["maximum"], point["items"]["type"]) == (0, 1000, "integer")
    assert schema["required"] == ["point"]
    assert schema["additionalProperties"] is False
    for tool in (*LOW_LEVEL, *HIGH_LEVEL):
        fields = tool.listed().input_schema.get("properties", {})
        assert all("title" not in field for field in fields.values())
    for name in ("ask_agent", "ask_agent_start_new_task", "ask_agent_continue", "execute_task"):
        said = TOOLS[name].description
        for told in ("installed on the phone", "one app", "text only", "pay or place an order", 'reply "done"'):
            assert told in said, (name, told)


def test_single_acts_can_be_left_out() -> None:
    assert set(tools(low_level=False)) == {tool.name for tool in HIGH_LEVEL}
