"""Reading and printing in a terminal, over a real pipe and a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import select
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from agent_core.errors import ModelTimeout
from agent_core.model.client import ChatModel
from agent_core.ports import Event, RunStore
from agent_core.session import (
    Answer,
    AskedQuestion,
    Choice,
    Cluster,
    Elsewhere,
    GateState,
    Question,
    QuestionKind,
    ReplyRecord,
    Session,
    Status,
    StepRecord,
)
from agent_core.texts import say
from bot.app.settings.layers import Settings
from bot.channels.chat.answering import read_answer
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from bot.channels.cli.commands import demo
from bot.channels.cli.commands.common import BY_STATUS, Exit
from bot.channels.cli.terminal.ask import TerminalHuman
from bot.channels.cli.terminal.console import Console
from bot.channels.cli.terminal.input import drop_typed, read_line
from bot.channels.cli.terminal.live import (
    LiveRuns,
    WaitedFor,
    learnt_line,
    left_open,
    outcome_line,
    timings_line,
    waiting_line,
)
from bot.channels.cli.terminal.render import panel
from scheduler.runs.executor import StoredRuns
from storage.engine import Database
from storage.events import Events
from storage.people import TERMINAL, Audit
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.support.environment import without_settings
from tests.support.model_server import Hang, ScriptedModel, Text
from tests.support.terminal import Terminal

ROOT = Path(__file__).parents[5]

QUESTION = Question(
    id="q1",
    kind=QuestionKind.NO_SURE_ANSWER,
    text="能刻字吗 [red]x[/red]",
    choices=[Choice(value="record:0", label="刻字"), Choice(value="skip", label="Skip")],
    free_text=True,
)
CLOSED = QUESTION.model_copy(update={"free_text": False})


def printed() -> Console:
    return Console(file=io.StringIO(), width=100, color_system=None)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@contextmanager
def typed(text: str = "", *, end: bool = False) -> Iterator[tuple[TextIO, int]]:
    """A pipe to read from; the number is its other end, closed with ``end``."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    if end:
        os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as source:
        yield source, writing
    if not end:
        os.close(writing)


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await database.migrate()
    yield database
    await database.close()


async def session_in(db: Database) -> Session:
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", "a", begun=True))
    assert run_id is not None
    return Session(run_id=run_id, task="QQ回复联系人11")


async def test_what_was_learnt_from_the_answers_is_told(db: Database) -> None:
    session, events = await session_in(db), Events(db)
    session.questions = [QUESTION, CLOSED.model_copy(update={"id": "q2"})]
    assert (await learnt_line(db, session, texts("zh"))).plain == ""
    await events.append(session.run_id, "learnt", {"question": QUESTION.id, "entry": "e1"})
    assert "1 条待审" in (await learnt_line(db, session, texts("zh"))).plain
    assert (
        "Learnt 1 entry, used once approved: phonedesk kb pending"
        in (await learnt_line(db, session, texts("en"))).plain
    )


# -- lines


async def test_lines_that_come_all_at_once_are_read_one_by_one() -> None:
    with typed("第一\n\nthird\n") as (source, _):
        async with asyncio.timeout(5):
            assert [await read_line(printed(), source) for _ in range(3)] == ["第一\n", "\n", "third\n"]


async def test_the_end_of_the_input() -> None:
    with typed("no new line", end=True) as (source, _):
        assert [await read_line(printed(), source) for _ in range(2)] == ["no new line", None]


async def test_waiting_can_be_cancelled_and_begun_again() -> None:
    with typed() as (source, writing):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await read_line(printed(), source)
        os.write(writing, b"later\n")
        assert await read_line(printed(), source) == "later\n"


async def test_a_real_terminal() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, encoding="utf-8") as source:
        os.write(master, "一\n二\n".encode())
        async with asyncio.timeout(5):
            assert [await read_line(printed(), source) for _ in range(2)] == ["一\n", "二\n"]
    os.close(master)


