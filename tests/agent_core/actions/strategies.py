"""Actions of every kind, with any texts, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from agent_core.actions import Action, types

NASTY = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [
                '"',
                "'",
                "\\",
                "\n",
                "\t",
                ")",
                '")',
                "</answer>",
                "<think>",
                "</think>",
                "<answer>",
                'do(action="Back")',
                "“",
                "”",
                "```",
                "<|end_of_box|>",
                'finish(message="x")',
                "\\n",
                "\\u0041",
                "{",
                "}",
                '", text="',
                "＜think＞",
                "，",
            ]
        ),
    ),
    max_size=8,
).map("".join)
PAIR = st.tuples(st.integers(0, 1000), st.integers(0, 1000))
SECONDS = st.floats(min_value=0.001, max_value=30.0)
APP = NASTY.filter(lambda text: bool(text.strip()) and len(text) <= 200)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(types.Launch, app=APP),
    st.builds(types.Tap, element=PAIR, message=st.none() | NASTY),
    st.builds(types.DoubleTap, element=PAIR),
    st.builds(types.LongPress, element=PAIR, duration=SECONDS),
    st.builds(types.Swipe, start=PAIR, end=PAIR, duration=SECONDS),
    st.builds(types.Type, text=NASTY),
    st.builds(types.TypeName, text=NASTY),
    st.just(types.Back()),
    st.just(types.Home()),
    st.builds(types.PressKey, key=st.sampled_from(["enter", "app_switch"])),
    st.builds(types.Wait, duration=SECONDS | st.just(0.0)),
    st.builds(types.TakeOver, message=NASTY),
    st.builds(types.Interact, question=NASTY, choices=st.lists(NASTY, max_size=3).map(tuple)),
    st.builds(types.Note, message=NASTY),
    st.builds(types.CallAPI, instruction=NASTY),
    st.builds(types.GetKnowledgeData, query=NASTY),
    st.builds(types.Finish, message=NASTY, success=st.booleans()),
)
