"""Contacts in the chat, over the real desk."""

from __future__ import annotations

import pytest

from bot.channels.chat.contacts import ContactsCommand, contact_lines, read_asking
from bot.channels.chat.texts import Lang, texts
from bot.desk.actors import Role
from bot.desk.views import ContactView
from storage.hosts import Phones
from tests.bot.channels.chat.member import Member, member
from tests.support.shop import PHONE, Shop


@pytest.fixture
async def owner(shop: Shop) -> Member:
    return await member(shop, Role.OWNER)


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", ContactsCommand("list")),
        ("list 老", ContactsCommand("list", "老")),
        ("客户 甲", ContactsCommand("list", "客户 甲")),
        ("add 11", ContactsCommand("add", contact=ContactView("qq", "11"))),
        (
            "添加 “客户 甲” 12345678 #老客户 ＃批发 总问 运费",
            ContactsCommand(
                "add", contact=ContactView("qq", "客户 甲", "", "12345678", ("老客户", "批发"), "总问 运费")
            ),
        ),
        ("删除 「客户 甲」", ContactsCommand("remove", contact=ContactView("qq", "客户 甲"))),
        ("remove 客户 甲", ContactsCommand("remove", contact=ContactView("qq", "客户 甲"))),
        ("add", None),
        ("remove ", None),
    ],
)
def test_what_can_be_asked_for(rest: str, read: ContactsCommand | None) -> None:
    assert read_asking(rest) == read


async def test_add_list_remove(shop: Shop, owner: Member) -> None:
    assert (await owner.say("联系人")).startswith("还没有登记联系人。\n例如：/contacts 添加")
    added = await owner.say("/contacts add 11 12345678 #老客户 总问运费")
    assert added == "已添加联系人 11\n应用: QQ\n号码: 12345678\n手机: 任何手机\n标签: #老客户\n备注: 总问运费"
    assert "联系人 11 已经有了" in await owner.say("/contacts add 11")
    await owner.say("/contacts add 12")
    assert await owner.say("/contacts") == "联系人\n11: QQ · 12345678 · #老客户 · 总问运费\n12: QQ"
    assert await owner.say("/contacts 运费") == "联系人\n11: QQ · 12345678 · #老客户 · 总问运费"
    assert "没有找到这样的联系人。" in await owner.say("/contacts 没有")
    assert "已删除联系人 11" in await owner.say("/contacts remove 11")
    assert "没有联系人 11" in await owner.say("/contacts remove 11")
    assert "例如" in await owner.say("/contacts add")


@pytest.mark.parametrize(("lang", "name"), [("zh", "微信"), ("en", "WeChat")])
def test_an_app_is_called_by_its_name_in_the_readers_language(lang: Lang, name: str) -> None:
    assert contact_lines(ContactView("wechat", "11"), "", texts(lang))[0].text == name
    assert contact_lines(ContactView("gone", "11"), "", texts(lang))[0].text == "gone"  # its profile is not there


async def test_a_phone_is_called_by_its_name(shop: Shop, owner: Member) -> None:
    await Phones(shop.db).saw({PHONE: "Pixel_8"})
    await shop.desk.contacts.add(owner.actor, ContactView("qq", "11", "pixel-8"))
    assert await owner.say("/contacts") == "联系人\n11: QQ · Pixel 8"


async def test_an_operator_looks_a_viewer_does_not(shop: Shop, owner: Member) -> None:
    await owner.say("/contacts add 11")
    operator, viewer = await member(shop, Role.OPERATOR), await member(shop, Role.VIEWER)
    assert "11: QQ" in await operator.say("/contacts")
    assert "没有权限" in await operator.say("/contacts remove 11")
    assert "没有权限" in await viewer.say("/contacts")


async def test_a_long_list_says_what_it_leaves_out(shop: Shop, owner: Member) -> None:
    for number in range(33):
        await shop.desk.contacts.add(owner.actor, ContactView("qq", f"客户{number}"))
    assert (await owner.say("/contacts")).endswith("还有 3 个没有列出，用 /contacts 词 查找。")
