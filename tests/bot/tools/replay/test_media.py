from __future__ import annotations

import io
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageSequence

from bot.desk.history_views import spread
from bot.tools.replay.media import MOST_SIDES, NARROWEST, Kind, ReplayMedia, StepPicture, make_media, sanitised
from simulator.telegram.rules import animation_size, photo_size

STRIP = (22, 32, 44)
WORDS = (195, 204, 214)


def flat(number: int = 0, size: tuple[int, int] = (216, 480)) -> bytes:
    """A screen with a mark whose place differs with the number."""
    image = Image.new("RGB", size, "#ededed")
    image.paste("#ff2d55", (20, 20 * (number % 20), 60, 20 * (number % 20) + 20))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return out.getvalue()


def noise(number: int, size: tuple[int, int] = (216, 480)) -> bytes:
    """A photo that no film makes small."""
    data = random.Random(number).randbytes(size[0] * size[1] * 3)
    out = io.BytesIO()
    Image.frombytes("RGB", size, data).save(out, "JPEG", quality=90)
    return out.getvalue()


def shots(count: int, draw: object = flat) -> list[StepPicture]:
    assert callable(draw)
    return [StepPicture(draw(number), f"{number}/{count} 点击", "想法", str(number)) for number in range(1, count + 1)]


def made(of: list[StepPicture], kind: Kind = "gif", **limits: int) -> ReplayMedia:
    film = make_media(of, kind, **limits)
    assert film is not None
    return film


@given(st.integers(0, 500), st.integers(0, 80))
def test_a_spread_is_even_and_keeps_both_ends(count: int, most: int) -> None:
    places = spread(count, most)
    assert len(places) == min(count, most)
    assert places == sorted(set(places))
    if most > 1 and count:
        assert (places[0], places[-1]) == (0, count - 1)
        gaps = {after - before for before, after in itertools.pairwise(places)}
        assert max(gaps, default=1) - min(gaps, default=1) <= 1


def test_a_film_moves_and_holds_its_last_picture() -> None:
    film = made(shots(5))
    assert (film.kind, film.frames, film.left_out, len(film.files)) == ("gif", 5, (), 1)
    assert film.size == animation_size(film.files[0])
    assert film.size[0] % 2 == film.size[1] % 2 == 0
    with Image.open(io.BytesIO(film.files[0])) as gif:
        frames = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(gif)]
        assert gif.info["loop"] == 0
    assert [duration for _, duration in frames] == [1400] * 4 + [3500]
    picture = round(film.size[0] * 480 / 216)
    for number, (frame, _) in enumerate(frames, start=1):
        red, green, _ = frame.getpixel((80, 40 * number + 20))  # type: ignore[misc]  # RGB gives three
        assert red > 200 > green, number  # the mark keeps its colour, though it is but a few pixels
        assert frame.getpixel((2, picture + 2)) == STRIP


def test_the_words_stand_in_the_strip() -> None:
    without, bare = (
        made([StepPicture(flat(), "", words), StepPicture(flat(1), "", words)]) for words in ("怎么退货", "")
    )

    def strip(film: ReplayMedia) -> set[object]:
        with Image.open(io.BytesIO(film.files[0])) as gif:
            frame = gif.convert("RGB")
            below = frame.crop((0, round(frame.width * 480 / 216) + 2, frame.width, frame.height))
            return {colour for _, colour in below.getcolors(1_000_000) or ()}

    assert strip(bare) == {STRIP}
    assert len(strip(without)) > 1


def test_text_that_is_hostile_to_drawing() -> None:
    assert sanitised("a\n\tb\x00\x1b[31m\u202e\u200b😀❓c\ud800") == "a b[31mc"
    assert len(sanitised("x" * 100_000)) <= 400
    words = "一" * 5000 + "w" * 5000 + "\x00\U0001f600"
    assert made([StepPicture(flat(), words, words), StepPicture(flat(1), words, words)]).kind == "gif"


def test_too_many_pictures_are_thinned_out() -> None:
    film = made(shots(25), most_frames=10)
    assert (film.kind, film.frames, len(film.left_out)) == ("gif", 10, 15)
    assert not {"1", "25"} & set(film.left_out)


@pytest.mark.rotating(parts=2)
@pytest.mark.slow
def test_a_film_that_is_too_large_shrinks_then_loses_pictures() -> None:
    whole = made(shots(12, noise))
    smaller = made(shots(12, noise), most_bytes=int(whole.total * 0.7))
    assert (smaller.kind, smaller.frames, smaller.left_out) == ("gif", 12, ())
    assert smaller.size[0] < whole.size[0]
    assert smaller.total <= whole.total * 0.7
    smallest = made(shots(12, noise), most_bytes=int(whole.total * 0.25))
    assert smallest.kind == "gif"
    assert smallest.frames < 12
    assert len(smallest.left_out) == 12 - smallest.frames
    assert smallest.total <= whole.total * 0.25


@pytest.mark.parametrize(("count", "kind", "files"), [(2, "album", 2), (10, "album", 10), (11, "sheet", 1)])
def test_what_no_film_can_be_made_of(count: int, kind: str, files: int) -> None:
    film = made(shots(count), most_bytes=1000)
    assert (film.kind, len(film.files), film.left_out) == (kind, files, ())


@pytest.mark.parametrize("kind", ["gif", "album", "sheet"])
def test_one_picture_is_a_picture_and_none_is_nothing(kind: Kind) -> None:
    film = made(shots(1), kind)
    assert (film.kind, len(film.files)) == ("picture", 1)
    assert photo_size(film.files[0]) == film.size
    assert make_media([], kind) is None
    assert make_media([StepPicture(b"no picture", "x"), StepPicture(b"", "y")], kind) is None


def test_a_picture_that_is_broken_is_left_out() -> None:
    film = made([*shots(2), StepPicture(flat(3)[:300], "3/3", "", "3"), StepPicture(b"", "4/4", "", "4")])
    assert (film.frames, film.left_out) == (2, ("3", "4"))


def test_an_album_has_ten_at_most() -> None:
    film = made(shots(25), "album")
    assert (film.kind, len(film.files), len(film.left_out)) == ("album", 10, 15)
    assert {photo_size(file) for file in film.files} == {film.size}


@pytest.mark.parametrize("count", [2, 7, 60])
def test_a_sheet_is_a_photo(count: int) -> None:
    film = made(shots(count), "sheet")
    assert (film.kind, film.frames, film.left_out) == ("sheet", count, ())
    assert photo_size(film.files[0]) == film.size
    assert sum(film.size) <= MOST_SIDES


@pytest.mark.parametrize("size", [(480, 216), (40, 1200), (1200, 40), (1, 1)])
@pytest.mark.parametrize("kind", ["gif", "album", "sheet"])
def test_screens_of_any_shape(size: tuple[int, int], kind: Kind) -> None:
    pictures = [StepPicture(flat(number, size), str(number), "想法") for number in range(3)]
    film = made([*pictures, StepPicture(flat(4), "4")], kind)  # one of another shape among them
    assert film.kind == kind
    assert film.size[0] >= NARROWEST
    if kind != "gif":
        assert {photo_size(file) for file in film.files} == {film.size}
