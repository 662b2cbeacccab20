"""Screen kits: what they hide, what they keep, and that each one of this folder is read as it says."""

from __future__ import annotations

import itertools
import json
import random
import re
import string
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.errors import InputRejected
from agent_core.geometry import Box
from agent_core.kits import Kit, differences, kit_text, load_kit
from agent_core.kits.disguise import Disguise
from agent_core.kits.export import export_kit
from agent_core.kits.kit import draw_kit, read_kit
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.page_report import MessageKind, PageKind
from agent_core.perception.readings import Reading
from simulator.phone.apps.looks import LOOKS
from simulator.phone.kit import KitPhone
from simulator.phone.scenario import ContactPart
from simulator.phone.server import serve
from simulator.phone.world import Kind
from tests.kits.make import FOLDER, kits, me, them
from tests.support.adb import adb_server
from tests.support.drawing import Drawn, DrawnList, draw, draw_list
from tests.support.ocr import needs_ocr

pytestmark = pytest.mark.rotating(parts=3)


async def exported(
    drawn: Drawn | DrawnList, look: str, *, seed: str | None = "test", tree: bool = True, ocr: OcrEngine | None = None
) -> Kit:
    frame = Frame(drawn.image, blake2b(drawn.image.tobytes(), digest_size=16).hexdigest(), 0.0)
    nodes = drawn.nodes if tree else None
    return await export_kit(frame, nodes, profile(LOOKS[look].app), version="9.1.0", seed=seed, ocr=ocr)


def test_there_is_a_kit_of_each_look() -> None:
    names = {path.name for path in kits()}
    assert {f"{key}-chat.kit.json" for key in LOOKS} <= names
    assert sum("-list" in name for name in names) >= 2
    assert sum("-group" in name for name in names) >= 2


@needs_ocr
@pytest.mark.rotating(parts=8)
@pytest.mark.parametrize("path", kits(), ids=lambda path: path.name.removesuffix(".kit.json"))
@pytest.mark.slow
async def test_kit_is_read_as_it_says(path: Path) -> None:
    kit = load_kit(path)
    assert differences(kit.page, await read_kit(kit)) == []


PRIVATE = ["王小二", "顺丰单号", "13800138000", "北京朝阳", "secret", "老同学群"]


@needs_ocr
@pytest.mark.parametrize("look", ["qq-plain", "wechat-dark", "wechat-wallpaper"])
async def test_no_word_of_a_chat_is_left_and_all_keep_their_length_and_kind(look: str) -> None:
    said = [them("顺丰单号 13800138000 查一下", 600), me("好的，王小二", 500), them("寄到北京朝阳 secret 吗？", 300)]
    kit = await exported(draw(look, "王小二", said), look)
    whole = kit.model_dump_json()
    assert [word for word in PRIVATE if word in whole] == []
    seen = await OcrEngine().read(draw_kit(kit))
    assert [word for word in PRIVATE for line in seen if word in line.text] == []
    told = [message.text for message in kit.page.messages]
    assert kit.page.title is not None
    assert len(kit.page.title.text) == 3
    assert [shape(text) for text in told] == [shape(message.text.replace(" ", "")) for message in said] or [
        shape(text.replace(" ", "")) for text in told
    ] == [shape(message.text.replace(" ", "")) for message in said]


def shape(text: str) -> str:
    """A text by the kinds of its characters: Chinese 中, digit 0, Latin a, signs as they are."""
    return "".join(
        "0" if char.isdigit() else "中" if "\u4e00" <= char <= "\u9fff" else "a" if char.isalpha() else char
        for char in text
    )


@pytest.mark.rotating(parts=2)
@needs_ocr
@pytest.mark.parametrize("look", ["qq-plain", "wechat-light"])
async def test_no_name_of_a_list_is_left(look: str) -> None:
    part = LOOKS[look].app
    names = ["王小二", "老同学群", "北京朝阳"]
    contacts = [
        ContactPart(name=name, app=part, unread=index, history=[them("顺丰单号", 60)])
        for index, name in enumerate(names)
    ]
    kit = await exported(draw_list(look, contacts), look)
    assert kit.page.page is PageKind.LIST
    assert sorted(row.unread for row in kit.page.rows) == [0, 1, 2]
    assert [word for word in PRIVATE if word in kit.model_dump_json()] == []
    seen = await OcrEngine().read(draw_kit(kit))
    assert [word for word in PRIVATE for line in seen if word in line.text] == []
    assert differences(kit.page, await read_kit(kit)) == []


# What a person may write, at random: none of it may be left


def secret(chance: random.Random) -> str:
    """A name, a number, an address, a password."""
    han = "".join(chance.choice("退款地址身份证密码张王李赵浙江杭州文一西路号楼室卡收货电话单元") for _ in range(4))
    digits = "".join(chance.choice(string.digits) for _ in range(chance.choice((6, 11, 16, 18))))
    latin = "".join(chance.choice(string.ascii_letters) for _ in range(7))
    return chance.choice((han, digits, latin, f"{latin}{digits}", f"{digits[:4]} {digits[4:]}", f"{han}{digits}"))


