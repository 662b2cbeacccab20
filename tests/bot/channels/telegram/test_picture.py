"""A chat of the stand-in Telegram as a picture."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from agent_core.texts.layout import font
from bot.channels.chat.texts import LANGUAGES, Lang, catalogue
from simulator.telegram.emoji import clusters, pictured
from simulator.telegram.people import Toast
from simulator.telegram.picture import OWN, PAPER, STYLES, Look, chat_picture, to_png, transcript
from simulator.telegram.rules import checked_text
from simulator.telegram.wording import Span, blocks, cut_to, line_width, lines_of, width_of
from simulator.telegram.world import Button, Content, Message, World

SIZE = 21


def content(html: str, **more: object) -> Content:
    text, entities = checked_text(html, "HTML")
    return Content(text, **more).with_entities(entities)  # type: ignore[arg-type]  # as the caller gives them


def said(html: str, *, by_bot: bool = True, **more: object) -> Message:
    world = World()
    person = world.member(7, "Person", "en")
    return world.post(world.chats[7], world.bot if by_bot else person, content(html, **more))


def jpeg(colour: str, size: tuple[int, int] = (108, 240)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "JPEG", quality=95)
    return out.getvalue()


def share(picture: Image.Image, colour: str) -> int:
    """How many pixels have exactly this colour."""
    wanted = Image.new("RGB", (1, 1), colour).getpixel((0, 0))
    return sum(count for count, found in picture.getcolors(picture.width * picture.height) or [] if found == wanted)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.slow
def test_every_character_of_our_texts_can_be_drawn(lang: Lang) -> None:
    nothing = bytes(font(40).getmask("\uffff"))
    missing = {
        cluster
        for text in catalogue(lang).values()
        for cluster in clusters(text)
        if not cluster.isspace() and not pictured(cluster) and bytes(font(40).getmask(cluster[0])) == nothing
    }
    assert missing == set()


def test_styles_follow_the_entities_also_after_an_emoji() -> None:
    # An emoji is two of Telegram's units.
    found = blocks(
        content("🎬 <b>粗</b>细\n<blockquote>引 <code>x1</code></blockquote>\n见 /kb 和 https://a.example/b")
    )
    assert [block.kind for block in found] == ["plain", "quote", "plain"]
    assert found[0].spans == (Span("🎬 "), Span("粗", bold=True), Span("细"))
    assert found[1].spans == (Span("引 "), Span("x1", code=True))
    assert [span.text for span in found[2].spans if span.link] == ["/kb", "https://a.example/b"]


def test_lines_keep_within_their_width_and_words_whole() -> None:
    text = "现货订单在付款后48小时内发出，一般当天16点前付款的当天就能寄出。Charger-65W is in stock, ask for it."
    lines = lines_of([Span(text)], SIZE, 240)
    assert "".join(span.text for line in lines for span in line).replace(" ", "") == text.replace(" ", "")
    assert all(line_width(line, SIZE) <= 240 + SIZE for line in lines)  # a closing mark may hang over
    assert any("Charger-65W" in span.text for line in lines for span in line)
    assert not any(line[0].text[0] in "，。" for line in lines)
    assert [[span.text for span in line] for line in lines_of([Span("一\n\n二")], SIZE, 240)] == [["一"], [], ["二"]]


def test_a_line_is_cut_where_there_is_no_more_room() -> None:
    assert cut_to("短", SIZE, 100) == "短"
    cut = cut_to("很长的一句话说也说不完", SIZE, 100)
    assert cut.endswith("…")
    assert width_of(cut, SIZE) <= 100


def test_whose_message_it_is_can_be_seen() -> None:
    look = Look("Desk", viewer=7)
    own, bot = chat_picture([said("hello", by_bot=False)], look), chat_picture([said("hello")], look)
    assert share(own, OWN) > 0 == share(bot, OWN)
    left, right = bot.crop((0, 80, 200, bot.height)), bot.crop((440, 80, 640, bot.height))
    assert share(left, PAPER) > 0 == share(right, PAPER)


def test_buttons_have_their_colours_and_a_toast_lies_over_the_end() -> None:
    keys = ((Button("Stop", "a", style="danger"), Button("Go", "b", style="success")), (Button("Look", "c"),))
    message = said("running", buttons=keys)
    plain = chat_picture([said("running")], Look())
    with_keys = chat_picture([message], Look())
    assert share(with_keys, STYLES["danger"]) > 1000
    assert share(with_keys, STYLES["success"]) > 1000
    assert with_keys.height > plain.height + 70
    told = chat_picture([message], Look(), toast=Toast("Rated 👍"))
    assert told.height > with_keys.height
    assert chat_picture([message], Look(), toast=Toast("")).height == with_keys.height


def test_a_photo_stands_above_its_caption_and_an_album_side_by_side() -> None:
    world = World()
    world.member(7, "Person")
    chat = world.chats[7]
    files = [world.store(jpeg(colour), "a.jpg") for colour in ("#ff0000", "#0000ff")]
    one = world.post(chat, world.bot, Content(caption="words", media="photo", file=files[0]))
    album = [world.post(chat, world.bot, Content(media="photo", file=file)) for file in files]
    for message in album:
        message.media_group_id = "A1"
    alone, together = chat_picture([one], Look()), chat_picture(album, Look())
    reds = [x for x in range(0, 640, 20) if _is(together, (x, 200), "red")]
    blues = [x for x in range(0, 640, 20) if _is(together, (x, 200), "blue")]
    assert reds
    assert blues
    assert max(reds) < min(blues)
    assert _is(alone, (290, 200), "red")
    assert share(alone, PAPER) > 0


def _is(picture: Image.Image, place: tuple[int, int], colour: str) -> bool:
    pixel = picture.getpixel(place)
    assert isinstance(pixel, tuple)
    strong = {"red": 0, "blue": 2}[colour]
    return pixel[strong] > 200 and sum(pixel) - pixel[strong] < 100


def test_a_moving_picture_stands_still_and_a_file_has_its_name() -> None:
    out = io.BytesIO()
    frames = [Image.new("RGB", (216, 300), colour) for colour in ("#00ff00", "#ff0000", "#ff0000")]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=100)
    world = World()
    world.member(7, "Person")
    chat = world.chats[7]
    film = world.post(chat, world.bot, Content(media="animation", file=world.store(out.getvalue(), "a.gif")))
    assert _is(chat_picture([film], Look()), (290, 300), "red")
    table = world.post(chat, world.bot, Content(media="document", file=world.store(b"x" * 5000, "faq.xlsx")))
    assert share(chat_picture([table], Look()), "#2f7fb9") > 500


def test_the_same_chat_gives_the_same_small_picture_with_its_words_in_it() -> None:
    message = said("<b>✅ 已完成</b>\n用时：3 秒")
    look = Look("Desk", "bot", words=lambda words: words.replace("3 秒", "6 秒"))
    read = transcript([message], look.words)
    first, second = (to_png(chat_picture([message], look), read) for _ in range(2))
    assert first == second
    with Image.open(io.BytesIO(first)) as image:
        image.load()
        assert image.width == look.width
        assert "用时：6 秒" in image.text["Description"]  # type: ignore[attr-defined]  # a PNG has it
    assert len(first) < 20_000
    assert to_png(chat_picture([message], Look("Desk", "bot"))) != first
