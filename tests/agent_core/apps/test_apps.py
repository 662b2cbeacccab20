from __future__ import annotations

import re
import tomllib

import pytest
from pydantic import ValidationError

from agent_core.apps.names import is_identifier, resolve_app
from agent_core.apps.profile import AppProfile, layered, profile, profile_of_package, profiles, resolve
from agent_core.texts import Lang, say

QQ = "com.tencent.mobileqq"
COLOR = re.compile(r"#[0-9a-f]{6}")


def test_profiles_are_whole() -> None:
    keys = [item.key for item in profiles()]
    assert "qq" in keys
    assert len(set(keys)) == len(keys)
    packages = [package for item in profiles() for package in item.packages]
    assert len(set(packages)) == len(packages)
    for item in profiles():
        assert profile(item.key) is item
        for package in item.packages:
            assert is_identifier(package)
            assert profile_of_package(package) is item
        for region in (item.title_region, item.messages_region):
            left, top, right, bottom = region
            assert 0 <= left < right <= 1
            assert 0 <= top < bottom <= 1
        assert item.title_region[3] <= item.messages_region[1]  # the title stands over the messages
        for color in (*item.my_bubble_colors, *item.their_bubble_colors):
            assert COLOR.fullmatch(color)
        assert not set(item.my_bubble_colors) & set(item.their_bubble_colors)
        assert set(item.send_texts) <= set(item.delivery_only)
        assert {"转账", "红包", "支付", "删除"} <= set(item.risky)
        assert item.ai_entries


def test_the_title_of_qq_begins_where_a_name_without_a_count_before_it_does() -> None:
    """Seen at 104 of 1080 pixels."""
    assert profile("qq").title_region[0] <= 0.096


def test_a_package_has_to_be_the_whole_one() -> None:
    assert profile_of_package("com.tencent.mobileqqi") is None
    assert profile_of_package(None) is None
    assert profile_of_package("") is None
    with pytest.raises(KeyError):
        profile("nothing")


def test_a_profile_with_a_word_too_many_is_refused() -> None:
    whole = profile("qq").model_dump()
    assert AppProfile.model_validate(whole) == profile("qq")
    with pytest.raises(ValidationError):
        AppProfile.model_validate({**whole, "titel_ids": ["x"]})
    with pytest.raises(ValidationError):
        profile("qq").key = "x"  # type: ignore[misc]  # that is what is tried


# -- WeChat, and what profiles tell


def test_each_package_has_one_profile_and_whole_names_count() -> None:
    packages = [package for app in profiles() for package in app.packages]
    assert len(packages) == len(set(packages))
    assert profile_of_package("com.tencent.mm") is profile("wechat")
    for package in ("com.tencent.mobileqqi", "com.tencent.mm2", "com.tencent.m", "com.tencent", None):
        assert profile_of_package(package) is None


def test_names_are_of_one_app_alone() -> None:
    names = [name.casefold() for app in profiles() for name in (app.key, app.name, *app.aliases)]
    keys = {app.key.casefold() for app in profiles()}
    assert all(names.count(name) == 1 for name in names if name not in keys)
    installed = ["com.tencent.mm", "com.tencent.mobileqq", "com.tencent.wework"]
    assert resolve_app("微信", installed) == resolve_app("WeChat", installed) == "com.tencent.mm"
    assert resolve_app("企业微信", installed) == "com.tencent.wework"
    assert resolve_app("微信", ["com.tencent.mobileqq"]) is None


def test_wechat_names_what_must_not_be_tapped() -> None:
    wechat = profile("wechat")
    assert {"转账", "收款", "红包", "语音通话", "删除", "加入黑名单"} <= set(wechat.risky)
    assert "元宝" in wechat.ai_entries
    assert "企业微信" in wechat.unlike


# -- layers


LAYERED = """
key = "chat"
name = "Chat"
packages = ["a.chat"]
send_ids = ["send"]
quotes_below = false

[[layers]]
name = "old"
versions = "<9"
send_ids = ["fun"]
title_ids = ["t8"]

[[layers]]
name = "new"
versions = ">=9,<10.2"
title_ids = ["t9"]
counts_in_title = false
"""


@pytest.mark.parametrize(
    ("version", "send", "title", "counted"),
    [
        ("8.9.58.11170", ("fun", "send"), ("t8",), True),
        ("9", ("send",), ("t9",), False),
        ("9.0.0", ("send",), ("t9",), False),
        ("10.1.9 beta", ("send",), ("t9",), False),
        ("10.2", ("send",), (), True),
        (None, ("send", "fun"), ("t8", "t9"), True),  # any may be: lists are united, a single value stays
        ("unknown", ("send", "fun"), ("t8", "t9"), True),
    ],
)
def test_a_layer_is_of_its_versions(
    version: str | None, send: tuple[str, ...], title: tuple[str, ...], counted: bool
) -> None:
    found = layered(tomllib.loads(LAYERED)).resolve(version)
    assert (found.send_ids, found.title_ids, found.counts_in_title) == (send, title, counted)


@pytest.mark.parametrize("wrong", ['versions = "9.1.*"', 'versions = "=9"', 'title_idz = ["x"]', 'risky = ["x"]'])
def test_a_layer_with_a_word_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        layered(tomllib.loads(LAYERED + f'\n[[layers]]\nname = "wrong"\n{wrong}\n'))


def test_real_versions_have_their_own_ids() -> None:
    new, old = resolve("qq", "9.3.50"), resolve("qq", "8.8.0")
    assert "fun_btn" in new.more_ids
    assert "fun_btn" not in new.send_ids
    assert "fun_btn" in old.send_ids
    assert "fun_btn" not in old.more_ids
    assert not new.bubble_ids
    assert old.bubble_ids
    assert "mjn" in new.text_ids
    assert resolve("wechat", "8.0.58").input_ids == ("bkk",)
    assert "bkk" not in resolve("wechat", "7.0.4").input_ids


@pytest.mark.parametrize("app", ["qq", "wechat"])
def test_bubbles_have_colours(app: str) -> None:
    found = resolve(app)
    assert found.my_bubble_colors
    assert found.their_bubble_colors
    assert not set(found.my_bubble_colors) & set(found.their_bubble_colors)
    for color in (*found.my_bubble_colors, *found.their_bubble_colors):
        assert COLOR.fullmatch(color)


def test_rows_of_the_list_that_are_no_contacts() -> None:
    assert {"Windows 微信已登录", "折叠置顶聊天"} <= set(profile("wechat").service_rows)


@pytest.mark.parametrize("number", ["", "11a", "1&x=2", "１１", "1" * 21, " 11"])
def test_a_chat_is_opened_by_digits_alone(number: str) -> None:
    assert profile("qq").chat_url_of(number) is None


def test_the_address_of_a_chat() -> None:
    assert profile("qq").chat_url_of("20110011") == "mqqwpa://im/chat?chat_type=wpa&uin=20110011&version=1&src_type=web"
    assert profile("wechat").chat_url_of("20110011") is None


@pytest.mark.parametrize(("lang", "name"), [("zh", "微信"), ("en", "WeChat")])
def test_a_text_names_an_app_in_its_own_language(lang: Lang, name: str) -> None:
    said = say(lang, "delivery.red_mark", app=profile("wechat").known_as)
    assert [word for word in ("微信", "WeChat") if word in said] == [name]
