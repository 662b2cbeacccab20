"""``screencap``, ``uiautomator`` and ``wm``: the picture, the tree and the size of the screen."""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary
from xml.sax.saxutils import quoteattr

from PIL import Image

from agent_core.devices.base import Node
from simulator.phone.assembly import FORCED_DENSITY, FORCED_SIZE
from simulator.phone.commands.base import Call, CommandFailure, JavaFailure, command
from simulator.phone.png import as_png
from simulator.phone.port import ShellPhone, TreeFailure

DEFAULT_DUMP = "/sdcard/window_dump.xml"
RGBA_8888, SRGB = 1, 1
_RAW_HEADER = struct.Struct("<IIII")
_SEVERAL = (
    "[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display found, "
    "however this default is not guaranteed to be consistent across captures. A display id should be specified.\n"
    'A display ID can be specified with the [-d display-id] option.\nSee "dumpsys SurfaceFlinger --display-id" for '
    "valid display IDs.\n"
)
_SIZE = re.compile(r"(\d{3,4})x(\d{3,4})")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@command("screencap")
async def screencap(call: Call) -> int:
    flags, names, number = _screencap_options(call)
    if not flags <= {"-p"}:
        call.err("usage: screencap [-hp] [-d display-id] [FILENAME]\n")
        return 1
    path = call.path(names[-1]) if names and names[-1] != "-" else ""
    if path:
        _check_place(call, path)
    data = await _captured(call, as_png if "-p" in flags or path.endswith(".png") else _as_raw, number)
    if path:
        call.files.write(path, data, mode=0o660)
    else:
        call.out(data)
    return 0


