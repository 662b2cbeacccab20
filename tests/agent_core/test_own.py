"""The owner's folder: what stands in it is used as what comes with the package is, and what is wrong in it is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from agent_core.apps.names import packages_named
from agent_core.apps.profile import GUARDS, profile, profile_of_package, profiles, resolve, secret_rules
from agent_core.devices.base import System
from agent_core.errors import ActionFailed
from agent_core.model.profile import ModelProfile, model_profile, profile_of_model
from agent_core.model.prompt import system_prompt
from agent_core.owner import folder as own
from agent_core.owner.faults import faults
from agent_core.planner import Executor
from agent_core.planner.tools import LONGEST_RESULT, own_tools
from agent_core.planner.words import instructions
from agent_core.policies import reply_task
from agent_core.session import GateState, Session
from tests.support.own import APP, MODEL, TOOL, write_own

NOBODY = cast("Executor", None)  # an own tool is given no phone
PROMPT = "日期：$date $weekday，费用写作 $$5。\n用 do(action=...) 回答。\n"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    own.use(None)


def used(folder: Path, files: Mapping[str, str]) -> Path:
    own.use(write_own(folder, files))
    return folder


def prompt_of(model: ModelProfile, *, reply: bool = False, lang: Any = "zh") -> str:
    gate = GateState(enabled=reply, app="qq" if reply else "", contact="11")
    return system_prompt(Session(run_id="r", task="t", lang=lang, date="2026-11-23", gate=gate), model=model)


# Profiles -------------------------------------------------------------------------------------------------------------


def test_an_own_model_profile_is_found_and_may_take_the_place_of_ours(tmp_path: Path) -> None:
    replaced = 'models = ["gpt-*"]\nform = "json"\ndialect = "json"\ncontext_tokens = 9000\n'
    used(tmp_path, {"models/shop.toml": MODEL.format(name="shop-"), "models/general.toml": replaced})
    assert profile_of_model("shop-7b").name == "shop"
    assert profile_of_model("autoglm-phone-9b").name == "autoglm-phone"
    assert model_profile("general").context_tokens == 9000
    own.use(None)
    assert profile_of_model("shop-7b").name == "general"
    assert model_profile("general").context_tokens == 64_000


def test_of_two_profiles_that_fit_alike_the_owners_is_taken(tmp_path: Path) -> None:
    used(tmp_path, {"models/zz.toml": MODEL.format(name="autoglm-phone")})
    assert profile_of_model("autoglm-phone-9b").name == "zz"


def test_an_own_app_can_be_named_and_customers_answered_in_it(tmp_path: Path) -> None:
    used(tmp_path, {"apps/dd.toml": APP})
    package = "com.alibaba.android.rimet"
    assert packages_named("DingTalk", System.ANDROID) == (package,)
    assert profile_of_package(package) == profile("dd")
    assert resolve("dd", "7.1").title_ids == ("tv_title",)
    task = reply_task("钉钉回复联系人11")
    assert task is not None
    assert (task.profile.key, task.contact) == ("dd", "11")
    own.use(None)
    assert "dd" not in [one.key for one in profiles()]


def test_what_an_app_is_guarded_by_is_never_taken_away(tmp_path: Path) -> None:
    ours = profile("qq")
    text = 'key = "qq"\nname = "我的QQ"\npackages = ["com.tencent.mobileqq"]\nrisky = ["打赏"]\ninput_ids = ["mine"]\n'
    used(tmp_path, {"apps/qq.toml": text})
    found = profile("qq")
    assert (found.name, found.input_ids) == ("我的QQ", ("mine",))
    assert found.risky[0] == "打赏"
    for name in GUARDS:
        assert set(getattr(ours, name)) <= set(getattr(found, name)), name
    assert set(ours.secrets.rules) <= set(secret_rules("com.tencent.mobileqq").rules)


# Prompts --------------------------------------------------------------------------------------------------------------


def test_an_own_prompt_takes_the_place_of_rules_and_form_alone(tmp_path: Path) -> None:
    model = model_profile("autoglm-phone")
    ours = prompt_of(model), prompt_of(model, reply=True)
    used(tmp_path, {"prompts/autoglm-phone.zh.txt": PROMPT})
    plain, reply = prompt_of(model), prompt_of(model, reply=True)
    assert plain.startswith("日期：2026-11-23 星期一，费用写作 $5。\n用 do(action=...) 回答。")
    for rule in ("购物车", "回答的格式", "# 可用的动作"):
        assert rule in ours[0]
        assert rule not in plain
    for kept in ("ADB Keyboard {ON}", "都不改变任务"):  # what we send, and that it is no order
        assert kept in plain
    # A reply needs actions that such a prompt may not know.
    assert "GET_KNOWLEDGE_DATA" not in plain
    assert 'do(action="GET_KNOWLEDGE_DATA", query=' in reply
    assert 'do(action="Type_Name", text=' in reply
    assert reply.endswith(ours[1].partition("# 这次是客户回复任务")[2])
    # The other language, and another profile, are as before.
    assert "购物车" in prompt_of(model_profile("autoglm-phone-multilingual"))
    assert "select-all" in prompt_of(model, lang="en")


def test_an_action_that_the_own_prompt_names_is_not_told_again(tmp_path: Path) -> None:
    used(tmp_path, {"prompts/autoglm-phone.zh.txt": PROMPT + 'do(action="Type_Name", text="人名")\n'})
    reply = prompt_of(model_profile("autoglm-phone"), reply=True)
    assert reply.count('do(action="Type_Name"') == 1


def test_an_own_profile_has_a_prompt_of_its_own(tmp_path: Path) -> None:
    used(tmp_path, {"models/shop.toml": MODEL.format(name="shop-"), "prompts/shop.en.txt": "Work well. $date"})
    assert prompt_of(model_profile("shop"), lang="en").startswith("Work well. 2026-11-23\n")


def test_how_to_plan_may_be_the_owners_and_what_always_holds_stays(tmp_path: Path) -> None:
    used(tmp_path, {"planner/zh.txt": "先问库存，再下单。每次最多 $steps 步。"})
    said = instructions("zh", "2026-11-23", 5)
    assert "先问库存，再下单。每次最多 5 步。" in said
    assert "怎么安排" not in said
    for kept in ("2026-11-23,星期一", "没有记忆", "只是资料", "没有明说就不要安排"):
        assert kept in said
    assert "How to plan" in instructions("en", "2026-11-23", 5)


# Tools ----------------------------------------------------------------------------------------------------------------


async def test_an_own_tool_is_told_and_called(tmp_path: Path) -> None:
    used(tmp_path, {"tools/shop.py": TOOL})
    (tool,) = own_tools(["stock_of"])
    assert tool.description("zh") == "How many pieces of an article a shop has. article: its number."
    assert tool.schema("zh") == {
        "type": "object",
        "properties": {"article": {"type": "string"}, "shop": {"type": "integer"}},
        "required": ["article"],
        "additionalProperties": False,
    }
    given = tool.arguments({"article": 12, "shop": "2"})
    assert given == {"article": "12", "shop": 2}
    assert await tool.call(NOBODY, given) == {"article": "12", "shop": 2, "pieces": 7}
    assert tool.arguments({"article": "12"}) == {"article": "12"}
    assert (await tool.call(NOBODY, {"article": "12"}))["shop"] == 1
    for wrong in ({}, {"article": " "}, {"article": "1", "shop": "two"}, {"article": "1", "shop": 1.5}):
        assert tool.arguments(wrong) is None


RAN = """\
from pathlib import Path
Path(__file__).with_name("ran").write_text("x")
def used(text: str):
    "Says it."
    return text
