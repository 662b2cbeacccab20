"""The content of the virtual iPhone's apps: the page source of WebDriverAgent, in its JSON form.

The apps are the virtual phone's own; their Android resource ids are left out, because no app has the same on iOS.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.devices.base import Node
from agent_core.geometry import Box
from simulator.phone.phone import VirtualPhone
from simulator.phone.wda.screen import Screen
from simulator.phone.widgets import WIDTH

SPRINGBOARD = "com.apple.springboard"
PLACEHOLDER = "输入"  # in every empty field; WDA gives it as the field's value
_TYPES = {"EditText": "TextView", "Button": "Button", "ImageView": "Image", "TextView": "StaticText"}
_RETURN_KEYS = {"换行": "Return", "发送": "Send", "搜索": "Search"}
_AVATARS = ("头像", "资料卡")

Element = dict[str, object]


def page_source(phone: VirtualPhone, screen: Screen, nodes: Sequence[Node]) -> Element:
    """Return the element of the app in front. ``nodes``: its content, boxes in pixels of the phone upright."""
    children = [_of_node(node, screen) for node in nodes[1:]]
    kind = "Alert" if phone.faults.popup else "Other"
    page = _element(kind, screen.window, children=children)
    windows = [_element("Window", screen.window, children=[page])]
    if phone.keyboard_shown():
        windows.append(_keyboard(phone, screen))
    return _element("Application", screen.window, children=windows)


def _keyboard(phone: VirtualPhone, screen: Screen) -> Element:
    width, height = phone.size
    top = round(phone.bottom * width / WIDTH)
    label = phone.focus.action_key if phone.focus is not None else "换行"
    box = screen.points(Box(0, top, width, height))
    key = _element("Button", box, name=_RETURN_KEYS.get(label, label), label=label)
    return _element("Keyboard", box, children=[key])


def _of_node(node: Node, screen: Screen) -> Element:
    android = node.class_name.rpartition(".")[2]
    kind = _TYPES.get(android, "Cell" if node.clickable else "Other")
    if node.clickable and android in {"TextView", "ImageView"}:
        kind = "Image" if any(word in node.description for word in _AVATARS) else "Button"
    if android.endswith(("RecyclerView", "ListView")):
        kind = "Table"
    rect = screen.points(node.box)
    if kind == "TextView":
        return _element(kind, rect, value=node.text or PLACEHOLDER, placeholder=PLACEHOLDER)
    label = node.text or node.description
    # A button with words on it holds them as a text of its own; of one with an icon only the label is known.
    words = [_element("StaticText", rect, label=label, value=label)] if kind == "Button" and node.text else []
    value = label if kind == "StaticText" else ""
    return _element(kind, rect, label=label, value=value, enabled=node.enabled, children=words)


def _element(
    kind: str,
    rect: tuple[float, float, float, float],
    *,
    name: str = "",
    label: str = "",
    value: str = "",
    placeholder: str | None = None,
    enabled: bool = True,
    children: Sequence[Element] = (),
) -> Element:
    x, y, width, height = rect
    found: Element = {
        "type": kind,
        "rawIdentifier": name or None,
        "name": name or label or None,
        "label": label or None,
        "value": value or None,
        "rect": {"x": x, "y": y, "width": width, "height": height},
        "isEnabled": "1" if enabled else "0",
        "isVisible": "1",
        # the focus of a remote control, which a phone does not have; the keyboard's focus is not reported
        "isFocused": "0",
        "customActions": None,
    }
    if placeholder is not None:
        found["placeholderValue"] = placeholder
    if children:
        found["children"] = list(children)
    return found
