"""What no picture for people shows: by the tree, by pictures alone, and where nothing can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from PIL import Image, ImageChops

from agent_core.actions.types import Tap
from agent_core.apps.profile import profile, secret_rules
from agent_core.apps.secrets import SecretRule, SecretRules, shipped_rules
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.loop.recording import Recorder
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Bubble, ChatScreen, Reading, Side, Source
from agent_core.perception.redaction import Redaction, cover, secret_boxes
from agent_core.ports import Event
from agent_core.session import Session
from tests.support.ocr import needs_ocr

from .support import QQ_PACKAGE, Look, look, open_chat, scenario, them

OCR = OcrEngine()
BY_TREE = ScreenReader(ocr=None, model=None)
BLIND = ScreenReader(ocr=None, model=None, sources=[])
READERS = [
    pytest.param(BY_TREE, id="tree"),
    pytest.param(ScreenReader(ocr=OCR, model=None), id="both", marks=needs_ocr),
    pytest.param(ScreenReader(ocr=OCR, model=None, sources=[Source.OCR]), id="picture", marks=needs_ocr),
]
SIZE = (1080, 2400)
PAY = "com.eg.android.AlipayGphone"
COVER = {(142, 149, 158), (168, 174, 182)}
WHITE = (255, 255, 255)
WHOLE = [Box(0, 0, *SIZE)]


async def shown(reader: ScreenReader, seen: Look, package: str | None = QQ_PACKAGE) -> Image.Image:
    redaction = Redaction(reader)
    redaction.saw(seen.frame, package, seen.nodes)
    return await redaction.over(seen.frame)


def colours(picture: Image.Image, box: Box) -> set[tuple[int, ...]]:
    """Without the corners of a bubble, which are round."""
    found = picture.crop((box.left + 20, box.top + 4, box.right - 20, box.bottom - 4)).getcolors(1 << 20)
    return {color for _, color in found or () if isinstance(color, tuple)}


def differ(one: Image.Image, other: Image.Image) -> bool:
    return ImageChops.difference(one, other).getbbox() is not None


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("您的验证码是 483920，勿外传", "您的验证码是 715364，勿外传"),
        ("账户余额 ¥1,234.56", "账户余额 ¥9,876.32"),
        ("卡号 6222 0212 3456 7890 123", "卡号 6217 9987 6543 2109 876"),
        ("密码: 20264831", "密码: 74139056"),
        ("密码: Tulip2026", "密码: Nadir7413"),
    ],
)
async def test_two_secrets_give_the_same_picture(reader: ScreenReader, one: str, other: str) -> None:
    looks = [await look(await open_chat(scenario(them("在吗？", 4000), them(text)))) for text in (one, other)]
    assert differ(looks[0].frame.image, looks[1].frame.image)
    first, second = [await shown(reader, seen) for seen in looks]
    # The bubble of the text is as wide as its letters; the cover itself tells nothing of them.
    boxes = [
        next(node.box for node in seen.nodes if node.text == text)
        for seen, text in zip(looks, (one, other), strict=True)
    ]
    for picture, box in zip((first, second), boxes, strict=True):
        assert COVER <= colours(picture, box) <= COVER | {WHITE}
    if boxes[0] == boxes[1] and reader is BY_TREE:  # OCR's boxes end a pixel sooner or later
        assert not differ(first.crop(boxes[0].as_tuple()), second.crop(boxes[0].as_tuple()))


@pytest.mark.parametrize("reader", READERS)
async def test_what_is_no_secret_stays_as_it_is(reader: ScreenReader) -> None:
    words = ("几天能发货？", "订单号 2026112100457，买了2件一共199.00元", "验证一下，电话10:32打的")
    seen = await look(await open_chat(scenario(*(them(text) for text in words))))
    picture = await shown(reader, seen)
    assert picture is seen.frame.image


@pytest.mark.parametrize("reader", READERS)
async def test_the_list_of_chats_shows_no_code_either(reader: ScreenReader) -> None:
    phone = await open_chat(scenario(them("验证码 483920")))
    await phone.key("BACK")
    seen = await look(phone)
    row = next(node.box for node in seen.nodes if "483920" in node.text)
    picture = await shown(reader, seen)
    assert COVER <= colours(picture, row) <= COVER | {WHITE}


@pytest.mark.parametrize("reader", READERS)
async def test_a_payment_app_shows_no_figure(reader: ScreenReader) -> None:
    phone = await open_chat(scenario(them("在吗？")))
    await phone.launch(PAY)
    seen = await look(phone)
    balance = next(node.box for node in seen.nodes if "余额" in node.text)
    picture = await shown(reader, seen, PAY)
    assert COVER <= colours(picture, balance) <= COVER | {(245, 246, 248)}
    title = next(node.box for node in seen.nodes if node.text == "支付宝")
    assert not differ(picture.crop(title.as_tuple()), seen.frame.image.crop(title.as_tuple()))


async def test_what_nobody_can_read_is_whole_in_sensitive_apps_and_where_the_app_is_not_known() -> None:
    seen = await look(await open_chat(scenario(them("验证码 483920"))))
    for package, expected in ((PAY, WHOLE), ("com.android.mms", WHOLE), (QQ_PACKAGE, [])):
        redaction = Redaction(BLIND)
        redaction.saw(seen.frame, package, seen.nodes)
        assert await redaction.boxes(seen.frame) == expected, package
    assert await Redaction(BLIND).boxes(seen.frame) == WHOLE


async def test_what_a_model_transcribed_covers_the_messages() -> None:
    seen = await look(await open_chat(scenario(them("验证码 483920"))))

    def chat(text: str, draft: str = "") -> ChatScreen:
        return ChatScreen(title="11", bubbles=(Bubble(Side.THEM, text),), draft=draft, source=Source.MODEL, sure=True)

    for words, count in ((chat("验证码 483920"), 1), (chat("在吗"), 0), (chat("在吗", "密码 483920"), 1)):
        redaction = Redaction(BLIND)
        redaction.saw(seen.frame, QQ_PACKAGE, None, words)
        boxes = await redaction.boxes(seen.frame)
        assert len(boxes) == count
        assert all(box.top > 100 for box in boxes)  # the title stays


async def test_a_reading_that_fails_covers_everything() -> None:
    class Failing(ScreenReader):
        async def texts(self, frame: Frame, nodes: Sequence[Node] | None) -> list[Reading] | None:
            raise OSError("the model files are gone")

    seen = await look(await open_chat(scenario(them("验证码 483920"))))
    redaction = Redaction(Failing(ocr=None, model=None))
    redaction.saw(seen.frame, QQ_PACKAGE, seen.nodes)
    assert await redaction.boxes(seen.frame) == WHOLE


@needs_ocr
async def test_a_notification_over_the_app_is_covered_though_the_tree_knows_nothing_of_it() -> None:
    """A tree is of the app's window alone."""
    seen = await look(await open_chat(scenario(them("在吗？"))))
    note = await look(await open_chat(scenario(them("验证码 483920，勿告诉他人"))))
    text = next(node.box for node in note.nodes if "483920" in node.text)
    image = seen.frame.image.copy()
    image.paste(note.frame.image.crop(text.as_tuple()), (200, 120))
    frame = Frame(image, "with a notification", 0.0)
    picture = await shown(ScreenReader(ocr=OCR, model=None), Look(frame, seen.nodes))
    assert colours(picture, Box(220, 130, 480, 150)) == COVER


