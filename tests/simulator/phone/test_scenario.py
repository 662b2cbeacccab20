from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_core.errors import ConfigInvalid, ConfigMissing
from simulator.phone.scenario import Scenario
from simulator.phone.scenario_file import default_scenario, load_scenario, parse_scenario
from tests.simulator.phone.hand import QQ, Hand, chat


def test_the_shipped_world_has_the_names_that_are_easily_mistaken() -> None:
    names = [contact.name for contact in default_scenario().contacts if contact.app == "qq"]
    assert {"11", "110", "小11", "11号售后群"} <= set(names)


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text(chat("在吗"), encoding="utf-8")
    as_json.write_text(json.dumps(load_scenario(toml).model_dump(mode="json")), encoding="utf-8")
    assert load_scenario(as_json) == load_scenario(toml)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[phone]\nserail = 'x'", ["phone.serail", "serial, model"]),
        ("enter_send = true", ["enter_send", "enter_sends"]),
        ("[[phone.others]]\nlabel = 'a'\npackage = 'a.b'\n" * 2, ["a.b stands there twice"]),
        ("[[phone.others]]\nlabel = 'a'\npackage = 'A b'", ["phone.others[0].package"]),
        (chat("a") + "colour = 1", ["contacts[0].colour", "history"]),
        ("[[contacts]]\nname = '1'\nhistory = [{ side = 'them', txt = 'a' }]", ["contacts[0].history[0].txt", "ago"]),
        ("[[contacts]]\nname = '1'\nhistory = [{ side = 'you', text = 'a' }]", ["contacts[0].history[0].side", "'me'"]),
        ("[[contacts]]\nname = '1'\nhistory = [{ side = 'me' }]", ["contacts[0].history[0]", "needs one"]),
        (chat("a") + chat("b"), ["'11'", "twice"]),
        (chat("a") + "[[events]]\nat = 1\ncontact = '12'\ntext = 'x'", ["events[0]", "'12'", "there are 11"]),
        (chat("a") + "[[events]]\ncontact = '11'\ntext = 'x'", ["events[0]", "exactly one"]),
        (chat("a") + "[[events]]\nat = 1\ndo = 'fault'\nfault = 'fire'", ["events[0]", "fire"]),
        ("[faults]\nslow = 'very'", ["faults.slow"]),
        ("[phone]\nsize = [1080, 1200]", ["phone", "height"]),
        ("look = 'qq-plian'", ["look: no look 'qq-plian'", "qq-plain", "wechat-dark"]),
        ("look = ['qq-plain', 'qq-dark']", ["look: 'qq-plain' and 'qq-dark' are both looks of qq"]),
        ("[phone]\nfont_scale = 3", ["phone.font_scale", "1.6"]),
        ("[[events]]\nat = 1\ndo = 'notification'\ntext = 'x'", ["events[0]", "title"]),
        ("[phone", ["not TOML", "end of document"]),
    ],
)
def test_what_is_wrong_is_named_with_file_field_and_what_is_allowed(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigInvalid) as caught:
        load_scenario(path)
    for word in [str(path), *words]:
        assert word in caught.value.message


