from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent_core.apps.names import (
    AppMap,
    is_app_name,
    names_an_app,
    names_one_of,
    opened_alone,
    packages_named,
    resolve_app,
    without_profile,
)
from agent_core.devices.base import System
from agent_core.owner import folder as own
from agent_core.owner.faults import faults

QQ = "com.tencent.mobileqq"
# What could be launched by name before HarmonyOS and iOS were known; nobody's task may stop working.
FIRST_NAMES = [
    "微信",
    "wechat",
    "weixin",
    "支付宝",
    "alipay",
    "设置",
    "settings",
    "淘宝",
    "taobao",
    "闲鱼",
    "xianyu",
    "idlefish",
    "京东",
    "jd",
    "拼多多",
    "pinduoduo",
    "小红书",
    "xiaohongshu",
    "rednote",
    "抖音",
    "douyin",
    "快手",
    "kuaishou",
    "哔哩哔哩",
    "bilibili",
    "b站",
    "微博",
    "weibo",
    "知乎",
    "zhihu",
    "美团",
    "meituan",
    "饿了么",
    "eleme",
    "大众点评",
    "dianping",
    "高德地图",
    "amap",
    "高德",
    "百度地图",
    "携程",
    "ctrip",
    "12306",
    "铁路12306",
    "钉钉",
    "dingtalk",
    "企业微信",
    "wecom",
    "飞书",
    "lark",
    "feishu",
    "网易云音乐",
    "QQ音乐",
    "Chrome",
    "谷歌浏览器",
    "Telegram",
    "WhatsApp",
    "Gmail",
    "相机",
    "camera",
    "电话",
    "phone",
    "短信",
    "messages",
    "信息",
    "日历",
    "calendar",
    "时钟",
    "clock",
    "计算器",
    "calculator",
]
FIRST_PACKAGES = {
    "支付宝": "com.eg.android.AlipayGphone",
    "闲鱼": "com.taobao.idlefish",
    "b站": "tv.danmaku.bili",
    "baidu maps": "com.baidu.BaiduMap",
    "铁路12306": "com.MobileTicket",
    "netease music": "com.netease.cloudmusic",
    "qq music": "com.tencent.qqmusic",
    "谷歌浏览器": "com.android.chrome",
    "Telegram": "org.telegram.messenger",
    "相机": "com.android.camera",
    "phone": "com.android.dialer",
    "信息": "com.android.mms",
    "clock": "com.android.deskclock",
    "calculator": "com.android.calculator2",
}


def shipped() -> AppMap:
    text = resources.files("agent_core.apps").joinpath("map.toml").read_text(encoding="utf-8")
    return AppMap.model_validate(tomllib.loads(text))


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


# -- the map


def test_the_map_has_the_apps_that_are_used_most_and_each_of_its_names_leads_to_one() -> None:
    file = shipped()  # it refuses a name of two apps, and identifiers that cannot be any
    apps = [app for table in (file.answers, file.mail, file.phone, file.other) for app in table.values()]
    assert len(apps) >= 150
    assert sum(bool(app.harmonyos) for app in apps) >= 90
    assert sum(bool(app.ios) for app in apps) >= 120
    for name, app in file.names(file.answers, file.mail, file.phone, file.other):
        for package in app.android if name not in ("qq", "微信") else ():
            assert resolve_app(name, [package]) == package, name


@pytest.mark.parametrize("name", FIRST_NAMES)
def test_the_first_names_are_known_still(name: str) -> None:
    assert packages_named(name, System.ANDROID)


@pytest.mark.parametrize(("name", "package"), FIRST_PACKAGES.items())
def test_the_first_names_mean_the_same_still(name: str, package: str) -> None:
    assert packages_named(name, System.ANDROID)[0] == package


@pytest.mark.parametrize(
    ("system", "identifier"),
    [
        (System.ANDROID, "com.taobao.idlefish"),
        (System.HARMONYOS, "com.taobao.idlefish4ohos"),
        (System.IOS, "com.taobao.fleamarket"),
    ],
)
def test_each_system_calls_an_app_by_another_name(system: System, identifier: str) -> None:
    assert packages_named("闲鱼", system) == (identifier,)
    assert identifier in packages_named("xianyu")
    assert resolve_app("闲鱼", [identifier], system) == identifier


def test_a_chat_app_with_a_profile_has_names_on_every_system() -> None:
    assert packages_named("微信", System.HARMONYOS) == ("com.tencent.wechat",)
    assert packages_named("手机QQ", System.IOS) == ("com.tencent.mqq",)


