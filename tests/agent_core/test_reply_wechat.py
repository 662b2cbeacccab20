"""The reply in WeChat: the same rules, its own pages, and never QQ in its place."""

from __future__ import annotations

import pytest

from agent_core.policies.detect import reply_task
from agent_core.session import Status
from simulator.phone.scenario import EventPart
from simulator.phone.scenario_file import default_scenario
from tests.support.lab import ANSWER, ASK, FINISH, do, lab
from tests.support.model_server import ScriptedModel

TASK = "微信回复联系人11"
WECHAT = "com.tencent.mm"
LAUNCH = do('do(action="Launch", app="微信")')
TAP_FIRST_ROW = do('do(action="Tap", element=[400,134])')
ASKED = EventPart(at=0, contact="wechat:11", text="请问几天能发货？")


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("tree", ["full", "no_texts", "empty"])
async def test_the_customer_gets_the_answer_once(tree: str) -> None:
    scenario = default_scenario().model_copy(update={"events": [ASKED]})
    async with lab(scenario) as bench, ScriptedModel([LAUNCH, TAP_FIRST_ROW, ASK, FINISH]) as model:
        bench.phone.set_tree(tree)
        session = await bench.run(model, TASK)
        report = bench.phone.report()
    assert session.status is Status.SUCCEEDED, session.message
    assert report["sent"] == {"wechat:11": [ANSWER]}
    assert report["opened"] == [WECHAT]
    assert [reply.text for reply in session.replies] == [ANSWER]


async def test_qq_is_not_touched_for_wechat() -> None:
    scenario = default_scenario().model_copy(update={"events": [ASKED]})
    async with lab(scenario) as bench, ScriptedModel([do('do(action="Launch", app="QQ")'), ASK]) as model:
        session = await bench.run(model, TASK, max_steps=2)
        report = bench.phone.report()
    assert session.status is Status.FAILED
    assert "com.tencent.mobileqq" not in report["opened"]
    assert report["sent"] == {}


@pytest.mark.parametrize(
    ("task", "app"),
    [
        ("微信回复联系人11", "wechat"),
        ("WeChat reply to contact 11", "wechat"),
        ("QQ回复联系人11", "qq"),
        ("微信回复联系人11，不是QQ", "wechat"),
        ("QQ回复联系人11，不要用微信", "qq"),
        ("打开微信", None),
        ("回复联系人11", None),
    ],
)
def test_which_app_a_task_means(task: str, app: str | None) -> None:
    found = reply_task(task)
    assert (found.profile.key if found else None) == app
