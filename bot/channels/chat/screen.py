"""A phone's screen: as a photo, as a file in full resolution, or with its reading."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from agent_core.perception.marks import to_jpeg
from agent_core.perception.page_report import MessageReport, PageReport, ReadPage, mark_page, report
from bot.channels.chat.cards import Button, Card, Document, Line, screen_action
from bot.channels.chat.commands import unquoted
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn

if TYPE_CHECKING:
    from PIL import Image

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


# The reading, also for the terminal -----------------------------------------------------------------------------------


def marked(image: Image.Image, page: ReadPage, words: Texts) -> Image.Image:
    """Return a copy of the screenshot with a labelled box around each part that was read."""
    return mark_page(image, page, lambda key: words.get(f"reading.{key}"))


def page_lines(page: PageReport, app: str, words: Texts) -> tuple[Line, ...]:
    """Return the summary of a ``page``, which was read as a page of ``app``."""
    lines = [Line(words.get(f"reading.page_{page.page.value}", app=app), words.get("reading.page"))]
    if page.title is not None:
        title = page.title.text or words.get("reading.nothing")
        if page.title.group:
            title = words.get("reading.group", name=title)
        lines.append(Line(_doubted(title, page.title.sure, words), words.get("reading.title")))
        lines += [Line(_message(index, page, words)) for index in range(len(page.messages))]
        lines.append(Line(_asked(page, words), words.get("reading.question")))
        lines.append(Line(_input(page, words), words.get("reading.input")))
    if page.send is not None:
        lines.append(Line(words.get(f"reading.send_{page.send.state.value}"), words.get("reading.send")))
    for row in page.rows:
        name = row.name
        if row.unread:
            name = words.get("reading.row_dot" if row.dot else "reading.row_unread", name=name, count=row.unread)
        lines.append(Line(row.preview, name))
    lines += [Line(doubt, words.get("reading.doubt")) for doubt in page.doubts]
    return tuple(lines)


def _message(index: int, page: PageReport, words: Texts) -> str:
    message: MessageReport = page.messages[index]
    side, kind = words.get(f"reading.{message.side.value}"), words.get(f"reading.kind_{message.kind.value}")
    said = f"{index + 1}. {side} · {kind}"
    if message.text:
        said = words.get("reading.said", who=said, text=message.text)
    mark = "▶ " if index in page.question else ""
    return mark + _doubted(said, message.sure, words)


def _asked(page: PageReport, words: Texts) -> str:
    if not page.question:
        return words.get("reading.nothing_asked")
    return words.get("reading.asked", numbers=words.get("help.between").join(str(index + 1) for index in page.question))


def _input(page: PageReport, words: Texts) -> str:
    if page.input is None:
        return words.get("reading.no_input")
    return _doubted(page.input.text or words.get("reading.empty"), page.input.sure, words)


def _doubted(text: str, sure: bool, words: Texts) -> str:
    return text if sure else words.get("reading.unsure", text=text)


SUBJECT = Subject(commands={"screen": screen}, buttons={"screen": _button})