@needs_ocr
@pytest.mark.parametrize("page", ["chat", "list", "home"])
async def test_where_the_tree_tells_of_everything_at_the_top_no_picture_is_read(page: str) -> None:
    class Unused(OcrEngine):
        async def read(self, image: Image.Image, region: Box | None = None, *, digest: str = "") -> list[Reading]:
            raise AssertionError("this takes half a second")

    phone = await open_chat(scenario(them("在吗？"), size=(720, 1600)))
    if page != "chat":
        await phone.key("BACK" if page == "list" else "HOME")
    seen = await look(phone)
    await ScreenReader(ocr=Unused(), model=None).texts(seen.frame, seen.nodes)


async def test_a_screen_is_read_once_and_again_where_more_is_known() -> None:
    class Counting(ScreenReader):
        reads = 0

        async def texts(self, frame: Frame, nodes: Sequence[Node] | None) -> list[Reading] | None:
            self.reads += 1
            return await super().texts(frame, nodes)

    seen = await look(await open_chat(scenario(them("验证码 483920"))))
    reader = Counting(ocr=None, model=None)
    redaction = Redaction(reader)
    redaction.saw(seen.frame, QQ_PACKAGE, seen.nodes)
    boxes = await redaction.boxes(seen.frame)
    assert await redaction.boxes(seen.frame) == boxes
    assert reader.reads == 1
    redaction.saw(seen.frame, QQ_PACKAGE, None)  # looked at again, without the tree: what it said still holds
    assert await redaction.boxes(seen.frame) == boxes != []


async def test_turned_off_it_covers_nothing_and_asks_nothing() -> None:
    seen = await look(await open_chat(scenario(them("验证码 483920"))))
    redaction = Redaction(BLIND, on=False)
    assert not redaction.needs_tree
    assert await redaction.over(seen.frame) is seen.frame.image


async def test_the_ring_is_drawn_over_the_cover_and_the_frame_stays_raw() -> None:
    class Kept:
        pictures: list[bytes]

        async def save(self, session: Session) -> None:
            return None

        async def event(
            self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
        ) -> None:
            return None

    seen = await look(await open_chat(scenario(them("验证码 483920"))))
    raw = seen.frame.image.copy()
    redaction = Redaction(BY_TREE)
    redaction.saw(seen.frame, QQ_PACKAGE, seen.nodes)
    recorder = Recorder(Session(run_id="r", task="t"), Kept(), redaction)
    plain, ringed = await recorder.picture(seen.frame), await recorder.picture(seen.frame, Tap(element=(500, 500)))
    assert plain != ringed
    assert not differ(seen.frame.image, raw)