def _screencap_options(call: Call) -> tuple[set[str], list[str], str | None]:
    """Flags, file names, and the display that was asked for."""
    flags, names, number = set(), [], None
    arguments = list(call.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument == "-d":
            number = arguments.pop(0) if arguments else ""
        elif argument.startswith("-") and argument != "-":
            flags.add(argument)
        else:
            names.append(argument)
    return flags, names, number


async def _captured(call: Call, encode: Callable[[Image.Image], bytes], number: str | None) -> bytes:
    """The picture of one of the displays, spoilt as the fault ``capture`` has it."""
    displays = call.phone.displays()
    display = next((found for found in displays if number in {None, found.number}), None)
    if display is None:
        raise CommandFailure(f"Display Id '{number}' is not valid.")
    if number is None and len(displays) > 1:
        call.err(_SEVERAL)
    fault = call.phone.capture_fault()
    if fault == "fails":
        raise CommandFailure("Failed to take screenshot. Status: -1")
    if fault == "warns":
        call.err("WARNING: linker: app_process64: unused DT entry: type 0x6ffffef5 arg 0x1\n")
    data = await _encoded(call.phone, encode, on=display.on)
    return data[: len(data) // 2] if fault == "half" else data


def _check_place(call: Call, path: str) -> None:
    """Before the picture is taken: what cannot be written leaves the old file as it is."""
    try:
        call.files.check_writable(path)
        above = call.files.stat(path.rpartition("/")[0] or "/")
        why = "" if above and above.is_folder else "No such file or directory"
    except OSError as error:
        why = error.strerror or "failed"
    if why:
        raise CommandFailure(f"Error opening file: {path} ({why})")


# A client takes at least two pictures of a screen that rests: each is encoded once.
_KEPT: WeakKeyDictionary[ShellPhone, tuple[Image.Image, dict[Callable[[Image.Image], bytes], bytes]]] = (
    WeakKeyDictionary()
)


async def _encoded(phone: ShellPhone, encode: Callable[[Image.Image], bytes], *, on: bool) -> bytes:
    picture = await phone.picture()
    if not on:
        picture = Image.new("RGB", picture.size)
    if phone not in _KEPT or _KEPT[phone][0] is not picture:
        _KEPT[phone] = (picture, {})
    kept = _KEPT[phone][1]
    if encode not in kept:
        kept[encode] = await asyncio.to_thread(encode, picture)
    return kept[encode]


def _as_raw(picture: Image.Image) -> bytes:
    """Width, height, pixel format and colour space, then the pixels in rows."""
    header = _RAW_HEADER.pack(picture.width, picture.height, RGBA_8888, SRGB)
    return header + picture.tobytes("raw", "RGBX")  # Pillow keeps each pixel in four bytes, the last of them 255


@command("uiautomator")
async def uiautomator(call: Call) -> int:
    verb = call.shifted()
    if verb != "dump":
        call.err("Usage: uiautomator <subcommand> [options]\n")
        return 1
    names = [argument for argument in call.arguments if not argument.startswith("--")]
    path = names[0] if names else DEFAULT_DUMP
    try:
        nodes = await call.phone.tree()
    except TreeFailure as failure:
        call.err(f"{failure}\n")  # exit code 0, and the old file stays: as on a phone
        return 0
    document = hierarchy(nodes, call.phone.rotation)
    if path in {"/dev/tty", "/dev/stdout"}:
        call.out(document)
    else:
        try:
            call.files.write(call.path(path), document.encode(), mode=0o660)
        except OSError as error:
            raise JavaFailure("java.io.FileNotFoundException", f"{path}: open failed: {error.strerror}") from error
    call.line(f"UI hierchary dumped to: {path}")
    return 0


def hierarchy(nodes: Sequence[Node], rotation: int = 0) -> str:
    """The document of ``uiautomator dump``, nodes in document order."""
    body = "".join(_element(at, node) for at, node in enumerate(nodes))
    head = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
    return f'{head}<hierarchy rotation="{rotation}">{body}</hierarchy>'


def _element(index: int, node: Node) -> str:
    box = node.box
    editable = node.class_name.endswith("EditText")
    values = {
        "index": str(index),
        "text": node.text,
        "resource-id": node.resource_id,
        "class": node.class_name,
        "package": node.package,
        "content-desc": node.description,
        "checkable": "false",
        "checked": "false",
        "clickable": _word(node.clickable),
        "enabled": "true",
        "focusable": _word(node.clickable or editable),
        "focused": _word(node.focused),
        "scrollable": "false",
        "long-clickable": _word(node.clickable),
        "password": "false",
        "selected": "false",
        "bounds": f"[{box.left},{box.top}][{box.right},{box.bottom}]",
    }
    attributes = " ".join(f"{name}={_quoted(value)}" for name, value in values.items())
    return f"<node {attributes} />"


def _word(value: bool) -> str:
    return "true" if value else "false"


def _quoted(value: str) -> str:
    return quoteattr(_NOT_XML.sub(".", value), {'"': "&quot;"})


@command("wm")
async def wm(call: Call) -> int:
    verb = call.shifted()
    if verb in {"size", "density"}:
        return _size_or_density(call, verb)
    if verb == "dismiss-keyguard":
        await call.phone.key("MENU")
    elif verb in {"user-rotation", "set-user-rotation", "fixed-to-user-rotation"}:
        call.out(f"lock {call.phone.rotation}\n" if verb == "user-rotation" else "")
    else:
        call.err(f"Unknown command: {verb}\n" if verb else "Window manager (window) commands:\n")
        return 255
    return 0


def _size_or_density(call: Call, what: str) -> int:
    """``wm size [WxH|reset]`` and ``wm density [DPI|reset]``. What is set is kept where Android keeps it."""
    setting = FORCED_SIZE if what == "size" else FORCED_DENSITY
    value = call.shifted()
    if value is None:
        physical = call.phone.properties.get("ro.sf.lcd_density", "440")
        if what == "size":
            physical = "{}x{}".format(*call.phone.physical_size)
        call.line(f"Physical {what}: {physical}")
        if setting in call.phone.settings:
            call.line(f"Override {what}: {call.phone.settings[setting].replace(',', 'x')}")
        return 0
    fits = _SIZE.fullmatch(value) if what == "size" else re.fullmatch(r"\d{2,3}", value)
    if value != "reset" and not fits:
        raise CommandFailure(f"Error: bad {what} {value}", 255)
    call.phone.check_may_change("settings")
    call.phone.set_setting(*setting, None if value == "reset" else value.replace("x", ","))
    return 0
