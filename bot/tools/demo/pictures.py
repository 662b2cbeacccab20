"""Saves the demo's pictures: one of each step, and a GIF of them all."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from agent_core.perception.marks import to_jpeg
from simulator.phone.phone import VirtualPhone
from storage.engine import Database
from storage.events import Events

WIDTH = 432  # of the GIF, pixels
SECONDS_A_PICTURE = 1.2
MAKER = "demo"  # names of our own files begin with it
_OURS = re.compile(rf"{MAKER}-\d{{2,}}-[a-z_]+\.jpg")


def save_pictures(folder: Path, pictures: Sequence[tuple[str, bytes]]) -> list[Path]:
    """Write each (name, JPEG) as a file, and ``demo.gif``; files of an earlier demo are replaced, nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in [file for file in folder.iterdir() if _OURS.fullmatch(file.name)]:
        old.unlink()
    written = []
    for number, (name, jpeg) in enumerate(pictures, start=1):
        path = folder / f"{MAKER}-{number:02d}-{name}.jpg"
        path.write_bytes(jpeg)
        written.append(path)
    if pictures:
        written.append(_gif(folder / f"{MAKER}.gif", [jpeg for _, jpeg in pictures]))
    return written


async def leave_pictures(db: Database, phone: VirtualPhone, folder: Path) -> None:
    """Save every picture of the event log, in order, then the phone as it looks at the end."""
    log = Events(db)
    pictures: list[tuple[str, bytes]] = []
    position = 0
    while rows := await log.after(position):
        position = rows[-1].id
        for row in rows:
            picture = await log.picture(row.picture_id) if row.picture_id is not None else None
            if picture is not None:
                pictures += [(_name(row.kind, row.data), picture)]
    end = await phone.picture()
    pictures += [("end", await asyncio.to_thread(to_jpeg, end))]
    await asyncio.to_thread(save_pictures, folder, pictures)


def _name(kind: str, data: Mapping[str, Any]) -> str:
    action = data.get("action")
    return str(action.get("kind")) if kind == "step" and isinstance(action, dict) else kind


def _gif(path: Path, pictures: Sequence[bytes]) -> Path:
    frames = []
    for jpeg in pictures:
        with Image.open(io.BytesIO(jpeg)) as image:
            height = round(image.height * WIDTH / image.width)
            frames.append(image.convert("RGB").resize((WIDTH, height)).quantize(128))
    part = path.with_suffix(".part")
    frames[0].save(
        part,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=round(SECONDS_A_PICTURE * 1000),
        loop=0,
    )
    shutil.move(part, path)
    return path
