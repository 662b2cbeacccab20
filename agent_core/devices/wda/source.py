"""The accessibility tree of an iPhone: WebDriverAgent's page source as nodes.

``GET /source?format=json`` gives one element with ``type`` (without XCUIElementType), ``rawIdentifier``, ``name``,
``value``, ``label``, ``rect`` in points, ``isVisible`` and ``isEnabled`` ("1" or "0"), and ``children``. Source:
``dictionaryForElement`` of ``XCUIApplication+FBHelpers.m`` in appium/WebDriverAgent 16.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agent_core.devices.base import Node
from agent_core.errors import TreeUnavailable
from agent_core.geometry import Box

# Not used, and WDA takes time to find it.
EXCLUDED = "accessible,frame,nativeFrame,traits,minValue,maxValue,nativeAccessibilityElement"
PATH = f"/source?format=json&excluded_attributes={EXCLUDED}"

INPUTS = {"TextField", "SecureTextField", "SearchField", "TextView"}
_TEXTS = {"StaticText", "Link", "MenuItem", "Tab", "Icon"}  # their name is the text that they show
_TAPPED = INPUTS | {"Button", "Link", "Cell", "MenuItem", "Tab", "Key", "Icon", "Switch"}
# Readers of pages know the class names of Android's widgets.
_CLASSES = {
    **dict.fromkeys(INPUTS, "android.widget.EditText"),
    "Button": "android.widget.Button",
    "CollectionView": "android.widget.ListView",
    "Image": "android.widget.ImageView",
    "StaticText": "android.widget.TextView",
    "Switch": "android.widget.Switch",
    "Table": "android.widget.ListView",
    "ActivityIndicator": "android.widget.ProgressBar",
}
_NOT_OF_THE_PAGE = {"Keyboard", "StatusBar"}  # Android's tree has neither, and a keyboard is 40 nodes
# The names of a keyboard's key that makes a new line. Any other key acts: it sends, searches, continues.
_NEW_LINE = {"return", "换行", "enter", "new line"}

Element = Mapping[str, object]


def nodes(source: object, scale: float, size: tuple[int, int], package: str = "") -> tuple[Node, ...]:
    """Return the nodes on a screen of ``size`` pixels, in document order; boxes in pixels, clipped to the screen.

    scale: pixels to a point. package: the bundle id of the app, which the source does not name.

    No node has the focus: WDA reports the focus of remote controls, not the keyboard's. Raises TreeUnavailable if it is
    no page source.
    """
    return tuple(replace(node, package=package) for node in _nodes(_element(source), scale, size))


def return_makes_lines(source: object) -> bool:
    """Tell whether the return key of the keyboard on the screen is labelled as making a new line."""
    keyboards = (one for one in _walk(_element(source)) if one.get("type") == "Keyboard")
    return any(
        _text(key, "name").casefold() in _NEW_LINE or _text(key, "label").casefold() in _NEW_LINE
        for keyboard in keyboards
        for key in _walk(keyboard)
        if key.get("type") in {"Button", "Key"}
    )


def _element(source: object) -> Element:
    if not isinstance(source, Mapping) or not isinstance(source.get("type"), str):
        raise TreeUnavailable("The page source is not WebDriverAgent's JSON.", key="tree_broken", why="no element")
    return source


def _children(element: Element) -> Sequence[Element]:
    children = element.get("children")
    return [one for one in children if isinstance(one, Mapping)] if isinstance(children, list) else []


def _walk(element: Element) -> Iterator[Element]:
    waiting = [element]  # no recursion: the app decides how deep a page is nested
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(_children(one))


def _nodes(root: Element, scale: float, size: tuple[int, int]) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.get("type") in _NOT_OF_THE_PAGE:
            continue
        children = _children(one)
        waiting += reversed(children)
        box = _box(one, scale, size)
        # A container may be called invisible although its content is visible.
        if box is not None and _flag(one, "isVisible", default=True):
            yield _node(one, box, leaf=not children)


def _node(element: Element, box: Box, *, leaf: bool) -> Node:
    kind = _text(element, "type")
    text, description = "", ""
    if kind in INPUTS:
        text, description = _text(element, "value"), _text(element, "label")
        if text == _text(element, "placeholderValue"):
            text = ""  # WDA gives the hint of an empty field as its value
    elif leaf and kind in _TEXTS:
        text = _text(element, "label") or _text(element, "value")
    elif leaf:  # a container's label repeats its texts
        description = _text(element, "label")
    return Node(
        box=box,
        text=text,
        description=description,
        resource_id=_text(element, "rawIdentifier"),
        class_name=_CLASSES.get(kind, f"XCUIElementType{kind}"),
        clickable=kind in _TAPPED,
        enabled=_flag(element, "isEnabled", default=True),
    )


def _box(element: Element, scale: float, size: tuple[int, int]) -> Box | None:
    """Return the element's part of the screen; None if it has none."""
    rect = element.get("rect")
    if not isinstance(rect, Mapping):
        return None
    try:
        x, y, width, height = (float(rect[name]) for name in ("x", "y", "width", "height"))
        left, top, right, bottom = (round(edge * scale) for edge in (x, y, x + width, y + height))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    box = Box(max(left, 0), max(top, 0), min(right, size[0]), min(bottom, size[1]))
    return box if box.width > 0 and box.height > 0 else None


def _text(element: Element, name: str) -> str:
    value = element.get(name)
    return value if isinstance(value, str) else ""


def _flag(element: Element, name: str, *, default: bool = False) -> bool:
    value = element.get(name)
    return default if value is None else str(value).casefold() in {"1", "true"}
