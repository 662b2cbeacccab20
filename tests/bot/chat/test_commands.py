from __future__ import annotations

import pytest

from bot.chat.commands import (
    Command,
    ForAnotherBot,
    RunRequest,
    Unknown,
    parse,
    read_run,
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/run QQ回复联系人11", Command("run", "QQ回复联系人11")),
        ("/RUN  x\ny ", Command("run", "x\ny")),
        ("／run 打开微信", Command("run", "打开微信")),
        ("/run　打开微信", Command("run", "打开微信")),
        ("/run@desk_bot x", Command("run", "x")),
        ("/run@Desk_Bot", Command("run")),
        ("/运行 打开微信", Command("run", "打开微信")),
        ("运行 打开微信", Command("run", "打开微信")),
        ("运行：打开微信", Command("run", "打开微信")),
        ("停止", Command("stop")),
        (" 状态 ", Command("status")),
        ("截图", Command("screen")),
        ("帮助", Command("help")),
        ("/status@other_bot", ForAnotherBot()),
        ("/statsu", Unknown("/statsu", "/status")),
        ("/dance", Unknown("/dance")),
        ("手机", Command("devices")),
        ("/设备", Command("devices")),
        ("/停一下", Unknown("/停一下")),
        ("/zzzzzz", Unknown("/zzzzzz")),
        ("/", Unknown("/")),
        ("运行不正常怎么办", None),
        ("停止发送那条", None),
        ("hello", None),
        ("", None),
    ],
)
def test_parse(text: str, command: object) -> None:
    assert parse(text, bot_name="desk_bot") == command


@pytest.mark.parametrize(
    ("rest", "request_"),
    [
        ("QQ回复联系人11", RunRequest("QQ回复联系人11")),
        ('"QQ 回复 11"', RunRequest("QQ 回复 11")),
        ("“QQ 回复 11”", RunRequest("QQ 回复 11")),
        ("「打开微信」", RunRequest("打开微信")),
        ("“一”和“二”", RunRequest("“一”和“二”")),
        ('说 "你好"', RunRequest('说 "你好"')),
        ("-d S2 打开微信", RunRequest("打开微信", "S2")),
        ("--device=S2 “打开微信”", RunRequest("打开微信", "S2")),
        ("", RunRequest("")),
    ],
)
def test_read_run(rest: str, request_: RunRequest) -> None:
    assert read_run(rest) == request_
