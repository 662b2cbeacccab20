"""The demo as a person sees it, on the real stand-ins."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_core.errors import ConfigMissing
from bot.demo.show import CONTACT, TICK, NotShown, Stage, show, stage, third_act
from bot.terminal.console import Console
from storage.runs import Runs
from storage.schedules import Schedules, Tick

pytestmark = pytest.mark.rotating(parts=2)


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed() -> Console:
    return Console(file=io.StringIO(), width=160, color_system=None)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def says(*lines: str | None) -> Callable[[], Awaitable[str | None]]:
    left = list(lines)

    async def read() -> str | None:
        return left.pop(0)

    return read


@pytest.mark.parametrize(
    ("line", "seen"),
    [("可以定制，请把文字发给我们。\n", "we answer 11: 可以定制，请把文字发给我们。"), ("\n", "Nothing typed")],
    ids=["own words", "enter"],
)
async def test_both_acts_without_a_schedule(tmp_path: Path, line: str, seen: str) -> None:
    console, folder = printed(), tmp_path / "out"
    assert await show(console, folder, lang="en", read=says(line), tick="")
    shown = text_of(console)
    assert "QQ · customer 11: 你好，请问几天能发货？" in shown
    assert "48小时内发出" in shown
    assert "[1]" in shown
    assert seen in shown
    assert "3/3" not in shown
    assert "The demo is over" in shown
    assert (folder / "demo.gif").exists()
    assert len(list(folder.glob("demo-*.jpg"))) > 5


async def test_the_third_act_is_a_tick_that_starts_one_run() -> None:
    """The test is the clock: it takes the tick that the minute would bring."""
    async with stage(printed(), None, "zh", says()) as on:
        await on.operator(f"/start {on.running.first_code}")
        await on.until(lambda: bool(on.user.chat.from_bot), "/start")
        db = on.running.desk.house.db
        act = asyncio.create_task(third_act(on, "0 0 1 1 *"))  # not due within this test
        try:
            async with asyncio.timeout(30):
                while not await Schedules(db).all():
                    await asyncio.sleep(0.01)
            (schedule,) = await Schedules(db).all()
            assert (await Schedules(db).tick(schedule.id, db.now())).tick is Tick.STARTED
            await act
        finally:
            act.cancel()
        assert len(on.sent("110")) == 1
        assert [run.schedule_id for run in await Runs(db).find() if not run.parent_id] == [schedule.id]
        assert await Schedules(db).all() == []


def test_the_tick_of_the_demo_is_every_minute() -> None:
    assert TICK == "* * * * *"


async def test_what_does_not_come_is_told(tmp_path: Path) -> None:
    async with stage(printed(), None, "zh", says()) as on:
        with pytest.raises(NotShown, match="nothing"):
            await on.until(lambda: False, "nothing", seconds=0.05)
        await _follows(on)


async def _follows(on: Stage) -> None:
    """What a stranger is told is shown once, however often one looks."""
    await on.user.send("你好")
    await on.until(lambda: bool(on.user.chat.from_bot), "answer")
    on.follow()
    assert text_of(on.console).count(on.user.chat.from_bot[0].words.splitlines()[0]) == 1
    assert on.sent() == []
    assert CONTACT in on.world.phone.report()["chats"]


async def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing, match=r"none\.toml"):
        await show(printed(), tmp_path, scenario=tmp_path / "none.toml", read=says())
