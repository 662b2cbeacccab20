"""What was learnt of an app on a phone, against what is seen now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.apps.learnt import MOST_LOOKS, AppLook, LearntApp, differs
from agent_core.apps.profile import profile

LOOK = AppLook("#ededed", "#95ec69", "#ffffff", 0.232, 0.148, 0.03, 0.1, send_always=False)
LEARNT = LearntApp("wechat", "8.0.50", "button", (LOOK,))


@pytest.mark.parametrize(
    "seen",
    [
        LOOK,
        replace(LOOK, ground="#efefec", header=0.24, bar=None),  # compressed; a pinned line; a keyboard
        AppLook(),
        replace(LOOK, mine="", theirs="", send_always=None),
        replace(LOOK, theirs="#ffe3ec"),  # a customer with a bubble of their own
    ],
)
def test_small_things_and_what_is_not_known_are_no_difference(seen: AppLook) -> None:
    assert differs(LEARNT, seen) == []


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"ground": "#111111", "theirs": "#2c2c2c"}, ["ground"]),
        ({"mine": "#3eb575"}, ["mine"]),
        ({"header": 0.3}, ["header"]),
        ({"bar": 0.27, "send_always": True}, ["bar", "send_always"]),
        ({"avatar_left": 0.07, "avatar_size": 0.14}, ["avatar_left", "avatar_size"]),
    ],
)
def test_another_theme_and_another_layout_are_told(change: dict[str, object], names: list[str]) -> None:
    assert differs(LEARNT, replace(LOOK, **change)) == names  # type: ignore[arg-type]  # fields of it


def test_any_of_several_looks_will_do() -> None:
    dark = replace(LOOK, ground="#111111", theirs="#2c2c2c", mine="#3eb575")
    both = LEARNT.with_look(dark)
    assert differs(both, dark) == []
    assert differs(both, LOOK) == []
    assert differs(both, replace(dark, header=0.3)) == ["header"]
    assert differs(LearntApp("qq", "9.1"), LOOK) == []
    many = LEARNT
    for number in range(MOST_LOOKS + 2):
        many = many.with_look(replace(dark, header=0.1 * number))
    assert len(many.looks) == MOST_LOOKS
    again = LEARNT
    for _ in range(MOST_LOOKS + 2):
        again = again.with_look(replace(LOOK, theirs="#ffe3ec")).with_look(dark)
    assert len(again.looks) == 2, "the same look is kept once"


def test_the_colours_of_a_phone_come_before_those_of_every_phone() -> None:
    dark = replace(LOOK, theirs="#2c2c2c", mine="#123456")
    here = LEARNT.with_look(dark).on(profile("wechat"))
    assert here.my_bubble_colors[:2] == ("#123456", "#95ec69")
    assert set(here.my_bubble_colors) == {"#123456", *profile("wechat").my_bubble_colors}
    assert here.their_bubble_colors == ("#2c2c2c", "#ffffff")
    assert LearntApp("wechat", "8.0.50", looks=(AppLook(),)).on(profile("wechat")) == profile("wechat")
