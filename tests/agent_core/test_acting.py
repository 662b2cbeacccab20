"""An act that failed: tried once more where it is sure that nothing was done, and never where it may have been done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import pytest

from agent_core.apps.names import opened_alone
from agent_core.errors import ActionFailed
from agent_core.geometry import Point
from agent_core.retry import RETRIES
from agent_core.session import Status
from tests.support.lab import FINISH, SIZE, Lab, do
from tests.support.model_server import ScriptedModel

TYPE = do('do(action="Type", text="你好")')
LAUNCH = do('do(action="Launch", app="设置")')
IN_INPUT = (300, 923)  # 0–1000
TAP = do(f'do(action="Tap", element={list(IN_INPUT)})')
TASK = "打个招呼"
FIRST_TRY, SECOND_TRY = 2, 3  # the checks of the lease before them; the first is that of the run


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RETRIES[ActionFailed] == (1,)
    monkeypatch.setitem(RETRIES, ActionFailed, (0.001,))


@dataclass
class Meanwhile:
    """A lease that is asked before each try; on the phone something happens then."""

    happenings: Mapping[int, Callable[[], Awaitable[object]]]
    checks: int = 0

    async def check(self) -> None:
        self.checks += 1
        if self.checks in self.happenings:
            await self.happenings[self.checks]()


async def test_a_text_for_which_no_keyboard_was_had_is_typed_on_the_same_screen_once_there_is_one(
    bench_lab: Lab,
) -> None:
    phone = bench_lab.phone

    async def mended() -> None:
        phone.set_fault("clipboard", False)

    async def gone_home() -> None:
        await phone.key("HOME")

    await bench_lab.open_chat()
    await bench_lab.device.tap(Point.from_relative(IN_INPUT, SIZE))
    for happenings, tries, draft in (
        ({}, 2, {}),  # still refused
        ({SECOND_TRY: mended}, 2, {"11": "你好"}),
        ({FIRST_TRY: gone_home, SECOND_TRY: mended}, 1, {"11": "你好"}),
    ):
        phone.set_fault("ime_refused")
        phone.set_fault("clipboard")
        lease = Meanwhile(happenings)
        async with ScriptedModel([TYPE, FINISH]) as model:
            session = await bench_lab.run(model, TASK, lease=lease)
        assert session.status is Status.SUCCEEDED
        assert (lease.checks, bench_lab.drafts) == (FIRST_TRY - 1 + tries, draft)
        assert session.steps[0].ok is (happenings.keys() == {SECOND_TRY})


async def test_a_text_that_changed_nothing_on_the_screen_is_typed_in_another_way_next_time(bench_lab: Lab) -> None:
    phone = bench_lab.phone
    phone.set_fault("ime_refused")
    phone.set_fault("clipboard", "no_paste")
    await bench_lab.open_chat()
    await bench_lab.device.tap(Point.from_relative(IN_INPUT, SIZE))
    hello = do('do(action="Type", text="hello")')
    async with ScriptedModel([hello, hello, FINISH]) as model:
        session = await bench_lab.run(model, TASK)
    assert [step.ok for step in session.steps] == [True, True, True]
    assert bench_lab.drafts == {"11": "hello"}
    assert len(phone.report()["typed"]) == 1


async def test_an_app_is_opened_once_the_phone_lists_its_apps(bench_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async def listing() -> None:
        monkeypatch.undo()

    monkeypatch.setattr(bench_lab.phone, "apps", {})
    async with ScriptedModel([LAUNCH, FINISH]) as model:
        session = await bench_lab.run(model, TASK, lease=Meanwhile({SECOND_TRY: listing}))
    assert session.steps[0].ok
    assert bench_lab.phone.report()["opened"] == ["com.android.settings"]


async def test_a_tap_that_failed_may_have_been_one(bench_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    taps: list[tuple[float, float]] = []

    async def tapped_and_failed(x: float, y: float) -> None:
        taps.append((x, y))
        raise RuntimeError("the phone's input service died")

    monkeypatch.setattr(bench_lab.phone, "tap", tapped_and_failed)
    async with ScriptedModel([TAP, FINISH]) as model:
        session = await bench_lab.run(model, TASK)
        assert "Exception" in str(model.requests[1]["messages"][-1])  # the model is told
    assert not session.steps[0].ok
    assert len(taps) == 1


async def test_an_app_that_is_not_on_the_phone_is_told_whether_its_name_is_known_or_not(bench_lab: Lab) -> None:
    launches = [do(f'do(action="Launch", app="{app}")') for app in ("没听过的应用", "抖音")]
    async with ScriptedModel([*launches, FINISH]) as model:
        await bench_lab.run(model, "打开没听过的应用")
        told = [str(request["messages"][-1]) for request in model.requests]
    assert "手机上没有找到“没听过的应用”" in told[1]
    assert "写它的包名" in told[1]
    assert "手机上没有找到“抖音”" in told[2]


@pytest.mark.parametrize("task", ["打开闲鱼", "请打开“闲鱼”应用。", "open Xianyu"])
async def test_a_task_that_only_opens_an_app_which_is_not_there_ends_with_one_sentence(
    bench_lab: Lab, task: str
) -> None:
    async with ScriptedModel([FINISH]) as model:
        session = await bench_lab.run(model, task)
        assert model.requests == []
    assert session.status is Status.FAILED
    assert session.message.endswith("：请先安装，或换一个应用。")
    assert session.steps == []


@pytest.mark.parametrize("task", ["打开闲鱼，没有就打开QQ", "打开闲鱼看看", "打开没听过的应用", "看看闲鱼"])
def test_a_task_that_says_more_is_left_to_the_model(task: str) -> None:
    assert opened_alone(task) == ""
