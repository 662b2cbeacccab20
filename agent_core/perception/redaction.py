"""Covers secrets that no picture for people may show, before the picture is stored or sent.

The model and the code that reads the screen get the picture as it is; only what people see is covered. The cover
depends on nothing but its place, so that nothing can be read from it: other digits below it give the same picture. A
secret that was read on a screen is covered wherever it is written: in an observation, in what was said.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import structlog
from PIL import Image, ImageDraw

from agent_core.apps.profile import profile_of_package, secret_rules
from agent_core.apps.secrets import SecretRule, SecretRules
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.lru import keep_newest
from agent_core.perception.picture import region_box
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import ChatScreen, Reading, Source
from agent_core.perception.tree_rows import within

log = structlog.get_logger(__name__)

REMEMBERED = 64  # screens
CELLS = 45  # of the cover, side by side on the screen's shorter side
NEAR = 3.0  # line heights: a value is at most this far above or below its label
LINE = 0.04  # of the screen's height: anything taller is not a line, but a box around several
_COVER = ((142, 149, 158), (168, 174, 182))


@dataclass(frozen=True, slots=True)
class _Seen:
    package: str | None
    nodes: Sequence[Node] | None
    chat: ChatScreen | None
    moving: Box | None = None


class Redaction:
    """A cover for secrets. It remembers how the newest screens were read, so that nothing is read twice.

    on: False covers nothing.
    """

    def __init__(self, reader: ScreenReader, *, on: bool = True) -> None:
        self._reader = reader
        self.on = on
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._boxes: OrderedDict[str, list[Box]] = OrderedDict()
        self._covered: tuple[str, list[Box], Image.Image] | None = None  # the newest screen that was covered

    @property
    def needs_tree(self) -> bool:
        """True if the tree is needed even if nobody else wants it, because nothing else here can read."""
        return self.on and not self._reader.reads_pictures

    def knows(self, frame: Frame) -> bool:
        """Tell whether it is known what to cover on this very screen, read by something that could read it."""
        seen = self._seen.get(frame.digest)
        read = seen is not None and (seen.nodes is not None or self._reader.reads_pictures) and seen.moving is None
        return not self.on or (read and frame.digest in self._boxes)

    def saw(
        self,
        frame: Frame,
        package: str | None,
        nodes: Sequence[Node] | None,
        chat: ChatScreen | None = None,
        *,
        moving: Box | None = None,
    ) -> None:
        """Remember the reading from the time when ``frame`` was taken.

        A screen that was never reported here counts as sensitive.

        moving: the part of the screen that changed meanwhile. It is covered.
        """
        before = self._seen.get(frame.digest)
        if before is not None and before.package == package:
            nodes, chat = nodes if nodes is not None else before.nodes, chat or before.chat
        self._boxes.pop(frame.digest, None)
        keep_newest(self._seen, frame.digest, _Seen(package, nodes, chat, moving), REMEMBERED)

    async def over(self, frame: Frame) -> Image.Image:
        """Return the picture as people may see it; the frame's own image if there is nothing to cover.

        It is the same object for the same screen.
        """
        boxes = await self.boxes(frame)
        if not boxes:
            return frame.image
        if self._covered is None or self._covered[:2] != (frame.digest, boxes):
            self._covered = frame.digest, boxes, await asyncio.to_thread(cover, frame.image, boxes)
        return self._covered[2]

    async def boxes(self, frame: Frame) -> list[Box]:
        """Return the boxes to cover on this screen, in its pixels.

        Raises nothing: after an error all of it is covered.
        """
        if not self.on:
            return []
        if frame.digest not in self._boxes:
            try:
                found = await self._find(frame)
            except Exception as error:  # whatever the error, nothing unread may be shown
                log.exception("screen_not_read_for_secrets", error=repr(error))
                return [_whole(frame.size)]
            seen = self._seen.get(frame.digest)  # as it is now: it may have been reported again meanwhile
            found = [*found, *([seen.moving] if seen is not None and seen.moving is not None else [])]
            keep_newest(self._boxes, frame.digest, found, REMEMBERED)
        return self._boxes[frame.digest]

    async def _find(self, frame: Frame) -> list[Box]:
        seen = self._seen.get(frame.digest)
        rules = secret_rules(seen.package if seen else None)
        readings = await self._reader.texts(frame, seen.nodes if seen else None)
        if readings is None:
            if seen is None or rules.sensitive:
                return [_whole(frame.size)]
            readings = list(_without_place(seen, frame.size))
        return secret_boxes(readings, rules, frame.size)


def secret_boxes(readings: Sequence[Reading], rules: SecretRules, size: tuple[int, int]) -> list[Box]:
    """Return the areas that the rules cover on a screen of ``size``: the whole screen if they name the page."""
    texts = _written([(unicodedata.normalize("NFKC", reading.text).strip(), reading.box) for reading in readings])
    if any(re.search(page, text, re.IGNORECASE) for page in rules.pages for text, _ in texts):
        return [_whole(size)]
    found = [region_box(region, size) for region in rules.regions]
    for rule in rules.rules:
        found += _labelled(rule, texts, size) if rule.label else _alone(rule, texts)
    return list(dict.fromkeys(found))


def tells_secret(text: str, package: str | None) -> bool:
    """Tell whether the rules would cover anything in these words of an app, wherever they are written."""
    rules = secret_rules(package).model_copy(update={"regions": (), "pages": ()})
    line = Reading(text, Box(0, 0, 100, 1), Source.MODEL)
    return bool(secret_boxes([line], rules, (100, 100)))


_Text = tuple[str, Box]


def _written(texts: Sequence[_Text]) -> list[_Text]:
    """Remove from each text the texts inside its box.

    A tree may describe a whole row in one text that is not drawn as such.
    """
    found = []
    for text, box in texts:
        inner = {other for other, place in texts if place != box and other != text and within(place, box)}
        rest = text
        for part in sorted(inner, key=len, reverse=True):
            rest = re.sub(rf"(?<![^\s,，]){re.escape(part)}(?![^\s,，])", "", rest)
        if rest.strip(" ,，"):
            found.append((rest, box))
    return found


def _alone(rule: SecretRule, texts: Sequence[_Text]) -> list[Box]:
    value = re.compile(rule.value, re.IGNORECASE)
    return [box for text, box in texts if value.search(text)]


def _labelled(rule: SecretRule, texts: Sequence[_Text], size: tuple[int, int]) -> list[Box]:
    label, value = re.compile(rule.label, re.IGNORECASE), re.compile(rule.value, re.IGNORECASE)
    found: list[Box] = []
    for text, box in texts:
        if not label.search(text):
            continue
        near = [(other, place) for other, place in texts if place != box and _belongs(place, box, size)]
        values = [place for other, place in near if value.search(other)]
        # A line may break in the middle of a number, so that neither half looks like one.
        if text[-1:].isdigit():
            values += [place for other, place in near if other[:1].isdigit() and _next_line(place, box)]
        if value.search(text) or (values and any(char.isdigit() for char in text)):
            values.append(box)
        found += values
    return found


def _belongs(place: Box, label: Box, size: tuple[int, int]) -> bool:
    """Tell whether a text is where a label's value would be: to its right on the same row, or close above or below."""
    line = min(label.height, round(LINE * size[1]))
    if min(place.bottom, label.bottom) - max(place.top, label.top) > min(place.height, label.height) / 2:
        return place.left >= label.left
    gap = max(place.top - label.bottom, label.top - place.bottom)
    return gap <= NEAR * line and place.left < label.right and label.left < place.right


