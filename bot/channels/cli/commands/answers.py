"""``phonedesk answers``: the answer log in the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bot.channels.chat.run_cards import THUMBS, state_of, unanswered_words
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import fail
from bot.channels.cli.commands.output import Json
from bot.channels.cli.files import write
from bot.channels.cli.terminal.console import Console, Text, err, print_data, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor, BadRequest
from bot.desk.history_views import HistoryAsked, PastRun
from bot.desk.views import AnswersAsked, AnswerView
from knowledge.importing.text import guarded

if TYPE_CHECKING:
    from bot.desk.desk import Desk


SHOWN = 50  # if no limit is given; a CSV file gets all answers
PAGE = 500
COLUMNS = (
    "id", "asked_at", "changed_at", "contact", "app", "serial", "question", "query", "sent", "state", "provenance",
    "record_id", "record_source", "score", "person", "rating", "rated_by", "rated_at", "records", "run_id",
)  # fmt: skip


class Rated(Enum):
    GOOD = "good"
    BAD = "bad"


class Thumb(Enum):
    UP = "up"
    DOWN = "down"
    NONE = "none"


RATING = {"good": 1, "bad": -1, "up": 1, "down": -1, "none": 0}

answers = typer.Typer()


@answers.callback(invoke_without_command=True)
def list_(
    context: typer.Context,
    since: str = "",
    until: str = "",
    contact: str = "",
    text: str = "",
    state: str = "",
    rated: Rated | None = None,
    unanswered: Annotated[bool, typer.Option("--unanswered")] = False,
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    as_json: Json = False,
    csv_file: Annotated[Path | None, typer.Option("--csv")] = None,
) -> None:
    """List questions and answers, the newest first."""
    if context.invoked_subcommand is not None:
        return
    asked = AnswersAsked(
        contact=contact,
        text=text,
        since=since,
        until=until,
        state=state,
        rating=RATING[rated.value] if rated else None,
        unanswered=unanswered,
    )
    most = limit or (None if csv_file else SHOWN)
    (found, total, stopped), lang = with_desk(lambda desk, me: _found(desk, me, asked, most))
    if csv_file is not None:
        _write_csv(found, csv_file)
    elif as_json:
        print_json([_plain(answer) for answer in found])
    else:
        _show(found, total, stopped, asked, texts(lang))


@answers.command()
def rate(
    number: Annotated[str, typer.Argument(metavar="ID")],
    thumb: Thumb,
    as_json: Json = False,
) -> None:
    """Rate an answer."""
    view, lang = with_desk(lambda desk, me: desk.answers.rate(me, number, RATING[thumb.value], toggle=False))
    words = texts(lang)
    if as_json:
        print_json(_plain(view))
    else:
        mark = THUMBS.get(view.rating, "")
        Console().print(words.get("answers.rated", thumb=mark) if mark else words.get("answers.unrated"))


async def _found(
    desk: Desk, me: Actor, asked: AnswersAsked, most: int | None
) -> tuple[Sequence[AnswerView], int, Sequence[PastRun]]:
    """Return the answers, read page by page, how many there are, and the stopped runs that left a question open."""
    stopped = await _left_open(desk, me, asked) if asked.unanswered else []
    found: list[AnswerView] = []
    before = ""
    while True:
        size = PAGE if most is None else min(PAGE, most - len(found))
        page = await desk.answers.find(me, asked, before=before, limit=size)
        found += page.answers
        if not page.older or len(found) == most:
            return found, page.total, stopped
        before = page.answers[-1].id


async def _left_open(desk: Desk, me: Actor, asked: AnswersAsked) -> Sequence[PastRun]:
    """Return the stopped runs that left somebody's question open, which need not be in the log yet."""
    if asked != AnswersAsked(since=asked.since, until=asked.until, contact=asked.contact, unanswered=True):
        return []
    page = await desk.history.runs(me, HistoryAsked(status="stopped", since=asked.since, until=asked.until), limit=PAGE)
    return [run for run in page.runs if run.unanswered and asked.contact in ("", run.unanswered)]


def _plain(answer: AnswerView) -> dict[str, Any]:
    """Return the answer as plain data; times are ISO 8601 with the zone."""
    data = asdict(answer)
    for name in ("asked_at", "changed_at", "rated_at"):
        data[name] = data[name].isoformat(timespec="seconds") if data[name] else None
    for name in ("standing", "question_id"):  # of the run, not of the answer's row
        del data[name]
    return data


def _write_csv(found: Sequence[AnswerView], file: Path) -> None:
    """Write the answers as CSV, one per row, with CRLF.

    The file is UTF-8 with a byte order mark: without it Excel guesses another encoding.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for answer in found:
        data = _plain(answer)
        data["records"] = "\n".join(_record_line(record) for record in data["records"])
        writer.writerow([_cell(data[name]) for name in COLUMNS])
    encoded = text.getvalue().encode("utf-8-sig", "replace")
    if str(file) == "-":
        print_data(encoded)
        return
    try:
        write(file, encoded)
    except BadRequest as error:
        fail(error)
    err.print(f"{file}: {len(found)}")


def _record_line(record: dict[str, Any]) -> str:
    score = "" if record["score"] is None else f" ({record['score']:.2f})"
    return f"{record['source'] or record['id']}{score}: {record['text']}"


def _cell(value: object) -> object:
    """Guard a cell: a customer's text must not run as a formula in a spreadsheet; numbers stay numbers."""
    if isinstance(value, str):
        return guarded(value)
    return "" if value is None else value


def _show(
    found: Sequence[AnswerView], total: int, stopped: Sequence[PastRun], asked: AnswersAsked, words: Texts
) -> None:
    console = Console()
    for run in stopped:
        said = unanswered_words(run.unanswered, words, some=bool(run.sent))
        console.print(Text(f"#{run.number} · {words.get(state_of(run.status))} · {said}"))
    if not found:
        if not stopped:
            console.print(words.get("answers.empty" if asked == AnswersAsked() else "answers.empty_filtered"))
        return
    table = Table(show_header=False, box=None, padding=(0, 1))
    for answer in found:
        state = words.get(f"answer_state.{answer.standing}")
        head = f"{answer.asked_at:%m-%d %H:%M}\n{answer.contact}"
        said = f"{answer.question}\n→ {answer.sent}" if answer.sent else answer.question
        mark = f"{state}\n{THUMBS.get(answer.rating, '')}".strip()
        table.add_row(*(Text(cell) for cell in (f"#{answer.id}", head, said, mark)))
    console.print(table)
    for question in dict.fromkeys(answer.question_id for answer in found if answer.question_id):
        console.print(words.get("question.left_open", id=question), soft_wrap=True)
    if any(answer.standing == "queued" for answer in found):
        console.print(words.get("answers.by_serve"))
    console.print(words.get("answers.total", total=total), style="dim")