@contextmanager
def typed_before() -> Iterator[tuple[TextIO, int]]:
    """A terminal at which something was typed before it was asked for; the number is the end at which one types."""
    master, slave = pty.openpty()
    with os.fdopen(slave, encoding="utf-8") as source:
        os.write(master, b"ls -l\n")
        while not select.select([source], [], [], 1.0)[0]:
            pass  # it has arrived
        yield source, master
    os.close(master)


async def test_what_was_typed_before_a_question_is_dropped() -> None:
    with typed_before() as (source, person):
        drop_typed(source)
        os.write(person, b"1\n")
        async with asyncio.timeout(5):
            assert await read_line(printed(), source) == "1\n"


async def test_what_was_typed_while_the_demo_worked_is_no_answer() -> None:
    with typed_before() as (source, person):
        console = printed()
        answer = asyncio.ensure_future(demo.reader(console, source)())
        async with asyncio.timeout(5):
            while ">" not in text_of(console):
                await asyncio.sleep(0)
            os.write(person, b"2\n")
            assert await answer == "2\n"


def test_nothing_of_a_file_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("1\n")
    with path.open(encoding="utf-8") as source:
        drop_typed(source)
        assert source.readline() == "1\n"


async def test_a_plain_file_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("一\n")
    with path.open(encoding="utf-8") as source:
        assert [await read_line(printed(), source) for _ in range(2)] == ["一\n", None]
    assert await read_line(printed(), io.StringIO("x\n")) == "x\n"


# -- answers


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("1\n", Answer(choice="record:0", by=TERMINAL)),
        (" 刻字 ", Answer(choice="record:0", by=TERMINAL)),
        ("SKIP", Answer(choice="skip", by=TERMINAL)),
        ("可以 [b]的[/b]\n", Answer(text="可以 [b]的[/b]", by=TERMINAL)),
        ("\n", None),
        ("  ", None),
    ],
)
def test_a_line_is_a_choice_or_ones_own_words(line: str, answer: Answer | None) -> None:
    assert read_answer(QUESTION, line, by=TERMINAL) == answer


@pytest.mark.parametrize("line", ["3", "0", "words", "", "²"])
def test_no_own_words_where_there_are_only_choices(line: str) -> None:
    assert read_answer(CLOSED, line, by=TERMINAL) is None


async def test_asking_goes_on_until_it_is_answered_and_keeps_it(db: Database) -> None:
    session, console = await session_in(db), printed()
    with typed("words\n9\n2\n") as (source, _):
        answer = await TerminalHuman(db, console, texts("en"), stdin=source).ask(session, CLOSED)
    assert answer == Answer(choice="skip", by=TERMINAL)
    row = await Questions(db).get("q1")
    assert row is not None
    assert (row.state, row.answered_by, row.answer) == ("answered", TERMINAL, {"choice": "skip", "text": ""})
    shown = text_of(console)
    told = " ".join(shown.split())
    assert told.count("This question wants one of: 刻字 / Skip. Give its number (1–2)") == 2
    assert "There is no choice 9. This" in told
    assert "能刻字吗 [red]x[/red]" in shown  # what a customer wrote is no markup
    assert [event.kind for event in await Events(db).after(0)] == ["status", "question", "closed"]
    (noted,) = await Audit(db).last()
    assert (noted.actor, noted.command) == (TERMINAL, "answer")
    assert noted.detail == {"question": "q1", "choice": "skip", "text": ""}


async def test_a_number_that_no_choice_has_is_no_answer_and_the_model_is_told_ones_words(db: Database) -> None:
    session, console = await session_in(db), printed()
    question = QUESTION.model_copy(update={"kind": QuestionKind.INTERACT, "choices": CLOSED.choices[1:]})
    with typed("9\nabout 9\n") as (source, _):
        answer = await TerminalHuman(db, console, texts("en"), stdin=source).ask(session, question)
    assert answer == Answer(text="about 9", by=TERMINAL)
    assert "to the customer" not in text_of(console)
    assert "There is only one choice: give 1 (Skip)" in text_of(console)