def test_each_app_has_its_look() -> None:
    assert parse_scenario("").looks == {"qq": "qq-plain", "wechat": "wechat-light"}
    assert parse_scenario("look = 'wechat-dark'").looks == {"qq": "qq-plain", "wechat": "wechat-dark"}
    assert parse_scenario("look = ['wechat-dark', 'qq-classic']").looks == {"qq": "qq-classic", "wechat": "wechat-dark"}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\nb = 2", [1, 2]),
        ("[phone]\n\nx = 1\n[keyboard]\ny.z = 2", [3, 5]),
        ("phone = { model = 'a', x = 1 }", [1]),
        ("[[contacts]]\nname = 'a'\n[[contacts]]\nname = 'b'\nx = 1", [5]),
        ("[[contacts]]\nname = 'a'\nhistory = [\n {text = 'a'},\n # b\n {text = 'c', x = 1},\n]", [6]),
        ("[[contacts]]\nname = 'a'\n[[contacts.history]]\ntext = 'a'\n[[contacts.history]]\ntext = 'b'\nx = 1", [7]),
        ('[[contacts]]\nname = """a\nb"""\n\'x y\' = 1\n[[contacts]]\n', [4, 5]),  # the second has no name
        ("[[contacts]]\nname = 'a'\n[[contacts]]\nname = 'a'", [1]),
        ("enter_sends = true\n[[contacts]]\nname = 'a'\n\n[[events]]\nat = 1\ncontact = 'b'\ntext = 'x'", [5]),
    ],
)
def test_each_fault_is_told_with_its_line(text: str, lines: list[int]) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_scenario(text, name="world.toml")
    assert [int(line.split(":")[1]) for line in caught.value.message.splitlines()] == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"phone": {},\n "x": 1}', 2),
        ('{"contacts": [{"name": "a"},\n {"name": "b",\n  "x": 1}]}', 3),
        ('{"\\u0070hone": {"a": [],\n "serial": "!"}}', 1),
        ("[]", 1),
        ('{"phone":\n}', 2),
    ],
)
def test_a_file_of_json_has_lines_too(text: str, line: int) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_scenario(text, name="world.json", form="json")
    assert caught.value.message.startswith(f"world.json:{line}: ")


def test_a_value_that_another_part_does_not_know_is_no_field() -> None:
    with pytest.raises(ConfigInvalid, match=r"world:5: events\[0\]: 'fire' is not known"):
        parse_scenario(chat("a") + "[[events]]\nat = 1\ndo = 'fault'\nfault = 'fire'", name="world")


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing, match=r"none\.toml"):
        load_scenario(tmp_path / "none.toml")


async def test_events_come_at_their_time_once() -> None:
    hand = Hand(chat("在吗", extra="") + "[[events]]\nat = 5\ncontact = '11'\ntext = '还在吗'")
    await hand.phone.launch(QQ)
    hand.wait(4.9)
    assert await hand.texts("row_preview") == ["在吗"]
    hand.wait(0.1)
    assert await hand.texts("row_preview") == ["还在吗"]
    hand.wait(60)
    assert [message["text"] for message in hand.phone.report()["chats"]["11"]] == ["在吗", "还在吗"]


async def test_events_follow_what_was_done() -> None:
    events = """
    [[events]]
    after_opened = "11"
    contact = "11"
    text = "你好？"
    [[events]]
    after_typed = "11"
    contact = "11"
    do = "colleague"
    text = "我来回复"
    [[events]]
    after_sent = "11"
    count = 2
    delay = 3
    contact = "11"
    do = "recall"
    [[events]]
    after_sent = "11"
    do = "fault"
    fault = "popup"
    value = "评价一下"
    """
    hand = Hand(chat("在吗") + events)

    def said() -> list[tuple[str, str, str]]:
        return [(item["side"], item["text"], item["kind"]) for item in hand.phone.report()["chats"]["11"]]

    await hand.open_chat()
    assert said()[-1] == ("them", "你好？", "text")
    await hand.say("一")
    assert said()[-2:] == [("me", "我来回复", "text"), ("me", "一", "text")]
    assert hand.phone.report()["sent"] == {"11": ["一"]}  # the colleague's is not ours
    assert await hand.texts("dialog_text") == ["评价一下"]
    await hand.tap("dialog_close")
    hand.wait(5)
    assert ("them", "你好？", "text") in said()  # the recall waits for the second text of ours
    await hand.say("二")
    assert ("them", "你好？", "recalled") not in said()
    hand.wait(3)
    assert ("them", "你好？", "recalled") in said()


async def test_faults_keyboard_tree_and_drafts_are_there_from_the_start() -> None:
    text = "tree = 'empty'\n[faults]\nlocked = true\n[keyboard]\ncurrent = 'adb'\n" + chat("在吗") + "draft = '旧稿'"
    report = Hand(text).phone.report()
    assert report["locked"]
    assert report["tree_mode"] == "empty"
    assert report["input_method"].startswith("com.android.adbkeyboard/")
    assert report["drafts"] == {"11": "旧稿"}


def test_json_schema_describes_the_fields() -> None:
    schema = Scenario.model_json_schema()
    assert "Enter sends" in schema["properties"]["enter_sends"]["description"]
