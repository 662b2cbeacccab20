"""Reading the output of HarmonyOS's tools.

Sources of the formats: ``hdc`` (developtools_hdc, ``host/server.cpp``), ``aa dump -l`` (ability_runtime's mission
lists), ``hidumper`` of the power (powermgr_power_manager), screen lock (theme_screenlock_mgr), window (window_manager)
and battery services (powermgr_battery_manager), ``bm dump`` (bundle_framework), ``uitest dumpLayout``
(testfwk_arkxtest).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_core.devices.base import Battery, DeviceEntry, Look, Node, ScreenState, System, Window, WindowKind
from agent_core.errors import TreeUnavailable
from agent_core.geometry import Box

PREFIX = "hdc:"
# SceneBoard draws everything that is not an app: desktop, lock screen, panels.
DESKTOP = "com.ohos.sceneboard"
_STATES = {"Connected": "device", "Unauthorized": "unauthorized"}  # others: Ready, Offline, Unknown
_TARGET = re.compile(r"^(?P<key>[\w.:\-\[\]%]+)\t+(?P<way>\w+)\t+(?P<state>\w+)", re.ASCII)

_MISSION = re.compile(r"^\s*Mission ID #", re.MULTILINE)
_FOREGROUND = re.compile(r"(?<!app )state #FOREGROUND\b")
_BUNDLE = re.compile(r"bundle name \[([\w.]+)\]")
_ABILITY = re.compile(r"main name \[([\w.$]+)\]")
_POWER = re.compile(r"Current State:\s*(\w+)")
_LOCKED = re.compile(r"screenLocked\s+(true|false)")
_FOCUS = re.compile(r"Focus window:\s*(\d+)")
_PANELS = ("SCBDropdown", "SCBControlCenter", "SCBNotification", "SystemUi_Dropdown", "SystemUi_Control")
_NAME = re.compile(r"^[A-Za-z]\w*(?:\.\w+)+$", re.ASCII)
_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
# ArkUI's types by the words that readers of a tree know.
_CLASSES = {
    "TextInput": "EditText", "TextArea": "EditText", "Search": "EditText", "SearchField": "EditText",
    "RichEditor": "EditText", "List": "ListView", "Checkbox": "CheckBox", "Toggle": "Switch",
    "LoadingProgress": "ProgressBar", "Progress": "ProgressBar",
}  # fmt: skip
MAX_DEPTH = 300


def parse_targets(text: str) -> list[DeviceEntry]:
    """Read ``hdc list targets -v``: key, two tabs, USB or TCP, state, name; ``[Empty]`` if there is none.

    hdc lists serial interfaces (UART) too; they are left out, because they are not phones.
    """
    found = []
    for line in text.splitlines():
        target = _TARGET.match(line.strip())
        if target and target["way"] in ("USB", "TCP"):
            state = _STATES.get(target["state"], "offline")
            entry = DeviceEntry(PREFIX + target["key"], state, "", target["way"].lower(), System.HARMONYOS)
            found.append(entry)
    return found


def parse_look(missions: str, power: str, lock: str, windows: str) -> Look:
    """Read the app in front and the state of the screen from the outputs of four services.

    The screen is taken to be on if the power service reports nothing about it, as on Android.
    """
    state, locked = _POWER.search(power), _LOCKED.search(lock)
    screen = ScreenState(state is None or state[1] == "AWAKE", locked is not None and locked[1] == "true")
    if screen.locked:
        return Look(Window(None, None, WindowKind.LOCK), screen)
    if not screen.awake:
        return Look(Window(None, None, WindowKind.NONE), screen)
    if _focused(windows).startswith(_PANELS):
        return Look(Window(None, None, WindowKind.SHADE), screen)
    for mission in _MISSION.split(missions)[1:]:
        bundle = _BUNDLE.search(mission)
        if bundle and _FOREGROUND.search(mission):
            ability = _ABILITY.search(mission)
            return Look(Window(bundle[1], ability[1] if ability else None), screen)
    return Look(Window(DESKTOP), screen)


def _focused(windows: str) -> str:
    """Return the name of the window that has the focus; the table's fourth column is its number."""
    focus = _FOCUS.search(windows)
    if focus is not None:
        for line in windows.splitlines():
            columns = line.split()
            if len(columns) > 4 and columns[3] == focus[1]:
                return columns[0]
    return ""


def parse_packages(text: str) -> tuple[str, ...]:
    """Read ``bm dump -a``: ``ID: 100:``, then a bundle a line."""
    return tuple(line.strip() for line in text.splitlines() if _NAME.match(line.strip()))