@pytest.mark.parametrize(("line", "why"), [("3", "only 2 choices: give 1–2"), ("", "Nothing was")])
async def test_who_gives_no_answer_is_told_why_and_what_would_be_one(db: Database, line: str, why: str) -> None:
    console = printed()
    data = {"candidates": [{"question": "刻字", "text": "可以刻字，请发文字。"}]}
    with typed(f"{line}\n1\n") as (source, _):
        answer = await TerminalHuman(db, console, texts("en"), stdin=source).read(
            "r", QUESTION.model_copy(update={"data": data})
        )
    assert answer == Answer(choice="record:0", by=TERMINAL)
    before, _, after = text_of(console).partition("> ")
    assert "→ 可以刻字，请发文字。" in before
    assert "[1] 刻字" in before
    assert why in after


@pytest.mark.parametrize("line", ["phonedesk questions list", "/stop", "／stop", "停止", "Stop.", "运行 打开QQ"])
async def test_what_looks_like_a_command_is_confirmed_before_it_goes_to_a_customer(db: Database, line: str) -> None:
    session, console = await session_in(db), printed()
    with typed(f"{line}\n\n{line}\nn\n2\n") as (source, _):
        answer = await TerminalHuman(db, console, texts("en"), stdin=source).ask(session, QUESTION)
    assert answer == Answer(choice="skip", by=TERMINAL)
    assert text_of(console).count("Send it to the customer as it is?") == 2
    with typed(f"{line}\ny\n") as (source, _):
        confirmed = await TerminalHuman(db, printed(), texts("en"), stdin=source).read("r", QUESTION)
    assert confirmed == Answer(text=line, by=TERMINAL)
    with typed(f"{line}\n", end=True) as (source, _):
        assert await TerminalHuman(db, printed(), texts("en"), stdin=source).read("r", QUESTION) is None


async def test_what_the_agent_is_told_needs_no_confirmation(db: Database) -> None:
    question = QUESTION.model_copy(update={"kind": QuestionKind.INTERACT})
    with typed("stop\n") as (source, _):
        answer = await TerminalHuman(db, printed(), texts("en"), stdin=source).read("r", question)
    assert answer == Answer(text="stop", by=TERMINAL)


async def test_nobody_at_the_terminal_leaves_the_question_open(db: Database) -> None:
    session = await session_in(db)
    with typed("", end=True) as (source, _):
        assert await TerminalHuman(db, printed(), texts("zh"), stdin=source).ask(session, QUESTION) is None
    assert [row.id for row in await Questions(db).find(state="open")] == ["q1"]


async def test_somebody_else_was_first(db: Database) -> None:
    session = await session_in(db)
    with typed() as (source, writing):
        asking = asyncio.create_task(TerminalHuman(db, printed(), texts("zh"), stdin=source).ask(session, QUESTION))
        async with asyncio.timeout(5):
            while await Questions(db).get("q1") is None:
                await asyncio.sleep(0)
        await Questions(db).answer("q1", {"choice": "record:0"}, by="Desk A")
        os.write(writing, b"2\n")
        assert await asking == Answer(choice="record:0", by="Desk A")


# -- cards and runs


def test_a_card_shows_its_words_as_they_are() -> None:
    card = Card(
        "[b]T[/b]\x1b[2J",
        (Line("a\x1b]0;x\x07b\n二", "标签"), Line("q", "", "quote")),
        None,
        ((Button("d", "好\x9b"), Button("look:q1", "see the phone")),),
    )
    console = printed()
    console.print(panel(card))
    shown = text_of(console)
    assert "[b]T[/b]\\x1b[2J" in shown
    assert "标签：a\\x1b]0;x\\x07b" in shown
    assert "[1] 好\\x9b" in shown
    assert "see the phone" not in shown  # a terminal shows no picture
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)


