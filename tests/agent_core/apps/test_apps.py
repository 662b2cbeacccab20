from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from pydantic import ValidationError

from agent_core.apps.names import PACKAGE, resolve_app
from agent_core.apps.profile import AppProfile, profile, profile_of_package, profiles
from agent_core.devices.virtual.apps.looks import DEFAULT_LOOKS, LOOKS

QQ = "com.tencent.mobileqq"
COLOR = re.compile(r"#[0-9a-f]{6}")


@pytest.mark.parametrize("name", ["QQ", "qq", " Q Q ", "手机QQ", "腾讯 qq", "ＱＱ", "mobileqq", QQ])
def test_what_people_call_qq(name: str) -> None:
    assert resolve_app(name, ["com.android.settings", QQ]) == QQ


@pytest.mark.parametrize("name", ["", " ", "QQ音乐盒子", "com.tencent.mobileqqi", "com.tencent", QQ.upper()])
def test_what_is_not_qq(name: str) -> None:
    assert resolve_app(name, [QQ]) is None


def test_only_what_is_installed_is_found() -> None:
    assert resolve_app("QQ", []) is None
    assert resolve_app("QQ", ["com.tencent.mobileqqi"]) is None
    assert resolve_app(QQ, []) is None


def test_every_package_of_the_map_is_one_and_every_name_leads_to_it() -> None:
    raw = json.loads(resources.files("agent_core.apps").joinpath("map.json").read_text(encoding="utf-8"))
    assert len(raw) > 20
    for label, (package, *aliases) in raw.items():
        assert PACKAGE.fullmatch(package), label
        for name in (label, *aliases):
            assert resolve_app(name, [package]) == package, name


def test_profiles_are_whole() -> None:
    keys = [item.key for item in profiles()]
    assert "qq" in keys
    assert len(set(keys)) == len(keys)
    packages = [package for item in profiles() for package in item.packages]
    assert len(set(packages)) == len(packages)
    for item in profiles():
        assert profile(item.key) is item
        for package in item.packages:
            assert PACKAGE.fullmatch(package)
            assert profile_of_package(package) is item
        for region in (item.title_region, item.messages_region):
            left, top, right, bottom = region
            assert 0 <= left < right <= 1
            assert 0 <= top < bottom <= 1
        assert item.title_region[3] <= item.messages_region[1]  # the title stands over the messages
        for color in (item.my_bubble_color, item.their_bubble_color, item.page_color, item.input_color):
            assert COLOR.fullmatch(color)
        assert item.my_bubble_color != item.their_bubble_color
        assert set(item.send_texts) <= set(item.delivery_only)
        assert {"转账", "红包", "支付", "删除"} <= set(item.risky)
        assert item.ai_entries


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


@pytest.mark.parametrize(
    ("version", "known"), [("9.1.30", True), ("9.1.3", False), ("9.1.300", False), ("", False), (None, False)]
)
def test_versions_whose_layout_is_known(version: str | None, known: bool) -> None:
    assert profile("qq").knows(version) is known
    assert profile("qq").model_copy(update={"versions": ("9.1.*",)}).knows("9.1.99")


def test_the_virtual_phone_has_versions_that_are_known() -> None:
    for key in ("qq", "wechat"):
        assert profile(key).knows(LOOKS[DEFAULT_LOOKS[key]].version)


@pytest.mark.parametrize("number", ["", "11a", "1&x=2", "１１", "1" * 21, " 11"])
def test_a_chat_is_opened_by_digits_alone(number: str) -> None:
    assert profile("qq").chat_url_of(number) is None


def test_the_address_of_a_chat() -> None:
    assert profile("qq").chat_url_of("20110011") == "mqqwpa://im/chat?chat_type=wpa&uin=20110011&version=1"
    assert profile("wechat").chat_url_of("20110011") is None
