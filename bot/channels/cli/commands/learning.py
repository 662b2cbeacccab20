"""``phonedesk apps learn`` at the terminal: its messages, its questions and the stored result."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent_core.apps.learning import TriedInput
from agent_core.apps.learnt import PARTS, LearntApp, Part, SendsBy
from agent_core.apps.profile import AppProfile
from agent_core.perception.page_report import report
from agent_core.texts import say
from bot.app.core import open_core
from bot.app.learning import CoreLearning
from bot.app.settings.layers import Settings
from bot.channels.chat.learning import result_lines, shown_lines, shown_picture
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.files import written
from bot.channels.cli.terminal.console import Console, err
from bot.channels.cli.terminal.input import read_line
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import before
from bot.desk.learning import ShownChat
from storage.people import TERMINAL

_YES = {"y", "yes", "j", "是", "对", "好", "1"}
_NO = {"n", "no", "否", "不", "不对", "2"}
_WAYS: dict[str, SendsBy] = {"1": "enter", "2": "keyboard_key", "3": "button"}


async def learn_in_terminal(
    settings: Settings,
    app: AppProfile,
    chat: str,
    *,
    serial: str,
    here: bool,
    allow_send: bool,
    marks: Path | None,
    quiet: bool,
) -> tuple[Exit, dict[str, Any]]:
    """Go through it with the person at the terminal; return the exit code, and the result as JSON data.

    quiet: standard output is for JSON; messages for people go to standard error.
    """
    words = texts(settings.lang)
    console = err if quiet else Console(soft_wrap=True)
    async with open_core(settings) as core:
        learning = CoreLearning(core, interruptible=True)
        shown = await learning.show(app, chat, serial=serial, here=here)
        place = marks or settings.data_dir / f"learn-{app.key}.png"
        _write_marks(place, shown, words)
        told = _told(shown, place)
        _show(console, shown, words, place)
        right = await _yes(console, words, "learn.confirm")
        if right is None:
            return Exit.WAITING, {**told, "status": "waiting"}
        if not right:
            wrong = await _what_is_wrong(console, words, shown)
            for part in wrong:
                await learning.correct(shown, part, person=TERMINAL)
            return Exit.FAILED, {**told, "status": "wrong", "wrong": wrong}
        send = allow_send or bool(await _yes(console, words, "learn.may_send", contact=shown.contact))
        tried = await learning.try_input(shown, words.get("learn.text"), send=send)
        sends_by = await _confirmed(console, words, tried)
        if sends_by is None:
            return Exit.WAITING, {**told, "status": "waiting", "sends_by": tried.sends_by, "sent": tried.sent}
        learnt = await learning.keep(shown, sends_by, person=TERMINAL)
        for line in result_lines(learnt, app.name_in(words.lang), tried, words):
            console.print(line)
        return Exit.OK, {**told, "status": "learnt", **_kept(learnt), "sent": tried.sent}


def _show(console: Console, shown: ShownChat, words: Texts, place: Path) -> None:
    for line in shown_lines(shown, words):
        said = f"{before(line.label, words)}{line.text}"
        console.print(said)
    console.print(words.get("learn.picture", file=str(place)))


async def _what_is_wrong(console: Console, words: Texts, shown: ShownChat) -> list[Part]:
    """Ask which parts were read wrongly; several numbers may be given."""
    console.print(words.get("learn.what_is_wrong"))
    for number, part in enumerate(PARTS, 1):
        console.print(f"{number}  {say(words.lang, f'wrong.{part}')}")
    line = (await read_line(console)) or ""
    chosen = [int(word) for word in re.findall(r"\d+", line)]
    wrong = [PARTS[number - 1] for number in dict.fromkeys(chosen) if 0 < number <= len(PARTS)] or [PARTS[-1]]
    for part in wrong:
        said = words.get("learn.noted", what=say(words.lang, f"wrong.{part}"))
        console.print(said)
    console.print(words.get("learn.send_a_kit", app=shown.app.key))
    return wrong


async def _confirmed(console: Console, words: Texts, tried: TriedInput) -> SendsBy | None:
    """Return the control that sends, as observed or as the person says; None at the end of the input."""
    if tried.sends_by == "button" or tried.sent:
        return tried.sends_by
    console.print(words.get("learn.no_button"))
    for number, way in _WAYS.items():
        guess = words.get("learn.guess") if way == tried.sends_by else ""
        console.print(f"{number}  {words.get(f'learn.by_{way}')}{guess}")
    while True:
        line = await read_line(console)
        if line is None:
            return None
        if line.strip() in _WAYS:
            return _WAYS[line.strip()]
        if not line.strip():
            return tried.sends_by
        console.print(words.get("learn.one_of", choices=" / ".join(_WAYS)))


async def _yes(console: Console, words: Texts, key: str, **values: object) -> bool | None:
    console.print(words.get(key, **values))
    while True:
        line = await read_line(console)
        if line is None:
            console.print()
            return None
        said = line.strip().casefold()
        if said in _YES or said in _NO:
            return said in _YES
        console.print(words.get("learn.one_of", choices="y / n"))


def _write_marks(place: Path, shown: ShownChat, words: Texts) -> None:
    with written(place) as out:
        shown_picture(shown, words).save(out, "PNG")


def _told(shown: ShownChat, place: Path) -> dict[str, Any]:
    return {
        "serial": shown.serial,
        "app": shown.app.key,
        "version": shown.version,
        "contact": shown.contact,
        "page": report(shown.page.page).model_dump(mode="json"),
        "list": report(shown.listed.page).model_dump(mode="json") if shown.listed else None,
        "look": asdict(shown.look),
        "tree": shown.tree,
        "marks": str(place),
    }


def _kept(learnt: LearntApp) -> dict[str, Any]:
    return {
        "sends_by": learnt.sends_by,
        "confirmed_by": learnt.confirmed_by,
        "confirmed_at": learnt.confirmed_at,
    }