async def test_a_run_line_by_line(db: Database) -> None:
    session, console = await session_in(db), printed()
    stored: RunStore = StoredRuns(db)

    async def name(serial: str) -> str:
        return {"a": "Counter"}[serial]

    live = LiveRuns(stored, console, texts("en"), name, db)
    done = Choice(value="done", label="I have done it")
    session.question = Question(id="q2", kind=QuestionKind.TAKE_OVER, text="", choices=[done])
    await live.save(session)
    session.question = None
    asked = StepRecord(index=3, action={"kind": "take_over", "message": "log in"}, ok=False, result="asked")
    step = StepRecord(
        index=1,
        thinking="想[b]\x1b[31m",
        action={"kind": "launch", "app": "QQ"},
        timings={"step": 1.26},
        result="opened",
    )
    reply = ReplyRecord(contact="11", question="几天能发货", text="48小时内", provenance="knowledge", delivered=True)
    for kind, data in [
        ("started", {"task": session.task, "serial": "a"}),
        ("step", step.model_dump()),
        ("reply", reply.model_dump()),
        ("step", step.model_copy(update={"index": 2, "ok": False, "result": "it failed"}).model_dump()),
        ("step", asked.model_dump()),
        ("step", StepRecord(index=4, tokens_out=9, ok=False, result="Your reply is no good").model_dump()),
        ("step", StepRecord(index=5, model="m", ok=False, result="No answer\nCheck it.").model_dump()),
        ("answered", {"question": "q1", "by": "Desk A", "text": "可以"}),
        ("answered", {"question": "q2", "by": TERMINAL, "text": "done"}),
        ("note", {"text": "n"}),
    ]:
        await live.event(session.run_id, Event(kind, data))
    session.message = "half"
    await live.save(session)
    shown = text_of(console)
    for part in (
        "▶ QQ回复联系人11",
        "  1  Open QQ  (1.3 s)",
        "想[b]\\x1b[31m",
        "it failed",
        "48小时内",
        "Desk A: 可以",
    ):
        assert part in shown
    assert "the owner at this machine: I have done it" in shown
    assert "Phone: Counter · #1" in shown
    assert "  4  The model's reply could not be read" in shown
    assert "Your reply" not in shown  # that was said to the model
    assert "  5  No answer  (0.0 s)" in shown
    assert "Check it." not in shown  # it stands below the end
    assert shown.count("(no success)") == 1  # of the step that failed, not of the one that asks
    assert shown.index("it failed") < shown.index("48小时内")  # what was sent stands below the step that sent it
    assert "opened" not in shown  # what went well needs no more words
    assert "\x1b" not in shown
    assert [event.kind for event in await Events(db).after(0)][1:] == [
        "started",
        "step",
        "reply",
        "step",
        "step",
        "step",
        "step",
        "answered",
        "answered",
        "note",
    ]
    row = await Runs(db).get(session.run_id)
    assert row is not None
    assert row.session is not None
    assert Session.model_validate_json(row.session).message == "half"


@pytest.mark.parametrize("status", list(Status))
def test_each_outcome_has_its_line(status: Status) -> None:
    line = outcome_line(Session(run_id="r", task="t", status=status, message="why\x1b"), texts("zh"))
    assert line.plain.endswith("  why\\x1b")


@pytest.mark.parametrize(
    ("lang", "goes_on", "said"),
    [
        ("zh", True, "⏳ 留给较早的任务"),
        ("en", True, "⏳ Left to an older run"),
        ("zh", False, "✋ 等待人工"),
        ("en", False, "✋ Waiting for a person"),
    ],
)
def test_a_customer_left_to_an_older_run_is_not_called_done(lang: Lang, goes_on: bool, said: str) -> None:
    status = Status.SUCCEEDED if goes_on else Status.FAILED
    other = Elsewhere(run_id="older", goes_on=goes_on)
    session = Session(run_id="r", task="t", status=status, message="why", elsewhere=other)
    assert outcome_line(session, texts(lang)).plain == f"{said}  why"
    assert BY_STATUS[session.comes_to] is Exit.WAITING