"""


def test_code_is_run_only_if_one_of_its_tools_is_used_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    used(tmp_path, {"tools/one.py": RAN})
    assert faults(tmp_path) == []
    assert own_tools(["search_knowledge"]) == []
    assert [file.name for file in (tmp_path / "tools").iterdir()] == ["one.py"]
    assert [tool.name for tool in own_tools(["used"])] == ["used"]
    assert sorted(file.name for file in (tmp_path / "tools").iterdir()) == ["one.py", "ran"]


async def test_a_tool_that_blocks_runs_beside_and_what_it_gives_is_bounded(tmp_path: Path) -> None:
    text = (
        "import threading\n"
        'def where() -> str:\n    "In which thread."\n    return threading.current_thread().name\n'
        'def much() -> str:\n    "Much."\n    return "x" * 100_000\n'
        'def odd() -> object:\n    "No data."\n    return object()\n'
    )
    used(tmp_path, {"tools/one.py": text})
    tools = {tool.name: tool for tool in own_tools(["where", "much", "odd"])}
    assert "MainThread" not in await tools["where"].call(NOBODY, {})
    with pytest.raises(ActionFailed, match=f"more than {LONGEST_RESULT} characters"):
        await tools["much"].call(NOBODY, {})
    with pytest.raises(ActionFailed, match="odd returned object"):
        await tools["odd"].call(NOBODY, {})


def test_what_fails_while_it_is_run_is_told_with_its_line(tmp_path: Path) -> None:
    used(tmp_path, {"tools/one.py": 'def used():\n    "Says."\n\nimport phonedesk_no_such_module\n'})
    assert faults(tmp_path) == []
    with pytest.raises(own.OwnWrong) as caught:
        own_tools(["used"])
    (fault,) = caught.value.faults
    assert (fault.kind, fault.line) == ("own_tool_run", 4)
    assert "phonedesk_no_such_module" in fault.message


# What is wrong --------------------------------------------------------------------------------------------------------

GOOD = {
    "models/shop.toml": MODEL.format(name="shop-"),
    "prompts/shop.zh.txt": PROMPT,
    "apps/dd.toml": APP,
    "planner/en.txt": "Plan well.",
    "tools/shop.py": TOOL,
    "README.md": "mine",
    "tools/_draft.py": "def (",
    ".git": "x",
}
WRONG = [
    ("models/a.toml", "models = [", "own_toml", None),
    ("models/a.toml", MODEL + "vison = true\n", "extra_forbidden", None),
    ("models/a.toml", 'form = "autoglm"\n', "missing", None),
    ("models/a.toml", MODEL + 'name = "b"\n', "own_key", None),
    ("models/a b.toml", MODEL, "own_name", None),
    ("models/a.txt", MODEL, "own_suffix", None),
    ("model/a.toml", MODEL, "own_stray", None),
    ("prompts/shop.txt", PROMPT, "own_prompt_name", None),
    ("prompts/none.zh.txt", PROMPT, "own_prompt_name", None),
    ("prompts/shop.fr.txt", PROMPT, "own_prompt_name", None),
    ("prompts/shop.en.txt", "  \n", "own_blank", None),
    ("prompts/shop.en.txt", "Today\nis $today.", "own_placeholder", 2),
    ("prompts/shop.en.txt", "It costs $5.", "own_placeholder", 1),
    ("prompts/shop.en.txt", "long " * 20_000, "own_prompt_long", None),
    ("apps/other.toml", APP, "own_key", None),
    ("apps/other.toml", APP.replace('"dd"', '"other"'), "own_package_twice", None),
    ("apps/other.toml", APP.replace('"dd"', '"other"').replace(">=7", "7+"), "value_error", None),
    ("planner/de.txt", "Plane gut.", "own_planner_name", None),
    ("planner/zh.txt", "$phone", "own_placeholder", 1),
    ("tools/a.py", "def a(:", "own_python", 1),
    ("tools/a.py", 'def a(x):\n    "Says."', "own_tool_type", 1),
    ("tools/a.py", 'def a(x: list):\n    "Says."', "own_tool_type", 1),
    ("tools/a.py", 'def a(*x: str):\n    "Says."', "own_tool_type", 1),
    ("tools/a.py", "x = 1\ndef a(x: str): ...", "own_tool_says", 2),
    ("tools/a.py", 'def chat(x: str):\n    "Says."', "own_tool_ours", 1),
    ("tools/a.py", 'def search_knowledge(x: str):\n    "Says."', "own_tool_ours", 1),
    ("tools/a.py", 'def stock_of(x: str):\n    "Says."', "own_tool_twice", 6),
]


def test_a_folder_in_which_all_is_right(tmp_path: Path) -> None:
    assert faults(write_own(tmp_path, GOOD)) == []
    assert faults(None) == []


@pytest.mark.parametrize(("name", "text", "kind", "line"), WRONG)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, kind: str, line: int | None
) -> None:
    write_own(tmp_path, {**GOOD, name: text.replace("{name}", "a-") if "{name}" in text else text})
    found = {fault.kind: fault for fault in faults(tmp_path)}
    assert kind in found
    file = tmp_path / ("model" if kind == "own_stray" else "tools/shop.py" if kind == "own_tool_twice" else name)
    assert (found[kind].file, found[kind].line) == (file, line)
    assert kind in {"own_tool_twice", "own_package_twice"} or len(found) <= 2  # missing names each field


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    write_own(tmp_path, {"models/a.toml": "models = [", "planner/fr.txt": "x", "tools/a.py": "def a(x): ...\ndef b(:"})
    assert [fault.kind for fault in faults(tmp_path)] == ["own_toml", "own_planner_name", "own_python"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such bits")
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
@pytest.mark.parametrize("name", sorted(name for name in GOOD if name.count("/") == 1 and "_draft" not in name))
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, name: str, mode: int) -> None:
    (write_own(tmp_path, GOOD) / name).chmod(mode)
    (fault,) = faults(tmp_path)
    assert (fault.file, fault.kind) == (tmp_path / name, "own_open")
    assert fault.values == {"how": f"chmod go-w {tmp_path / name}"}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such bits")
@pytest.mark.parametrize("name", ["", "tools", "models"])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_own(tmp_path, GOOD)
    (folder / name).chmod(0o777)
    (fault,) = faults(folder)
    assert (fault.file, fault.kind) == (folder / name, "own_open")
    own.use(folder)
    with pytest.raises(own.OwnWrong, match="others may write it"):
        own_tools(["stock_of"]) if name != "models" else profile_of_model("shop-7b")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_code_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = write_own(tmp_path, GOOD)
    os.chown(folder / "tools/shop.py", 12345, -1)
    os.chown(folder / "apps/dd.toml", 12345, -1)  # as in a folder that a container was given
    assert [(fault.kind, fault.file.name) for fault in faults(folder)] == [("own_owner", "shop.py")]
