"""The demo as a person sees it, on the real stand-ins."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from agent_core.errors import ConfigMissing
from bot.chat.texts import Lang
from bot.demo.show import TICK, NotShown, show, stage, third_act
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
    [("可以定制，请把文字发给我们。\n", "✅ Done, sent to 11: 可以定制，请把文字发给我们。"), ("\n", "Nothing typed")],
    ids=["own words", "enter"],
)
async def test_both_acts_without_a_schedule(tmp_path: Path, line: str, seen: str) -> None:
    console, folder = printed(), tmp_path / "out"
    assert await show(console, folder, lang="en", read=says(line), tick="")
    shown = text_of(console)
    assert "Customer 11 on QQ: 你好，请问几天能发货？" in shown
    assert "48小时内发出" in shown
    assert "[1]" in shown
    assert seen in shown
    assert "3/3" not in shown
    assert "The demo is over" in shown
    assert "phonedesk init" in shown.splitlines()[-1]
    assert (folder / "demo.gif").exists()
    assert len(list(folder.glob("demo-*.jpg"))) > 5


async def test_the_third_act_is_a_tick_that_starts_one_run() -> None:
    """The test is the clock: it takes the tick that the minute would bring."""
    async with stage(printed(), None, "zh", says()) as on:
        await on.operator(f"/start {await on.running.desk.people.first_code()}")
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


async def test_what_does_not_come_is_told() -> None:
    async with stage(printed(), None, "zh", says()) as on:
        with pytest.raises(NotShown, match="nothing"):
            await on.until(lambda: False, "nothing", seconds=0.05)
        assert (on.newest, on.outcome, on.sent()) == ("", "", [])


@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_the_whole_demo_fits_a_screen_and_says_what_to_type_next(lang: Lang, tmp_path: Path) -> None:
    """24 rows of 80 columns, with the line of the start, the typed answer and the third act's five rows."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    assert await show(console, tmp_path / "out", lang=lang, read=says("2\n"), tick="")
    rows = text_of(console).splitlines()
    assert len(rows) + 1 + 5 <= 24
    assert all(cell_len(row) <= 80 for row in rows)
    assert "phonedesk init" in rows[-1]


async def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing, match=r"none\.toml"):
        await show(printed(), tmp_path, scenario=tmp_path / "none.toml", read=says())