@pytest.mark.parametrize(("lang", "message"), [("zh", "已停止。"), ("en", "Stopped.")])
def test_what_the_status_says_already_is_not_said_twice(lang: Lang, message: str) -> None:
    stopped = Session(run_id="r", task="t", status=Status.STOPPED, message=message, question=QUESTION)
    assert outcome_line(stopped, texts(lang)).plain.count(message[:-1]) == 1
    assert texts(lang).get("question.closed_by_stop") in left_open(stopped, texts(lang)).plain
    assert texts(lang).get("card.unanswered", contact="11") not in left_open(stopped, texts(lang)).plain
    stopped.gate = GateState(enabled=True, contact="11")
    stopped.cluster = Cluster(messages=["?"], asked=[AskedQuestion(ledger_id=1, fingerprint="f", words="?")])
    assert texts(lang).get("card.unanswered", contact="11") in left_open(stopped, texts(lang)).plain


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("status", [Status.WAITING, Status.FAILED, Status.STOPPED])
def test_a_command_in_an_outcome_is_written_as_it_is_typed_here(
    lang: Lang, status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/phonedesk")])
    message = say(lang, "run.no_chat", contact="11")
    said = outcome_line(Session(run_id="r", task="t", status=status, message=message), texts(lang)).plain
    assert said.count(".venv/bin/phonedesk contacts") == said.count("phonedesk contacts") == 1


def test_what_only_the_model_says_is_marked_as_its_note() -> None:
    step = StepRecord(index=1, action={"kind": "finish", "message": "80 %"}, ok=True)
    session = Session(run_id="r", task="t", status=Status.SUCCEEDED, message="80 %", steps=[step])
    assert outcome_line(session, texts("en")).plain == "✅ Done  The model's note: 80 %"
    session.message = "Answered 11: 1 answer sent."
    assert outcome_line(session, texts("en")).plain == "✅ Done  Answered 11: 1 answer sent."


def test_a_question_that_is_left_open_says_how_to_answer_it() -> None:
    session = Session(run_id="r", task="t", status=Status.WAITING, question=QUESTION)
    assert "phonedesk questions answer q1 " in left_open(session, texts("en")).plain
    session.status = Status.FAILED
    assert left_open(session, texts("en")).plain == ""


async def test_a_model_that_says_nothing_is_told_of_while_it_does() -> None:
    told: list[int] = []
    hello = [{"role": "user", "content": "hello"}]
    async with ScriptedModel([Hang(), Text("finish(message='x')")]) as server:
        model = WaitedFor(ChatModel(server.url, "m", timeout=0.3, alone=False), told.append, first=0.05, every=0.1)
        with pytest.raises(ModelTimeout):
            await model.complete(hello)
        assert told[:3] == [0, 0, 0]  # seconds
        assert (await model.complete(hello)).text
        assert "model-waited-for" not in {task.get_name() for task in asyncio.all_tasks()}  # of a call that is over
        await model.close()
    said = waiting_line(10, Settings(), texts("en")).plain
    assert "(10 s). After 60 s without a word it is tried again" in said


def test_a_run_ends_with_where_its_seconds_went() -> None:
    session = Session(run_id="r", task="t")
    assert timings_line(session, texts("en")).plain == ""
    for model in (1.0, 2.0):
        timings = {"observe": 0.25, "model": model, "act": 0.5, "step": model + 1}
        session.steps.append(StepRecord(index=len(session.steps) + 1, timings=timings))
    said = "2 steps in 5.0 s: model 3.0 s (1.50 s each), screen 0.5 s, acts 1.0 s, other 0.5 s"
    assert timings_line(session, texts("en")).plain.strip() == said


@pytest.mark.parametrize(
    ("lang", "said"),
    [("zh", "没有 PHONEDESK_MODEL_NAME 这个设置，它不起作用。"), ("en", "There is no setting PHONEDESK_MODEL_NAME")],
)
def test_a_misspelt_setting_is_told_in_the_persons_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lang: str, said: str
) -> None:
    without_settings(monkeypatch, tmp_path)
    command = [sys.executable, "-m", "bot", "config", "show", "--changed"]
    place = {**os.environ, "PHONEDESK_LANG": lang, "PHONEDESK_MODEL_NAME": "x", "PYTHONPATH": str(ROOT)}
    terminal = Terminal(command, tmp_path, place)
    try:
        terminal.ended()
        assert said in terminal.seen
        assert "[warning" not in terminal.seen
    finally:
        terminal.close()