# Around a secret: what an app says, and what has only the form of it.
AROUND = (
    *("*", "对方已取消，*", "[*]", "[*]你好", "[图片]*", "[2条]*: *", "你撤回了一条消息 *", "在线-*", "在线 - *"),
    *("通话时长 *", "通话时长 12:30 *", "*撤回了一条消息", "“*”撤回了一条消息", "5MB/*", "1.5 MB·*", "*.pdf", "*.Li"),
    *("*的资料卡", "*头像", "对方正在输入*", "*, ,有2条未读,*,20:34", "消息(*)", "返回消息未读*", "昨天 *", "*小程序"),
    *("\u200b*\u200b", "😂*♡", "*\n[图片]"),
)


def parts(text: str) -> set[str]:
    """The runs of at least two letters or digits of one kind in a text."""
    return set(re.findall(r"[0-9]{2,}|[A-Za-z]{2,}|[\u4e00-\u9fff]{2,}", text))


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("app", ["qq", "wechat"])
def test_nothing_that_a_person_wrote_is_left_in_any_form(app: str) -> None:
    chance = random.Random(app)
    disguise = Disguise(profile(app))
    for number in range(4000):
        hidden, frame = secret(chance), AROUND[number % len(AROUND)]
        text = frame.replace("*", hidden)
        said = disguise.line(text)
        assert len(said) == len(text)
        for place in (found.start() for found in re.finditer(re.escape(hidden), text)):
            left = [i for i in range(place, place + len(hidden)) if said[i] == text[i] and text[i].isalnum()]
            assert left == [], (text, said)


@pytest.mark.parametrize("sign", ["😂", "♡", "①", "ﾊ", "Ж", "ก", "\u0301", "②"])
def test_signs_and_letters_of_any_script_are_replaced(sign: str) -> None:
    assert sign not in Disguise(profile("qq")).plain(f"好{sign}的")


class Blind(OcrEngine):
    """An engine that finds nothing: a hand-written font, letters on a picture."""

    async def recognise_lines(self, crops: Sequence[Image.Image]) -> list[Recognised]:
        return [Recognised("", 0.0) for _ in crops]

    async def read(self, image: Image.Image, region: Box | None = None, *, digest: str | None = None) -> list[Reading]:
        return []


@needs_ocr
@pytest.mark.parametrize("look", ["qq-plain", "wechat-dark", "wechat-wallpaper", "qq-skin"])
async def test_words_that_ocr_did_not_find_are_not_left_in_the_picture(look: str) -> None:
    said = [
        them("卡号6222021234567890", 900),
        me("好的王小二", 800),
        them("寄到浙江省杭州市文一西路969号，收货人张三，电话13800138000，请快一点", 500),
        them("退", 300),
    ]
    drawn = draw(look, "李明 VIP客户", said, draft="我的密码是8848", keyboard=True, status="在线")
    kit = await exported(drawn, look, tree=False, ocr=Blind())
    assert kit.texts == ()
    seen = [line.text for line in await OcrEngine().read(draw_kit(kit))]
    assert [text for text in seen if parts(text)] == []


@needs_ocr
@pytest.mark.rotating(parts=8)
@pytest.mark.parametrize("look", ["qq-classic", "wechat-light", "wechat-wallpaper", "qq-skin"])
@pytest.mark.parametrize("number", range(2))
async def test_random_words_are_left_neither_in_the_file_nor_in_the_picture(look: str, number: int) -> None:
    chance = random.Random(f"{look} {number}")
    hidden = [secret(chance) for _ in range(4)]
    said = [them(f"{hidden[0]}，{hidden[1]}", 600), me(hidden[2], 500), them(f"[{hidden[1]}]{hidden[3]}", 300)]
    name = secret(chance)
    kit = await exported(draw(look, name, said), look, seed=None)
    words = {part for text in (*hidden, name) for part in parts(text)}
    # Two digits alone may stand anywhere in a file of numbers.
    assert [word for word in words if len(word) > 3 and word in kit.model_dump_json()] == []
    shown = [*(part.text for part in kit.texts), *(line.text for line in await OcrEngine().read(draw_kit(kit)))]
    assert [word for word in words for text in shown if len(word) > 3 and word in text] == []


@needs_ocr
async def test_faces_and_pictures_become_blocks() -> None:
    drawn = draw("wechat-light", "王小二", [them("在吗", 600), them("", 300, Kind.IMAGE)])
    kit = await exported(drawn, "wechat-light")
    image = draw_kit(kit)
    avatar = next(node for node in drawn.nodes if node.description.endswith("头像"))
    assert len(drawn.image.crop(avatar.box.as_tuple()).getcolors(100_000) or []) > 3
    assert len(image.crop(avatar.box.as_tuple()).getcolors(100_000) or []) <= 3
    box = next(bubble.box for bubble in drawn.truth.bubbles if bubble.kind.value == "image")
    assert box is not None
    inner = (box.left + 30, box.top + 30, box.right - 30, box.bottom - 30)
    columns = [image.getpixel((x, box.center.y)) for x in range(box.left, box.right)]
    changes = sum(one != other for one, other in itertools.pairwise(columns))
    assert len(drawn.image.crop(inner).getcolors(100_000) or []) > 100
    assert changes <= 14
    assert [message.kind for message in kit.page.messages] == [MessageKind.TEXT, MessageKind.IMAGE]


