"""Which open questions one answer may be offered for."""

from __future__ import annotations

import pytest

from knowledge.alike import alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("怎么退货", "亲，请问怎么退货呀？谢谢"),
        ("我昨天买的手机壳怎么退货", "我前天买的手机壳怎么退货"),
        ("1.5米的充电线有货吗", "请问1.5米的充电线有货吗"),
        ("How do I return the case that I bought yesterday?", "how do i return the case that i bought today"),
    ],
)
def test_they_ask_nearly_the_same(one: str, other: str) -> None:
    assert alike(one, other)
    assert alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("怎么退货", "怎么换货"),
        ("你家这个快充充电线1.5米的现在有货吗", "你家这个快充充电线15米的现在有货吗"),
        ("你家这个手机壳iPhone 15 Pro能不能用", "你家这个手机壳iPhone 15 Pro+能不能用"),
        ("how long does it take until order 12 is here", "how long does it take until order 13 is here"),
        ("能退吗", "不能退吗"),
        ("拆封了可以退货吗", "没拆封可以退货吗"),
        ("我昨天买的手机壳怎么退货", "我昨天买的手机壳怎么退货啊 已经寄走了"),
        ("我昨天买的手机壳可以自己来店里退吗", "我昨天买的手机壳需要自己来店里退吗"),
        ("我昨天买的手机壳要我寄给你们吗", "我昨天买的手机壳要你们寄给我吗"),
        ("你家这个透明手机壳iPhone 15 Pro能不能用", "你家这个透明手机壳iPhone 15 Max能不能用"),
        ("在吗", "在吗"),
        ("", "怎么退货"),
    ],
)
def test_they_do_not(one: str, other: str) -> None:
    assert not alike(one, other)
    assert not alike(other, one)
