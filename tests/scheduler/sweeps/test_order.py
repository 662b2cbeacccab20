"""What people write of sweeps and watches."""

from __future__ import annotations

import pytest

from agent_core.errors import InputRejected
from scheduler.sweeps.order import SweepOrder, kind_of, read_watch


@pytest.mark.parametrize(
    ("task", "order"),
    [
        ("盯着 11 “老客户 A”", SweepOrder(("11", "老客户 A"))),
        ("值守：#vip", SweepOrder((), ("vip",))),
        ("watch wechat all", SweepOrder(app="wechat")),
        ("盯着 所有", SweepOrder()),
        ("盯着看手机", None),
        ("巡检 11", None),
        ("QQ回复联系人11", None),
    ],
)
def test_read_watch(task: str, order: SweepOrder | None) -> None:
    assert read_watch(task) == order
    assert (kind_of(task) == "watch") is (order is not None)


@pytest.mark.parametrize("task", ["盯着", "watch 微信", "值守：", "盯着:\u3000微信", "watch:\u00a0QQ", "watch \rqq"])
def test_everybody_has_to_be_said(task: str) -> None:
    with pytest.raises(InputRejected, match="Who is to be watched"):
        read_watch(task)
