"""The apps of the virtual phone that are no chats: settings, payment and browser."""

from __future__ import annotations

from simulator.phone.apps.browser import Browser
from simulator.phone.apps.payment import Payment
from simulator.phone.apps.settings import Settings
from tests.simulator.phone.hand import Hand


def _black(data: bytes) -> float:
    return data.count(0) / len(data)


async def test_a_switch_is_the_setting_that_adb_reads() -> None:
    hand = Hand()
    rotation = ("system", "accelerometer_rotation")
    await hand.phone.launch(Settings.package)
    for page, name, on in (("显示与亮度", "自动旋转", False), ("移动网络", "飞行模式", True)):
        await hand.tap(page)
        before = await hand.pixels()
        assert (await hand.texts("summary"))[1] == ("已关闭" if on else "已开启")
        await hand.tap(name)
        assert (await hand.texts("summary"))[1] == ("已开启" if on else "已关闭")
        assert await hand.pixels() != before
        await hand.phone.key("BACK")
    assert hand.phone.settings[rotation] == "0"
    assert hand.phone.settings["global", "airplane_mode_on"] == "1"
    hand.phone.set_setting(*rotation, "1")
    await hand.tap("显示与亮度")
    assert await hand.texts("summary") == ["已关闭", "已开启"]


async def test_code_and_password_are_black_in_pictures_and_there_all_the_same() -> None:
    hand = Hand()
    await hand.phone.launch(Payment.package)
    await hand.tap("收付款")
    assert _black(await hand.pixels()) > 0.99
    assert await hand.texts("title") == ["收付款"]
    await hand.phone.key("BACK")
    assert _black(await hand.pixels()) < 0.5
    await hand.tap("转账")
    await hand.tap("amount")
    await hand.phone.text("12")
    await hand.tap("确认转账")
    assert await hand.texts("title") == ["支付密码"]
    await hand.tap("确认付款")
    assert hand.phone.report()["pay_taps"] == ["收付款", "转账", "确认转账", "确认付款"]
    await hand.phone.force_stop(Payment.package)
    await hand.phone.launch(Payment.package)
    assert await hand.texts("title") == ["支付宝"]


async def test_the_browser_opens_what_is_typed_and_goes_back() -> None:
    hand = Hand()
    await hand.phone.launch(Browser.package)
    for typed, heading in (("shop.example/a", "shop.example"), ("怎么退货", "“怎么退货”的搜索结果")):
        await hand.tap("url")
        hand.phone.erase(None)
        await hand.type(typed)
        await hand.phone.key("ENTER")
        assert await hand.texts("heading") == [heading]
    assert not hand.phone.keyboard_shown()
    await hand.phone.key("BACK")
    assert await hand.texts("heading") == ["shop.example"]
    await hand.tap("帮助中心")
    assert await hand.texts("url") == ["https://shop.example/2"]
    hand.phone.set_fault("banner")
    assert await hand.texts("error") == ["网页无法打开"]
    hand.phone.set_fault("banner", False)
    await hand.tap("刷新")
    assert await hand.texts("heading") == ["shop.example"]
    opened = [action["detail"] for action in hand.phone.report()["actions"] if action["what"] == "page_opened"]
    assert opened[-1] == opened[-2] == "https://shop.example/2"


async def test_an_address_that_another_app_hands_over() -> None:
    hand = Hand()
    assert await hand.phone.open_url("https://example.com/x")
    assert hand.phone.window().package == Browser.package
    assert not await hand.phone.open_url("https://example.com/x", "com.tencent.mm")
    without = Hand('[phone]\napps = ["qq"]')
    assert not await without.phone.open_url("https://example.com/x")
