"""One run in the terminal, and as files; and the list of the newest runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from agent_core.model.usage import money
from agent_core.session import Session
from bot.channels.chat.cards import took_words
from bot.channels.chat.history import media_lines, past_lines, shots_of
from bot.channels.chat.run_cards import describe_action, started_by, state_of
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import fail, run_async
from bot.channels.cli.files import check_new, write
from bot.channels.cli.terminal.console import Console, Text, err, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import before
from bot.desk.actors import Actor, BadRequest
from bot.desk.history_views import (
    HistoryAsked,
    HistoryPage,
    MediaKind,
    MediaView,
    PastRun,
    RecordedStep,
    RecordingView,
    ReplayView,
)
from bot.tools.replay.recording import covered
from bot.tools.replay.words import (
    action_of,
    facts_of,
    is_for_model,
    no_steps,
    outcome_of,
    part_of,
    result_of,
    role_word,
    ruled,
    text_of_message,
)

if TYPE_CHECKING:
    from agent_core.session import StepRecord
    from bot.channels.cli.commands.replay import ReplayOptions
    from bot.desk.desk import Desk

LISTED = 20
SHOWN_PHASES = ("observe", "model", "gate", "act", "step")


def show_list(as_json: bool) -> None:
    async def listed(desk: Desk, me: Actor) -> HistoryPage:
        return await desk.history.runs(me, HistoryAsked(), limit=LISTED)

    page, lang = with_desk(listed)
    words = texts(lang)
    if as_json:
        print_json([_plain_past(past) for past in page.runs])
        return
    console = Console()
    table = _two_columns()
    for past in page.runs:
        head, said = past_lines(past, words, whole=True)
        table.add_row(Text(f"#{past.number}"), Text(f"{head.text}\n{said.text}"))
    console.print(table if page.runs else Text(words.get("history.empty")))


def _two_columns() -> Table:
    """Return a table of a number and words of any length: Chinese has no spaces to break at, and must not be cut."""
    table = Table(show_header=False, box=None, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _plain_past(past: PastRun) -> dict[str, Any]:
    return asdict(past) | {
        "status": past.status.value,
        "at": past.at.isoformat(timespec="seconds"),
        "sent": [{"contact": contact, "text": text} for contact, text in past.sent],
    }


def show_run(wanted: ReplayOptions) -> None:
    """Show the steps, or one of them, and write the requested files."""
    films: list[tuple[MediaKind, Path]] = []
    if wanted.gif is not None:
        films.append(("gif", wanted.gif))
    if wanted.sheet is not None:
        films.append(("sheet", wanted.sheet))
    files = [*(file for _, file in films), *([wanted.html] if wanted.html else [])]

    async def looked(desk: Desk, me: Actor) -> tuple[ReplayView, RecordingView | None, MediaView | None]:
        from bot.tools.replay.media import MOST_FRAMES

        check_new(files, force=wanted.force)
        view = await desk.history.replay(me, wanted.run)
        recording = await _recording(desk, me, view, wanted)
        return view, recording, await desk.history.film(view.run.id, most=MOST_FRAMES) if films else None

    (view, recording, film), lang = with_desk(looked)
    words = texts(lang)
    if recording is not None and not wanted.raw:
        recording = covered(recording)
    if wanted.step is not None and recording is not None:
        _show_step(recording, wanted.step, words, as_json=wanted.as_json)
    elif wanted.as_json:
        print_json(_plain(view, recording))
    else:
        _show(view, recording, words)
    for kind, file in films if film is not None else ():
        _write_media(film, kind, file, words)
    if wanted.html is not None and recording is not None:
        _write_page(recording, wanted.html, words)


async def _recording(desk: Desk, me: Actor, view: ReplayView, wanted: ReplayOptions) -> RecordingView | None:
    """Return the recording if it is needed. Raises BadRequest if it is needed and there are no steps.

    A plan and a sweep have no steps of their own.
    """
    if (view.parts or view.run.sweep is not None) and not view.steps and wanted.step is None:
        session = Session(run_id=view.run.id, task=view.run.task, serial=view.run.serial)
        return RecordingView(view.number, view.run, session, (), view.parts) if wanted.html is not None else None
    needed = bool(view.steps) or wanted.html is not None or wanted.step is not None
    return await desk.history.recording(me, view.run.id) if needed else None


def _plain(view: ReplayView, recording: RecordingView | None) -> dict[str, Any]:
    """Return the run as plain data, with its steps."""
    run = view.run
    asked = {step.record.index: step.asked for step in recording.recorded if step.asked} if recording else {}
    return {
        "number": view.number,
        "id": run.id,
        "task": run.task,
        "status": run.status.value,
        "serial": run.serial,
        "by": run.by,
        "message": run.message,
        "notes": [note.model_dump() for note in run.notes],
        "created_at": run.created_at.isoformat(timespec="seconds") if run.created_at else None,
        "pictures": view.pictures,
        "recorded": len(asked),
        "parts": [
            {"number": part.number, "id": part.id, "task": part.task, "status": part.status.value}
            for part in view.parts
        ],
        "steps": [
            {
                **step.model_dump(mode="json"),
                "model": asked[step.index].model if step.index in asked else None,
                "profile": asked[step.index].profile if step.index in asked else None,
            }
            for step in view.steps
        ],
    }


def _show(view: ReplayView, recording: RecordingView | None, words: Texts) -> None:
    """Show the steps one below the other: the model's thinking and proposal, the action, and the result."""
    run, console = view.run, Console()
    console.print(Text(f"#{view.number} · {run.task}", style="bold"))
    if recording is not None:
        facts = facts_of(recording, words)
    else:
        seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
        facts = [
            words.get(state_of(run.status, left_to=run.left_to)),
            run.phone or run.serial,
            started_by(run, words),
            took_words(seconds, words),
        ]
    console.print(Text(" · ".join(fact for fact in facts if fact)))
    currency = recording.session.spent.currency if recording is not None else ""
    table = _two_columns()
    for step in view.steps:
        table.add_row(Text(str(step.index)), _told(step, words, currency))
    if view.steps:
        console.print(table)
    elif not view.parts and run.sweep is None:
        console.print(Text(no_steps(run, words)))
    for line in outcome_of(run, words):
        console.print(Text(line))
    _show_parts(view.parts, console, words)


