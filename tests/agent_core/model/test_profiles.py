"""Model profiles: found by name, and each form of answers is read as its own prompt asks for it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from PIL import Image

from agent_core.actions import parse_reply
from agent_core.actions.types import Tap
from agent_core.devices.base import Frame
from agent_core.errors import ConfigInvalid
from agent_core.model.history import history
from agent_core.model.profile import ModelProfile, model_profile, model_profiles, profile_of_model
from agent_core.model.prompt import build_messages, system_prompt, tools, tools_of
from agent_core.model.usage import text_tokens
from agent_core.model.words import form_texts
from agent_core.session import GateState, Session, StepRecord

EACH = pytest.mark.parametrize("profile", model_profiles(), ids=lambda profile: profile.name)
LANGS = pytest.mark.parametrize("lang", ["zh", "en"])
FRAME = Frame(Image.new("RGB", (1080, 2400), "white"), "white", 0.0)


def session(steps: int = 0, **more: Any) -> Session:
    made = Session(
        run_id="r1", task="QQ回复联系人11", date="2026-11-20", gate=GateState(enabled=True, contact="11"), **more
    )
    for index in range(1, steps + 1):
        made.steps.append(
            StepRecord(
                index=index,
                thinking=f"想法{index}",
                reply=f'<think>想法{index}</think>do(action="Tap", element=[{index},2])',
                asked={"kind": "tap", "element": (index, 2)},
                action={"kind": "tap", "element": (index, 2)},
                result=f"结果{index}",
                package="com.tencent.mobileqq",
            )
        )
    return made


def request(state: Session, model: ModelProfile) -> list[dict[str, Any]]:
    return build_messages(state, current_app="QQ", picture=FRAME, elements=None, profile=None, model=model)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("autoglm-phone-9b", "autoglm-phone"),
        ("zai-org/AutoGLM-Phone-9B", "autoglm-phone"),
        ("autoglm-phone-9b-multilingual", "autoglm-phone-multilingual"),
        ("stepfun-ai/GELab-Zero-4B-preview", "gelab-zero"),
        ("step-gui-8b", "gelab-zero"),
        ("gpt-4o", "general"),
        ("Qwen2.5-VL-72B-Instruct", "general"),
        ("Qwen3-32B-Instruct", "text-only"),
        ("deepseek-chat", "text-only"),
        ("something-of-our-own", "general"),
    ],
)
def test_a_profile_is_found_by_the_models_name(name: str, found: str) -> None:
    assert profile_of_model(name).name == found


def test_a_profile_that_is_named_is_taken() -> None:
    assert profile_of_model("gpt-4o", "gelab-zero").name == "gelab-zero"
    with pytest.raises(ConfigInvalid, match=r"no model profile 'gelab'.*auto, autoglm-phone"):
        profile_of_model("gpt-4o", "gelab")


@LANGS
@EACH
def test_each_example_of_a_prompt_is_read_as_what_it_stands_for(profile: ModelProfile, lang: str) -> None:
    for name, (example, _) in form_texts(profile.form, lang).actions.items():
        written = re.sub(r"\b[xy]\d?\b", "500", example)
        reply = parse_reply(f"summary is to come\n\n{written}" if profile.form == "gelab" else written, profile.dialect)
        plain = re.sub("[^a-z]", "", name.lower())
        kinds = {"awake": "launch", "click": "tap", "slide": "swipe", "doubleclick": "doubletap", "hotkey": "back"}
        kinds |= {"info": "interact", "complete": "finish", "abort": "finish", "tapsensitive": "tap"}
        assert reply.action.kind.replace("_", "") == kinds.get(plain, plain)


@LANGS
@EACH
def test_the_prompt_of_each_profile(profile: ModelProfile, lang: Any) -> None:
    prompt = system_prompt(session(lang=lang), model=profile)
    said = prompt + json.dumps(tools_of(profile, lang), ensure_ascii=False)
    assert "$" not in prompt
    assert "GET_KNOWLEDGE_DATA" in said
    for name in form_texts(profile.form, lang).actions:
        assert name.split("_")[0] in said
    if profile.form == "gelab":
        assert "Launch" not in prompt
    assert text_tokens(said) < 5100


@EACH
def test_the_past_is_told_in_the_form_that_the_model_writes(profile: ModelProfile) -> None:
    state = session(3)
    if profile.history == "turns":
        turns = [message for message in history(state, profile, 20_000) if message["role"] == "assistant"]
        told = [parse_reply(str(turn["content"]), profile.dialect) for turn in turns]
        assert [reply.thinking for reply in told] == ["想法1", "想法2", "想法3"]
        assert [reply.action for reply in told] == [Tap(element=(n, 2)) for n in (1, 2, 3)]
        return
    state.summary, state.summarised_at = "打开了 QQ", 2
    messages = request(state, profile)
    assert [message["role"] for message in messages] == ["system", "user"]
    text = str(messages[1]["content"][1]["text"])
    assert "打开了 QQ" in text
    assert "3. " in text
    assert "2. " not in text  # the summary tells of it
    assert "结果3" in text


@EACH
def test_steps_that_are_long_beyond_measure_stay_in_the_window_of_each_profile(profile: ModelProfile) -> None:
    state = session(30)
    for step in state.steps:
        step.result = "结果" * 900
        step.thinking = "想" * 900
        step.reply = f"<think>{step.thinking}</think>{'话' * 2000}"
        step.asked = {"kind": "note", "message": "记" * 3000}
    assert _spent(request(state, profile), profile) <= profile.context_tokens - profile.reply_tokens


@pytest.mark.rotating(parts=3)
@EACH
def test_a_hundred_steps_stay_in_the_window_of_each_profile(profile: ModelProfile) -> None:
    state = session(100)
    state.summary = "很长" * 3000
    steps, before, changes, heads = state.steps, "", 0, set()
    for count in range(1, 101, 3):
        state.steps = steps[:count]
        for step in state.steps[-3:]:
            step.reply = step.reply.replace("想法", "先看清楚屏幕再决定" * 12)
        messages = request(state, profile)
        assert _spent(messages, profile) <= profile.context_tokens - profile.reply_tokens
        past = [json.dumps(message, ensure_ascii=False) for message in messages[:-1]]
        heads.add(past[0])
        changes += not "".join(past).startswith(before)
        before = "".join(past)
    assert len(heads) == 1
    assert changes <= 12  # the past grows at its end; it is condensed in blocks, seldom


def _spent(messages: list[dict[str, Any]], profile: ModelProfile) -> int:
    texts = [part["text"] if isinstance(part, dict) else part for m in messages for part in _texts(m["content"])]
    return sum(text_tokens(text) + 8 for text in texts) + 1600 + text_tokens(json.dumps(tools_of(profile, "zh")))


def _texts(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else [part for part in content if part["type"] == "text"]


def test_a_tool_says_what_its_arguments_are() -> None:
    (tap, finish) = tools({"Tap": ("", "taps"), "finish": ("", "ends")})
    assert tap["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "element": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "maximum": 1000},
                "minItems": 2,
                "maxItems": 2,
            },
            "message": {"type": "string"},
        },
        "required": ["element"],
        "additionalProperties": False,
    }
    assert finish["function"]["parameters"]["required"] == ["message"]
    with pytest.raises(KeyError):
        tools({"Format": ("", "")})


def test_the_profiles_are_those_of_the_folder() -> None:
    assert {profile.name for profile in model_profiles()} >= {"autoglm-phone", "gelab-zero", "general", "text-only"}
    assert model_profile("text-only").vision is False