@dataclass(frozen=True, slots=True)
class Bundle:
    """An installed app. ``ability`` is the one that the home screen starts; None if there is nothing to start."""

    version: str | None
    ability: str | None


def parse_bundle(text: str) -> Bundle | None:
    """Read ``bm dump -n BUNDLE``: the name with a colon, then JSON. None if there is no such bundle."""
    start = text.find("{")
    try:
        found, _ = json.JSONDecoder().raw_decode(text, max(start, 0))
        info = found.get("applicationInfo") or {}
        version = found.get("versionName") or info.get("versionName")
        return Bundle(str(version) if version else None, _main_ability(found))
    except (ValueError, TypeError, AttributeError):
        return None


def _main_ability(bundle: dict[str, Any]) -> str | None:
    """Return the main ability of the entry module, or else an ability with the action of the home screen."""
    entry = bundle.get("mainEntry") or bundle.get("entryModuleName")
    modules = list(bundle.get("hapModuleInfos") or ())
    modules.sort(key=lambda module: (module.get("moduleName") or module.get("name")) != entry)
    for module in modules:
        name = module.get("mainAbility") or module.get("mainElementName")
        if isinstance(name, str) and name:
            return name
    for module in modules:
        for ability in module.get("abilityInfos") or ():
            actions = [action for skill in ability.get("skills") or () for action in skill.get("actions") or ()]
            if any(action in ("action.system.home", "ohos.want.action.home") for action in actions):
                return str(ability.get("name"))
    return None


def parse_battery(text: str) -> Battery:
    """Read ``hidumper -s BatteryService -a -i``: ``capacity: 87``, ``pluggedType: 2`` (0: no cable)."""
    percent = re.search(r"^\s*capacity:\s*(\d{1,3})\s*$", text, re.MULTILINE)
    tenths = re.search(r"^\s*temperature:\s*(\d{1,4})\s*$", text, re.MULTILINE)  # of a degree
    plugged = re.search(r"^\s*pluggedType:\s*(\d)\s*$", text, re.MULTILINE)
    return Battery(
        int(percent[1]) if percent and int(percent[1]) <= 100 else None,
        plugged[1] != "0" if plugged else None,
        int(tenths[1]) / 10 if tenths and 0 < int(tenths[1]) < 1000 else None,
    )


def parse_tree(text: str, size: tuple[int, int] | None = None) -> tuple[Node, ...]:
    """Read the file of ``uitest dumpLayout``: ``{"attributes": {...}, "children": [...]}``, nested.

    Nodes are in document order, boxes in pixels, clipped to ``size`` (else to the root's box); nodes of which nothing
    is on the screen are left out. A window's root names its bundle, which its nodes inherit.

    Raises TreeUnavailable if it is not such JSON.
    """
    try:
        root = json.loads(text)
        found = tuple(_nodes(root, "", Box(0, 0, *size) if size else None, 0))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise TreeUnavailable(
            f"The accessibility tree is not well-formed: {error}.", key="tree_broken", why=error
        ) from error
    return found


def _nodes(node: dict[str, Any], bundle: str, screen: Box | None, depth: int) -> Iterator[Node]:
    if depth > MAX_DEPTH:
        raise ValueError(f"it is deeper than {MAX_DEPTH}")
    attributes: dict[str, str] = node["attributes"]
    bundle = attributes.get("bundleName") or bundle
    bounds = _BOUNDS.fullmatch(attributes.get("bounds") or "")
    if bounds and attributes.get("visible") != "false":
        left, top, right, bottom = map(int, bounds.groups())
        screen = screen or Box(0, 0, right, bottom)
        box = Box(max(left, 0), max(top, 0), min(right, screen.right), min(bottom, screen.bottom))
        kind = attributes.get("type") or ""  # the root over all windows has none
        if kind and box.width > 0 and box.height > 0:
            yield Node(
                box=box,
                text=attributes.get("text") or "",
                description=attributes.get("description") or "",
                resource_id=attributes.get("id") or attributes.get("key") or "",
                class_name=_CLASSES.get(kind, kind),
                package=bundle,
                clickable=attributes.get("clickable") == "true",
                focused=attributes.get("focused") == "true",
                enabled=attributes.get("enabled") != "false",
            )
    for child in node.get("children") or ():
        yield from _nodes(child, bundle, screen, depth + 1)


def picture_size(text: str) -> tuple[int, int] | None:
    """Read the size that ``snapshot_display`` prints: ``width: 1276, height: 2848``, in older versions without
    colons.
    """
    found = re.findall(r"width:?\s*(\d+), height:?\s*(\d+)", text)
    return (int(found[-1][0]), int(found[-1][1])) if found else None