def _show_parts(parts: Sequence[PastRun], console: Console, words: Texts) -> None:
    """List the runs of a plan or a sweep, and say how to show one of them."""
    if not parts:
        return
    console.print(Text(words.get("replay.parts"), style="bold"))
    table = _two_columns()
    for part in parts:
        table.add_row(Text(f"#{part.number}"), Text("\n".join(part_of(part, words))))
    console.print(table)
    console.print(Text(words.get("replay.part_how", number=parts[0].number), style="dim"))


def _told(step: StepRecord, words: Texts, currency: str = "") -> Text:
    proposed, done = action_of(step.asked, words), action_of(step.action, words)
    said = describe_action(words, step)
    if step.asked is not None and proposed != done:
        said = f"{proposed} → {said if done else words.get('replay.nothing_done')}"
    parts = [(said, "" if step.ok else "yellow" if step.asks else "red"), (step.thinking.strip(), "dim")]
    parts += [(f"{ruled(verdict, words)}\n{verdict.message}".rstrip(), "yellow") for verdict in step.verdicts]
    if result := result_of(step):
        label = before(words.get("replay.told_model"), words) if is_for_model(step) else ""
        if not step.ok and not label:
            result = words.typed(result)  # it may advise a command
        parts.append((f"{label}{result}", "dim" if step.ok or step.asks or label else "red"))
    parts.append((_costs(step, words, currency), "cyan"))
    told = Text()
    for part, style in parts:
        if part:  # a step in which the model did not answer has no action
            told.append(f"\n{part}" if told.plain else part, style)
    return told


def _costs(step: StepRecord, words: Texts, currency: str) -> str:
    """Return the seconds of the phases, the tokens, and their cost."""
    parts = [
        f"{words.get(f'timings.{name}')} {step.timings[name]:.2f} s" for name in SHOWN_PHASES if name in step.timings
    ]
    if step.tokens_in or step.tokens_out:
        parts.append(words.get("replay.tokens", tokens_in=step.tokens_in, tokens_out=step.tokens_out))
    if step.cost:
        parts.append(f"≈ {money(step.cost)} {currency}".rstrip())
    return " · ".join(parts)


def _show_step(view: RecordingView, index: int, words: Texts, *, as_json: bool) -> None:
    """Show one step with everything that was said, word for word."""
    step = next((step for step in view.steps if step.record.index == index), None)
    if step is None:
        said = f"Run {view.number} has no step {index}."
        fail(BadRequest(said, key="no_such_step", name=view.number, step=index, steps=len(view.steps)))
    if as_json:
        plain = step.record.model_dump(mode="json")
        asked = step.asked.model_dump(mode="json", exclude={"messages", "kept"}) if step.asked else None
        print_json({**plain, "asked_of_model": asked, "messages": list(step.messages)})
        return
    console = Console()
    console.print(Text(words.get("replay.step_head", step=index), style="bold"))
    console.print(_told(step.record, words, view.session.spent.currency))
    _show_messages(step, console, words)


def _show_messages(step: RecordedStep, console: Console, words: Texts) -> None:
    if step.asked is None:
        console.print(Text(words.get("replay.no_messages"), style="yellow"))
    for message in step.messages:
        console.print(Text(f"\n── {role_word(message, words)}", style="bold cyan"))
        console.print(Text(text_of_message(message, words)))
    if step.record.reply:
        console.print(Text(f"\n── {words.get('replay.reply')}", style="bold cyan"))
        console.print(Text(step.record.reply))


def _write_media(film: MediaView | None, kind: MediaKind, file: Path, words: Texts) -> None:
    """Write a file of exactly the wanted kind; exit with code 2 if it cannot be made or written."""
    from bot.tools.replay.media import make_media

    made = make_media(shots_of(film, words), kind) if film is not None else None
    if film is None or made is None:
        number = film.number if film is not None else ""
        fail(BadRequest("This run has no pictures.", key="no_pictures_kept", name=number))
    if kind == "gif" and made.kind != "gif":
        fail(BadRequest("No GIF can be made of this run.", key="no_gif"))
    _write(file, made.files[0])
    written = words.get("replay.written", file=str(file), frames=made.frames, size=made.total / 1e6)
    lines = media_lines(film, made, kind, words)[2:]
    err.print("\n".join([written, *(line.text for line in lines)]))


def _write_page(view: RecordingView, file: Path, words: Texts) -> None:
    from bot.tools.replay.page import page_of

    page = page_of(view, words).encode()
    _write(file, page)
    written = words.get("replay.wrote", file=str(file), size=len(page) / 1e6)
    err.print(written)


def _write(file: Path, data: bytes) -> None:
    async def written() -> None:
        write(file, data)

    run_async(written)
