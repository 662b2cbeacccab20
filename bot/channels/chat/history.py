"""Past runs in the chat: pages of them, single ones, and their pictures as a GIF, an album or a sheet."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.texts import Listed
from bot.channels.chat.cards import (
    ELSEWHERE,
    ENTRIES_A_PAGE,
    Button,
    Card,
    Document,
    Line,
    ReplayOrder,
    cut,
    in_rows,
    took_words,
    turning,
)
from bot.channels.chat.commands import rest_of, times_of
from bot.channels.chat.questions import question_title
from bot.channels.chat.run_cards import describe_action, started_by, state_of, unanswered_words
from bot.channels.chat.sweeps import card_of, message_in_words, outcome_line
from bot.channels.chat.texts import Texts, texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.actors import AccessDenied, NotFound
from bot.desk.history_views import FrameView, HistoryAsked, HistoryPage, MediaKind, MediaView, PastRun
from bot.tools.replay.media import MOST_FRAMES, ReplayMedia, StepPicture, make_media

if TYPE_CHECKING:
    from bot.desk.history import DeskHistory

MOST_NAMED = 100  # characters of the list of steps that a replay leaves out

_STATUSES = {
    "failed": "failed", "失败": "failed", "没成功": "failed",
    "done": "succeeded", "succeeded": "succeeded", "成功": "succeeded", "完成": "succeeded", "已完成": "succeeded",
    "stopped": "stopped", "停止": "stopped", "已停止": "stopped",
    "waiting": "waiting", "等待": "waiting", "running": "running", "执行中": "running", "queued": "queued",
    "排队": "queued",
}  # fmt: skip
_CONTACT = re.compile(r"(?:contact|联系人)\s*[:：]?\s*(.+)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"[#＃]?\d+", re.ASCII)
_KINDS: dict[str, MediaKind] = {
    "gif": "gif", "film": "gif", "动图": "gif",
    "album": "album", "photos": "album", "相册": "album", "图片": "album",
    "sheet": "sheet", "拼图": "sheet", "总览": "sheet",
}  # fmt: skip


def read_asking(rest: str) -> HistoryAsked:
    """Read ``[today|week|7d|2026-11-01] [failed|done|stopped] [NAME OR WORDS]`` in any order."""
    asked, words = HistoryAsked(), []
    for word in rest.split():
        plain = word.lower()
        if times := times_of(plain):
            asked = replace(asked, since=times.since, until=times.until or asked.until)
        elif plain in _STATUSES:
            asked = replace(asked, status=_STATUSES[plain])
        else:
            words.append(word)
    said = " ".join(words)
    if named := _CONTACT.fullmatch(said):
        return replace(asked, contact=named[1].strip())
    return replace(asked, words=said)


def read_replay(rest: str) -> tuple[str, MediaKind]:
    """Read ``[NUMBER OR ID] [gif|album|sheet]``. Return the run's name ("" for the newest) and the form."""
    names, kind = [], None
    for word in rest.split():
        known = _KINDS.get(word.lower())
        if known is None:
            names.append(word)
        kind = known or kind
    return " ".join(names), kind or "gif"


# Commands and buttons -------------------------------------------------------------------------------------------------


async def history(turn: Turn) -> Said:
    """Handle ``/history``. A number alone opens the run that has it; if none does, it is a word to search for."""
    if _NUMBER.fullmatch(turn.rest.strip()):
        with suppress(NotFound, AccessDenied):
            return await _open(turn, turn.rest)
    asked = read_asking(turn.rest)
    page = await turn.desk.history.runs(turn.actor, asked, limit=ENTRIES_A_PAGE)
    return turn.say(_page_card(turn.texts, page, turn.rest.strip(), any_at_all=asked == HistoryAsked()))


async def _turn_page(turn: Turn, value: str) -> Said:
    """Show another page: ``b12:week failed`` is the page before run 12, ``a12:…`` the one after it."""
    place, _, rest = value.partition(":")
    is_lost = rest == ELSEWHERE and not (rest := rest_of(turn.incoming.subject))
    if is_lost or not place[1:].isdecimal():
        return Said(toast=turn.texts.get("history.lost"), alert=True)
    number = int(place[1:])
    before, after = (number, None) if place[0] == "b" else (None, number)
    page = await turn.desk.history.runs(turn.actor, read_asking(rest), before=before, after=after, limit=ENTRIES_A_PAGE)
    return turn.change(_page_card(turn.texts, page, rest, any_at_all=False))


async def _open(turn: Turn, value: str) -> Said:
    run = await turn.desk.history.run(turn.actor, value)
    return turn.say(card_of(run, turn.texts, now=turn.now))


async def replay(turn: Turn) -> Said:
    """Handle ``/replay``."""
    name, kind = read_replay(turn.rest)
    return await _replay(turn, name, kind)


async def _replay_button(turn: Turn, value: str) -> Said:
    said = await _replay(turn, value, "gif")
    filmed = said.messages[0].card.film is not None
    if filmed:
        return replace(said, toast=turn.texts.get("replay.making"))
    return Said(toast=said.messages[0].card.title, alert=True)


async def _replay(turn: Turn, name: str, kind: MediaKind) -> Said:
    words = turn.texts
    view = await turn.desk.history.replay(turn.actor, name)
    if not view.pictures:
        return turn.tell(words.get("replay.gone" if view.gone else "replay.none", number=view.number), view.run.task)
    title = words.get("replay.title", number=view.number)
    card = Card(title, (Line(words.get("replay.making")),), film=ReplayOrder(view.run.id, kind, words.lang))
    return Said((Outgoing(card, turn.chat, turn.incoming.message_id),))


