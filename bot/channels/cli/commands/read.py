"""``phonedesk read``: shows how the reader reads one screenshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.errors import PhonedeskError
from bot.app import logs
from bot.channels.cli.commands.common import app_profile, fail, run_async
from bot.channels.cli.commands.output import Json
from bot.channels.cli.files import written
from bot.channels.cli.terminal.console import Console, print_json
from bot.channels.cli.terminal.language import spoken_language, texts

if TYPE_CHECKING:
    from agent_core.apps.profile import AppProfile
    from agent_core.devices.base import Frame
    from agent_core.perception.page_report import ReadPage


def read(
    picture: Path,
    app: str = "",
    tree: Path | None = None,
    marks: Path | None = None,
    as_json: Json = False,
) -> None:
    """Show the reading of one screenshot: whose chat it is, the messages, the question, the input."""
    from agent_core.perception.page_report import report

    logs.configure("warning")
    try:
        profile = app_profile(app)
        frame, page = _read(picture, tree, profile)
        if marks is not None:
            _write_marks(marks, frame, page)
    except PhonedeskError as error:
        fail(error)
    if as_json:
        print_json(report(page).model_dump(mode="json"))
        return
    from bot.channels.chat.screen import page_lines
    from bot.channels.cli.terminal.render import before

    words = texts(spoken_language())
    console = Console(soft_wrap=True)
    for line in page_lines(report(page, words.lang), profile.name, words):
        said = f"{before(line.label, words)}{line.text}"
        console.print(said)


def _read(picture: Path, tree: Path | None, profile: AppProfile) -> tuple[Frame, ReadPage]:
    from agent_core.perception.ocr import OcrEngine
    from agent_core.perception.page_files import load_dump, load_picture
    from agent_core.perception.page_report import read_page
    from agent_core.perception.reader import ScreenReader

    frame = load_picture(picture)
    nodes = load_dump(tree, frame.size) if tree is not None else None
    reader = ScreenReader(ocr=OcrEngine(), model=None)
    return frame, run_async(lambda: read_page(reader, frame, nodes, profile))


def _write_marks(place: Path, frame: Frame, page: ReadPage) -> None:
    from bot.channels.chat.screen import marked

    shown = marked(frame.image, page, texts(spoken_language()))
    with written(place) as out:
        shown.save(out, "PNG")
