"""A phone's screen: as a photo, as a file in full resolution, or with its reading."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

from agent_core.perception.marks import to_jpeg
from bot.channels.chat.cards import Button, Card, Document, Line, screen_action
from bot.channels.chat.commands import unquoted
from bot.channels.chat.page_reading import marked, page_lines
from bot.channels.chat.turn import Said, Subject, Turn

Wish = Literal["", "file", "read"]

_WISHES: dict[str, Wish] = {
    **dict.fromkeys(("file", "full", "文件", "原图"), "file"),
    **dict.fromkeys(("read", "识别", "解读"), "read"),
}


def read_screen(rest: str) -> tuple[str, Wish]:
    """Read ``[PHONE] [file|read]``. Return the phone as it was written, "" for none, and the form, "" for a photo."""
    words = rest.split()
    wish = _WISHES.get(words[-1].lower(), "") if words else ""
    return unquoted(" ".join(words[:-1] if wish else words)), wish


async def screen(turn: Turn) -> Said:
    """Handle ``/screen``."""
    words = turn.texts
    serial, wish = read_screen(turn.rest)
    serial = serial or turn.incoming.phone
    if wish == "read":
        return await _read(turn, serial)
    picture = await turn.desk.phones.screenshot(turn.actor, serial or None, full=wish == "file")
    lines = await _phone_lines(turn, serial)
    if wish == "file":
        name = f"screen-{turn.now:%Y%m%d-%H%M%S}.jpg"
        return turn.say(Card(words.get("screen.title"), lines, document=Document(name, picture)))
    again = Button(screen_action(serial), words.get("button.screen"))
    full = Button(screen_action(serial, "file"), words.get("button.screen_file"))
    return turn.say(Card(words.get("screen.title"), lines, picture, ((again, full),)))


async def _read(turn: Turn, serial: str) -> Said:
    """Show the screen with boxes around the texts that were read, and a summary."""
    from agent_core.perception.page_report import report

    words = turn.texts
    seen = await turn.desk.phones.page(turn.actor, serial or None)
    picture = await asyncio.to_thread(lambda: to_jpeg(marked(seen.image, seen.page, words)))
    lines = (*await _phone_lines(turn, serial), *page_lines(report(seen.page, words.lang), seen.app, words))
    again = Button(screen_action(serial, "read"), words.get("button.screen_read"))
    photo = Button(screen_action(serial), words.get("button.screen"))
    return turn.say(Card(words.get("screen.read_title"), lines, picture, ((again, photo),)))


async def _phone_lines(turn: Turn, serial: str) -> tuple[Line, ...]:
    return tuple(Line(name) for name in await turn.desk.phones.names((serial,))) if serial else ()


async def _button(turn: Turn, value: str) -> Said:
    """Handle a button: ``SERIAL``, ``SERIAL file`` or ``SERIAL read``."""
    return await screen(replace(turn, rest=value))


SUBJECT = Subject(commands={"screen": screen}, buttons={"screen": _button})