# Pages ----------------------------------------------------------------------------------------------------------------


def _page_card(words: Texts, page: HistoryPage, rest: str, *, any_at_all: bool) -> Card:
    if not page.runs:
        empty = words.get("history.empty" if any_at_all else "history.empty_filtered")
        return Card(empty, (Line(words.get("history.usage")),))
    lines = [Line(words.get("history.total", total=page.total))]
    for run in page.runs:
        lines += past_lines(run, words)
    buttons = [Button(f"past:{run.id}", f"#{run.number}") for run in page.runs]
    return Card(words.get("history.title"), tuple(lines), None, in_rows(buttons) + _turning(words, page, rest))


def past_lines(run: PastRun, words: Texts, *, whole: bool = False) -> list[Line]:
    """Return a run's lines in a list: its time, state, phone and requester; its task, and the texts sent.

    whole: do not cut the run's last message, which may say what to do.
    """
    took = took_words(run.seconds, words)
    state = words.get(state_of(run.status, held=run.held, left_to=run.left_to))
    head = " · ".join(part for part in (f"{run.at:%m-%d %H:%M}", state, run.phone, origin_of(run, words), took) if part)
    colon = words.get("common.colon")
    said = [cut(run.task, 60), *(f"→ {cut(contact, 20)}{colon}{cut(text, 60)}" for contact, text in run.sent[:2])]
    if more := len(run.sent) - 2:
        said += [words.get("history.more_sent", count=more)] if more > 0 else []
    told = [" ".join(words.typed(line).split()) if whole else cut(line, 60) for line in ending_of(run, words)]
    said += [] if run.sent else told
    if run.unanswered:
        said.append(unanswered_words(run.unanswered, words, some=bool(run.sent)))
    return [Line(head, f"#{run.number}"), Line("\n".join(said), "", "quote")]


def origin_of(run: PastRun, words: Texts) -> str:
    """Return where a run comes from: the plan that it is a part of, or who or what started it."""
    return words.get("history.in_plan", number=run.plan) if run.plan else started_by(run, words)


def ending_of(run: PastRun, words: Texts) -> list[str]:
    """Return how a run ended: of a sweep what became of its contacts, and the run's last message."""
    swept = outcome_line(run.status, run.sweep, words) if run.sweep is not None else ""
    message = message_in_words(run, words) or (words.get("plan.interrupted") if run.cut_off else "")
    return [line for line in (swept, message) if line]


def _turning(words: Texts, page: HistoryPage, rest: str) -> tuple[tuple[Button, ...], ...]:
    newer = page.runs[0].number if page.newer else None
    older = page.runs[-1].number if page.older else None
    return turning("history", rest, words, newer=newer, older=older)


# Films ----------------------------------------------------------------------------------------------------------------


async def media_card(desk: DeskHistory, order: ReplayOrder) -> Card:
    """Make a replay, and return its card. This takes seconds, in a thread and not in the event loop."""
    words = texts(order.lang)
    view = await desk.film(order.run_id, most=MOST_FRAMES)
    film = await asyncio.to_thread(make_media, shots_of(view, words), order.kind)
    title = words.get("replay.title", number=view.number)
    if film is None:
        key = "replay.gone" if view.gone else "replay.none"
        return Card(words.get(key, number=view.number), (Line(view.run.task),))
    lines = media_lines(view, film, order.kind, words)
    if film.kind == "gif":
        return Card(title, lines, animation=Document(f"run-{view.number}.gif", film.files[0]))
    if film.kind == "album":
        return Card(title, lines, album=film.files)
    return Card(title, lines, film.files[0])


def shots_of(view: MediaView, words: Texts) -> list[StepPicture]:
    """Return the pictures of a run with their captions."""
    return [_shot(frame, view.run.steps, words) for frame in view.frames]


def _shot(frame: FrameView, steps: int, words: Texts) -> StepPicture:
    if frame.step is not None:
        step = frame.step
        title = f"{step.index}/{max(steps, step.index)} {describe_action(words, step)}"
        return StepPicture(frame.picture, title, step.thinking or step.result, str(step.index))
    if frame.question is not None:
        return StepPicture(frame.picture, question_title(frame.question, words), frame.question.text)
    state = words.get(f"answer_state.{frame.state}") if frame.state else ""
    return StepPicture(frame.picture, " · ".join(part for part in (state, frame.contact) if part), frame.text)


def media_lines(view: MediaView, film: ReplayMedia, wanted: MediaKind, words: Texts) -> tuple[Line, ...]:
    """Return the content of a replay, and the steps that it leaves out."""
    lines = [
        Line(view.run.task, words.get("card.task")),
        Line(words.get(state_of(view.run.status, held=view.run.held, left_to=view.run.left_to))),
    ]
    if film.kind != wanted:
        lines.append(Line(words.get(f"replay.as_{film.kind}")))
    left_out = {*view.left_out, *map(int, film.left_out)}
    if left_out:
        named = ranges(sorted(left_out))
        many = len(named) > MOST_NAMED
        key = "replay.left_out_many" if many else "replay.left_out"
        lines.append(Line(words.get(key, steps=named, count=len(left_out))))
    if view.gone:
        lines.append(Line(words.get("replay.gone_steps", steps=ranges(view.gone))))
    return tuple(lines)


def ranges(numbers: Sequence[int]) -> str:
    """Return ``1–3, 7`` for 1, 2, 3, 7. The numbers must be in ascending order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return Listed(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


SUBJECT = Subject(
    commands={"history": history, "replay": replay},
    buttons={"history": _turn_page, "past": _open, "replay": _replay_button},
)
