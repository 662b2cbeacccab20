"""The format of a screen kit; reads and writes its file, draws its page, and reads that with the picture reader.

Coordinates are pixels of the screen. Errors about a file are InputRejected and name it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal, Self

from PIL import Image, ImageDraw
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Node
from agent_core.errors import InputRejected
from agent_core.geometry import Box
from agent_core.perception.compare import normalise
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.page_report import PageKind, PageReport, PixelBox, read_page, report
from agent_core.perception.reader import ScreenReader
from agent_core.texts.layout import font

SHORTEST, LONGEST = 240, 8000  # pixels of a side
MOST_TIMES = 3  # as long as wide
MOST_BYTES = 4 * 1024 * 1024
MOST_TEXTS, MOST_NODES, MOST_BANDS, MOST_COLORS = 2000, 5000, LONGEST, 256

Color = Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")]
Words = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(max_length=200, pattern=r"^[\w.:/$-]*$")]
Pixels = Annotated[int, Field(gt=0, le=LONGEST)]
_MIDDLE = 0.38  # of the font's size: half the height of a Chinese character above the baseline


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Band(_Part):
    """Rows that look alike. ``runs``: width and colour index, from the left; together as wide as the screen."""

    rows: Pixels
    runs: Annotated[tuple[tuple[Pixels, Annotated[int, Field(ge=0)]], ...], Field(min_length=1, max_length=LONGEST)]


class TextPart(_Part):
    """One line of text, in pixels.

    left: where its letters begin.
    middle: half their height.
    size: the font's.
    """

    left: Annotated[int, Field(ge=0, le=LONGEST)]
    middle: Annotated[int, Field(ge=0, le=LONGEST)]
    size: Annotated[int, Field(ge=6, le=400)]
    color: Color
    text: Annotated[str, Field(min_length=1, max_length=400)]


class NodePart(_Part):
    """One node of the accessibility tree."""

    box: PixelBox
    text: Words = ""
    description: Words = ""
    id: Name = ""  # complete, with the package
    kind: Name = ""  # the class
    clickable: bool = False
    focused: bool = False


class Kit(_Part):
    """One page. ``page`` is the report that a reader should give; its boxes and doubts are for people only."""

    format: Literal[1] = 1
    app: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")]
    version: Annotated[str, Field(max_length=40, pattern=r"^[\w.() -]*$")] = ""  # of the app; "" if unknown
    activity: Name = ""
    size: tuple[Pixels, Pixels]
    page: PageReport
    colors: Annotated[tuple[Color, ...], Field(min_length=1, max_length=MOST_COLORS)]
    ground: Annotated[tuple[Band, ...], Field(min_length=1, max_length=MOST_BANDS)]
    texts: Annotated[tuple[TextPart, ...], Field(max_length=MOST_TEXTS)] = ()
    nodes: Annotated[tuple[NodePart, ...], Field(max_length=MOST_NODES)] | None = None  # None: no tree was given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        short, long = min(self.size), max(self.size)
        if short < SHORTEST or long > MOST_TIMES * short:
            raise ValueError(f"{self.size[0]}×{self.size[1]} pixels is no phone's screen")
        if sum(band.rows for band in self.ground) != self.size[1]:
            raise ValueError("the rows of ground do not add up to the screen's height")
        for band in self.ground:
            if sum(width for width, _ in band.runs) != self.size[0]:
                raise ValueError("the runs of a band do not add up to the screen's width")
            if any(color >= len(self.colors) for _, color in band.runs):
                raise ValueError("a run names a colour that is not in colors")
        return self

    def tree(self, package: str) -> tuple[Node, ...] | None:
        """Return the nodes as a device gives them; None if the kit has none."""
        if self.nodes is None:
            return None
        return tuple(
            Node(
                box=Box(*node.box),
                text=node.text,
                description=node.description,
                resource_id=node.id,
                class_name=node.kind,
                package=package,
                clickable=node.clickable,
                focused=node.focused,
            )
            for node in self.nodes
        )


def load_kit(path: Path) -> Kit:
    """Read a kit's file. Raises InputRejected if it is too large, no JSON, or not in the format."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refused(path, f"it is larger than {MOST_BYTES // 2**20} MB")
        written = path.read_bytes()
    except OSError as error:
        raise InputRejected(
            f"{path} cannot be read: {error.strerror or error}.",
            advice="Check the name and the rights of the file.",
            key="file_unreadable",
            file=str(path),
            why=error,
        ) from error
    try:
        return Kit.model_validate_json(written)
    except ValidationError as error:
        raise _refused(path, _first_problem(error)) from error


