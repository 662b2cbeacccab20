from __future__ import annotations

import pytest

from bot.channels.chat.commands import Command, ForAnotherBot, RunRequest, Unknown, is_like_a_command, parse, read_run


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
        ("/rnu", Unknown("/rnu", "/run")),
        ("/lang", Unknown("/lang", "/settings")),
        ("/语言 en", Unknown("/语言", "/settings")),
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


LIKE = (
    "运行 打开QQ", "运行：打开QQ", "运行QQ", "回放 3", "回放3", "停止 3", "停止3", "停止。", "暂停", "暂停！", "stop 3",
    "stop吧", "Stop, please", "run: open QQ", "pause", "/x", " ／停", "知识库：退货", "status?",
    "phonedesk questions list", ".venv/bin/phonedesk demo", "make demo", "cd phonedesk", "ls", " ls -l", "sudo ls",
    "pip install phonedesk", "$ phonedesk", "./run.sh", "~/bin/x", "PHONEDESK_LANG=en make demo", "export A=1", "exit",
)  # fmt: skip
SENTENCES = (
    "停止发货了吗", "运行很稳定", "暂停发货到周五", "手机壳有货", "设置里可以改", "继续使用没有问题", "历史最低价",
    "亲，帮助很大",
    "今天停止发货，status 明天更新", "stopping soon", "runs well", "holds 2 litres", "好的", "",
    "Make sure it is open", "cd架有货", "makeup is back", "pip很好", "python书今天发货", "ls8屏幕有货",
    "sudoku books", "~3天", "...",
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [*((t, True) for t in LIKE), *((t, False) for t in SENTENCES)])
def test_what_somebody_may_have_meant_for_the_desk(text: str, expected: bool) -> None:
    assert is_like_a_command(text) is expected


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
