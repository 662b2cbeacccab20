"""What a phone shows now, as a photo or, with every pixel, as a file."""

from __future__ import annotations

from dataclasses import replace

from bot.chat.cards import Button, Card, Document, Line, screen_action
from bot.chat.commands import unquoted
from bot.chat.turn import Said, Subject, Turn

_FILE = {"file", "full", "文件", "原图"}


def read_screen(rest: str) -> tuple[str, bool]:
    """``[PHONE] [file]``: the phone's serial, "" for none, and whether a file is wanted."""
    words = rest.split()
    file = bool(words) and words[-1].lower() in _FILE
    return unquoted(" ".join(words[:-1] if file else words)), file


async def screen(turn: Turn) -> Said:
    words = turn.texts
    serial, file = read_screen(turn.rest)
    serial = serial or turn.incoming.phone
    picture = await turn.desk.screenshot(turn.actor, serial or None, full=file)
    lines = tuple(Line(name) for name in await turn.desk.phone_names((serial,))) if serial else ()
    if file:
        name = f"screen-{turn.now:%Y%m%d-%H%M%S}.jpg"
        return turn.say(Card(words.get("screen.title"), lines, document=Document(name, picture)))
    again = Button(screen_action(serial), words.get("button.screen"))
    full = Button(screen_action(serial, file=True), words.get("button.screen_file"))
    return turn.say(Card(words.get("screen.title"), lines, picture, ((again, full),)))


async def _button(turn: Turn, value: str) -> Said:
    """``SERIAL`` or ``SERIAL file``."""
    return await screen(replace(turn, rest=value))


SUBJECT = Subject(commands={"screen": screen}, buttons={"screen": _button})