def _next_line(place: Box, line: Box) -> bool:
    return 0 <= place.top - line.bottom + line.height // 2 <= line.height


def _without_place(seen: _Seen, size: tuple[int, int]) -> Iterator[Reading]:
    """Yield the texts that a model transcribed from a chat; without boxes, so any secret covers all the messages."""
    profile = profile_of_package(seen.package)
    if seen.chat is None or profile is None:
        return
    messages = region_box(profile.messages_region, size)
    for bubble in seen.chat.bubbles:
        yield Reading(bubble.text, bubble.box or messages, Source.MODEL)
    if seen.chat.draft:
        yield Reading(seen.chat.draft, Box(0, messages.bottom - size[1] // 8, *size), Source.MODEL)


def _whole(size: tuple[int, int]) -> Box:
    return Box(0, 0, *size)


def cover(image: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    """Return a copy with a mosaic over each box and a little around it.

    It depends only on the boxes, not on the pixels.
    """
    picture = image.convert("RGB") if image.mode != "RGB" else image.copy()
    draw = ImageDraw.Draw(picture)
    cell = max(4, min(image.size) // CELLS)
    for box in boxes:
        if box.width <= 0 or box.height <= 0:
            continue
        margin = cell // 3
        columns = range(max(0, box.left - margin) // cell, -(-min(image.width, box.right + margin) // cell))
        rows = range(max(0, box.top - margin) // cell, -(-min(image.height, box.bottom + margin) // cell))
        for row in rows:
            for column in columns:
                place = (column * cell, row * cell, (column + 1) * cell - 1, (row + 1) * cell - 1)
                draw.rectangle(place, fill=_COVER[(row + column) % 2])
    return picture


COVER = "▒▒▒"  # stands for a text that nobody may see
SHORTEST = 4  # characters of a figure; a shorter one may be a coordinate or a count
LONG = 6  # characters of words without digits

# No rule covers plain words by their meaning, and the keys of a request are such words.
_PLAIN = re.compile(r"[A-Za-z_ ]*")
_TOKEN = re.compile(rf"[A-Za-z0-9_]{{{SHORTEST},}}")
_DIGITS = re.compile(r"(?<![A-Za-z0-9])[0-9](?:[ \-·.,]?[0-9]){3,}(?![A-Za-z0-9])")
_NO_DIGIT = re.compile(r"[^0-9]")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets to cover in texts.

    figures: single codes and numbers, without what separates their digits.
    texts: whole texts.
    """

    figures: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.figures or self.texts)

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self.figures | other.figures, self.texts | other.texts)


def secrets_in(texts: Iterable[str]) -> Secrets:
    """Return the parts that must be covered if such texts are secret: each as a whole, and the figures in it."""
    texts = list(texts)
    whole = {text for text in texts if _known_again(text)}
    return Secrets(figures_in(texts).figures, frozenset(whole | {_escaped(text) for text in whole}))


def figures_in(texts: Iterable[str]) -> Secrets:
    """Return the figures in the texts, without the words around them."""
    figures: set[str] = set()
    for text in texts:
        figures |= {token for token in _TOKEN.findall(text) if not _PLAIN.fullmatch(token)}
        figures |= {_NO_DIGIT.sub("", found) for found in _DIGITS.findall(text)}
    return Secrets(frozenset(figures))


def _known_again(text: str) -> bool:
    if _PLAIN.fullmatch(text):
        return False
    return len(text) >= (SHORTEST if any(char.isdigit() for char in text) else LONG)


def _escaped(text: str) -> str:
    """Return the text as it is written in JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def covered_text(text: str, secrets: Secrets) -> str:
    """Return ``text`` with the secrets covered, also those written in JSON."""
    for secret in sorted((secret for secret in secrets.texts if secret in text), key=len, reverse=True):
        text = text.replace(secret, COVER)
    if secrets.figures:
        text = _DIGITS.sub(lambda found: _unless(_NO_DIGIT.sub("", found[0]), found[0], secrets), text)
        text = _TOKEN.sub(lambda found: _unless(found[0], found[0], secrets), text)
    return text


def _unless(figure: str, written: str, secrets: Secrets) -> str:
    return COVER if figure in secrets.figures else written
