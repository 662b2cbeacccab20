"""What the model asks of people, and what it kept, with the whole product."""

from __future__ import annotations

from tests.acceptance.stage import Stage
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
    await owner.tap(await on.sees(owner, "红还是蓝"), "蓝的")
    await owner.send("三个", reply_to=await on.sees(owner, "要几个"))
    over = await on.sees(owner, "请在手机上登录")
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
