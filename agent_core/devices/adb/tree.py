"""The accessibility tree, as ``uiautomator dump`` prints it."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from agent_core.devices.base import Node
from agent_core.errors import TreeUnavailable
from agent_core.geometry import Box

_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
# Some Androids print an emoji as two references to halves of a surrogate pair, which no XML reader accepts.
_PAIR = re.compile(r"&#(5[5-6]\d{3});&#(5[6-7]\d{3});")
_REFERENCE = re.compile(r"&#(\d+);")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def extract_xml(output: bytes) -> str:
    """The document in what the tool printed around it. TreeUnavailable, with the tool's own words, where none is."""
    text = output.decode("utf-8", "replace")
    end = text.rfind("</hierarchy>")
    start = text.rfind("<?xml", 0, end) if end >= 0 else -1
    if start < 0 and end >= 0:
        start = text.find("<hierarchy")
    if start < 0:
        words = next((line.strip() for line in text.splitlines() if line.strip()), "nothing was printed")
        raise TreeUnavailable(
            f"The accessibility tree could not be read: {words[:200]}.", key="tree_unread", why=words[:200]
        )
    return text[start : end + len("</hierarchy>")]


def parse_tree(xml: str, size: tuple[int, int] | None = None) -> tuple[Node, ...]:
    """Nodes in document order, boxes in pixels, clipped to ``size`` (else to the first node's box).

    Nodes of which nothing is on the screen are left out. TreeUnavailable where it is not well-formed.
    """
    try:
        root = fromstring(_mended(xml))
    except (ParseError, DefusedXmlException) as error:
        raise TreeUnavailable(
            f"The accessibility tree is not well-formed: {error}.", key="tree_broken", why=error
        ) from error
    nodes: list[Node] = []
    screen = Box(0, 0, *size) if size else None
    for element in root.iter("node"):
        box = _box(element)
        if box is None:
            continue
        screen = screen or Box(0, 0, box.right, box.bottom)
        clipped = Box(max(box.left, 0), max(box.top, 0), min(box.right, screen.right), min(box.bottom, screen.bottom))
        if clipped.width > 0 and clipped.height > 0:
            nodes.append(_node(element, clipped))
    return tuple(nodes)


def _box(element: Element) -> Box | None:
    found = _BOUNDS.fullmatch(element.get("bounds", ""))
    return Box(int(found[1]), int(found[2]), int(found[3]), int(found[4])) if found else None


def _node(element: Element, box: Box) -> Node:
    return Node(
        box=box,
        text=element.get("text", ""),
        description=element.get("content-desc", ""),
        resource_id=element.get("resource-id", ""),
        class_name=element.get("class", ""),
        package=element.get("package", ""),
        clickable=element.get("clickable") == "true",
        focused=element.get("focused") == "true",
        enabled=element.get("enabled") != "false",
    )


def _mended(xml: str) -> str:
    def joined(match: re.Match[str]) -> str:
        high, low = int(match[1]), int(match[2])
        if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
            return match[0]
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

    def allowed(match: re.Match[str]) -> str:
        code = int(match[1])
        bad = (code < 0x20 and code not in {9, 10, 13}) or 0xD800 <= code < 0xE000 or code in {0xFFFE, 0xFFFF}
        return "" if bad or code > 0x10FFFF else match[0]

    return _FORBIDDEN.sub("", _REFERENCE.sub(allowed, _PAIR.sub(joined, xml)))
