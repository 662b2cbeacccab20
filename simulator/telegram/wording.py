"""A message's words on the way to a picture: styles from entities, lines from widths. Sizes are pixels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from PIL import Image, ImageDraw

from agent_core.texts.layout import font
from simulator.telegram.emoji import clusters, emoji, pictured
from simulator.telegram.rules import utf16
from simulator.telegram.world import Content

Words = Callable[[str], str]
INK, LINK, CODE = "#1c2733", "#2678b6", "#a33a6f"
LEADING = 1.42  # height of a line, in sizes
_NOT_FIRST = "，。！？；：、）》」』】…,.!?;:)”’"  # may not begin a line, as Chinese typesetting has it
_TOUCHABLE = re.compile(
    r"(?<![\w/.])/[a-z][a-z0-9_]*|https?://[^\s，。]+|@[a-zA-Z]\w{3,}"
)  # the apps make links of these


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one style."""

    text: str
    bold: bool = False
    code: bool = False
    link: bool = False

    @property
    def ink(self) -> str:
        return CODE if self.code else LINK if self.link else INK


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a message. A quote has a bar at its side, and separate lines."""

    kind: Literal["plain", "quote"]
    spans: tuple[Span, ...]


Line = tuple[Span, ...]


def same(words: str) -> str:
    return words


def blocks(content: Content, words: Words = same) -> list[Block]:
    """Return the text or caption as it is shown. ``words`` may replace those of one style."""
    spans: list[tuple[bool, Span]] = []  # whether it is quoted, and the span
    entities = [dict(entity) for entity in content.entities]
    offset = 0
    for char in content.text or content.caption:
        here = {str(e["type"]) for e in entities if e["offset"] <= offset < e["offset"] + e["length"]}
        offset += utf16(char)
        quoted = "blockquote" in here
        span = Span(char, "bold" in here, bool(here & {"code", "pre"}), bool(here & {"text_link", "bot_command"}))
        if spans and spans[-1] == (quoted, replace(span, text=spans[-1][1].text)):
            spans[-1] = (quoted, replace(span, text=spans[-1][1].text + char))
        else:
            spans.append((quoted, span))
    found: list[Block] = []
    for quoted, span in spans:
        kind: Literal["plain", "quote"] = "quote" if quoted else "plain"
        styled = tuple(_with_links(replace(span, text=words(span.text))))
        if found and found[-1].kind == kind:
            found[-1] = replace(found[-1], spans=found[-1].spans + styled)
        else:
            found.append(Block(kind, styled))
    return [trimmed for block in found if (trimmed := _trimmed(block)).spans]


def _with_links(span: Span) -> Iterable[Span]:
    if span.code or span.link:
        yield span
        return
    at = 0
    for match in _TOUCHABLE.finditer(span.text):
        yield replace(span, text=span.text[at : match.start()])
        yield replace(span, text=match[0], link=True)
        at = match.end()
    yield replace(span, text=span.text[at:])


def _trimmed(block: Block) -> Block:
    """Remove the newlines at the edges of a block, because it is on separate lines anyway."""
    spans = [span for span in block.spans if span.text]
    if spans:
        spans[0] = replace(spans[0], text=spans[0].text.removeprefix("\n"))
        spans[-1] = replace(spans[-1], text=spans[-1].text.removesuffix("\n"))
    return replace(block, spans=tuple(span for span in spans if span.text))


# Widths and lines -----------------------------------------------------------------------------------------------------


@lru_cache(8192)
def _advance(cluster: str, size: int) -> float:
    return size * 1.22 if pictured(cluster) else font(size).getlength(cluster[0])


def width_of(text: str, size: int) -> float:
    return sum(_advance(cluster, size) for cluster in clusters(text))


def line_width(line: Line, size: int) -> float:
    return sum(width_of(span.text, size) for span in line)


def lines_of(spans: Sequence[Span], size: int, width: float) -> list[Line]:
    """Break a text so that no line is wider than ``width`` (except for a closing mark).

    Latin words stay whole if they fit.
    """
    lines: list[list[Span]] = [[]]
    used = 0.0
    for span in spans:
        for unit in _units(span.text, size, width):
            if unit == "\n":
                lines.append([])
                used = 0.0
                continue
            step = width_of(unit, size)
            if used and used + step > width and not (unit in _NOT_FIRST and used + step <= width + size):
                lines.append([])
                used = 0.0
            if not used and unit == " ":
                continue
            lines[-1].append(replace(span, text=unit))
            used += step
    return [_joined(line) for line in lines]


def _joined(line: Sequence[Span]) -> Line:
    joined: list[Span] = []
    for span in line:
        if joined and replace(joined[-1], text="") == replace(span, text=""):
            joined[-1] = replace(span, text=joined[-1].text + span.text)
        else:
            joined.append(span)
    return tuple(joined)


def _units(text: str, size: int, width: float) -> list[str]:
    units: list[str] = []
    for word in re.findall(r"[!-~\u00a1-\u024f]+|[^!-~\u00a1-\u024f]+", text):
        whole = "!" <= word[0] <= "\u024f" and width_of(word, size) <= width
        units += [word] if whole else clusters(word)
    return units


def cut_to(text: str, size: int, width: float) -> str:
    """Cut a text to one line, with … if anything was left out."""
    text = " ".join(text.split())
    if width_of(text, size) <= width:
        return text
    kept, room = "", width - width_of("…", size)
    for cluster in clusters(text):
        room -= _advance(cluster, size)
        if room < 0:
            break
        kept += cluster
    return kept.rstrip() + "…"


# Drawing --------------------------------------------------------------------------------------------------------------


def write(image: Image.Image, place: tuple[float, float], line: Line, size: int, ink: str = "") -> None:
    """Draw one line with its upper left corner at ``place``. ``ink`` replaces the spans' own colours."""
    pen = ImageDraw.Draw(image)
    x, y = place
    baseline = y + size * 1.1
    for span in line:
        plain = ""
        for cluster in [*clusters(span.text), ""]:
            if cluster and not pictured(cluster):
                plain += cluster[0]
                continue
            if plain:
                stroke = size / 52 if span.bold else 0
                pen.text((x, baseline), plain, ink or span.ink, font(size), anchor="ls", stroke_width=stroke)
                x += width_of(plain, size)
                plain = ""
            if cluster:
                side = round(size * 1.12)
                drawn = emoji(cluster, side)
                image.paste(drawn, (round(x + size * 0.05), round(y + size * 0.16)), drawn)
                x += _advance(cluster, size)