@needs_ocr
async def test_tree_keeps_its_ids_and_places_and_loses_its_words() -> None:
    drawn = draw("qq-plain", "王小二", [them("顺丰单号", 600)])
    kit = await exported(drawn, "qq-plain")
    assert kit.nodes is not None
    assert [node.id for node in kit.nodes] == [node.resource_id for node in drawn.nodes]
    assert [node.box for node in kit.nodes] == [node.box.as_tuple() for node in drawn.nodes]
    texts = " ".join(f"{node.text} {node.description}" for node in kit.nodes)
    assert "王小二" not in texts
    assert "顺丰" not in texts
    assert "的资料卡" in texts  # the app's own words stay
    assert (await exported(drawn, "qq-plain", tree=False)).nodes is None


def test_one_letter_always_becomes_the_same_and_no_two_exports_are_alike() -> None:
    qq = profile("qq")
    one, other = Disguise(qq), Disguise(qq, "seed")
    assert one.plain("人人人") == one.plain("人") * 3
    assert one.plain("人") != "人"
    assert other.plain("人山人海") == Disguise(qq, "seed").plain("人山人海")
    assert len({Disguise(qq).plain("顺丰单号查一下吧") for _ in range(5)}) > 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("发送", "发送"),
        ("按住 说话", "按住 说话"),
        ("20:34", "12:12"),
        ("晚上8:34", "晚上8:12"),
        ("[图片]", "[图片]"),
        ("1.2 MB", None),
        ("你撤回了一条消息", "你撤回了一条消息"),
        ("王小二的资料卡", None),
        ("报价.pdf", None),
    ],
)
def test_what_the_app_says_stays(text: str, kept: str | None) -> None:
    said = Disguise(profile("qq"), "seed").line(text)
    assert shape(said) == shape(text)
    if kept is not None:
        assert said == kept
    else:
        assert said != text
        assert said.endswith(("的资料卡", ".pdf", " MB"))


# Files


@pytest.fixture
def data() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "qq-plain-chat.kit.json").read_text(encoding="utf-8")))


def wide(data: dict[str, Any]) -> None:
    data["ground"][0]["runs"][0][0] += 1


def high(data: dict[str, Any]) -> None:
    data["ground"].pop()


def colour(data: dict[str, Any]) -> None:
    data["ground"][0]["runs"][0][1] = 300


def size(data: dict[str, Any]) -> None:
    data["size"] = [100, 2400]


def field(data: dict[str, Any]) -> None:
    data["more"] = 1


def form(data: dict[str, Any]) -> None:
    data["format"] = 2


def word(data: dict[str, Any]) -> None:
    data["texts"][0]["text"] = "长" * 500


def side(data: dict[str, Any]) -> None:
    data["page"]["messages"][0]["side"] = "us"


@pytest.mark.parametrize("spoil", [wide, high, colour, size, field, form, word, side])
def test_bad_kit_is_refused_and_the_place_told(spoil: Any, data: dict[str, Any], tmp_path: Path) -> None:
    spoil(data)
    path = tmp_path / "bad.kit.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputRejected, match=r"bad\.kit\.json is no screen kit: .{8}"):
        load_kit(path)


def test_file_that_is_too_large_no_json_or_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.kit.json"
    path.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(InputRejected, match="larger than 4 MB"):
        load_kit(path)
    path.write_text("no", encoding="utf-8")
    with pytest.raises(InputRejected, match="no screen kit"):
        load_kit(path)
    with pytest.raises(InputRejected, match="cannot be read"):
        load_kit(tmp_path / "none.kit.json")


def test_kit_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    for path in kits()[:3]:
        kit = load_kit(path)
        (tmp_path / "again.kit.json").write_text(kit_text(kit), encoding="utf-8")
        assert load_kit(tmp_path / "again.kit.json") == kit


# The virtual phone


async def test_virtual_phone_shows_the_page_and_logs_taps() -> None:
    kit = load_kit(FOLDER / "wechat-light-chat.kit.json")
    async with serve(phone=KitPhone(kit)) as running:
        assert await running.phone.shown() == draw_kit(kit)
        assert list(await running.phone.tree()) == list(kit.tree("com.tencent.mm") or ())
        window = running.phone.window()
        assert window.package == "com.tencent.mm"
        async with adb_server() as adb, aiohttp.ClientSession() as http:
            serial = await adb.connect(running.adb_port)
            part = kit.texts[1]
            await adb.run("-s", serial, "shell", "input", "tap", str(part.left + 20), str(part.middle))
            shot = await adb.run("-s", serial, "exec-out", "screencap", "-p")
            assert shot.out[:4] == b"\x89PNG"
            async with http.get(f"{running.state_url}/state") as answer:
                state = await answer.json()
        assert [tap["on"] for tap in state["taps"]] == [part.text]
        await running.phone.key("BACK")
        await running.phone.tap(540, 2300)
        assert await running.phone.shown() == draw_kit(kit)
