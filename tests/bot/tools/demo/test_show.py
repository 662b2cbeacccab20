"""The demo as a person sees it, on the real stand-ins."""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientConnectorError, ClientSession, CookieJar
from rich.cells import cell_len
from rich.status import Status

from agent_core.errors import ConfigMissing
from bot.channels.chat.texts import Lang, texts
from bot.channels.cli.terminal.console import Console
from bot.channels.web.callers import REQUESTED_BY
from bot.tools.demo.show import TICK, NotShown, show, stage, third_act
from storage.runs import Runs
from storage.schedules import Schedules, Tick

pytestmark = [pytest.mark.rotating(parts=3), pytest.mark.device]

CHINESE = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def wide(columns: int) -> Console:
    return Console(file=io.StringIO(), width=columns, color_system=None)


def printed() -> Console:
    return wide(160)


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
        (["9\n", "make demo\n", "\n", "make demo\n", "y\n", "\n"], "✅ Done, sent to 11: make demo"),
        (["\n", None], "Nothing typed"),
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
    assert "Customer 11 on QQ: Hi, how soon do you ship?" in shown
    assert "sent to 11: Within 48 hours" in shown
    assert re.search(r"\[1\] \S+.* → \S+", shown), "a candidate's question and its answer"
    listed = re.findall(r"^    \[(\d+)\] (\w+)", shown, re.MULTILINE)
    count = next(number for number, (_, word) in enumerate(listed, start=1) if word == "Skip")
    assert [int(number) for number, _ in listed[:count]] == list(range(1, count + 1)), "no choice is left out"
    assert seen in shown
    assert "3/3" not in shown
    assert f"Pictures: {folder}" in shown
    assert "phonedesk init" in "".join(shown.splitlines()[-2:])
    assert (folder / "demo.gif").exists()
    assert len(list(folder.glob("demo-*.jpg"))) > 5


@pytest.mark.device
@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_the_third_act_is_a_tick_that_starts_one_run(lang: Lang) -> None:
    """The test is the clock: it takes the tick that the minute would bring."""
    async with stage(console := wide(80), None, lang, says()) as on:
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
        answer = on.sent("110")[0]
        chats = on.world.phone.report()["chats"].values()
        said = [message["text"] for messages in chats for message in messages]
        cards = [message.words for message in on.user.chat.from_bot]
    if lang == "en":
        assert answer in text_of(console), "not cut"
        assert not [text for text in (text_of(console), *said, *cards) if CHINESE.search(text)]


def test_the_tick_of_the_demo_is_every_minute() -> None:
    assert TICK == "* * * * *"


async def test_what_does_not_come_is_told() -> None:
    async with stage(printed(), None, "zh", says()) as on:
        with pytest.raises(NotShown, match="nothing"):
            await on.until(lambda: False, "nothing", seconds=0.05)
        assert (on.at_work, on.outcome, on.sent()) == ("", "", [])


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.device
async def test_the_whole_demo_fits_a_screen_and_says_what_to_type_next(lang: Lang) -> None:
    """24 rows of 80 columns, with the line of the start, both prompts and the third act's four rows."""
    console = wide(80)
    assert await show(console, Path("out"), lang=lang, read=says("2\n", "\n"), tick="")
    rows = text_of(console).splitlines()
    assert len(rows) + 1 + 2 + 4 <= 24
    assert all(cell_len(row) <= 80 for row in rows)
    assert "phonedesk init" in "".join(rows[-2:])
    assert rows[-1].endswith(("a virtual phone.", "用虚拟手机。")), "not cut"
    if lang == "en":  # an English reader sees whole sentences and no Chinese
        assert not [row for row in rows if CHINESE.search(row) or "…" in row]
        assert len([row for row in rows if " → " in row]) == 2, "answers to choose from"


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_without_a_person_it_answers_by_itself_and_says_so(lang: Lang, tmp_path: Path) -> None:
    console, words = printed(), texts(lang)
    assert await show(console, tmp_path / "out", lang=lang, read=None, tick="")
    shown = text_of(console).splitlines()
    own = words.get("demo.own_answer")
    assert shown[0] == words.get("demo.welcome_alone")
    assert words.get("demo.by_itself", text=own) in shown
    assert words.get("demo.answered", outcome=words.get("card.succeeded"), contact="11", text=own) in shown
    assert words.get("demo.ask", skip=0).partition("] ")[2] not in text_of(console)
    assert "/console/" not in text_of(console), "nobody could open it"


async def test_at_its_end_the_desk_can_be_looked_at_in_a_browser(tmp_path: Path) -> None:
    """The link logs in, the runs of the demo are there, and after Enter nothing listens any more."""
    console, lines, seen = printed(), ["\n"], list[str]()

    async def read() -> str:
        if lines:
            return lines.pop()
        (link,) = re.findall(r"http://\S+/console/login#\S+", text_of(console))
        page, _, code = link.partition("#")
        origin = page.removesuffix("/console/login")
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
            ours = {"Origin": origin, REQUESTED_BY: "console"}
            async with browser.post(page, json={"code": code}, headers=ours) as answer:
                assert answer.status == 200
            async with browser.get(f"{origin}/console/runs") as answer:
                seen.append(await answer.text())
        seen.append(origin)
        return "\n"

    assert await show(console, tmp_path / "out", lang="zh", read=read, tick="")
    runs, origin = seen
    assert origin.startswith("http://localhost:")
    assert runs.count("QQ回复联系人11") >= 2
    async with ClientSession() as browser:
        with pytest.raises(ClientConnectorError):
            await browser.get(origin)


async def test_beside_the_spinner_stands_the_run_under_way_and_no_older_card(tmp_path: Path) -> None:
    stood: list[str] = []

    class Watched(Console):
        def status(self, status: Any, **options: Any) -> Status:
            shown = super().status(status, **options)
            update = shown.update

            def updated(status: Any = None, **others: Any) -> None:
                stood.append(str(status))
                update(status, **others)

            shown.update = updated  # type: ignore[method-assign]
            return shown

    console = Watched(file=io.StringIO(), width=160, color_system=None)
    assert await show(console, tmp_path / "out", lang="en", read=says("2\n", "\n"), tick="")
    words = texts("en")
    going = tuple(words.get(f"card.{state}") for state in ("queued", "running", "waiting"))
    assert {one for one in stood if not one.startswith((words.get("demo.wait"), *going))} == set()
    assert any(one.startswith(words.get("card.running")) for one in stood)


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
