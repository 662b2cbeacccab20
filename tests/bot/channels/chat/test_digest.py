"""/digest in the chat, over the real desk; the chart; what is said of what is down."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from PIL import Image

from agent_core.model.usage import Price, Prices
from bot.channels.chat.chart import HEIGHT, SERIES, WIDTH, Column, draw_chart
from bot.channels.chat.digest import alert_card, digest_card, setting_lines
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from bot.channels.telegram.render import MAX_CAPTION, to_html, units
from bot.desk.actors import Role
from bot.desk.desk import Desk
from bot.desk.digest_views import AlertView, Bar, DigestSetting, DigestView, ModelShare, Often
from tests.bot.channels.chat.member import Member, member
from tests.bot.desk.day import Day, at, day
from tests.support.shop import Shop

__all__ = ["day"]  # a fixture

ZONE = ZoneInfo("Asia/Shanghai")


@pytest.fixture
async def owner(shop: Shop) -> Member:
    return await member(shop, Role.OWNER)


def picture(talker: Member) -> Image.Image:
    data = talker.said.messages[0].card.picture
    assert data is not None
    return Image.open(io.BytesIO(data))


async def test_the_figures_of_today(shop: Shop, day: Day, owner: Member) -> None:
    shop.desk = Desk(replace(shop.desk.context, prices=Prices(default=Price(2, 8), currency="CNY")))
    said = await owner.say("小结")
    assert "今天 · 11-20" in said
    assert "客户提问 7 个，已回答 3 个（43%）" in said
    assert "自动回答 2 · 人工回答 1" in said
    assert "跳过 1 · 失败 1 · 不确定是否送达 1 · 处理中 1" in said
    assert "20 秒" in said
    assert "调用 2 次 · 输入 5,000 token，输出 200" in said
    assert "≈ 0.0116 CNY" in said
    assert "2× 能便宜点吗！\n2× 几天发货" in said
    assert "1× 在吗" in said
    assert picture(owner).size == (WIDTH, HEIGHT)
    assert [button.label for button in owner.buttons] == ["看没有答上的（3）", "今天", "昨天", "7 天", "30 天"]


async def test_without_prices_nothing_is_said_of_costs(day: Day, owner: Member) -> None:
    assert "费用" not in await owner.say("/digest")


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("/digest yesterday", "昨天 · 11-19"),
        ("小结 昨天", "昨天 · 11-19"),
        ("/digest week", "最近 7 天 · 11-14 – 11-20"),
        ("/digest 本月", "最近 30 天 · 10-22 – 11-20"),
    ],
)
async def test_other_times(day: Day, owner: Member, words: str, title: str) -> None:
    assert title in await owner.say(words)


async def test_one_time_becomes_another_in_place(day: Day, owner: Member) -> None:
    await owner.say("/digest")
    assert "昨天 · 11-19" in await owner.tap(owner.action("昨天"))
    assert owner.said.messages[0].replaces is not None
    assert "最近 30 天" in await owner.tap(owner.action("30 天"))
    asked = await owner.tap(owner.action("看没有答上的"))
    assert "能便宜点吗" in asked
    assert owner.said.messages[0].replaces is None


async def test_nothing_happened(shop: Shop, owner: Member) -> None:
    said = await owner.say("/digest")
    assert "没有客户提问" in said
    assert len(owner.buttons) == 4
    assert picture(owner).size == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    "words", ["/digest tomorrow", "/digest on monthly", "/digest off daily weekly", "/digest week x"]
)
async def test_what_is_not_understood_gets_examples(owner: Member, words: str) -> None:
    assert "/digest 关 每周" in await owner.say(words)


async def test_on_and_off_in_a_chat(shop: Shop, owner: Member) -> None:
    shop.desk = Desk(replace(shop.desk.context, digest_at=("09:00", "mon 09:00")))
    said = await owner.say("/digest off weekly")
    assert "每日小结: 09:00" in said
    assert "每周小结: 不发送" in said
    assert "每日小结: 不发送" in await owner.say("小结 关")
    assert "每周小结: 周一 09:00" in await owner.tap(owner.action("开启每周小结"))
    assert owner.said.toast == "已更改。"
    operator, viewer = await member(shop, Role.OPERATOR), await member(shop, Role.VIEWER)
    assert "每日小结: 09:00" in await operator.say("/digest on")
    assert "09:00" not in await viewer.say("/digest on")
    assert {chat.key for chat in await shop.desk.digest.chats()} == {
        f"telegram:{who.actor.user_id}" for who in (owner, operator)
    }


async def test_it_stands_in_the_settings(shop: Shop, owner: Member) -> None:
    shop.desk = Desk(replace(shop.desk.context, digest_at=("21:00", "")))
    said = await owner.say("/settings")
    assert "每日小结: 21:00" in said
    assert "每周小结: 已开启，但服务的设置里关掉了" in said
    assert "每日小结: 不发送" in await owner.tap(owner.action("关闭每日小结"))
    viewer = await member(shop, Role.VIEWER)
    assert "每日小结: 不发送" in await viewer.say("设置")
    assert not [button for button in viewer.buttons if "小结" in button.label]


def test_the_day_of_a_weekly_one_in_words() -> None:
    lines = setting_lines(texts("en"), DigestSetting(False, True, "09:00", "sun 18:30"))
    assert [line.text for line in lines] == ["off", "Sunday 18:30"]


# Cards ----------------------------------------------------------------------------------------------------------------


def full_view() -> DigestView:
    """As much as there can be."""
    often = tuple(Often("很长的问题" * 20 + str(number), 1000 - number) for number in range(4))
    since, until = at("2026-11-19 21:00"), at("2026-11-20 21:00")
    bars = tuple(Bar(datetime(2026, 11, 20, hour, tzinfo=ZONE), 900, 90, 9) for hour in range(24))
    return DigestView(
        "daily", since, until, 123456, 12345, 1234, 123, 12, 12, 3456, 7230.0, 1234567, 1234567890, 123456789,
        12345.6, "CNY", since, often, 1381, often, bars,
    )  # fmt: skip


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_the_fullest_card_is_a_caption(lang: Lang) -> None:
    models = tuple(ModelShare("autoglm-phone-9b-multilingual" + "x" * 40, 100_000, 1000.0) for _ in range(9))
    card = await digest_card(replace(full_view(), models=models), texts(lang))
    whole = to_html(card, 10_000)
    assert units(whole) - whole.count("<b>") * 7 - whole.count("quote>") * 12 < MAX_CAPTION
    assert "11-19 21:00 – 11-20 21:00" in card.title
    assert card.picture is not None
    assert len(card.picture) < 20_000


async def test_several_models_are_told_apart() -> None:
    view = DigestView("today", at("2026-11-20 00:00"), at("2026-11-21 00:00"), calls=1300, cost=1.5, currency="CNY")
    one, other = ModelShare("autoglm-phone-9b", 1200), ModelShare("glm-4.5v", 100, 1.5)
    said = [line.text for line in (await digest_card(replace(view, models=(one, other)), texts("zh"))).lines]
    assert "autoglm-phone-9b：调用 1,200 次\nglm-4.5v：调用 100 次 ≈ 1.50 CNY" in said
    alone = (await digest_card(replace(view, models=(other,)), texts("zh"))).lines
    assert not any("glm" in line.text for line in alone)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_is_said_of_what_is_down(lang: Lang) -> None:
    words = texts(lang)
    view = AlertView("phone", at("2026-11-20 14:05"), "192.168.1.20:5555", "offline\n" + "x" * 300)
    down = alert_card(view, words)
    assert "192.168.1.20:5555" in down.title
    assert down.lines[0].text == "11-20 14:05"
    assert down.lines[1].text.startswith("offline x")
    assert len(down.lines[1].text) == 200
    assert len(alert_card(replace(view, subject="model", name="", why=""), words).lines) == 2
    assert alert_card(replace(view, why="offline"), words).lines[1].text in {"离线", "offline"}
    if lang == "zh":
        assert alert_card(replace(view, why="unauthorized"), words).lines[1].text == "未授权"
    figures = {"spent": "1,000", "limit": "900", "currency": ""}
    spent = alert_card(replace(view, subject="limit", why="day_calls", figures=figures), words)
    assert "1,000" in spent.lines[1].text
    assert "PHONEDESK_LIMITS__DAY_CALLS" in spent.lines[1].text
    back = alert_card(replace(view, subject="knowledge", seconds=3900), words)
    assert back.lines[1].text in {"1 h 5 min", "1 小时 5 分钟"}
    low = alert_card(replace(view, subject="battery", why="9 %"), words)
    assert low.lines[1].text == "9 %"
    assert low.title != alert_card(replace(view, subject="heat", why="46.3 °C"), words).title
    assert alert_card(replace(view, seconds=3), words).lines[1].text in {"1 min", "1 分钟"}


# The chart ------------------------------------------------------------------------------------------------------------


def drawn(columns: list[Column]) -> Image.Image:
    image = Image.open(io.BytesIO(draw_chart("标题", ("a", "b", "c"), columns, nothing="没有")))
    assert image.format == "PNG"
    return image.convert("RGB")


def colour(image: Image.Image, x: int, y: int) -> str:
    red, green, blue = image.crop((x, y, x + 1, y + 1)).tobytes()
    return f"#{red:02x}{green:02x}{blue:02x}"


def colours(image: Image.Image, x: int) -> list[str]:
    """The series' colours in this column of pixels below the legend, from the bottom up."""
    found: list[str] = []
    for y in range(440, 140, -1):
        name = colour(image, x, y)
        if name in SERIES and (not found or found[-1] != name):
            found.append(name)
    return found


def test_bars_stand_on_each_other() -> None:
    image = drawn([Column("1", (3, 2, 1)), Column("2", (0, 0, 4)), Column("3", (0, 0, 0)), Column("4", (5, 0, 1))])
    step = (928 - 84) // 4
    assert [colours(image, 84 + step * n + step // 2) for n in range(4)] == [
        list(SERIES), [SERIES[2]], [], [SERIES[0], SERIES[2]]
    ]  # fmt: skip


@pytest.mark.parametrize("most", [0, 1, 7, 99, 100, 101, 1234, 98765])
def test_however_many_there_are_they_fit(most: int) -> None:
    image = drawn([Column(str(n), (most, 0, 0)) for n in range(30)])
    assert SERIES[0] not in {colour(image, x, 146) for x in range(84, 928)}
    assert bool(colours(image, 84 + 14)) == (most > 0)