# Rules ----------------------------------------------------------------------------------------------------------------


def at(text: str, left: int, top: int, width: int = 300, height: int = 50) -> Reading:
    return Reading(text, Box(left, top, left + width, top + height), Source.TREE)


def covered(*readings: Reading, package: str | None = None) -> list[str]:
    boxes = secret_boxes(readings, secret_rules(package), SIZE)
    return [reading.text for reading in readings if reading.box in boxes]


@pytest.mark.parametrize(
    "text",
    [
        "【某某银行】验证码：483920，请勿泄露", "483920 is your verification code", "Your OTP is 48-39-20",
        "動態密碼 4839",
        "登录密码 abc12345", "验证码４８３９２０", "余额:1,234.56元", "Balance $12.30", "可用额度 ￥5000", "483 920",
        "6222021234567890123", "4111 1111 1111 1111", "11010519491231002X", "CVV 123", "pin: 0000",
    ],
)  # fmt: skip
def test_texts_that_are_covered(text: str) -> None:
    assert covered(at(text, 100, 500)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "验证码收到了吗", "忘记密码怎么办", "¥199.00", "共2件 398.00元", "订单号2026112100457391", "2026-11-21 10:32",
        "400-123-4567", "13800138000", "SF1234567890123", "余额不足", "型号 A1466", "10:32", "99999", "1000000",
    ],
)  # fmt: skip
def test_texts_that_stay(text: str) -> None:
    assert covered(at(text, 100, 500)) == []


def test_a_value_belongs_to_the_label_beside_above_or_below_it() -> None:
    label = at("验证码", 100, 500)
    assert covered(label, at("4839", 700, 505)) == ["4839"]  # on its row
    assert covered(label, at("4839", 120, 580)) == ["4839"]  # below
    assert covered(label, at("4839", 120, 400)) == ["4839"]  # above
    assert covered(label, at("4839", 120, 1400)) == []
    assert covered(label, at("4839", 700, 580)) == []
    assert covered(at("我的余额", 100, 500), at("1,234.56", 100, 420, height=80)) == ["1,234.56"]


def test_what_a_tree_says_of_a_whole_row_covers_its_words_alone() -> None:
    row = at("11, ,有2条未读,验证码 483920,17:34", 0, 400, 1080, 180)
    words = at("验证码 483920", 200, 490)
    below = at("另一位, ,在吗,17:34", 0, 580, 1080, 180)
    parts = (at("11", 200, 420), at("17:34", 950, 420, 100), at("另一位", 200, 600), at("在吗", 200, 670))
    time = at("17:34", 950, 600, 100)
    assert covered(row, *parts[:2], words, below, *parts[2:], time) == [words.text]
    assert covered(row, *parts[:2]) == [row.text]  # what is said nowhere else


def test_a_number_that_a_line_breaks_in_two_is_covered_in_both() -> None:
    assert covered(at("您的验证码是48", 100, 500), at("3920，五分钟内有效", 100, 560)) == [
        "您的验证码是48",
        "3920，五分钟内有效",
    ]
    assert covered(at("您的验证码是4839", 100, 500), at("20，五分钟内有效", 100, 560)) == [
        "您的验证码是4839",
        "20，五分钟内有效",
    ]


def test_the_time_above_a_secret_stays() -> None:
    time, balance = at("10:53", 300, 400, 80, 30), at("余额 ¥1,234.56", 100, 460)
    assert covered(time, balance, at("11:07", 300, 640, 80, 30)) == ["余额 ¥1,234.56"]


def test_pages_regions_and_own_rules_of_apps() -> None:
    assert secret_boxes([at("付款码", 100, 100)], secret_rules(PAY), SIZE) == WHOLE
    assert covered(at("3", 100, 100), package=PAY) == ["3"]
    assert covered(at("483920", 100, 100), package="com.android.mms") == ["483920"]
    rules = SecretRules(regions=((0.0, 0.5, 1.0, 0.75),), rules=(SecretRule(name="x", value="x"),))
    assert secret_boxes([], rules, SIZE) == [Box(0, 1200, 1080, 1800)]
    assert profile("wechat").secrets.rules
    assert shipped_rules(PAY).sensitive


def test_a_rule_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        SecretRule(name="bad", value="(")


def test_the_cover_depends_on_its_place_alone() -> None:
    black, white = Image.new("RGB", SIZE, "black"), Image.new("RGB", SIZE, "white")
    boxes = [Box(100, 100, 300, 160), Box(900, 2350, 1200, 2500)]
    areas = [cover(image, boxes).crop((100, 100, 300, 160)) for image in (black, white)]
    assert not differ(*areas)
    assert colours(areas[0], Box(0, 0, *areas[0].size)) == COVER
    assert black.getcolors() == [(SIZE[0] * SIZE[1], (0, 0, 0))]
    assert not differ(cover(black, [replace(boxes[0], right=100)]), black)
