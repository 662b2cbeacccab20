"""``screencap``, ``uiautomator`` and ``wm``: the picture, the tree and the size of the screen."""

from __future__ import annotations

import asyncio
import io
import re
import struct
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from PIL import Image

from agent_core.devices.base import Node
from simulator.phone.commands.base import Call, CommandFailure, JavaFailure, command
from simulator.phone.port import TreeFailure

PHYSICAL_DISPLAY = "4619827259835644672"
DEFAULT_DUMP = "/sdcard/window_dump.xml"
RGBA_8888, SRGB = 1, 1
_RAW_HEADER = struct.Struct("<IIII")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@command("screencap")
async def screencap(call: Call) -> int:
    png, path = False, ""
    arguments = list(call.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument == "-p":
            png = True
        elif argument == "-d":
            display = arguments.pop(0) if arguments else ""
            if display not in {PHYSICAL_DISPLAY, "0"}:
                raise CommandFailure("Invalid physical display id")
        elif argument.startswith("-") and argument != "-":
            call.err("usage: screencap [-hp] [-d display-id] [FILENAME]\n")
            return 1
        else:
            path = argument
    if path and path != "-":
        path = call.path(path)
        _check_place(call, path)
        png = png or path.endswith(".png")
    picture = await call.phone.picture()
    data = await asyncio.to_thread(_as_png if png else _as_raw, picture)
    if path and path != "-":
        call.files.write(path, data, mode=0o660)
    else:
        call.out(data)
    return 0


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


def _as_png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _as_raw(picture: Image.Image) -> bytes:
    """Width, height, pixel format and colour space, then the pixels in rows."""
    header = _RAW_HEADER.pack(picture.width, picture.height, RGBA_8888, SRGB)
    return header + picture.convert("RGBA").tobytes()


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
    document = hierarchy(nodes)
    if path in {"/dev/tty", "/dev/stdout"}:
        call.out(document)
    else:
        try:
            call.files.write(call.path(path), document.encode(), mode=0o660)
        except OSError as error:
            raise JavaFailure("java.io.FileNotFoundException", f"{path}: open failed: {error.strerror}") from error
    call.line(f"UI hierchary dumped to: {path}")
    return 0


def hierarchy(nodes: Sequence[Node]) -> str:
    """The document of ``uiautomator dump``, nodes in document order."""
    body = "".join(_element(at, node) for at, node in enumerate(nodes))
    return f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{body}</hierarchy>"


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
    if verb == "size":
        call.line(f"Physical size: {call.phone.size[0]}x{call.phone.size[1]}")
    elif verb == "density":
        call.line(f"Physical density: {call.phone.properties.get('ro.sf.lcd_density', '440')}")
    elif verb == "dismiss-keyguard":
        await call.phone.key("MENU")
    elif verb in {"user-rotation", "set-user-rotation", "fixed-to-user-rotation"}:
        call.out("lock 0\n" if verb == "user-rotation" else "")
    else:
        call.err(f"Unknown command: {verb}\n" if verb else "Window manager (window) commands:\n")
        return 255
    return 0
