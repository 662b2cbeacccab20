"""The pictures in the docs are what people see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from bot.channels.chat.texts import LANGUAGES, Lang
from simulator.telegram.picture import to_png
from tests.acceptance import pictures

ROOT = Path(__file__).parent.parent.parent
REMAKE = "python -m tests.acceptance.pictures --write"


@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("lang", LANGUAGES)
async def test_the_pictures_of_the_docs_are_what_people_see(tmp_path: Path, lang: Lang) -> None:
    taken = await pictures.play(tmp_path, lang)
    faults = pictures.stale(taken, lang)
    assert not faults, "\n".join([*faults, f"If that is as it should be: {REMAKE}"])


def test_the_pictures_are_small_and_both_languages_have_them() -> None:
    names = {lang: {file.name.split(".")[0] for file in pictures.FOLDER.glob(f"*.{lang}.png")} for lang in LANGUAGES}
    assert names["zh"] == names["en"] != set()
    for file in pictures.FOLDER.iterdir():
        assert file.stat().st_size < pictures.MOST_BYTES, file.name


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_shows_every_picture_and_what_it_names_is_tried(lang: Lang) -> None:
    page = ROOT / "docs" / "tutorial" / ("desk-in-telegram.md" if lang == "en" else "desk-in-telegram.zh-CN.md")
    text = page.read_text(encoding="utf-8")
    shown = [(page.parent / source).resolve() for source in re.findall(r'<img src="([^"]+)"', text)]
    assert sorted(shown) == sorted(pictures.FOLDER.glob(f"*.{lang}.png"))
    for command in pictures.TRIED:
        assert f"`{command}`" in text or f"\n{command}\n" in text, command


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_pictures_of_the_first_page_are_there(page: str) -> None:
    sources = re.findall(r'<img src="([^"]+)"', (ROOT / page).read_text(encoding="utf-8"))
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_what_a_picture_does_not_show_any_more_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    plain = Image.new("RGB", (200, 100), "#336699")
    marked = plain.copy()
    ImageDraw.Draw(marked).ellipse((40, 40, 60, 60), outline="#ff2d55", width=2)
    pictures.place("card", "zh").write_bytes(to_png(plain, "执行中"))

    assert pictures.stale({"card": to_png(plain, "执行中")}, "zh") == []
    [words] = pictures.stale({"card": to_png(plain, "已完成")}, "zh")
    assert "card.zh.png says:\n执行中\nand now:\n已完成" in words
    [looks] = pictures.stale({"card": to_png(marked, "执行中")}, "zh")
    assert "looks otherwise" in looks
    assert pictures.stale({"other": to_png(plain)}, "zh") == [
        "other.zh.png is missing",
        "card.zh.png is made by no scene",
    ]
