from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from bot.tools.demo.pictures import SECONDS_A_PICTURE, WIDTH, save_pictures


def jpeg(color: str, size: tuple[int, int] = (540, 1200)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, "JPEG")
    return buffer.getvalue()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_picture_a_step_and_one_of_them_all(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    written = save_pictures(folder, [("launch", jpeg("red")), ("tap", jpeg("blue")), ("end", jpeg("green"))])
    assert [path.name for path in written] == ["demo-01-launch.jpg", "demo-02-tap.jpg", "demo-03-end.jpg", "demo.gif"]
    assert written[1].read_bytes() == jpeg("blue")
    with Image.open(folder / "demo.gif") as gif:
        assert gif.size == (WIDTH, 960)
        assert getattr(gif, "n_frames", 1) == 3
        assert gif.info["duration"] == round(SECONDS_A_PICTURE * 1000)
        assert gif.info["loop"] == 0


def test_an_earlier_demo_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    mine = ["demo-holiday.jpg", "demo-01-launch.jpg.bak", "demo-output.txt", "other.gif"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    save_pictures(tmp_path, [("launch", jpeg("red"))] * 3)
    save_pictures(tmp_path, [("get_knowledge_data", jpeg("red"))])
    assert names(tmp_path) == sorted([*mine, "demo-01-get_knowledge_data.jpg", "demo.gif"])
    save_pictures(tmp_path, [])
    assert names(tmp_path) == sorted([*mine, "demo.gif"])


def test_a_phone_that_was_turned(tmp_path: Path) -> None:
    save_pictures(tmp_path, [("a", jpeg("red")), ("b", jpeg("blue", (1200, 540)))])
    with Image.open(tmp_path / "demo.gif") as gif:
        assert getattr(gif, "n_frames", 1) == 2