def test_a_system_on_which_an_app_is_not_known_has_none() -> None:
    assert packages_named("TIM", System.HARMONYOS) == ()


def test_of_several_packages_the_first_that_is_installed_is_meant() -> None:
    assert resolve_app("相机", ["com.huawei.camera"]) == "com.huawei.camera"
    assert resolve_app("相机", ["com.huawei.camera", "com.android.camera"]) == "com.android.camera"
    assert resolve_app("相机", ["com.tencent.mm"]) is None


def test_a_name_that_looks_like_a_package_is_a_name_first() -> None:
    assert resolve_app("Booking.com", ["com.booking"]) == "com.booking"
    assert packages_named("com.example.shop") == ("com.example.shop",)
    assert packages_named("com.luojilab.LuoJiFM-IOS", System.IOS) == ("com.luojilab.LuoJiFM-IOS",)


def test_a_name_of_two_apps_is_refused() -> None:
    table = {"甲": {"also": ["Shop"], "android": "com.example.a"}, "乙": {"also": "s h o p", "ios": "com.example.b"}}
    with pytest.raises(ValidationError, match="two apps"):
        AppMap.model_validate({"other": table})
    with pytest.raises(ValidationError, match="two apps"):
        AppMap.model_validate({"answers": {"甲": table["甲"]}, "other": {"乙": table["乙"]}})


@pytest.mark.parametrize(
    "app",
    [{}, {"also": ["shop"]}, {"android": "example"}, {"harmonyos": "com..a"}, {"ios": "a b"}, {"windows": "com.a.b"}],
)
def test_an_app_without_a_right_identifier_is_refused(app: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AppMap.model_validate({"other": {"甲": app}})


# -- the owner's


def used(folder: Path, text: str) -> Path:
    file = folder / "apps" / "map.toml"
    file.parent.mkdir(mode=0o755)
    file.write_text(text, encoding="utf-8")
    own.use(folder)
    return file


@pytest.fixture(autouse=True)
def nobodys_folder() -> object:
    yield
    own.use(None)


def test_the_owners_names_come_first(tmp_path: Path) -> None:
    used(
        tmp_path,
        """
        [answers]
        "小店助手" = { android = "com.example.shop" }
        [other]
        "闲鱼" = { also = ["二手"], android = ["com.example.fish", "com.taobao.idlefish"] }
        """,
    )
    assert resolve_app("小店助手", ["com.example.shop"]) == "com.example.shop"
    assert (
        packages_named("闲鱼", System.ANDROID) == packages_named("二手") == ("com.example.fish", "com.taobao.idlefish")
    )
    assert resolve_app("闲鱼", ["com.taobao.idlefish"]) == "com.taobao.idlefish"
    assert without_profile("在小店助手和闲鱼里回复") == ["小店助手"]
    assert packages_named("QQ", System.ANDROID) == (QQ,)
    assert not faults(tmp_path)


def test_a_wrong_map_of_the_owners_is_told_with_its_place(tmp_path: Path) -> None:
    file = used(tmp_path, '[other]\n"甲" = { android = "com.example.a", apk = "x" }\n')
    (fault,) = faults(tmp_path)
    assert (fault.file, fault.path) == (file, ("other", "甲", "apk"))
    with pytest.raises(own.OwnWrong):
        packages_named("甲")


# -- in sentences


def test_names_that_are_everyday_words_mean_an_app_alone_only() -> None:
    assert packages_named("得到") == packages_named("得到", System.ANDROID) + packages_named("得到", System.IOS)
    assert opened_alone("打开得到") == "得到"
    for text in ("问客户怎么得到优惠券", "Keep it short", "回复Kimi", "联系人11转转的"):
        assert not names_an_app(text), text
        assert without_profile(text) == [], text
    assert names_one_of("打开得到看看", ["com.luojilab.player"])


def test_people_may_be_called_as_an_app_is() -> None:
    assert is_app_name("闲鱼")
    assert is_app_name("WhatsApp")
    assert is_app_name("com.example.shop")
    assert not any(map(is_app_name, ("Kimi", "Claude", "豆包", "起点", "58")))


def test_apps_in_which_people_write_are_found_in_a_sentence() -> None:
    assert without_profile("Reply to 11 on WhatsApp and xian yu") == ["WhatsApp", "xian yu"]
    assert without_profile("用QQ、微信、邮件、设置、Gmail回复") == []
    assert names_an_app("回复短信")
    assert names_an_app("Answer the mails in Gmail")
