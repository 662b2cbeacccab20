"""The reading of a screen, for the terminal and the chat: a summary, and the picture with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.channels.chat.cards import Line
from bot.channels.chat.texts import Texts

if TYPE_CHECKING:
    from PIL import Image

    from agent_core.perception.page_report import MessageReport, PageReport, ReadPage


def marked(image: Image.Image, page: ReadPage, words: Texts) -> Image.Image:
    """Return a copy of the screenshot with a labelled box around each part that was read."""
    from agent_core.perception.page_report import mark_page

    return mark_page(image, page, lambda key: words.get(f"reading.{key}"))


def page_lines(report: PageReport, app: str, words: Texts) -> tuple[Line, ...]:
    """Return the summary of a ``report``, which was read as a page of ``app``."""
    lines = [Line(words.get(f"reading.page_{report.page.value}", app=app), words.get("reading.page"))]
    if report.title is not None:
        title = report.title.text or words.get("reading.nothing")
        if report.title.group:
            title = words.get("reading.group", name=title)
        lines.append(Line(_doubted(title, report.title.sure, words), words.get("reading.title")))
    if report.title is not None:
        lines += [Line(_message(index, report, words)) for index in range(len(report.messages))]
        lines.append(Line(_asked(report, words), words.get("reading.question")))
        lines.append(Line(_input(report, words), words.get("reading.input")))
    if report.send is not None:
        lines.append(Line(words.get(f"reading.send_{report.send.state.value}"), words.get("reading.send")))
    for row in report.rows:
        name = row.name
        if row.unread:
            name = words.get("reading.row_dot" if row.dot else "reading.row_unread", name=name, count=row.unread)
        lines.append(Line(row.preview, name))
    lines += [Line(doubt, words.get("reading.doubt")) for doubt in report.doubts]
    return tuple(lines)


def _message(index: int, report: PageReport, words: Texts) -> str:
    message: MessageReport = report.messages[index]
    side, kind = words.get(f"reading.{message.side.value}"), words.get(f"reading.kind_{message.kind.value}")
    said = f"{index + 1}. {side} · {kind}"
    if message.text:
        said = words.get("reading.said", who=said, text=message.text)
    mark = "▶ " if index in report.question else ""
    return mark + _doubted(said, message.sure, words)


def _asked(report: PageReport, words: Texts) -> str:
    if not report.question:
        return words.get("reading.nothing_asked")
    return words.get(
        "reading.asked", numbers=words.get("help.between").join(str(index + 1) for index in report.question)
    )


def _input(report: PageReport, words: Texts) -> str:
    if report.input is None:
        return words.get("reading.no_input")
    return _doubted(report.input.text or words.get("reading.empty"), report.input.sure, words)


def _doubted(text: str, sure: bool, words: Texts) -> str:
    return text if sure else words.get("reading.unsure", text=text)
