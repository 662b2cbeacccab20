"""What the model asks of people, and what it kept, with the whole product."""

from __future__ import annotations

from simulator.telegram.world import Message
from tests.acceptance.stage import PATIENCE, Stage
from tests.support.lab import do
from tests.support.model_server import Script


async def test_a_choice_a_phone_handed_over_and_the_notes_at_the_end(on: Stage) -> None:
    script: list[Script] = [
        do('do(action="Interact", question="红还是蓝？", choices=["红的", "蓝的"])'),
        do('do(action="Interact", question="要几个？")'),
        do('do(action="Take_over", message="请在手机上登录")'),
        do('do(action="Note", message="库存还有三件")'),
        do('finish(message="登录好了")'),
    ]
    on.model.script = script
    server = await on.serve()
    owner = await on.owner(server)
    card = await on.run(owner, "登录商城")
    # The run's card says what is asked, too.
    asked = await owner.sees(
        lambda where: [m for m in where.saying("红还是蓝") if _offers(m, "蓝的")], timeout=PATIENCE
    )
    await owner.tap(asked[-1], "蓝的")
    asked = await owner.sees(
        lambda where: [m for m in where.saying("要几个") if not _offers(m, "停止")], timeout=PATIENCE
    )
    await owner.send("三个", reply_to=asked[-1])
    handed = await owner.sees(
        lambda where: [m for m in where.saying("请在手机上登录") if _offers(m, "完成")], timeout=PATIENCE
    )
    over = handed[-1]
    assert over.buttons[0][:2] == ["完成", "结束"]
    on.phone.phone.panel.touch(300, 300)  # they do; that is no reason to ask who is on the phone
    await owner.tap(over, "完成")
    shown = await on.shows(owner, card, "已完成")
    assert "库存还有三件" in shown
    heard = [str(request["messages"][-1]) for request in on.model.requests]
    assert ["蓝的" in heard[1], "三个" in heard[2], "人工已在手机上处理完" in heard[3]] == [True] * 3
    [run] = await on.runs()
    await owner.send("/history")
    listed = await on.sees(owner, "任务历史")
    await owner.tap(listed, "#1")
    assert "库存还有三件" in (await on.sees(owner, "库存还有三件", count=2)).words
    assert run.status == "succeeded"


def _offers(message: Message, button: str) -> bool:
    return any(button in row for row in message.buttons)