def kit_text(kit: Kit) -> str:
    """Return a kit as its file contains it, one part per line. Raises InputRejected if it would be too large."""
    data = kit.model_dump(mode="json", exclude_defaults=True) | {"format": kit.format}
    if "rows" not in data["page"]:
        data["page"] = kit.page.model_dump(mode="json")
    lines = [f"{_json(name)}: {_value(name, data[name])}" for name in Kit.model_fields if name in data]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if len(text.encode()) > MOST_BYTES:
        raise _refused(kit.app, "the screen is too restless to be written as areas of colour")
    return text


def differences(wanted: PageReport, seen: PageReport) -> list[str]:
    """Return the fields in which a reading differs from what it should be.

    Boxes, doubts and certainty are not compared, nor is the width of a sign: a recogniser takes ？ for ?.
    """
    pairs: list[tuple[str, object, object]] = [("page", wanted.page, seen.page)]
    pairs.append(("title", _title(wanted), _title(seen)))
    mine = [(message.side.value, message.kind.value, normalise(message.text)) for message in wanted.messages]
    theirs = [(message.side.value, message.kind.value, normalise(message.text)) for message in seen.messages]
    pairs += [("messages", mine, theirs), ("question", wanted.question, seen.question)]
    pairs.append(("input", wanted.input and wanted.input.text, seen.input and seen.input.text))
    pairs.append(("send", wanted.send and wanted.send.state.value, seen.send and seen.send.state.value))
    if wanted.page is PageKind.LIST:
        pairs.append(("rows", [(r.name, r.unread) for r in wanted.rows], [(r.name, r.unread) for r in seen.rows]))
    return [f"{name}: {one!r}, read {other!r}" for name, one, other in pairs if one != other]


def _title(page: PageReport) -> tuple[str, bool] | None:
    return (page.title.text, page.title.group) if page.title else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _value(name: str, value: object) -> str:
    if name in ("ground", "texts", "nodes") and isinstance(value, Sequence):
        return "[\n" + ",\n".join(_json(part) for part in value) + "\n]"
    if name == "page":
        return json.dumps(value, ensure_ascii=False, indent=1)
    return _json(value)


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _refused(path: Path | str, why: str) -> InputRejected:
    return InputRejected(
        f"{path} is no screen kit: {why}.",
        advice="Write it again with phonedesk apps export.",
        key="no_kit",
        file=str(path),
        why=why,
    )


def draw_kit(kit: Kit) -> Image.Image:
    """Return the kit's page as an RGB picture of its size."""
    image = Image.new("RGB", kit.size)
    draw = ImageDraw.Draw(image)
    top = 0
    for band in kit.ground:
        left = 0
        for width, color in band.runs:
            draw.rectangle((left, top, left + width - 1, top + band.rows - 1), fill=kit.colors[color])
            left += width
        top += band.rows
    for part in kit.texts:
        place = (part.left, part.middle + round(part.size * _MIDDLE))
        draw.text(place, part.text, font=font(part.size), fill=part.color, anchor="ls")
    return image


async def read_kit(kit: Kit) -> PageReport:
    """Draw a kit's page and read the picture. Raises ExtraMissing if OCR is not installed."""
    image = draw_kit(kit)
    frame = Frame(image, blake2b(image.tobytes(), digest_size=16).hexdigest(), 0.0)
    return report(await read_page(ScreenReader(ocr=OcrEngine(), model=None), frame, None, profile(kit.app)))
