"""The demo as a person sees it, on the real stand-ins."""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from agent_core.errors import ConfigMissing
from bot.channels.chat.texts import Lang
from bot.channels.cli.terminal.console import Console
from bot.tools.demo.show import TICK, NotShown, show, stage, third_act
from storage.runs import Runs
from storage.schedules import Schedules, Tick

pytestmark = [pytest.mark.rotating(parts=2), pytest.mark.device]


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
    ("lines", "seen"),
    [
        (["9\n", "make demo\n", "\n", "make demo\n", "y\n"], "✅ Done, sent to 11: make demo"),
        (["\n"], "Nothing typed"),
    ],
    ids=["own words", "enter"],
)
@pytest.mark.device
async def test_both_acts_without_a_schedule(tmp_path: Path, lines: list[str], seen: str) -> None:
    console, folder = printed(), tmp_path / "out"
    assert await show(console, folder, lang="en", read=says(*lines), tick="")
    shown = text_of(console)
    assert shown.count("Send it to the customer as it is?") == lines.count("make demo\n")
    assert ("choices: give 1–" in shown) is ("9\n" in lines)
    assert "Customer 11 on QQ: 你好，请问几天能发货？" in shown
    assert "48小时内发出" in shown
    assert re.search(r"\[1\] \S+.* → \S+", shown), "a candidate's question and its answer"
    assert seen in shown
    assert "3/3" not in shown
    assert "The demo is over" in shown
    assert "phonedesk init" in shown.splitlines()[-1]
    assert (folder / "demo.gif").exists()
    assert len(list(folder.glob("demo-*.jpg"))) > 5


@pytest.mark.device
async def test_the_third_act_is_a_tick_that_starts_one_run() -> None:
    """The test is the clock: it takes the tick that the minute would bring."""
    async with stage(printed(), None, "zh", says()) as on:
        await on.operator(f"/start {await on.running.desk.people.first_code()}")
        await on.until(lambda: bool(on.user.chat.from_bot), "/start")
        db = on.running.desk.context.db
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
@pytest.mark.device
async def test_the_whole_demo_fits_a_screen_and_says_what_to_type_next(lang: Lang, tmp_path: Path) -> None:
    """24 rows of 80 columns, with the line of the start, the typed answer and the third act's five rows."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    assert await show(console, tmp_path / "out", lang=lang, read=says("2\n"), tick="")
    rows = text_of(console).splitlines()
    assert len(rows) + 1 + 5 <= 24
    assert all(cell_len(row) <= 80 for row in rows)
    assert "phonedesk init" in rows[-1]


async def test_a_demo_that_is_stopped_says_what_became_of_its_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    console, asked = printed(), asyncio.Event()

    async def nobody() -> None:
        asked.set()
        await asyncio.Event().wait()

    showing = asyncio.create_task(show(console, tmp_path / "out", lang="en", read=nobody, tick=""))
    async with asyncio.timeout(90):
        await asked.wait()
    began = time.monotonic()
    showing.cancel()
    await asyncio.gather(showing, return_exceptions=True)
    # An attempt that waits for a person kept the end waiting for PHONEDESK_QUEUE__DRAIN_SECONDS; now it takes half a
    # second.
    assert time.monotonic() - began < 4.0
    assert showing.cancelled()
    assert "the open question too" in text_of(console).splitlines()[-1]
    assert text_of(console).count("Stopped") == 1
    assert not (tmp_path / "out").exists()


async def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing, match=r"none\.toml"):
        await show(printed(), tmp_path, scenario=tmp_path / "none.toml", read=says())
